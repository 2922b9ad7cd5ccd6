"""Regressors with a Gamma posterior over the precision: what they know, measured against a prior."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nescio._validation import InputError
from nescio.distributions import Gamma, gamma_kl
from nescio.estimators.base import DistributionRegressor
from nescio.estimators.rows import Rows

__all__ = ["PrecisionRegressor"]


class PrecisionRegressor(DistributionRegressor):
    """A regressor whose prediction comes from a Gamma posterior q(precision | x)."""

    @property
    @abstractmethod
    def inside_prior_(self) -> Gamma | None:
        """The prior at the data, ``(P,)``, in standardised units; None where there is none."""

    @property
    @abstractmethod
    def outside_prior_(self) -> Gamma | None:
        """The prior away from the data, ``(P,)``, in standardised units; None where there is none."""

    def posterior(self, X: Any) -> tuple[Tensor, Gamma]:
        """Means and Gamma posteriors of the members, each ``(M, N, P)``, in standardised units."""
        return self._posterior(self._read(X))

    def _posterior(self, rows: Rows) -> tuple[Tensor, Gamma]:
        loc, q = self.core_.posterior(*self._for_core(rows))
        foreign = self._foreign_locations(rows)
        if foreign is not None:
            loc = torch.as_tensor((foreign - self.y_shift_) / self.y_scale_).expand(loc.shape)
        return loc.double(), Gamma(q.concentration.double(), q.rate.double())

    def knowledge(self, X: Any) -> np.ndarray:
        """How far the posterior has moved from the outside prior, in nats: the sum over targets, averaged over members.

        Where a method has one prior only, from that. A diagnostic: near zero the answer is the prior's. It is not
        monotone in ignorance.
        """
        rows = self._read(X)
        _, q = self._posterior(rows)
        prior = self.outside_prior_ if self.outside_prior_ is not None else self.inside_prior_
        if prior is None:
            raise InputError("knowledge is measured against a prior, and this model was fitted with prior=None.")
        if self.level_ is not None:
            level = torch.as_tensor(self.level_(rows.encoded))
            prior = Gamma(prior.concentration.expand_as(level), (prior.concentration - 1.0) * level.square())
        return gamma_kl(q, prior).sum(-1).mean(0).numpy()
