"""The numbers behind the toy figures: how near the truth inside the data, how honest outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nescio._validation import InputError
from nescio.benchmark.desiderata import (
    FAR,
    HOLE,
    INSIDE,
    LARGEST_RMS_LOG,
    OUTSIDE,
    SMALLEST_RATIO,
    Interval,
    ToyFit,
    between,
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
    x_grid: np.ndarray, std: np.ndarray, true_std: np.ndarray, level: float, hole: Interval | None = None
) -> ToyStatistics:
    """Measure predictive standard deviations ``std (G,)`` on a grid that reaches from -25 to 35.

    A ``hole`` in the data is left out of ``rms_log``, since no method can know the noise where it has seen none. It is
    not left out of the largest std inside. An infinite std gives an infinite deviation, never a met target.
    """
    x, std, true_std = (np.asarray(values, dtype=np.float64) for values in (x_grid, std, true_std))
    if x.ndim != 1 or std.shape != x.shape or true_std.shape != x.shape:
        raise InputError(
            f"x_grid, std and true_std must be (G,) of one length; got {x.shape}, {std.shape} and {true_std.shape}."
        )
    if not (len(x) and np.all(np.diff(x) > 0) and x[0] <= OUTSIDE[0][0] and x[-1] >= OUTSIDE[1][1]):
        raise InputError(f"x_grid must rise from {OUTSIDE[0][0]:g} or less to {OUTSIDE[1][1]:g} or more.")
    inside, outside, far = within(x, INSIDE), within(x, *OUTSIDE), within(x, *FAR)
    seen = inside if hole is None else inside & ~between(x, hole)
    if not (np.any(seen) and np.any(between(x, HOLE))):
        raise InputError("x_grid must have points inside the data, from 0 to 10, and in the hole, from 4 to 7.")
    with np.errstate(divide="ignore", invalid="ignore"):
        return ToyStatistics(
            rms_log=float(np.sqrt(np.mean(np.square(np.log(std[seen] / true_std[seen]))))),
            ratio=float(np.min(std[outside]) / np.max(std[inside])),
            deviation=float(np.max(np.abs(std[far] / level - 1.0))),
            hole_std=float(np.mean(std[between(x, HOLE)])),
        )


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
