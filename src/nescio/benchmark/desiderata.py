"""What the paper asks of an uncertainty on its toy problem, as numbers with a verdict on each. No torch here.

The four wishes of the text: the noise inside is found, the std is higher outside, it is not underestimated, and the
posterior goes back to the prior.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan

import numpy as np

from nescio._validation import InputError

__all__ = ["Desiderata", "ToyFit", "between", "toy_desiderata", "within"]

Interval = tuple[float, float]

INSIDE: Interval = (0.0, 10.0)  # where the toy problem draws its inputs
OUTSIDE: tuple[Interval, Interval] = ((-25.0, -5.0), (15.0, 35.0))  # half a data range and more beyond the data
FAR: tuple[Interval, Interval] = ((-25.0, -10.0), (20.0, 35.0))  # a whole data range and more
HOLE: Interval = (4.0, 7.0)  # taken out of the shifted data

LARGEST_RMS_LOG = 0.25  # a factor of 1.28
SMALLEST_RATIO = 1.0  # outside, never surer than anywhere inside
SMALLEST_LOW_RATIO = 0.8
LOW = 0.05  # the quantile of std / true std that must not be too small
LARGEST_KL = 0.1  # nat
SMALLEST_SHARE = 0.95


@dataclass(frozen=True)
class ToyFit:
    """One fit of the toy problem as plain arrays: the data ``(N,)`` and the prediction on a grid ``(G,)``."""

    data: str
    method: str
    x_data: np.ndarray
    y_data: np.ndarray
    x: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    aleatoric_std: np.ndarray
    epistemic_std: np.ndarray
    true_std: np.ndarray
    level: float
    hole: Interval | None = None
    kl: np.ndarray | None = None
    """Divergence of the posterior from the method's own outside prior, or its only one, in nats; None without one."""


@dataclass(frozen=True)
class Desiderata:
    """The four wishes as numbers.

    ``rms_log``: root mean square of log(std / true std) where there are data. ``ratio``: smallest std outside over the
    largest inside. ``low_ratio``: 5 % quantile of std / true std on [0, 10], a hole included. ``kl_share``: share of
    the far grid where the posterior is within 0.1 nat of the prior; nan for a method without a prior of the precision.
    ``seen_ratio``, for the record alone, is ``ratio`` with a hole left out of the inside: there a std near the level
    outside is no fault.
    """

    rms_log: float
    ratio: float
    low_ratio: float
    kl_share: float
    seen_ratio: float = float("nan")

    @property
    def met(self) -> tuple[bool, bool, bool, bool]:
        """Heteroscedasticity captured; higher outside; no underestimation; back at the prior."""
        return (
            self.rms_log <= LARGEST_RMS_LOG,
            self.ratio >= SMALLEST_RATIO,
            self.low_ratio >= SMALLEST_LOW_RATIO,
            self.kl_share >= SMALLEST_SHARE,
        )

    @property
    def has_prior(self) -> bool:
        """Whether the fourth wish can be asked of the method at all."""
        return not isnan(self.kl_share)

    @classmethod
    def of_record(cls, record: Mapping[str, str]) -> Desiderata:
        """From a line of a CSV of records."""
        return cls(*(float(record[name]) for name in ("rms_log", "ratio", "low_ratio", "kl_share")))


def toy_desiderata(
    x: np.ndarray, std: np.ndarray, true_std: np.ndarray, kl: np.ndarray | None, hole: Interval | None = None
) -> Desiderata:
    """Measure a curve of predictive standard deviations, all ``(G,)``, on a grid that reaches from -25 to 35.

    A ``hole`` in the data is left out of ``rms_log`` alone: no method can know the noise where it has seen none, but it
    must not be too sure there.

    Paper: fig:toy_result.
    """
    arrays = [np.asarray(values, dtype=np.float64) for values in (x, std, true_std, *(() if kl is None else (kl,)))]
    grid, std, true_std = arrays[:3]
    if grid.ndim != 1 or any(values.shape != grid.shape for values in arrays):
        shapes = " and ".join(str(values.shape) for values in arrays)
        raise InputError(f"x, std, true_std and kl must be (G,) of one length; got {shapes}.")
    if not (len(grid) and np.all(np.diff(grid) > 0) and grid[0] <= OUTSIDE[0][0] and grid[-1] >= OUTSIDE[1][1]):
        raise InputError(f"x must rise from {OUTSIDE[0][0]:g} or less to {OUTSIDE[1][1]:g} or more.")
    inside, outside = within(grid, INSIDE), within(grid, *OUTSIDE)
    seen = inside if hole is None else inside & ~between(grid, hole)
    if not np.any(seen):
        raise InputError("x must have points inside the data, from 0 to 10.")
    with np.errstate(divide="ignore", invalid="ignore"):
        return Desiderata(
            rms_log=float(np.sqrt(np.mean(np.square(np.log(std[seen] / true_std[seen]))))),
            ratio=float(np.min(std[outside]) / np.max(std[inside])),
            low_ratio=float(np.quantile(std[inside] / true_std[inside], LOW)),
            seen_ratio=float(np.min(std[outside]) / np.max(std[seen])),
            kl_share=float("nan") if kl is None else float(np.mean(arrays[3][within(grid, *FAR)] <= LARGEST_KL)),
        )


def within(x: np.ndarray, *intervals: Interval) -> np.ndarray:
    """Whether each point lies in one of these closed intervals."""
    return np.any([(low <= x) & (x <= high) for low, high in intervals], axis=0)


def between(x: np.ndarray, interval: Interval) -> np.ndarray:
    """Whether each point lies strictly between the ends."""
    return (interval[0] < x) & (x < interval[1])
