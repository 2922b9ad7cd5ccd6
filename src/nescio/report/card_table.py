"""A user's table, whatever it is made of: an array, a pandas frame or a polars frame."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from nescio._validation import InputError
from nescio.preprocessing.frames import parse_dates
from nescio.report.card_words import short

__all__ = ["CATEGORY", "DATE", "NUMBER", "UserTable"]

NUMBER, DATE, CATEGORY = "number", "date", "category"
_KINDS = {"i": NUMBER, "u": NUMBER, "f": NUMBER, "M": DATE}  # by the letter of a NumPy or pandas type


class UserTable:
    """Rows and columns of ``X`` by number, with what a card asks of them; the table itself is never changed."""

    def __init__(self, X: Any, columns: Any = None) -> None:
        """``columns`` is the encoder of a model, which knows what it was fitted on and which texts are dates."""
        self.polars = type(X).__module__.split(".")[0] == "polars"
        self.pandas = not self.polars and hasattr(X, "iloc")
        table: Any = X if self.polars or self.pandas else np.asarray(X)
        self.X = table
        if len(self.X.shape) != 2:
            raise InputError(f"X must be a table of rows and columns; its shape is {tuple(self.X.shape)}.")
        self.rows, self.width = (int(size) for size in self.X.shape)
        named = self.polars or self.pandas
        self.dates: set[str] = set()
        if named and columns is not None and set(columns.names) <= set(self.X.columns):
            self.X = self.X[list(columns.names)]
            self.width = len(columns.names)
            self.dates = {column.name for column in columns.columns if column.kind == "date"}
        self.names = [str(name) for name in (self.X.columns if named else (f"x{j}" for j in range(self.width)))]

    def take(self, index: Any) -> UserTable:
        """The rows of these numbers, in their order."""
        index = np.asarray(index)
        part = copy(self)
        part.X = self.X.iloc[index] if self.pandas else self.X[index]
        part.rows = len(part.X)
        return part

    def kind(self, column: int) -> str:
        """``"number"``, ``"date"`` or ``"category"``, by the type of the column."""
        return DATE if self.names[column] in self.dates else self._type(column)

    def _type(self, column: int) -> str:
        if self.polars:
            dtype = self.X.dtypes[column]
            return NUMBER if dtype.is_numeric() else DATE if dtype in _polars_dates() else CATEGORY
        if self.pandas:
            return _KINDS.get(getattr(self.X.dtypes.iloc[column], "kind", "O"), CATEGORY)
        return _KINDS.get(self.X.dtype.kind, CATEGORY)

    def values(self, column: int) -> np.ndarray:
        """A column as numbers (gaps are NaN), as ``datetime64`` or as it is, ``(N,)``."""
        kind = self.kind(column)
        if self.polars:
            series = self.X.to_series(column)
            array = (series.cast(_float64()) if kind == NUMBER else series).to_numpy()
        elif self.pandas:
            series = self.X.iloc[:, column]
            array = series.to_numpy(dtype=np.float64, na_value=np.nan) if kind == NUMBER else series.to_numpy()
        else:
            array = self.X[:, column]
        if kind == DATE and self._type(column) == CATEGORY:
            return as_dates(np.asarray(array, dtype=object))
        if kind == DATE:
            return np.asarray(array, dtype="datetime64[us]")
        return np.asarray(array, dtype=np.float64) if kind == NUMBER else np.asarray(array, dtype=object)

    def permuted(self, column: int, order: np.ndarray) -> Any:
        """The table with one column's values in another order."""
        if self.polars:
            return self.X.with_columns(self.X.to_series(column)[order])
        if self.pandas:
            changed = self.X.copy()
            changed.isetitem(column, self.X.iloc[:, column].iloc[order].set_axis(self.X.index))
            return changed
        changed = self.X.copy()
        changed[:, column] = changed[order, column]
        return changed

    def varied(self, row: int, column: int, values: np.ndarray) -> Any:
        """One row as many times as there are values, which take the place of one column."""
        same = self.take(np.full(len(values), row)).X
        dated = values.dtype.kind == "M"
        if dated and self._type(column) == CATEGORY:
            dated, values = False, np.char.replace(np.datetime_as_string(values, unit="m"), "T", " ").astype(object)
        if self.polars:
            import polars

            series = polars.Series(self.names[column], values.tolist() if values.dtype == object else values)
            return same.with_columns(series.cast(self.X.dtypes[column]) if dated else series)
        changed = same.copy()
        if self.pandas:
            changed = changed.reset_index(drop=True)
            new: Any = type(changed.iloc[:, column])(values)
            changed.isetitem(column, new.astype(self.X.dtypes.iloc[column]) if dated else new)
        else:
            changed = changed.astype(np.float64) if values.dtype.kind == "f" else changed
            changed[:, column] = values
        return changed

    def cell(self, row: int, column: int) -> str:
        """What a cell holds, in a few letters."""
        value = self.values(column)[row] if self.kind(column) != CATEGORY else self._raw(row, column)
        if isinstance(value, np.datetime64):
            return "missing" if np.isnat(value) else str(value.astype("datetime64[s]")).replace("T00:00:00", "")
        if isinstance(value, float):
            return "missing" if np.isnan(value) else f"{value:.6g}"
        return "missing" if value is None or value != value else short(value, 24)

    def _raw(self, row: int, column: int) -> Any:
        if self.pandas:
            return self.X.iloc[row, column]
        return self.X[int(row), column]


def as_dates(texts: np.ndarray) -> np.ndarray:
    """Texts as ``datetime64``, NaT for what is no date."""
    days = parse_dates(np.array([value if isinstance(value, str) else None for value in texts], dtype=object))
    moments = np.full(len(days), np.datetime64("NaT"), dtype="datetime64[us]")
    known = np.isfinite(days)
    moments[known] = np.round(days[known] * 86_400e6).astype(np.int64).astype("datetime64[us]")
    return moments


def _polars_dates() -> tuple[Any, ...]:
    import polars

    return polars.Date, polars.Datetime


def _float64() -> Any:
    import polars

    return polars.Float64
