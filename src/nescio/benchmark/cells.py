"""A table as data: cells with values, spreads and notes, for whoever draws it; and records grouped for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nescio.benchmark.exports import Value
from nescio.benchmark.statistics import spread

__all__ = ["EMPTY", "Cell", "Found", "Group", "Results", "Rows", "Table", "gather", "gather_rows", "spread_cell"]


class Cell(NamedTuple):
    """One value: with what follows the ± sign, or its interval, or a second number; and notes in whole sentences."""

    value: float | str | None
    spread: float | None = None
    interval: tuple[float, float] | None = None
    second: int | None = None
    best: bool = False
    notes: tuple[str, ...] = ()


EMPTY = Cell(None)


def spread_cell(values: Iterable[float] | None, *, best: bool = False) -> Cell:
    """Mean and standard deviation over seeds or trials; the mean alone of one value, an empty cell for none."""
    values = list(values or ())
    if not values:
        return EMPTY
    summary = spread(values)
    return Cell(summary.mean, summary.std if len(values) > 1 else None, best=best)


@dataclass(frozen=True)
class Table:
    """Rows of cells under named columns; the first ``labels`` columns say what a row is."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    labels: int = 1
    digits: int = 2


class Group(NamedTuple):
    """What the numbers of one comparison have in common."""

    protocol: str
    split: str
    region: str
    metric: str


Results = dict[Group, dict[str, dict[str, dict[int, float]]]]
"""Values by group, data set, method and trial."""


def gather(values: Iterable[Value]) -> Results:
    """Records grouped for comparison, in the order in which they come."""
    found: Results = {}
    for value in values:
        group = found.setdefault(Group(value.protocol, value.split, value.region, value.metric), {})
        group.setdefault(value.dataset, {}).setdefault(value.method, {})[value.trial] = value.value
    return found


Rows = Iterable[Mapping[str, str]]
"""Lines of an exported CSV."""
Found = dict[tuple[str, ...], list[float]]
"""Values over seeds by what names them."""


def gather_rows(rows: Rows, names: Sequence[str]) -> Found:
    """Values of lines that agree in these columns, in the order in which they come."""
    found: Found = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(float(row["value"]))
    return found
