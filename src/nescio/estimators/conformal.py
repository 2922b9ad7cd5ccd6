"""Calibration of intervals, from rows that neither the mean nor the precision networks have learned from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from nescio.calibration import EDGE, OUTSIDE, Conformal, Support
from nescio.distributions import Gamma, StudentT
from nescio.estimators.core import CoreModel
from nescio.estimators.intervals import EDGE_RATE, OUTSIDE_RATE

__all__ = ["fit_conformal"]


def fit_conformal(
    core: CoreModel, x: np.ndarray, residuals: Tensor, held_out: Sequence[Tensor], support: Support
) -> Conformal:
    """Scores of the rows that at least one member was stopped by, and so has not learned from.

    ``x (N, D)`` are the training rows, ``residuals (N, P)`` those of a mean that did not see the row, ``held_out`` the
    row numbers of each member. A row's score is the tail probability of its residual in the even mixture of the members
    that held it out.
    """
    rows = np.unique(np.concatenate([part.numpy() for part in held_out]))
    unseen = torch.stack([torch.as_tensor(np.isin(rows, part.numpy())) for part in held_out]).unsqueeze(-1).double()
    q = core.posterior_of_seen(torch.as_tensor(x[rows], dtype=torch.float32))
    size = residuals[rows].abs().double().expand(q.rate.shape)
    predictive = StudentT.from_gamma(torch.zeros_like(size), Gamma(q.concentration.double(), q.rate.double()))
    tails = 2.0 * (predictive.cdf(-size) * unseen).sum(0) / unseen.sum(0)
    words = support.verdict(support.p_value_of_seen(x[rows]), EDGE_RATE, OUTSIDE_RATE)
    scores = tails.numpy()
    inside = (words != EDGE) & (words != OUTSIDE)
    return Conformal(np.sort(scores[inside], axis=0), np.sort(scores[words == EDGE], axis=0))
