"""The level that a user asks for outside the data, in the units a model works in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nescio._validation import InputError, check_one_of

__all__ = ["outside_level"]

EXTREME = 1e6  # level over spread: beyond it float32 no longer holds the squares of both


def outside_level(
    outside: float | str | Sequence[float], y_scale: np.ndarray, residual_variance: np.ndarray | None = None
) -> np.ndarray:
    """Standard deviation far from the data, ``(P,)`` in standardised units.

    ``"target"`` is the spread of the targets, ``"residual"`` that of the errors inside, and ``"auto"`` the error of a
    mean that has lost touch with the targets but still varies as much as it did: ``sqrt(1 + explained share)``. The
    last two want ``residual_variance (P,)``, in units of the targets' variance; without it ``"auto"`` is ``"target"``.

    >>> outside_level(15.0, np.array([5.0, 3.0])).tolist()
    [3.0, 5.0]
    >>> outside_level("auto", np.array([5.0]), np.array([0.19])).round(3).tolist()
    [1.345]
    """
    if isinstance(outside, str):
        check_one_of("outside", outside, ("auto", "target", "residual"))
        variance = np.ones(len(y_scale)) if residual_variance is None else np.asarray(residual_variance, np.float64)
        if outside == "residual":
            return np.sqrt(variance)
        return np.sqrt(1.0 + np.clip(1.0 - variance, 0.0, 1.0)) if outside == "auto" else np.ones(len(y_scale))
    level = np.asarray(outside, dtype=np.float64).reshape(-1)
    if level.size not in (1, len(y_scale)) or not np.all(np.isfinite(level) & (level > 0)):
        raise InputError(
            f"outside must be a positive number in units of y, one per target ({len(y_scale)}), or 'auto', 'target' or "
            f"'residual'; got {outside!r}."
        )
    relative: np.ndarray = level / y_scale
    if relative.min() < 1.0 / EXTREME or relative.max() > EXTREME:
        raise InputError(
            f"outside={outside!r} is beyond {EXTREME:g} times the spread of the target, or below its "
            f"{EXTREME:g}th part; give it in units of y."
        )
    return relative
