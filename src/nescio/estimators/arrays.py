"""Tables and targets at the door of an estimator: numbers, finite, named, or one clear sentence."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from nescio._validation import InputError, join_names
from nescio.preprocessing import ColumnEncoder, fit_columns, is_frame, number_of_rows

__all__ = [
    "LEAST_ROWS",
    "check_inputs",
    "check_rows",
    "check_targets",
    "check_weights",
    "encode_rows",
    "encode_training",
    "target_scaler",
    "warn_of_constants",
    "weighted_scaler",
]

LEAST_ROWS = 4  # two folds of two: fewer rows leave no residual that the mean has not seen

LARGEST_VALUE = 1e100  # its square is still a number

CONSTANT = 1e-12  # spread over size: rounding of the mean leaves a trace in a constant

CONSTANT_TARGET = 64 * np.finfo(np.float64).eps  # the same of a target: rounding of a sum leaves a trace in its numbers

LARGEST = 1e8
"""Standardised inputs are clipped here, so that no float32 overflows on the way; the anchor ends long before."""


def _refuse_bad_cells(X: Any, name: str) -> None:
    """Name the first column of an array, or of a frame whose columns have no names, that is not numeric or finite."""
    columns = list(getattr(X, "columns", []))
    kinds = getattr(X, "dtypes", None)
    if columns and kinds is not None:
        for column, kind in zip(columns, kinds, strict=True):
            text = str(kind).lower()
            if not any(word in text for word in ("int", "float", "bool", "decimal")):
                raise InputError(
                    f"{name} has a column that is not numeric: '{column}' ({kind}); give all columns names that are "
                    "text, and it will be encoded."
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
    if reset:
        check_rows(len(values))
    return values


def encode_training(estimator: Any, X: Any, targets: np.ndarray, seed: int) -> tuple[ColumnEncoder, np.ndarray]:
    """The column encoder of a training frame and its rows as numbers; remembers the names of the columns."""
    columns, values = fit_columns(X, targets, seed)
    left_out = [column.name for column in columns.columns if column.kind == "empty"]
    if left_out:
        warnings.warn(
            f"X has columns without a single value, which are left out: {join_names(left_out)}.",
            UserWarning,
            stacklevel=5,
        )
    estimator.feature_names_in_ = np.array(columns.names, dtype=object)
    estimator.n_features_in_ = len(columns.names)
    return columns, values


def encode_rows(estimator: Any, X: Any) -> tuple[np.ndarray, list[str | None] | None]:
    """Rows as numbers ``(N, D)``, and why some of them count as outside, by what the training frame or array was."""
    columns: ColumnEncoder | None = estimator.columns_
    if columns is None:
        return check_inputs(estimator, X, reset=False), None
    if not is_frame(X):
        if not columns.plain:
            odd = [column.name for column in columns.columns if column.kind != "number" or column.width != 1]
            raise InputError(
                f"the model was fitted on a frame in which {join_names(odd)} cannot be told from bare numbers; give X "
                "as a frame with the same columns."
            )
        return check_inputs(estimator, X, reset=False), None
    if not number_of_rows(X):
        raise InputError("X has no rows (0 samples); at least one is needed.")
    encoded = columns.transform(X)
    if encoded.unused:
        warnings.warn(
            f"X has columns that the model does not use: {join_names(encoded.unused)}.", UserWarning, stacklevel=5
        )
    return encoded.values, encoded.reasons


def check_rows(n_rows: int) -> None:
    """Refuse a table that is too short to fit to."""
    if n_rows < LEAST_ROWS:
        raise InputError(
            f"X has {n_rows} sample{'s' if n_rows != 1 else ''} (n_samples={n_rows}); "
            f"at least {LEAST_ROWS} rows are needed to fit."
        )


def check_targets(y: Any, n_rows: int) -> tuple[np.ndarray, bool]:
    """Y as float64 ``(N, P)``, and whether it came as a single column ``(N,)``."""
    if y is None:
        raise InputError("this regressor requires y to be passed, but the target y is None.")
    values = check_array(y, dtype=np.float64, ensure_2d=False, allow_nd=True, ensure_all_finite=False, input_name="y")
    if values.ndim > 2 or values.shape[0] != n_rows:
        raise InputError(f"y must have one row for each of the {n_rows} rows of X; its shape is {values.shape}.")
    table = values.reshape(n_rows, -1)
    bad = ~np.isfinite(table)
    if bad.any():
        row = int(bad.any(axis=1).argmax())
        what = "NaN" if np.isnan(table[row]).any() else "infinity"
        raise InputError(f"y contains {what} ({int(bad.any(axis=1).sum())} rows, the first is row {row}); drop them.")
    return table, values.ndim == 1


def check_weights(sample_weight: Any, table: np.ndarray) -> np.ndarray | None:
    """Weights as float64 ``(N,)``, or None where there are none."""
    if sample_weight is None:
        return None
    given = np.asarray(sample_weight)
    if given.size and not given.any():
        raise InputError("sample_weight must have a positive sum; all weights are zero.")
    weights: np.ndarray = _check_sample_weight(sample_weight, table, dtype=np.float64, ensure_non_negative=True)
    return weights * (len(weights) / weights.sum())


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
