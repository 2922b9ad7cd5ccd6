"""Tables and targets at the door of an estimator: numbers, finite, named, or one clear sentence."""

from __future__ import annotations

import warnings
from datetime import date, time, timedelta
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from nescio._validation import InputError, counted, join_names
from nescio.preprocessing import ColumnEncoder, fit_columns, is_frame, number_of_rows

__all__ = [
    "LEAST_ROWS",
    "check_inputs",
    "check_rows",
    "check_targets",
    "check_weights",
    "encode_rows",
    "encode_training",
]

LEAST_ROWS = 4  # two folds of two: fewer rows leave no residual that the mean has not seen

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
            f"{name} contains {what} in column {label} ({counted(int(bad[:, column].sum()), 'row')}, the first is row "
            f"{row}); fill or drop these rows first."
        )


def check_inputs(estimator: Any, X: Any, *, reset: bool) -> np.ndarray:
    """X as float64 ``(N, D)``; names and number of columns are remembered at fit and compared afterwards.

    The words "Reshape your data" and "is expecting ... features as input" are those of scikit-learn's checks.
    """
    _refuse_bad_cells(X, "X")
    shape = _shape(X)
    if len(shape) == 1:
        raise InputError(
            f"X must have rows and columns, and its shape is {shape}. Reshape your data: X.reshape(-1, 1) if it is one "
            "column, X.reshape(1, -1) if it is one row."
        )
    if len(shape) == 2 and not reset and shape[1] != estimator.n_features_in_:
        raise InputError(
            f"X has {shape[1]} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
            "features as input; give the columns that it was fitted with, in their order."
        )
    try:
        values: np.ndarray = validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_min_samples=1)
    except ValueError as error:
        raise InputError(f"X is no table of numbers: {_one_line(error)}.") from None
    if reset:
        check_rows(len(values))
    return values


def _shape(X: Any) -> tuple[int, ...]:
    try:
        return tuple(X.shape if hasattr(X, "shape") else np.asarray(X).shape)
    except ValueError:  # rows of different lengths
        return ()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _as_numbers(name: str, given: Any) -> np.ndarray:
    """An array of any shape as float64; what is no number is named with its row."""
    try:
        plain = np.asarray(given)
        cells = plain.reshape(-1).tolist() if plain.dtype == object else []
        if plain.dtype.kind in "Mm" or any(isinstance(cell, (date, time, timedelta)) for cell in cells):
            raise InputError(f"{name} holds dates or durations, not numbers; turn them into days or seconds first.")
        values: np.ndarray = check_array(
            given, dtype=np.float64, ensure_2d=False, allow_nd=True, ensure_all_finite=False, input_name=name
        )
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must hold numbers; {_first_odd_cell(given) or _one_line(error)}.") from None
    return values


def _first_odd_cell(given: Any) -> str | None:
    cells = np.asarray(given, dtype=object)
    for row, line in enumerate(cells.reshape(len(cells), -1) if cells.size and cells.ndim else ()):
        for cell in line:
            try:
                float("nan" if cell is None else cell)
            except (TypeError, ValueError):
                return f"{repr(cell)[:60]} in row {row} is none"
    return None


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
    framed = is_frame(X)
    if columns is None:
        return check_inputs(estimator, X, reset=False), None
    if not framed:
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
    values = _as_numbers("y", y)
    if values.ndim > 2 or values.shape[0] != n_rows:
        raise InputError(f"y must have one row for each of the {n_rows} rows of X; its shape is {values.shape}.")
    table = values.reshape(n_rows, -1)
    bad = ~np.isfinite(table)
    if bad.any():
        row = int(bad.any(axis=1).argmax())
        what = "NaN" if np.isnan(table[row]).any() else "infinity"
        raise InputError(
            f"y contains {what} ({counted(int(bad.any(axis=1).sum()), 'row')}, the first is row {row}); drop them."
        )
    return table, values.ndim == 1


def check_weights(sample_weight: Any, table: np.ndarray) -> np.ndarray | None:
    """Weights as float64 ``(N,)``, or None where there are none."""
    if sample_weight is None:
        return None
    each = np.full(len(table), sample_weight) if np.isscalar(sample_weight) else sample_weight
    weights = _as_numbers("sample_weight", each)
    if weights.shape != (len(table),):
        raise InputError(
            f"sample_weight must have one weight for each of the {len(table)} rows of X; its shape is {weights.shape}."
        )
    bad = ~(np.isfinite(weights) & (weights >= 0.0))
    if bad.any():
        row = int(bad.argmax())
        raise InputError(f"sample_weight must be finite and not negative; got {weights[row]:g} in row {row}.")
    if not weights.any():
        raise InputError("sample_weight must have a positive sum; all weights are zero.")
    return weights * (len(weights) / weights.sum())
