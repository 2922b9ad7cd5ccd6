"""Tables as files: CSV and Parquet in and out, and every complaint about a column by its name."""

from __future__ import annotations

import csv
import difflib
import gzip
import os
import warnings
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from nescio._files import written_beside
from nescio._validation import InputError, join_names
from nescio.cli.csv_cells import read_csv_cells, read_csv_header, with_kinds

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "as_categories",
    "check_columns",
    "check_kind",
    "check_not_input",
    "numeric_frame",
    "read_header",
    "read_table",
    "with_targets",
    "write_table",
]

KINDS = (".csv", ".csv.gz", ".parquet")


def _polars() -> Any:
    try:
        import polars
    except ModuleNotFoundError:
        raise InputError("tables need polars: pip install 'nescio[cli]'.") from None
    return polars


def _faults() -> tuple[type[BaseException], ...]:
    exceptions = _polars().exceptions
    return exceptions.PolarsError, exceptions.PanicException


def _reason(error: BaseException) -> str:
    """The first words of a library's message, on one line."""
    return " ".join(str(error).split(". ")[0].split())[:120].rstrip(". ") or type(error).__name__


def check_kind(path: Path) -> str:
    """The kind of table that the file's name promises."""
    for kind in KINDS:
        if path.name.lower().endswith(kind):
            return kind
    raise InputError(f"'{path}' must be a table in one of the forms {', '.join(KINDS)}; convert or rename it.")


def check_not_input(out: Path, *inputs: Path, option: str = "--out") -> None:
    """Refuse an output that would replace an input."""
    for path in inputs:
        if os.path.realpath(out) == os.path.realpath(path):
            raise InputError(f"{option} is the input '{path}' itself; give another name.")


def read_header(path: Path) -> list[str]:
    """The names of a table's columns."""
    kind = _kind_of_file(path)
    with _in_a_sentence(path, kind):
        names = list(_polars().read_parquet_schema(path)) if kind == ".parquet" else read_csv_header(path)
    return names


def read_table(
    path: Path,
    used: Collection[str] | None = None,
    levels: Mapping[str, Collection[str]] | None = None,
    codes: Collection[str] = (),
) -> pl.DataFrame:
    """A table with named columns and at least one row.

    In a CSV, where nothing but the cells tells what a column is, those that are ``used`` (all by default) are taken by
    their content, those with ``levels`` as text, and the others stay as they are written; zeros in front make text of
    ``codes``.
    """
    kind = _kind_of_file(path)
    with _in_a_sentence(path, kind):
        if kind == ".parquet":
            frame = _polars().read_parquet(path, glob=False)
        else:
            cells = read_csv_cells(path)
            frame = with_kinds(cells, cells.columns if used is None else used, levels or {}, codes)
    if not frame.height or not frame.width:
        raise InputError(f"'{path}' has no rows; it needs data below its header.")
    return cast("pl.DataFrame", frame)


def _kind_of_file(path: Path) -> str:
    kind = check_kind(path)
    _polars()
    if path.is_dir():
        raise InputError(f"'{path}' is a directory; give a table.")
    if not path.exists():
        raise InputError(f"there is no file '{path}'.")
    return kind


@contextmanager
def _in_a_sentence(path: Path, kind: str) -> Iterator[None]:
    """What a library says of a file that it cannot read, in a sentence of ours."""
    faults: tuple[type[BaseException], ...] = (*_faults(), csv.Error, zlib.error, EOFError, UnicodeError)
    try:
        yield
    except faults as error:
        reason = " ".join(str(error).split())[:120].rstrip(". ")
        raise InputError(f"'{path}' cannot be read as {kind[1:]}: {reason or type(error).__name__}.") from None
    except OSError as error:
        raise InputError(f"'{path}' cannot be read as {kind[1:]}: {error.strerror or error}.") from None


def check_columns(path: Path, wanted: Iterable[str], columns: Sequence[str], who: str) -> None:
    """Refuse names that are not in the table, with a guess at what was meant."""
    missing = [name for name in wanted if name not in columns]
    if not missing:
        return
    remedy = f"its columns are {join_names(columns, 8)}"
    close = difflib.get_close_matches(missing[0], columns, n=1) or [
        name for name in columns if name.strip().lower() == missing[0].strip().lower()
    ]
    if close:
        remedy = f"did you mean '{close[0]}'?"
    ending = "" if remedy.endswith("?") else "."
    raise InputError(f"{who} {join_names(missing)}, which '{path}' does not have; {remedy}{ending}")


def numeric_frame(
    frame: pl.DataFrame, columns: Sequence[str], remedy: str, rows: np.ndarray | None = None
) -> pl.DataFrame:
    """These columns as float64, finite; ``remedy`` ends the sentence about one that is not numeric.

    ``rows (N,)`` are the numbers of the rows in the file, from 0, where some of those have been left out.
    """
    polars = _polars()
    numbers = np.arange(frame.height) if rows is None else rows
    for name in columns:
        series = frame[name]
        if series.null_count() == len(series):
            raise InputError(f"column '{name}' is empty in every row; {remedy}.")
        if not (series.dtype.is_numeric() or series.dtype == polars.Boolean):
            raise InputError(f"column '{name}' holds {_content(series, numbers)}, not numbers; {remedy}.")
        gaps = ~np.isfinite(series.cast(polars.Float64).fill_null(np.nan).to_numpy())
        if gaps.any():
            raise InputError(
                f"column '{name}' has gaps in {int(gaps.sum())} of {len(gaps)} rows (empty, NaN or infinite; the first "
                f"is data row {numbers[gaps.argmax()] + 1}); fill them or drop these rows."
            )
    return frame.select(polars.col(list(columns)).cast(polars.Float64))


def as_categories(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """These columns as categories, whatever they look like."""
    from nescio.preprocessing.frames import read_column

    polars = _polars()
    for name in names:
        cells = read_column(frame, name)
        if cells.kind in ("date", "time", "duration"):
            raise InputError(f"column '{name}' holds a {cells.kind}, no category; take it out of --category.")
        if cells.kind != "empty":
            frame = frame.with_columns(polars.Series(name, cells.as_text(), dtype=polars.Categorical))
    return frame


def with_targets(frame: pl.DataFrame, targets: Sequence[str]) -> tuple[pl.DataFrame, np.ndarray]:
    """The rows that have all their targets, and their numbers in the file, from 0; a note tells how many do not."""
    polars = _polars()
    kept = np.ones(frame.height, dtype=bool)
    for name in targets:
        series = frame[name]
        gaps = series.is_null()
        if series.dtype.is_float():
            gaps = gaps | series.is_nan().fill_null(False)
        kept &= ~gaps.to_numpy()
    lacking = int((~kept).sum())
    if lacking and kept.any():
        warnings.warn(
            f"{lacking} of {frame.height} rows lack {join_names(targets)} and are left out.", UserWarning, stacklevel=2
        )
        return frame.filter(polars.Series(kept)), np.flatnonzero(kept)
    return frame, np.arange(frame.height)


def _content(series: pl.Series, numbers: np.ndarray) -> str:
    polars = _polars()
    if series.dtype.is_temporal():
        return "dates or times"
    if series.dtype != polars.String:
        return f"values of type {series.dtype}"
    odd = series.is_not_null() & series.cast(polars.Float64, strict=False).is_null()
    row = int(odd.arg_max() or 0) if odd.any() else 0
    text = str(series[row])
    return f"text ('{text[:30]}' in data row {numbers[row] + 1})"


def write_table(columns: dict[str, Any], path: Path) -> None:
    """Write columns of one length beside ``path``, and rename."""
    kind = check_kind(path)
    frame: pl.DataFrame = _polars().DataFrame(columns)
    try:
        with written_beside(path) as handle:
            if kind == ".parquet":
                frame.write_parquet(handle)
            elif kind == ".csv":
                frame.write_csv(handle)
            else:
                with gzip.GzipFile(filename="", mode="wb", fileobj=handle, mtime=0) as packed:
                    frame.write_csv(cast(IO[bytes], packed))
    except _faults() as error:
        raise InputError(f"'{path}' cannot hold this table: {_reason(error)}; write .parquet instead.") from None
