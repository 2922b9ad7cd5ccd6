"""What tables are made of: means and spreads over trials, paired differences, counts of wins and draws, ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from nescio._validation import InputError, check_fraction
from nescio.benchmark.names import METRICS, Metric

__all__ = [
    "TEST_OVER_TRAIN",
    "Difference",
    "Spread",
    "Win",
    "loss",
    "mean_ranks",
    "paired_difference",
    "spread",
    "win_and_draws",
    "worst",
]

TEST_OVER_TRAIN = {
    ("standard", "all"): 1 / 9,
    ("gap", "inside"): 1 / 9,
    ("gap", "hole"): 5 / 9,
    ("gap", "all"): 2 / 3,
    ("tail", "inside"): 1 / 9,
    ("tail", "tail"): 20 / 9,
    ("tail", "all"): 7 / 3,
}
"""Test rows over training rows of each split and region in protocol sound, where no ties move the cuts.

A tenth of the rows outside the hole or inside the tails is held out, and all of the hole or of the tails.
"""


class Spread(NamedTuple):
    """Mean and standard deviation (of a sample, nan for one value) over ``n`` trials."""

    mean: float
    std: float
    n: int

    @property
    def standard_error(self) -> float:
        """Of the mean, as if trials were independent."""
        return self.std / math.sqrt(self.n)


class Difference(NamedTuple):
    """A mean paired difference and its confidence interval."""

    mean: float
    low: float
    high: float
    n: int


class Win(NamedTuple):
    """The method with the best mean on one data set, and those that do not differ from it significantly."""

    best: str
    draws: tuple[str, ...]


def spread(values: Iterable[float]) -> Spread:
    """Mean, standard deviation and number of some values."""
    array = np.array(list(values), dtype=np.float64)
    if not len(array):
        raise InputError("values must not be empty; there is no mean of nothing.")
    with np.errstate(invalid="ignore"):  # infinities have no spread
        std = float(array.std(ddof=1)) if len(array) > 1 else math.nan
        return Spread(float(array.mean()), std, len(array))


def paired_difference(
    ours: Mapping[int, float], theirs: Mapping[int, float], test_over_train: float, level: float = 0.95
) -> Difference | None:
    r"""Mean of ``ours - theirs`` over the trials that both have, with the corrected resampled t interval.

    .. math:: \bar d \pm t_{n-1} \, s_d \sqrt{1/n + n_\mathrm{test}/n_\mathrm{train}}

    Source: nadeau2003, the corrected resampled t-test.  Trials share most of their training rows, so their differences
    are not independent, and the plain 1/n would promise too much. None where no trial is shared; an interval without
    ends where only one is.
    """
    tail = 0.5 * (1.0 - check_fraction("level", level))
    shared = sorted(ours.keys() & theirs.keys())
    if not shared:
        return None
    gaps = spread(ours[trial] - theirs[trial] for trial in shared)
    if gaps.n == 1:
        return Difference(gaps.mean, -math.inf, math.inf, 1)
    reach = float(stats.t.ppf(1.0 - tail, gaps.n - 1)) * gaps.std * math.sqrt(1.0 / gaps.n + test_over_train)
    return Difference(gaps.mean, gaps.mean - reach, gaps.mean + reach, gaps.n)


def loss(metric: str, value: float, metrics: Mapping[str, Metric] = METRICS) -> float:
    """A value as a loss: the smaller the better, whatever the metric; nan where neither way is better."""
    entry = metrics[metric]
    if entry.target is not None:
        return abs(value - entry.target)
    return -entry.better * value if entry.better else math.nan


def win_and_draws(metric: str, cells: Mapping[str, Spread], level: float = 0.05) -> Win | None:
    r"""The paper's rule: the best mean wins, and a method draws with it where a two-sided z test sees no difference.

    .. math:: |\mu_\mathrm{best} - \mu| \le z_{1 - \alpha/2}
        \sqrt{\sigma_\mathrm{best}^2 / N_\mathrm{best} + \sigma^2 / N}

    Paper: tab:uci.

    Deviation: the root is taken, which the paper's formula lacks, and N is the number of trials there were.
    A method without a spread draws with nobody. None where there are no finite means.
    """
    finite = {method: cell for method, cell in cells.items() if math.isfinite(cell.mean)}
    if not finite:
        return None
    best = min(finite, key=lambda method: loss(metric, finite[method].mean))
    reach = float(stats.norm.ppf(1.0 - 0.5 * level))
    draws = []
    for method, cell in finite.items():
        error = math.hypot(cell.standard_error, finite[best].standard_error)
        if method != best and abs(cell.mean - finite[best].mean) <= reach * error:
            draws.append(method)
    return Win(best, tuple(draws))


def mean_ranks(metric: str, means: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Mean rank of each method over data sets, 1 the best, ties shared; only methods that all data sets have.

    A mean that is not a number ranks last.
    """
    shared = [method for method in (means[0] if means else ()) if all(method in each for each in means)]
    if not shared:
        return {}
    table = np.array([[loss(metric, each[method]) for method in shared] for each in means])
    ranks = stats.rankdata(np.where(np.isnan(table), np.inf, table), axis=1).mean(axis=0)
    return dict(zip(shared, ranks.tolist(), strict=True))


def worst(metric: str, values: Mapping[int, float]) -> tuple[int, float]:
    """The trial with the worst value, and the value; one that is not a number is the worst there is."""
    key = lambda trial: math.inf if math.isnan(values[trial]) else loss(metric, values[trial])
    trial = max(sorted(values), key=key)
    return trial, values[trial]
