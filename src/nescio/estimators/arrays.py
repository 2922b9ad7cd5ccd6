"""Tables and targets at the door of an estimator: numbers, finite, named, or one clear sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from nescio._validation import InputError

__all__ = ["LEAST_ROWS", "check_inputs", "check_targets", "check_weights", "weighted_scaler"]

LEAST_ROWS = 4  # two folds of two: fewer rows leave no residual that the mean has not seen

LARGEST_VALUE = 1e100  # its square is still a number

LARGEST = 1e8
"""Standardised inputs are clipped here, so that no float32 overflows on the way; the anchor ends long before."""


def _refuse_bad_cells(X: Any, name: str) -> None:
    """Name the first column of a table that is not numeric or not finite."""
    columns = list(getattr(X, "columns", []))
    kinds = getattr(X, "dtypes", None)
    if columns and kinds is not None:
        for column, kind in zip(columns, kinds, strict=True):
            text = str(kind).lower()
            if not any(word in text for word in ("int", "float", "bool", "decimal")):
                raise InputError(
                    f"{name} has a column that is not numeric: '{column}' ({kind}); encode it as numbers or drop it."
                )
    try:
        values = np.asarray(X)
        if values.dtype.kind == "c":
            raise InputError(f"{name} holds complex numbers. Complex data not supported: split them into two columns.")
        values = values.astype(np.float64)
    except InputError:
        raise
    except (TypeError, ValueError):
        return  # sparse, ragged, text or complex: scikit-learn's check says which
    if values.ndim != 2:
        return
    bad = ~np.isfinite(values)
    if bad.any():
        column = int(bad.any(axis=0).argmax())
        row = int(bad[:, column].argmax())
        what = "NaN" if np.isnan(values[row, column]) else "infinity"
        label = f"'{columns[column]}'" if columns else str(column)
        raise InputError(
            f"{name} contains {what} in column {label} ({int(bad[:, column].sum())} rows, the first is row {row}); "
            "fill or drop these rows first."
        )


def check_inputs(estimator: Any, X: Any, *, reset: bool) -> np.ndarray:
    """X as float64 ``(N, D)``; names and number of columns are remembered at fit and compared afterwards."""
    _refuse_bad_cells(X, "X")
    values: np.ndarray = validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_min_samples=1)
    if reset and len(values) < LEAST_ROWS:
        raise InputError(
            f"X has {len(values)} sample{'s' if len(values) > 1 else ''} (n_samples={len(values)}); "
            f"at least {LEAST_ROWS} rows are needed to fit."
        )
    return values


def check_targets(y: Any, n_rows: int) -> tuple[np.ndarray, bool]:
    """Y as float64 ``(N, P)``, and whether it came as a single column ``(N,)``."""
    if y is None:
        raise InputError("this regressor requires y to be passed, but the target y is None.")
    values = check_array(y, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, input_name="y")
    if values.ndim > 2 or values.shape[0] != n_rows:
        raise InputError(f"y must have one row for each of the {n_rows} rows of X; its shape is {values.shape}.")
    table = values.reshape(n_rows, -1)
    bad = ~np.isfinite(table)
    if bad.any():
        row = int(bad.any(axis=1).argmax())
        what = "NaN" if np.isnan(table[row]).any() else "infinity"
        raise InputError(f"y contains {what} ({int(bad.any(axis=1).sum())} rows, the first is row {row}); drop them.")
    return table, values.ndim == 1


def check_weights(sample_weight: Any, X: np.ndarray) -> np.ndarray | None:
    """Weights as float64 ``(N,)``, or None where there are none."""
    if sample_weight is None:
        return None
    given = np.asarray(sample_weight)
    if given.size and not given.any():
        raise InputError("sample_weight must have a positive sum; all weights are zero.")
    weights: np.ndarray = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return weights * (len(weights) / weights.sum())


def weighted_scaler(values: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the columns; 1 for a column that does not vary."""
    if np.abs(values).max() > LARGEST_VALUE:
        raise InputError(f"the table holds numbers beyond {LARGEST_VALUE:g}; rescale the column or drop the row.")
    shift = np.average(values, axis=0, weights=weights)
    scale = np.sqrt(np.average(np.square(values - shift), axis=0, weights=weights))
    constant = scale <= 1e-12 * np.abs(values).max(axis=0)  # rounding of the mean leaves a trace in a constant
    return shift, np.where(constant, 1.0, scale)
