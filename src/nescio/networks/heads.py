"""Heads: the two raw maps of a precision network become the Gamma posterior over the precision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import softplus

from nescio._validation import check_one_of
from nescio.distributions import Gamma

__all__ = ["ConcentrationRateHead", "Head", "VarianceShapeHead", "make_head"]


class Head(Protocol):
    """Turns raw maps ``(M, 2, B, P)`` into a ``Gamma`` of shape ``(M, B, P)``."""

    def __call__(self, raw: Tensor) -> Gamma:
        """The posterior q(precision | x)."""
        ...

    def raw(self, variance: Tensor, concentration: Tensor) -> tuple[Tensor, Tensor]:
        """The raw values that give this variance and concentration: where training starts from."""
        ...


def _inverse_softplus(value: Tensor) -> Tensor:
    return value + torch.log(-torch.expm1(-value))


@dataclass(frozen=True)
class ConcentrationRateHead:
    r"""The paper's head: :math:`\alpha = 1 + \mathrm{softplus}(r_1)`, :math:`\beta = \mathrm{softplus}(r_2)`.

    Paper: sec:regression.  Nothing keeps :math:`\alpha` away from 1, where the variance is infinite, but
    ``smallest_excess``.
    """

    smallest_rate: float = 1e-10  # the authors' guard against log 0
    smallest_excess: float = 0.0  # theirs for images is 1e-4

    def __call__(self, raw: Tensor) -> Gamma:
        """The posterior q(precision | x), ``(M, B, P)``."""
        return Gamma(1.0 + self.smallest_excess + softplus(raw[:, 0]), softplus(raw[:, 1]) + self.smallest_rate)

    def raw(self, variance: Tensor, concentration: Tensor) -> tuple[Tensor, Tensor]:
        """The raw values that give this variance and concentration."""
        excess = concentration - 1.0
        own = (excess - self.smallest_excess).clamp_min(math.exp(-8.0)) if self.smallest_excess else excess
        return _inverse_softplus(own), _inverse_softplus((variance * excess).clamp_min(2 * self.smallest_rate))


@dataclass(frozen=True)
class VarianceShapeHead:
    r"""Our default: the variance :math:`v` and the shape :math:`\alpha`, with :math:`\beta = v(\alpha - 1)`.

    .. math:: v = \exp(30 \tanh(r_1 / 30)), \qquad
              \alpha = 1 + \alpha_{\min} + \mathrm{softplus}(r_2)

    Deviation: the paper's head gives alpha and beta. A KL to a Gamma of small shape is almost flat towards
    :math:`\alpha = 1`, so a posterior can run to an infinite variance at hardly any cost; here the variance is an
    output of its own and :math:`\alpha - 1` is bounded from below, so that variance is always finite.
    The logarithm of the variance stays within 30 of zero, beyond any level that standardised targets have.
    ``smallest_rate`` is added to :math:`\beta`.
    """

    smallest_excess: float = 0.25
    largest_log_variance: float = 30.0
    smallest_rate: float = 0.0  # images have pixels without noise, whose density would have no bound

    def __call__(self, raw: Tensor) -> Gamma:
        """The posterior q(precision | x), ``(M, B, P)``."""
        bound = self.largest_log_variance
        variance = torch.exp(bound * torch.tanh(raw[:, 0] / bound))
        excess = self.smallest_excess + softplus(raw[:, 1])
        return Gamma(1.0 + excess, variance * excess + self.smallest_rate)

    def raw(self, variance: Tensor, concentration: Tensor) -> tuple[Tensor, Tensor]:
        """The raw values that give this variance and concentration."""
        bound = self.largest_log_variance
        log_variance = torch.log(variance).clamp(-0.99 * bound, 0.99 * bound)
        excess = (concentration - 1.0 - self.smallest_excess).clamp_min(math.exp(-8.0))
        return bound * torch.atanh(log_variance / bound), _inverse_softplus(excess)


def make_head(name: str) -> Head:
    """The head called ``name``: ``"variance_shape"`` (default) or ``"concentration_rate"`` (the paper's)."""
    check_one_of("head", name, ("variance_shape", "concentration_rate"))
    return VarianceShapeHead() if name == "variance_shape" else ConcentrationRateHead()
