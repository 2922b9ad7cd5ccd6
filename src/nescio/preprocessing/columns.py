"""One column of a table: what it holds, how it becomes numbers, and what about a cell was never seen in training."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from nescio._validation import InputError, join_names
from nescio.preprocessing.frames import NUMBERS, Cells, parse_booleans, parse_dates, parse_numbers, shown_number

__all__ = ["KINDS", "SMALLEST_SCALE", "Block", "Column", "shown_day"]

KINDS = (*NUMBERS, "date", "category", "many levels", "empty")
SMALLEST_SCALE = 0.5
"""Of a one-hot block, so that two levels are never farther apart than 2.8 standard deviations: divided by its own
spread, a level seen once in a thousand rows would lie thirty of them away from all others."""
LONGEST = 40  # characters of a cell in a message


class Block(NamedTuple):
    """What a column becomes: its numbers ``(N, d)``, and by row what was never seen in training."""

    values: np.ndarray
    reasons: dict[int, str]


@dataclass(frozen=True)
class Column:
    """A column as it was in training. Plain values throughout: it is written to a file as it is."""

    name: str
    kind: str
    gaps: bool = False
    """Whether a training row lacked it."""
    fill: float = 0.0
    """What stands for a gap among numbers: their median, or the more frequent of two."""
    origin: float = 0.0
    """The first date, in days since 1970, from which days are counted."""
    levels: tuple[str, ...] = ()
    averages: np.ndarray | None = field(default=None, compare=False)
    """Of many levels: the average targets of each, gaps last where there are any, ``(L, P)``."""
    default: np.ndarray | None = field(default=None, compare=False)
    """The average targets of all rows, ``(P,)``."""
    scales: tuple[float, ...] = ()
    """By what to divide each encoded column; NaN stands for its own standard deviation."""
    note: str = ""

    @property
    def width(self) -> int:
        """How many encoded columns there are."""
        return len(self.scales)

    @property
    def is_number(self) -> bool:
        """Whether it is a number, or something that is counted as one."""
        return self.kind in (*NUMBERS, "date")

    @property
    def encoded_names(self) -> list[str]:
        """Names of the encoded columns."""
        if self.kind == "empty":
            return []
        if self.is_number:
            return [self.name, f"{self.name} missing"][: self.width]
        if self.kind == "many levels":
            return [self.name] if self.width == 1 else [f"{self.name}, target {target}" for target in range(self.width)]
        return [f"{self.name}={level}" for level in self.levels] + ([f"{self.name} missing"] if self.gaps else [])

    def describe(self) -> dict[str, Any]:
        """Name, kind, what is done with it, and how many encoded columns it has."""
        done = {
            "number": "as it is",
            "boolean": "as 0 and 1",
            "duration": "in days",
            "time": "in hours since midnight",
            "date": f"in days since {shown_day(self.origin)}",
            "category": f"a column for each level: {join_names(self.levels)}",
            "many levels": f"the average target of each of {len(self.levels)} levels",
            "empty": "left out: no training row has a value",
        }[self.kind]
        if self.gaps and self.kind != "empty":
            done += ", gaps are a level" if not self.is_number else f", gaps are {self.show(self.fill)} and marked"
        return {"name": self.name, "kind": self.kind, "done": done, "columns": self.width, "note": self.note}

    def encode(self, cells: Cells, *, whole: bool = True) -> Block:
        """The cells as numbers; a gap or a level that training did not have is marked with a reason.

        A ``whole`` table in which no cell can be read is refused; among some of its rows that may be so.
        """
        if self.kind == "empty":
            return Block(np.empty((len(cells.values), 0)), {})
        return self._encode_number(cells, whole) if self.is_number else self._encode_text(cells)

    def _encode_number(self, cells: Cells, whole: bool) -> Block:
        values, unreadable = self._as_numbers(cells, whole)
        gaps = np.isnan(values)
        infinite = np.isinf(values)
        reasons = {int(row): f"{self.name} is infinite" for row in np.flatnonzero(infinite)}
        if not self.gaps:
            reasons |= {int(row): self._unexpected_gap for row in np.flatnonzero(gaps)}
        what = "date" if self.kind == "date" else "number"
        reasons |= {row: f"{self.name} = {_quoted(text)} is not a {what}" for row, text in unreadable.items()}
        filled = np.where(gaps | infinite, self.fill, values - self.origin)
        parts = [filled, (gaps & self.gaps).astype(np.float64)] if self.width == 2 else [filled]
        return Block(np.stack(parts, axis=1), reasons)

    def _as_numbers(self, cells: Cells, whole: bool) -> tuple[np.ndarray, dict[int, str]]:
        """Cells of any kind as this column's numbers, and by row the texts that are none."""
        if cells.kind == "empty" or cells.kind == self.kind or {cells.kind, self.kind} == {"number", "boolean"}:
            return cells.values, {}
        if cells.kind != "text":
            raise self._other_kind(f"holds a {cells.kind}")
        parse = {"date": parse_dates, "boolean": parse_booleans}.get(self.kind, parse_numbers)
        values = parse(cells.values)
        odd = np.flatnonzero(np.isnan(values) & ~cells.gaps)
        if whole and len(odd) and len(odd) == int((~cells.gaps).sum()):
            raise self._other_kind(f"holds text, {_quoted(str(cells.values[odd[0]]))} in row {odd[0]}")
        return values, {int(row): str(cells.values[row]) for row in odd}

    def _other_kind(self, what: str) -> InputError:
        return InputError(f"column '{self.name}' {what}, but was a {self.kind} in training; convert it first.")

    def _encode_text(self, cells: Cells) -> Block:
        if cells.kind in ("date", "time", "duration"):
            raise self._other_kind(f"holds a {cells.kind}")
        texts = cells.as_text()
        if self.kind == "category":
            values = self._one_hot.transform(texts[:, None])
            unseen = values.sum(1) == 0
        else:
            codes = self._ordinal.transform(texts[:, None])[:, 0].astype(np.int64)
            unseen = codes < 0
            values = np.concatenate([self.averages, [self.default]])[codes]  # the last, -1, is the default
        reasons = {
            int(row): self._unexpected_gap
            if texts[row] is None
            else f"no training row has {self.name} = {_quoted(texts[row])}"
            for row in np.flatnonzero(unseen)
        }
        return Block(values, reasons)

    @property
    def _unexpected_gap(self) -> str:
        return f"{self.name} is missing, which it is in no training row"

    @property
    def _categories(self) -> list[np.ndarray]:
        return [np.array([*self.levels, *([None] if self.gaps else [])], dtype=object)]

    @cached_property
    def _one_hot(self) -> Any:
        encoder = OneHotEncoder(categories=self._categories, handle_unknown="ignore", sparse_output=False)
        return encoder.fit(self._categories[0][:1, None])

    @cached_property
    def _ordinal(self) -> Any:
        encoder = OrdinalEncoder(
            categories=self._categories,
            handle_unknown="use_encoded_value",
            unknown_value=-1,
            encoded_missing_value=len(self.levels),
        )
        return encoder.fit(self._categories[0][:1, None])

    def show(self, value: float) -> str:
        """An encoded number of this column in words that its user knows."""
        if self.kind == "date":
            return shown_day(self.origin + value)
        if self.kind == "boolean" and value in (0.0, 1.0):
            return str(bool(value)).lower()
        unit = {"duration": " days", "time": " h"}.get(self.kind, "")
        return f"{shown_number(float(f'{value:.6g}'))}{unit}"

    def decode(self, encoded: np.ndarray) -> str | None:
        """One row's encoded values ``(d,)`` as the user's own; None where that cannot be told."""
        if self.kind in ("empty", "many levels"):
            return None
        if self.is_number:
            return "missing" if self.width == 2 and encoded[1] > 0.5 else self.show(float(encoded[0]))
        place = int(encoded.argmax())
        return _quoted(self.levels[place]) if place < len(self.levels) else "missing"


def shown_day(days: float) -> str:
    """Days since 1970 as a date, with the time of day where there is one.

    >>> shown_day(19844.0), shown_day(19844.5)
    ('2024-05-01', '2024-05-01 12:00')
    """
    if not abs(days) < 2.9e6:  # beyond the years that people write
        return f"{days:.6g} days after 1970"
    moment = np.datetime64(round(days * 86_400), "s")
    text = str(moment).replace("T", " ")
    return text.removesuffix(":00").removesuffix(" 00:00")


def _quoted(text: str) -> str:
    short = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return f"'{short}'"
