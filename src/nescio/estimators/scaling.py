"""Shift and scale of the columns of a table; what does not vary is said."""

from __future__ import annotations

import warnings

import numpy as np

from nescio._validation import InputError

__all__ = ["target_scaler", "warn_of_constants", "weighted_scaler"]

LARGEST_VALUE = 1e100  # its square is still a number

CONSTANT = 1e-12  # spread over size: rounding of the mean leaves a trace in a constant

CONSTANT_TARGET = 64 * np.finfo(np.float64).eps  # the same of a target: rounding of a sum leaves a trace in its numbers


def weighted_scaler(values: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the columns; 1 for a column that does not vary."""
    largest = values.flat[np.abs(values).argmax()]
    if abs(largest) > LARGEST_VALUE:
        raise InputError(
            f"the table holds numbers beyond {LARGEST_VALUE:g}, such as {largest:g}; "
            "rescale the column or drop the row."
        )
    shift, scale = _moments(values, weights)
    return shift, np.where(scale <= CONSTANT * np.abs(values).max(axis=0), 1.0, scale)


def target_scaler(values: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """:func:`weighted_scaler` of targets, where 1e6 with a spread of 1e-7 is no constant; a warning where one is.

    So small a spread is measured from the first row, from which the others differ by few digits and without rounding.
    """
    shift, scale = weighted_scaler(values, weights)
    size = np.abs(values).max(axis=0)
    centre, spread = _moments(values - values[0], weights)
    constant = spread <= CONSTANT_TARGET * size
    for place in np.flatnonzero(constant):
        name = f"column {place} of y" if len(constant) > 1 else "y"
        warnings.warn(
            f"{name} is constant ({values[0, place]:g} in every row), so nothing can be learned from it and its spread "
            "is taken as 1; is it the target that you mean?",
            UserWarning,
            stacklevel=5,
        )
    small = (_moments(values, weights)[1] <= CONSTANT * size) & ~constant
    return np.where(small, values[0] + centre, shift), np.where(small, spread, scale)


def _moments(values: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    shift = np.average(values, axis=0, weights=weights)
    return shift, np.sqrt(np.average(np.square(values - shift), axis=0, weights=weights))


def warn_of_constants(inputs: np.ndarray) -> None:
    """Say where no column of ``inputs (N, D)`` varies."""
    if np.array_equal(inputs.min(axis=0), inputs.max(axis=0)):
        warnings.warn(
            "no column of X varies, so there is nothing to tell one row from another by; are these the features that "
            "you mean?",
            UserWarning,
            stacklevel=5,
        )
