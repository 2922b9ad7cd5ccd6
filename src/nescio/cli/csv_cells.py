"""The cells of a CSV: read as they are written, and only then taken as numbers, as true and false, or as text."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nescio._validation import InputError, join_names

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read_csv_cells", "read_csv_header", "with_kinds"]


def read_csv_header(path: Path) -> list[str]:
    """The names of the columns; refuses what polars would rename in silence: no name, and the same name twice."""
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
        header = next((row for row in csv.reader(stream) if row), None)
    if header is None:
        raise InputError(f"'{path}' is empty; it needs a header and rows.")
    if "" in header:
        raise InputError(
            f"column {header.index('') + 1} of '{path}' has no name; name it or drop it (an index, perhaps)."
        )
    twice = [name for name in dict.fromkeys(header) if header.count(name) > 1]
    if twice:
        raise InputError(f"'{path}' has more than one column called {join_names(twice)}; rename or drop the others.")
    return header


def read_csv_cells(path: Path) -> pl.DataFrame:
    """All cells as text; None where nothing is written."""
    import polars

    read_csv_header(path)
    return polars.read_csv(path, infer_schema_length=0, glob=False)


def with_kinds(frame: pl.DataFrame, used: Collection[str], levels: Mapping[str, Collection[str]]) -> pl.DataFrame:
    """The used columns by their content, those with levels as text; all others as they are written."""
    told = set(used) - set(levels)
    return frame.with_columns(_by_content(frame[name]) for name in frame.columns if name in told)


def _by_content(cells: pl.Series) -> pl.Series:
    """Numbers, or true and false, where every cell is one of them or empty; else text."""
    import polars

    filled = cells.set(cells == "", None)  # "" in quotes
    numbers = filled.cast(polars.Float64, strict=False)
    if numbers.null_count() == filled.null_count():
        return numbers
    words = filled.str.to_lowercase()
    if bool(words.is_in(["true", "false"]).all()):
        return words == "true"
    return cells
