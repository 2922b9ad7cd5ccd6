"""Columns of pandas and polars frames as plain numpy cells: numbers with NaN for gaps, or text with None."""

from __future__ import annotations

import re
from datetime import time
from typing import Any, NamedTuple

import numpy as np

from nescio._validation import InputError, join_names

__all__ = [
    "NUMBERS",
    "Cells",
    "column_names",
    "is_frame",
    "looks_like_date",
    "number_of_rows",
    "parse_booleans",
    "parse_dates",
    "parse_numbers",
    "read_column",
    "shown_number",
]

NUMBERS = ("number", "boolean", "duration", "time")
DAY = 86_400e6  # microseconds
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?")
_OTHER_DATE = re.compile(
    r"(\d{1,2}([./-])\d{1,2}\2\d{4}|\d{1,2}/\d{1,2}/\d\d|\d{4}([./])\d{1,2}\3\d{1,2})([T ]\d{1,2}:\d\d.*)?"
)
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)$")


class Cells(NamedTuple):
    """One column of N rows.

    ``kind`` is ``"number"``, ``"boolean"``, ``"duration"`` (in days), ``"time"`` (of the day, in hours), ``"date"``
    (in days since 1970), ``"text"`` or ``"empty"``.
    """

    kind: str
    values: np.ndarray
    """float64 with NaN for gaps; of text, objects that are str or None."""
    declared: bool = False
    """Whether the column's type says that its texts are categories, whatever they look like."""

    @property
    def gaps(self) -> np.ndarray:
        """Whether a cell is missing, ``(N,)``."""
        if self.values.dtype == object:
            return np.array([value is None for value in self.values.tolist()], dtype=bool)
        return np.asarray(np.isnan(self.values))

    def as_text(self) -> np.ndarray:
        """The cells as text, None for gaps: whole numbers without a decimal point."""
        if self.values.dtype == object:
            return self.values
        words = ("false", "true")
        boolean = self.kind == "boolean"
        texts = [
            None if np.isnan(value) else words[int(value)] if boolean else shown_number(value)
            for value in self.values.tolist()
        ]
        return np.array(texts, dtype=object)


def shown_number(value: float) -> str:
    """A number as people write it.

    >>> shown_number(812.0), shown_number(0.1)
    ('812', '0.1')
    """
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def is_frame(X: Any) -> bool:
    """Whether this is a pandas or polars frame whose columns have text for names; refuses lazy and nested ones."""
    if hasattr(X, "collect") and hasattr(X, "collect_schema") and not hasattr(X, "get_columns"):
        raise InputError("X is a LazyFrame; call .collect() first.")
    if not hasattr(X, "columns") or not (hasattr(X, "iloc") or hasattr(X, "get_columns")):
        return False
    names = list(X.columns)
    if getattr(X.columns, "nlevels", 1) > 1:
        raise InputError("X has columns with names of several levels (a MultiIndex); give each column one name.")
    return bool(names) and all(isinstance(name, str) for name in names)


def number_of_rows(frame: Any) -> int:
    """How many rows a frame has."""
    return int(frame.shape[0])


def column_names(frame: Any) -> list[str]:
    """The names of the columns, each there once."""
    names = [str(name) for name in frame.columns]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1] if len(set(names)) < len(names) else []
    if twice:
        raise InputError(f"X has more than one column called {join_names(twice)}; rename or drop the others.")
    return names


def read_column(frame: Any, name: str) -> Cells:
    """One column by its name; the kind follows from its type, and for text from its content."""
    series = frame[name]
    cells = _read_pandas(series, name) if hasattr(frame, "iloc") else _read_polars(series, name)
    if cells.kind != "empty" and bool(cells.gaps.all()):
        return Cells("empty", np.full(len(cells.values), np.nan))
    return cells


def _refuse(name: str, what: str) -> InputError:
    return InputError(f"column '{name}' holds {what}; turn it into numbers, text or dates, or drop it.")


def _read_pandas(series: Any, name: str) -> Cells:
    from pandas.api import types

    dtype = series.dtype
    if getattr(dtype, "name", "") == "category":
        labels = np.array([str(label) for label in dtype.categories] + [None], dtype=object)
        return Cells("text", labels[np.asarray(series.cat.codes)], declared=True)
    if types.is_complex_dtype(dtype):
        raise _refuse(name, "complex numbers")
    if types.is_bool_dtype(dtype):
        return Cells("boolean", series.to_numpy(dtype=np.float64, na_value=np.nan))
    if types.is_numeric_dtype(dtype):
        return Cells("number", series.to_numpy(dtype=np.float64, na_value=np.nan))
    if str(dtype).startswith("period"):
        return _dates(series.dt.to_timestamp())
    if types.is_datetime64_any_dtype(dtype):
        return _dates(series)
    if types.is_timedelta64_dtype(dtype):
        return Cells("duration", series.dt.total_seconds().to_numpy(dtype=np.float64) / 86_400)
    return _read_objects(series, types.infer_dtype(series, skipna=True), name)


def _dates(series: Any) -> Cells:
    if getattr(series.dt, "tz", None) is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    return Cells("date", _days(series.to_numpy(dtype="datetime64[us]")))


def _days(moments: np.ndarray) -> np.ndarray:
    whole = moments.astype("datetime64[us]")
    return np.where(np.isnat(whole), np.nan, whole.astype(np.int64) / DAY)


def _read_objects(series: Any, content: str, name: str) -> Cells:
    """A pandas column of Python objects or text."""
    if content == "empty":
        return Cells("empty", np.full(len(series), np.nan))
    objects = np.array([None if gap else value for value, gap in zip(series, series.isna(), strict=True)], dtype=object)
    if content == "string":
        return Cells("text", np.array([None if value is None else str(value) for value in objects], dtype=object))
    if content in ("boolean", "integer", "floating", "mixed-integer-float", "decimal"):
        numbers = np.array([np.nan if value is None else float(value) for value in objects])
        return Cells("boolean" if content == "boolean" else "number", numbers)
    if content in ("date", "datetime", "datetime64"):
        import pandas

        return _dates(pandas.to_datetime(series, utc=True))
    if content in ("timedelta", "timedelta64"):
        days = [np.nan if value is None else value.total_seconds() / 86_400 for value in objects]
        return Cells("duration", np.array(days))
    if content == "time":
        return Cells("time", np.array([np.nan if value is None else _hours(value) for value in objects]))
    raise _refuse(name, f"values of several kinds ({content})")


def _hours(value: time) -> float:
    return value.hour + value.minute / 60 + (value.second + value.microsecond / 1e6) / 3600


def _read_polars(series: Any, name: str) -> Cells:
    import polars

    dtype = series.dtype

    def as_float(values: Any) -> np.ndarray:
        return np.array(values.cast(polars.Float64).fill_null(float("nan")).to_numpy())

    if dtype == polars.Null:
        return Cells("empty", np.full(len(series), np.nan))
    if dtype == polars.Boolean:
        return Cells("boolean", as_float(series))
    if dtype.is_numeric():
        return Cells("number", as_float(series))
    if dtype in (polars.Date, polars.Datetime):
        return Cells("date", as_float(series.cast(polars.Datetime("us")).to_physical()) / DAY)
    if dtype == polars.Duration:
        return Cells("duration", as_float(series.cast(polars.Duration("us")).to_physical()) / DAY)
    if dtype == polars.Time:
        return Cells("time", as_float(series.to_physical()) / 3.6e12)
    if dtype in (polars.String, polars.Categorical, polars.Enum):
        texts = np.array(series.cast(polars.String).to_list(), dtype=object)
        return Cells("text", texts, declared=dtype != polars.String)
    raise _refuse(name, f"values of type {dtype}")


def looks_like_date(text: str) -> bool:
    """Whether a text is a date as people write them, in our form or another.

    >>> [looks_like_date(text) for text in ("2024-05-01", "15.02.2024", "01/31/20 10:30", "1.2.3", "012/34")]
    [True, True, True, False, False]
    """
    return bool(_ISO.fullmatch(text.strip()) or _OTHER_DATE.fullmatch(text.strip()))


def parse_dates(texts: np.ndarray) -> np.ndarray:
    """Days since 1970 of texts such as 2024-05-01 or 2024-05-01 10:30; NaN for what is none, and for None."""
    days = np.full(len(texts), np.nan)
    seen: dict[Any, float] = {None: np.nan}
    for row, text in enumerate(texts.tolist()):
        if text not in seen:
            seen[text] = _parse_date(text.strip())
        days[row] = seen[text]
    return days


def _parse_date(text: str) -> float:
    if not _ISO.fullmatch(text):
        return float("nan")
    shift = _OFFSET.search(text) if len(text) > 16 else None
    minutes = 0
    if shift:
        minutes = int(f"{shift[1]}1") * (60 * int(shift[2]) + int(shift[3]))
        text = text[: shift.start()]
    try:
        moment = np.datetime64(text.removesuffix("Z"), "us")
    except ValueError:
        return float("nan")
    return float(moment.astype(np.int64)) / DAY - minutes / 1440


def parse_booleans(texts: np.ndarray) -> np.ndarray:
    """Texts such as true or False as 1 and 0, and numbers as themselves; NaN for what is neither, and for None."""
    words = {"true": "1", "false": "0"}
    return parse_numbers(np.array([text and words.get(text.lower(), text) for text in texts.tolist()], dtype=object))


def parse_numbers(texts: np.ndarray) -> np.ndarray:
    """Texts as numbers; NaN for what is none, and for None."""

    def parse(text: str | None) -> float:
        try:
            return float("nan") if text is None else float(text)
        except ValueError:
            return float("nan")

    return np.array([parse(text) for text in texts.tolist()], dtype=np.float64)
