"""Why a row is at the edge or outside: the columns that take it there, in plain words, and the nearest rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch

from nescio.calibration import INSIDE, Support
from nescio.preprocessing import Column, ColumnEncoder

__all__ = ["Explainer", "Explanation", "Neighbour", "plain_columns"]

NEAREST = 3
SHARE = 0.1  # of the squared distance: a column below it is not what takes a row out
MOST = 3  # columns named
USUAL = 200  # rows that tell what is usual
TAIL = 0.01  # share of the training rows: beyond it a value is said to be in the tail, or a level to be rare
HOLE = 0.5  # of a column's part of the distance: so much must be seen in the column alone


@dataclass(frozen=True)
class Neighbour:
    """A training row that is near."""

    row: int
    """Its number in the table that was given to fit, from 0."""
    distance: float
    """In standard deviations."""
    values: dict[str, str]


@dataclass(frozen=True)
class Explanation:
    """Why a row is not inside: nothing to say of one that is."""

    verdict: str
    reasons: tuple[str, ...] = ()
    """The first takes it farthest."""
    columns: tuple[str, ...] = ()
    """Names of the columns, in the same order."""
    nearest: tuple[Neighbour, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        """In plain words."""
        if not self.reasons:
            return self.verdict
        text = f"{self.verdict}: {'; '.join(self.reasons)}"
        if self.nearest and self.columns:
            first = self.nearest[0]
            shown = [f"{name} = {first.values[name]}" for name in self.columns if name in first.values]
            text += f" (nearest: training row {first.row}{': ' if shown else ''}{', '.join(shown)})"
        return text


@dataclass(frozen=True)
class Explainer:
    """What it takes to explain a row: the columns, the reference rows, and the ranges of all training rows."""

    columns: ColumnEncoder
    support: Support
    shift: np.ndarray
    scale: np.ndarray
    x_range: np.ndarray

    def explain(
        self, row: np.ndarray, encoded: np.ndarray, verdict: str, unseen: dict[str, str], shown: dict[str, str]
    ) -> Explanation:
        """Explain one row, ``(D,)`` standardised and as it was encoded.

        ``unseen`` has the reasons that its cells alone give, by column, and ``shown`` words for cells that cannot be
        told from their numbers.
        """
        if verdict == INSIDE:
            return Explanation(verdict)
        neighbours = self.support.neighbours
        reference = neighbours.reference.double()
        k = min(max(neighbours.k, NEAREST), len(reference))
        winners = neighbours.nearest_rows(torch.as_tensor(row[None]), k)[0].numpy()
        parts = np.maximum(self._by_column(row, winners[: neighbours.k]) - self._usual, 0.0)
        parts = parts / max(float(parts.sum()), 1e-300)
        reasons, columns = list(unseen.values()), list(unseen)
        single, usual = self._look(row, encoded, parts, unseen, shown)
        reasons += [words for _, words in single]
        columns += [name for name, _ in single]
        covered = sum(parts[self.columns.names.index(name)] for name, _ in single)
        if usual and not unseen and covered < 0.5:
            reasons.append(_together(usual))
            columns += [name for name, _ in usual]
        nearest = tuple(self._neighbour(int(winner), row, reference) for winner in winners[:NEAREST])
        return Explanation(verdict, tuple(reasons), tuple(columns), nearest)

    def _by_column(self, row: np.ndarray, winners: np.ndarray) -> np.ndarray:
        """Squared distance to these reference rows, on average, by the column it lies in, ``(C,)``."""
        squared = np.square(row - self.support.neighbours.reference[winners].double().numpy()).mean(axis=0)
        return np.array([squared[place].sum() for place in self.columns.places()])

    @cached_property
    def _usual(self) -> np.ndarray:
        """The same for rows from inside, each against the others: with many columns, all of them differ a little."""
        neighbours = self.support.neighbours
        rows = neighbours.reference[:USUAL].double()
        found = neighbours.nearest_rows(rows, neighbours.k + 1)[:, 1:].numpy()  # the first is the row itself
        parts = [
            self._by_column(row, winners) for row, winners in zip(rows.numpy(), found, strict=True) if len(winners)
        ]
        return np.mean(parts, axis=0) if parts else np.zeros(len(self.columns.columns))

    def _look(
        self,
        row: np.ndarray,
        encoded: np.ndarray,
        parts: np.ndarray,
        unseen: dict[str, str],
        shown: dict[str, str],
    ) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Columns that are strange by themselves, with the reason, and columns that are not, with their value."""
        single: list[tuple[str, str]] = []
        usual: list[tuple[str, str]] = []
        places = self.columns.places()
        for number in np.argsort(-parts, kind="stable"):
            column, place = self.columns.columns[number], places[number]
            if column.name in unseen or column.kind == "empty":
                continue
            if parts[number] < SHARE or len(single) + len(usual) == MOST:
                break
            value = column.decode(encoded[place]) or shown.get(column.name) or "as it is"
            words = self._alone(column, place, row, encoded[place], float(parts[number]), value)
            (single if words else usual).append((column.name, words or value))
        return single, usual

    def _alone(
        self, column: Column, place: slice, row: np.ndarray, encoded: np.ndarray, part: float, value: str
    ) -> str:
        """What is strange about this column by itself; empty where nothing is."""
        reference = self.support.neighbours.reference[:, place].double().numpy()
        if not column.is_number or value == "missing":
            if column.kind == "many levels":
                return ""
            level = int(row[place].argmax()) if not column.is_number else 1
            has = (reference * self.scale[place][None] + self.shift[place])[:, level] > 0.5
            if has.mean() > TAIL:
                return ""
            what = f"{column.name} is missing" if value == "missing" else f"{column.name} = {value}"
            return f"{what}, as in only {int(has.sum())} of {len(has)} training rows looked at"
        low, high = self.x_range[:, place][:, 0]
        slack = 1e-9 * max(abs(low), abs(high), 1e-300)  # what standardising and back may cost
        if low == high and abs(encoded[0] - low) > slack:
            return f"{column.name} = {value}, where every training row has {column.show(low)}"
        if encoded[0] > high + slack:
            return f"{column.name} = {value}, above every training row (max {column.show(high)})"
        if encoded[0] < low - slack:
            return f"{column.name} = {value}, below every training row (min {column.show(low)})"
        values = np.sort(reference[:, 0])
        above = int(np.searchsorted(values, row[place][0], side="left"))
        share = min(len(values) - above, int(np.searchsorted(values, row[place][0], side="right"))) / len(values)
        if share <= TAIL:
            end = f"max {column.show(high)}" if above > len(values) / 2 else f"min {column.show(low)}"
            return (
                f"{column.name} = {value}, beyond {1.0 - max(share, 1 / len(values)):.1%} of the training rows ({end})"
            )
        left, right = values[max(above - 1, 0)], values[min(above, len(values) - 1)]
        gap = min(row[place][0] - left, right - row[place][0])
        total = float(np.square(gap))
        if gap > 0.1 and total >= HOLE * part * self._squared_distance(row):
            between = [column.show(float(edge * self.scale[place][0] + self.shift[place][0])) for edge in (left, right)]
            return f"{column.name} = {value}, between {between[0]} and {between[1]}, where no training row is"
        return ""

    def _squared_distance(self, row: np.ndarray) -> float:
        return float(self.support.score(row[None])[0] ** 2)

    def _neighbour(self, number: int, row: np.ndarray, reference: torch.Tensor) -> Neighbour:
        there = reference[number].numpy()
        encoded = there * self.scale + self.shift
        values = {
            column.name: value
            for column, place in zip(self.columns.columns, self.columns.places(), strict=True)
            if (value := column.decode(encoded[place]) if column.width else None) is not None
        }
        rows = self.support.rows
        return Neighbour(int(rows[number]) if len(rows) else number, float(np.linalg.norm(row - there)), values)


def _together(usual: list[tuple[str, str]]) -> str:
    """A combination that no column shows by itself."""
    listed = [f"{name} = {value}" for name, value in usual]
    if len(listed) == 1:
        return f"{listed[0]}, where training rows are far apart"
    both = "both" if len(listed) == 2 else "all of them"
    return f"{', '.join(listed[:-1])} and {listed[-1]} together: each is usual, hardly a training row is near {both}"


def plain_columns(names: list[str]) -> ColumnEncoder:
    """Columns of an array, which are numbers."""
    return ColumnEncoder([Column(name, "number", scales=(float("nan"),)) for name in names])
