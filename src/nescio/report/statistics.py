"""The numbers behind the toy figures: how near the truth inside the data, how honest outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nescio._validation import InputError
from nescio.benchmark.desiderata import (
    FAR,
    HOLE,
    LARGEST_RMS_LOG,
    SMALLEST_RATIO,
    Interval,
    ToyFit,
    between,
    toy_desiderata,
    within,
)

__all__ = [
    "LARGEST_DEVIATION", "LARGEST_RMS_LOG", "SMALLEST_RATIO", "ToyFit", "ToyStatistics", "ToySummary", "hole_rise",
    "summarise", "toy_statistics",
]  # fmt: skip

LARGEST_DEVIATION = 0.10


@dataclass(frozen=True)
class ToyStatistics:
    """What a curve of predictive standard deviations is worth, with a verdict on each of three targets.

    ``rms_log`` is the root mean square of log(std / true std) where there are data; ``ratio`` the smallest std outside
    over the largest inside; ``deviation`` the largest relative distance from the level far outside; ``hole_std`` the
    mean std on (4, 7), in units of the target.
    """

    rms_log: float
    ratio: float
    deviation: float
    hole_std: float

    @property
    def rms_log_met(self) -> bool:
        """Whether the noise inside is found to within a typical factor of 1.28."""
        return self.rms_log <= LARGEST_RMS_LOG

    @property
    def ratio_met(self) -> bool:
        """Whether every point outside is at least as uncertain as every point inside."""
        return self.ratio >= SMALLEST_RATIO

    @property
    def deviation_met(self) -> bool:
        """Whether the std far outside is the level, to a tenth."""
        return self.deviation <= LARGEST_DEVIATION


@dataclass(frozen=True)
class ToySummary:
    """A line of the table: which fit, its statistics, and by what factor the hole raised the std inside it."""

    data: str
    method: str
    level: float
    statistics: ToyStatistics
    rise: float | None


def toy_statistics(
    x: np.ndarray, std: np.ndarray, true_std: np.ndarray, level: float, hole: Interval | None = None
) -> ToyStatistics:
    """Measure predictive standard deviations ``std (G,)`` on a grid ``x (G,)`` that reaches from -25 to 35.

    A ``hole`` in the data is left out of ``rms_log``, since no method can know the noise where it has seen none. It is
    not left out of the largest std inside. An infinite std gives an infinite deviation, never a met target.
    """
    wishes = toy_desiderata(x, std, true_std, None, hole)
    x, std = np.asarray(x, dtype=np.float64), np.asarray(std, dtype=np.float64)
    if not np.any(between(x, HOLE)):
        raise InputError(f"x must have points in the hole, from {HOLE[0]:g} to {HOLE[1]:g}.")
    with np.errstate(invalid="ignore"):
        deviation = float(np.max(np.abs(std[within(x, *FAR)] / level - 1.0)))
    return ToyStatistics(wishes.rms_log, wishes.ratio, deviation, hole_std=float(np.mean(std[between(x, HOLE)])))


def hole_rise(standard: ToyStatistics, shifted: ToyStatistics) -> float:
    """Mean std on the stretch of the hole, fitted without its rows, over the same fitted with them."""
    return shifted.hole_std / standard.hole_std


def summarise(fits: Sequence[ToyFit]) -> list[ToySummary]:
    """One line per fit, in their order; a fit with a hole is set against the same method's fit without one."""
    measured = [toy_statistics(fit.x, fit.std, fit.true_std, fit.level, fit.hole) for fit in fits]
    whole = {fit.method: statistics for fit, statistics in zip(fits, measured, strict=True) if fit.hole is None}
    return [
        ToySummary(
            fit.data,
            fit.method,
            fit.level,
            statistics,
            hole_rise(whole[fit.method], statistics) if fit.hole is not None and fit.method in whole else None,
        )
        for fit, statistics in zip(fits, measured, strict=True)
    ]
