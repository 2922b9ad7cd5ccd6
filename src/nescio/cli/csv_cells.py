"""The cells of a CSV: read as they are written, and only then taken as numbers, as true and false, or as text."""

from __future__ import annotations

import csv
import gzip
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from nescio._validation import InputError, join_names

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read_csv_cells", "read_csv_header", "with_kinds"]


GAPS = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null")
"""Words that R, pandas, spreadsheets and databases write where there is no value."""
MARKS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


def read_csv_header(path: Path) -> list[str]:
    """The names of the columns; refuses what polars would rename in silence: no name, and the same name twice."""
    with _opened(path) as stream:
        header = next((row for row in csv.reader(stream) if row), None)
    if header is None:
        raise InputError(f"'{path}' is empty; it needs a header and rows.")
    marks = [words for mark, words in MARKS.items() if mark in header[0]]
    if len(header) == 1 and marks:
        raise InputError(
            f"'{path}' has {marks[0]} between its cells; write it with commas there, and with points in decimal "
            "numbers."
        )
    if "" in header:
        raise InputError(
            f"column {header.index('') + 1} of '{path}' has no name; name it or drop it (an index, perhaps)."
        )
    twice = [name for name in dict.fromkeys(header) if header.count(name) > 1]
    if twice:
        raise InputError(f"'{path}' has more than one column called {join_names(twice)}; rename or drop the others.")
    return header


def read_csv_cells(path: Path) -> pl.DataFrame:
    """All cells as text, None where nothing is written; as many in each row as in the header."""
    import polars

    width = len(read_csv_header(path))
    try:
        frame = polars.read_csv(path, infer_schema_length=0, glob=False)
    except polars.exceptions.PolarsError:
        _check_widths(path, width)
        raise
    if width == 1 or not frame[:, -1].null_count():  # a row that is cut short has no last cell
        return frame
    blank = _check_widths(path, width)
    return frame.filter(~polars.int_range(frame.height, eager=True).is_in(blank)) if blank else frame


def _check_widths(path: Path, width: int) -> list[int]:
    """Refuse a row with more or fewer cells than the header; which rows are blank lines."""
    blank = []
    with _opened(path) as stream:
        reader = csv.reader(stream)
        next(row for row in reader if row)
        for number, row in enumerate(reader):
            if not row:
                blank.append(number)
            elif len(row) != width:
                raise InputError(
                    f"line {reader.line_num} of '{path}' has {len(row)} cells and the header {width}; give each row a "
                    "cell for each column, in quotes where it holds a comma."
                )
    return blank


def _opened(path: Path) -> IO[str]:
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    return cast(IO[str], opener(path, "rt", encoding="utf-8-sig", newline=""))


def with_kinds(
    frame: pl.DataFrame, used: Collection[str], levels: Mapping[str, Collection[str]], codes: Collection[str]
) -> pl.DataFrame:
    """The used columns by their content, those with levels as text; all others as they are written.

    In a used column words for gaps are gaps, with a note, unless they are among its levels. Whole numbers with zeros in
    front, such as 01067, make text of a column that may hold ``codes``, with a note too.
    """
    told, gaps, words = [], [], []
    for name in frame.columns:
        if name not in used:
            continue
        cells = frame[name]
        known = levels.get(name, ())
        gone = cells.is_in([word for word in GAPS if word not in known]).fill_null(False)
        if gone.any():
            gaps.append(f"{int(gone.sum())} in '{name}'")
            words += cells.filter(gone).unique().to_list()
        empty = (cells == "").fill_null(False)  # in quotes
        cells = cells.set(gone | empty, None)
        cells = cells if name in levels else _by_content(cells, name in codes)
        told.append(cells)
    if gaps:
        more = f" and others in {len(gaps) - 5} more columns" if len(gaps) > 5 else ""
        warnings.warn(
            f"cells that hold {join_names(sorted(set(words)))} are taken as gaps ({', '.join(gaps[:5])}{more}).",
            UserWarning,
            stacklevel=2,
        )
    return frame.with_columns(told)


def _by_content(cells: pl.Series, may_be_code: bool) -> pl.Series:
    """Numbers, or true and false, where every cell is one of them or a gap; else text."""
    import polars

    from nescio.preprocessing.learning import CODE

    numbers = cells.cast(polars.Float64, strict=False)
    if numbers.null_count() == cells.null_count():
        padded = cells.str.contains(f"^{CODE.pattern}$").fill_null(False) if may_be_code else None
        if padded is None or not padded.any():
            return numbers
        warnings.warn(
            f"column '{cells.name}' holds codes such as '{cells.filter(padded)[0]}' and is read as categories; where "
            "they are numbers, write them without zeros in front.",
            UserWarning,
            stacklevel=2,
        )
        return cells
    words = cells.str.to_lowercase()
    if bool(words.is_in(["true", "false"]).all()):
        return words == "true"
    return cells
