"""The level that a user asks for outside the data, in the units a model works in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nescio._validation import InputError, check_one_of

__all__ = ["LevelFunction", "Outside", "given_level", "outside_level"]

Outside = float | str | Sequence[float] | Callable[[np.ndarray], Any]
"""What a user may ask for: a number, one per target, a word, or a function of the rows."""

EXTREME = 1e6  # level over spread: beyond it float32 no longer holds the squares of both


def outside_level(outside: Outside, y_scale: np.ndarray, residual_variance: np.ndarray | None = None) -> np.ndarray:
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
    try:
        truth = np.asarray(outside).dtype == bool  # True is 1.0 to numpy
        level = np.empty(0) if truth else np.asarray(outside, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        level = np.empty(0)
    if level.size not in (1, len(y_scale)) or not np.all(np.isfinite(level) & (level > 0)):
        raise InputError(
            f"outside must be a positive number in units of y, one per target ({len(y_scale)}), 'auto', 'target', "
            f"'residual' or a function of x; got {outside!r}."
        )
    relative: np.ndarray = level / y_scale
    if relative.min() < 1.0 / EXTREME or relative.max() > EXTREME:
        raise InputError(
            f"outside={outside!r} is beyond {EXTREME:g} times the spread of the target, or below its "
            f"{EXTREME:g}th part; give it in units of y."
        )
    return relative


@dataclass(frozen=True)
class LevelFunction:
    """A level that the user gives as a function of x: rows ``(N, D)`` in, standard deviations ``(N,)`` or ``(N, P)``.

    The rows are as the model encodes them: for an array, and for a frame of plain numbers, its own columns. It is asked
    at pseudo-inputs too, which lie between and beyond the rows.
    """

    function: Callable[[np.ndarray], Any]
    y_scale: np.ndarray

    def __call__(self, encoded: np.ndarray) -> np.ndarray:
        """The level at rows ``(..., D)``, ``(..., P)`` in standardised units."""
        rows = encoded.reshape(-1, encoded.shape[-1])
        outputs = len(self.y_scale)
        try:
            found = np.asarray(self.function(rows.copy()), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"outside as a function of x failed on rows of shape {rows.shape}: {error}.") from None
        if found.shape not in ((len(rows),), (len(rows), 1), (len(rows), outputs)):
            raise InputError(
                f"outside as a function of x must return one number per row, ({len(rows)},), or per row and target, "
                f"({len(rows)}, {outputs}); it returned the shape {found.shape}."
            )
        bad = ~(np.isfinite(found) & (found > 0))
        if bad.any():
            raise InputError(
                f"outside as a function of x must return finite, positive numbers; it returned {found[bad][0]:g}."
            )
        level = np.clip(found.reshape(len(rows), -1) / self.y_scale, 1.0 / EXTREME, EXTREME)
        return level.reshape(*encoded.shape[:-1], outputs)


def given_level(
    params: dict[str, Any], wanted: bool | None, given: Mapping[str, Any], y_scale: np.ndarray
) -> LevelFunction | None:
    """The function that a saved model's level outside was, given back at load; None where it was no function.

    ``wanted`` is None for a file that does not say: there ``outside`` is null where it was a function. The function
    takes its place in ``params``; one that the fit did not use is not asked for, and ``outside`` keeps its default.
    """
    if wanted is None:
        wanted = "outside" in params and params["outside"] is None
    if wanted is not ("outside" in given):
        raise InputError(
            "its level outside is a function of yours and not in the file; give it back: load(path, outside=...)."
            if wanted
            else "this model's level outside is no function; leave outside out of load."
        )
    if params.get("outside", "") is None:
        del params["outside"]
    if not wanted:
        return None
    params["outside"] = given["outside"]
    return LevelFunction(given["outside"], y_scale)
