"""The column encoder: a whole frame as numbers, by the rules that its training rows set."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from nescio._validation import InputError, join_names
from nescio.preprocessing.columns import Column
from nescio.preprocessing.frames import column_names, number_of_rows, read_column
from nescio.preprocessing.learning import learn_column

__all__ = ["ColumnEncoder", "Encoded", "fit_columns"]


class Encoded(NamedTuple):
    """A frame as numbers."""

    values: np.ndarray
    """float64 ``(N, D)``."""
    reasons: list[str | None] | None
    """Per row, what about it was never seen in training; None where there is nothing of the kind."""
    unused: list[str]
    """Columns that the model does not know."""


class ColumnEncoder:
    """The columns of a training table, in its order, and how each becomes numbers."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)

    @property
    def names(self) -> list[str]:
        """The user's columns."""
        return [column.name for column in self.columns]

    @property
    def encoded_names(self) -> list[str]:
        """The encoded columns."""
        return [name for column in self.columns for name in column.encoded_names]

    @property
    def scales(self) -> np.ndarray:
        """By what to divide the encoded columns, ``(D,)``; NaN stands for the column's own standard deviation."""
        return np.array([scale for column in self.columns for scale in column.scales])

    @property
    def plain(self) -> bool:
        """Whether all columns are numbers without gaps, so that an array of them says the same."""
        return all(column.kind in ("number", "boolean") and column.width == 1 for column in self.columns)

    def places(self) -> list[slice]:
        """Where each column's encoded columns are."""
        ends = np.cumsum([column.width for column in self.columns]).tolist()
        return [slice(end - column.width, end) for end, column in zip(ends, self.columns, strict=True)]

    def describe(self) -> list[dict[str, Any]]:
        """For each column its name, its kind, what is done with it, into how many columns, and what is odd about it."""
        return [column.describe() for column in self.columns]

    def transform(self, frame: Any) -> Encoded:
        """Rows of a frame that has these columns, in any order, and perhaps others."""
        there = column_names(frame)
        missing = [name for name in self.names if name not in set(there)]
        if missing:
            raise InputError(f"X lacks {join_names(missing)}, which the model was fitted with; add what is missing.")
        values = np.empty((number_of_rows(frame), sum(column.width for column in self.columns)))
        found: dict[int, list[str]] = {}
        for column, place in zip(self.columns, self.places(), strict=True):
            block = column.encode(read_column(frame, column.name))
            values[:, place] = block.values
            for row, reason in block.reasons.items():
                found.setdefault(row, []).append(reason)
        reasons: list[str | None] | None = None
        if found:
            reasons = [None] * len(values)
            for row, words in found.items():
                reasons[row] = "; ".join(words)
        known = set(self.names)
        return Encoded(values, reasons, [name for name in there if name not in known])

    def unseen(self, frame: Any) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
        """For each row, by column: what was never seen in training, and texts that their numbers do not tell."""
        rows = number_of_rows(frame)
        reasons: list[dict[str, str]] = [{} for _ in range(rows)]
        texts: list[dict[str, str]] = [{} for _ in range(rows)]
        for column in self.columns:
            cells = read_column(frame, column.name)
            for row, reason in column.encode(cells, whole=False).reasons.items():
                reasons[row][column.name] = reason
            if column.kind == "many levels":
                for row, text in enumerate(cells.as_text()):
                    texts[row][column.name] = "missing" if text is None else f"'{text}'"
        return reasons, texts


def fit_columns(frame: Any, y: np.ndarray, seed: int) -> tuple[ColumnEncoder, np.ndarray]:
    """The encoder of a training frame, and its rows as numbers ``(N, D)``; ``y (N, P)`` are their targets."""
    columns, blocks = [], []
    seen: dict[str, str] = {}
    for name in column_names(frame):
        column, block = learn_column(name, read_column(frame, name), y, seed)
        mark = hashlib.sha256(np.append(block.values, column.origin).tobytes()).hexdigest()
        if column.width and not column.note:
            if mark in seen:
                column = replace(column, note=f"the same as '{seen[mark]}'")
            seen.setdefault(mark, name)
        columns.append(column)
        blocks.append(block.values)
    encoder = ColumnEncoder(columns)
    if not encoder.encoded_names:
        raise InputError("X has no column with a value in it; there is nothing to learn from.")
    values = np.empty((number_of_rows(frame), len(encoder.scales)))
    for number, place in enumerate(encoder.places()):
        values[:, place] = blocks[number]
        blocks[number] = values[:0]  # one copy of the table is enough
    return encoder, values
