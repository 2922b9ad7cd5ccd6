"""The numbers of a card: what a model said of rows it had not seen, against what came. Arrays in, plain records out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from nescio.calibration import VERDICTS, coverage_band

__all__ = [
    "LEVELS",
    "Accuracy",
    "Bins",
    "Coverage",
    "Histogram",
    "Judged",
    "Ranking",
    "Reliability",
    "accuracy",
    "coverage",
    "error_by_std",
    "pit_histogram",
    "ranking",
    "reliability",
]

LEVELS = (0.5, 0.9, 0.95)  # of the intervals that are counted
BAND = 0.99  # a dozen counts are shown at once: with 95 % one of them would stray on half of all good cards
CURVE = np.arange(1, 20) / 20.0  # levels of the reliability curve


@dataclass(frozen=True)
class Judged:
    """One target of N rows: what came, what was said of it, all ``(N,)``, and the intervals at ``LEVELS``.

    ``pit`` is the predicted probability of a value up to the one that came; ``guess`` the mean of the training targets,
    the answer of one who knows no inputs; ``spread`` their standard deviation.
    """

    name: str
    y: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    pit: np.ndarray
    log_prob: np.ndarray
    verdict: np.ndarray
    intervals: Mapping[float, tuple[np.ndarray, np.ndarray]]
    guess: float
    spread: float
    calibrated: Mapping[float, np.ndarray] | None = None
    """At each level, the rows that each interval was calibrated on, ``(N,)``, 0 where on none; None where none was."""

    @property
    def error(self) -> np.ndarray:
        """What came less what was expected, ``(N,)``."""
        return self.y - self.mean


@dataclass(frozen=True)
class Accuracy:
    """How near the means came, in units of the target.

    ``guess_rmse`` is the error of answering the training mean throughout, and ``skill`` the share of its square that
    the model takes away: 1 is perfect, 0 no better than the guess, below 0 worse. ``log_likelihood`` is in nats a row.
    """

    rows: int
    rmse: float
    mae: float
    bias: float
    guess_rmse: float
    skill: float
    log_likelihood: float


@dataclass(frozen=True)
class Coverage:
    """How many of ``rows`` lay in their intervals, beside the counts that ``level`` allows (99 % of the time)."""

    group: str
    level: float
    rows: int
    hits: int
    fewest: int
    most: int

    @property
    def share(self) -> float:
        """Of the rows, those that lay in their intervals."""
        return self.hits / self.rows

    @property
    def word(self) -> str:
        """``"as promised"``, ``"too narrow"`` or ``"too wide"``."""
        if self.hits < self.fewest:
            return "too narrow"
        return "too wide" if self.hits > self.most else "as promised"


@dataclass(frozen=True)
class Reliability:
    """Shares found in central intervals of each level, ``(L,)``, with the band that N rows allow."""

    level: np.ndarray
    found: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def distance(self) -> float:
        """Mean distance between the shares promised and found."""
        return float(np.mean(np.abs(self.found - self.level)))


@dataclass(frozen=True)
class Histogram:
    """Counts ``(K,)`` between ``edges (K + 1,)``, and the fewest and most that an even spread allows in a bin."""

    edges: np.ndarray
    count: np.ndarray
    fewest: int
    most: int


@dataclass(frozen=True)
class Bins:
    """Rows in bins of equal size by std: in each the root mean variance and the root mean squared error, ``(K,)``."""

    std: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True)
class Ranking:
    """Whether the std tells good rows from bad: errors of the surer and the other half, and Spearman's rank test."""

    sure: float
    unsure: float
    correlation: float
    p_value: float

    @property
    def tells(self) -> bool:
        """Whether larger std went with larger errors beyond chance."""
        return self.correlation > 0.0 and self.p_value < 0.01


def accuracy(judged: Judged) -> Accuracy:
    """Errors of the means, and of guessing."""
    rmse = float(np.sqrt(np.mean(np.square(judged.error))))
    guess = float(np.sqrt(np.mean(np.square(judged.y - judged.guess))))
    return Accuracy(
        rows=len(judged.y),
        rmse=rmse,
        mae=float(np.mean(np.abs(judged.error))),
        bias=float(np.mean(-judged.error)),
        guess_rmse=guess,
        skill=1.0 - (rmse / guess) ** 2 if guess > 0.0 else (1.0 if rmse == 0.0 else -np.inf),
        log_likelihood=float(np.mean(judged.log_prob)),
    )


def coverage(judged: Judged) -> list[Coverage]:
    """Counts at each level: of all rows, then of each verdict that some row has."""
    groups = {"all": np.full(len(judged.y), True)}
    groups |= {word: judged.verdict == word for word in VERDICTS}
    lines = []
    for group, chosen in groups.items():
        rows = int(chosen.sum())
        if not rows or (rows == len(judged.y) and group != "all"):
            continue
        for level in LEVELS:
            lower, upper = judged.intervals[level]
            hits = int(((lower <= judged.y) & (judged.y <= upper))[chosen].sum())
            known = None if judged.calibrated is None else judged.calibrated[level][chosen]
            lines.append(Coverage(group, level, rows, hits, *_counts(rows, level, known)))
    return lines


def reliability(pit: np.ndarray) -> Reliability:
    """Shares of rows in the central intervals of the fitted distribution, levels from 5 to 95 %."""
    centrality = np.abs(2.0 * pit - 1.0)  # the level of the smallest central interval that holds the value
    found = np.mean(centrality[:, None] <= CURVE, axis=0)
    low, high = np.array([_counts(len(pit), level) for level in CURVE]).T / len(pit)
    return Reliability(CURVE, found, low, high)


def pit_histogram(pit: np.ndarray) -> Histogram:
    """Where in their predicted distributions the values came: even if these are right."""
    bins = int(np.clip(len(pit) // 20, 4, 10))  # twenty rows in each, so that the band tells something
    count, edges = np.histogram(pit, bins=bins, range=(0.0, 1.0))
    return Histogram(edges, count, *_counts(len(pit), 1.0 / bins))


def error_by_std(judged: Judged) -> Bins:
    r"""Errors against what was said of them, in up to ten bins of at least ten rows.

    The band is what Gaussian errors of that std would give, :math:`s \sqrt{\chi^2_n / n}`, 99 % of the time.
    """
    bins = int(np.clip(len(judged.y) // 10, 1, 10))
    usable = np.flatnonzero(np.isfinite(judged.std))
    parts = [part for part in np.array_split(usable[np.argsort(judged.std[usable], kind="stable")], bins) if len(part)]
    rows = np.array([len(part) for part in parts], dtype=int)
    std = np.array([np.sqrt(np.mean(np.square(judged.std[part]))) for part in parts])
    error = np.array([np.sqrt(np.mean(np.square(judged.error[part]))) for part in parts])
    tail = 0.5 * (1.0 - BAND)
    low, high = (std * np.sqrt(stats.chi2.ppf(q, rows) / rows) for q in (tail, 1.0 - tail))
    return Bins(std, error, low, high, rows)


def ranking(judged: Judged) -> Ranking:
    """Whether larger std went with larger errors."""
    size = np.abs(judged.error)
    order = np.argsort(judged.std, kind="stable")
    half = len(order) // 2
    sure, unsure = (float(np.sqrt(np.mean(np.square(size[part])))) for part in (order[:half], order[half:]))
    if len(size) < 3 or np.ptp(size) == 0.0 or len(np.unique(judged.std)) < 2:
        return Ranking(sure, unsure, 0.0, 1.0)
    result = stats.spearmanr(judged.std, size)
    return Ranking(sure, unsure, float(result.statistic), float(result.pvalue))


def _counts(rows: int, level: float, calibrated: np.ndarray | None = None) -> tuple[int, int]:
    """The fewest and most of ``rows`` that a chance of ``level`` gives, 99 % of the time.

    ``calibrated (N,)`` are the rows that each interval was calibrated on; those calibrated apart add up.
    """
    known, counts = np.unique_counts(np.zeros(rows, dtype=int) if calibrated is None else calibrated)
    return coverage_band(zip(counts.tolist(), known.tolist(), strict=True), level, BAND)
