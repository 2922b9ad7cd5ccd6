"""What a card's template is given: parts of the page as plain records, numbers still numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from markupsafe import Markup

from nescio.calibration import VERDICTS
from nescio.estimators.watch import watch_rows
from nescio.report.card_probe import verdicts
from nescio.report.card_statistics import Accuracy, Coverage, Judged, Ranking
from nescio.report.card_table import UserTable
from nescio.report.card_words import Mark

__all__ = ["Column", "Drawing", "Facts", "Line", "NewPart", "Target", "certain_lines", "new_part"]

EXTREMES = 5  # rows on each list of the most and the least certain
TO_LOOK_AT = 12
SHOWN_COLUMNS = 4  # of the most important columns, beside each row


@dataclass(frozen=True)
class Drawing:
    """A figure that lies in the page, with its title and what to see in it."""

    title: str
    svg: Markup
    caption: str


@dataclass(frozen=True)
class Column:
    """A column of the table: what it holds, what was done with it, and what shuffling it costs."""

    name: str
    kind: str
    span: str
    treatment: str
    cost: float | None
    share: float


@dataclass(frozen=True)
class Line:
    """A row of the table beside what was said of it."""

    label: str
    cells: Sequence[str]
    actual: float | None
    mean: Sequence[float]
    std: Sequence[float]
    verdict: str
    reasons: Sequence[str] = ()


@dataclass(frozen=True)
class Target:
    """All about one target of the held-out rows."""

    name: str
    sentences: Sequence[str]
    marks: Sequence[Mark]
    accuracy: Accuracy
    coverage: Sequence[Coverage]
    ranking: Ranking
    distance: float
    median_std: float
    width: float
    outside: float | None
    drawings: Sequence[Drawing]
    curves: Sequence[Drawing]
    certain: Sequence[Line] = ()
    uncertain: Sequence[Line] = ()


@dataclass(frozen=True)
class NewPart:
    """Verdicts on a new table, and its rows to look at."""

    rows: int
    counts: Mapping[str, int]
    lines: Sequence[Line]
    sentence: str


@dataclass(frozen=True)
class Facts:
    """What the model is and what it was trained on, and what was done to judge it."""

    kind: str
    words: str
    rows: int
    features: int
    targets: Sequence[str]
    settings: Sequence[tuple[str, str]]
    notes: Sequence[str] = field(default_factory=tuple)


def certain_lines(
    table: UserTable, judged: Judged, labels: Sequence[str], shown: Sequence[int]
) -> tuple[list[Line], list[Line]]:
    """The rows with the smallest and with the largest std, surest and least sure first."""
    order = np.argsort(judged.std, kind="stable")
    count = min(EXTREMES, len(order) // 2)
    line = lambda row: Line(
        labels[row],
        [table.cell(row, column) for column in shown],
        float(judged.y[row]),
        [float(judged.mean[row])],
        [float(judged.std[row])],
        str(judged.verdict[row]),
    )
    return [line(row) for row in order[:count]], [line(row) for row in order[::-1][:count]]


def new_part(
    model: Any, table: UserTable, labels: Sequence[str], shown: Sequence[int], edge: float, outside: float
) -> NewPart:
    """Verdicts on all rows, and the strangest of those that are not inside, with the reasons where these are told."""
    words = verdicts(model, table.X, edge, outside)
    support = np.asarray(model.support(table.X))
    counts = {word: int(np.sum(words == word)) for word in VERDICTS}
    sentence = str(watch_rows(support, model.support_, edge, outside)).removeprefix("WARNING: ")
    rank = np.array([("outside", "edge", "inside", "unknown").index(word) for word in words])
    order = np.lexsort((support, rank))
    chosen = [int(row) for row in order if words[row] in ("edge", "outside")][:TO_LOOK_AT]
    if not chosen:
        return NewPart(table.rows, counts, [], sentence)
    part = table.take(np.array(chosen))
    mean, std = (np.asarray(values).reshape(len(chosen), -1) for values in model.predict(part.X, return_std=True))
    reasons = [explanation.reasons for explanation in model.explain(part.X, edge=edge, outside=outside)]
    lines = [
        Line(
            labels[row],
            [part.cell(place, column) for column in shown],
            None,
            [float(value) for value in mean[place]],
            [float(value) for value in std[place]],
            str(words[row]),
            reasons[place],
        )
        for place, row in enumerate(chosen)
    ]
    return NewPart(table.rows, counts, lines, sentence)
