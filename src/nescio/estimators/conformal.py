"""Calibration of intervals, from rows that neither the mean nor the precision networks have learned from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from nescio._random import child_seed
from nescio.calibration import EDGE, EDGE_RATE, OUTSIDE, OUTSIDE_RATE, Conformal, Support
from nescio.datasets.splits import group_rows
from nescio.distributions import Gamma, StudentT
from nescio.estimators.core import CoreModel
from nescio.estimators.means import hold_out
from nescio.estimators.problem import Core, Problem

__all__ = ["fit_conformal", "fit_spared", "spared_rows"]

MANY_ROWS = 5_000  # from here on a thousand rows are not missed
SPARED = 1_000


def spared_rows(problem: Problem) -> np.ndarray | None:
    """Numbers of rows to keep from all training, so that they are to the model what fresh rows are; None where few.

    A bag of networks errs less than the few of them that did not see a row. Where there is little noise that shows, and
    intervals calibrated on the latter would be too wide.
    """
    count = len(problem.x)
    if count < MANY_ROWS:
        return None
    seed = child_seed(problem.seed, "spared for calibration")
    spared: np.ndarray = hold_out(np.arange(count), group_rows(problem.x), SPARED / count, seed)[1].numpy()
    return spared


def fit_spared(core: Core, problem: Problem, spared: np.ndarray) -> Conformal:
    """Scores of rows that the model has not seen, from the distributions that it gives them."""
    x, support = problem.x[spared], problem.support()
    below = core.predictive(torch.as_tensor(x, dtype=torch.float32)).cdf(torch.as_tensor(problem.y[spared])).mean(0)
    scores = 2.0 * torch.minimum(below, 1.0 - below).double().numpy()
    return _grouped(scores, support.verdict(support.p_value_of_seen(x), EDGE_RATE, OUTSIDE_RATE))


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
    return _grouped(tails.numpy(), words)


def _grouped(scores: np.ndarray, words: np.ndarray) -> Conformal:
    inside = (words != EDGE) & (words != OUTSIDE)
    return Conformal(np.sort(scores[inside], axis=0), np.sort(scores[words == EDGE], axis=0))
