"""A model's card: one self-contained page on what it knows, how far it can be trusted, and where it knows nothing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nescio._validation import InputError, check_fraction, counted
from nescio.calibration import EDGE_RATE, OUTSIDE_RATE
from nescio.estimators.watch import Watch, watch_rows
from nescio.report.card_facts import contract_lines, describe_columns, model_facts, outside_level
from nescio.report.card_panels import curve_drawings, judged_drawings, map_drawing
from nescio.report.card_parts import SHOWN_COLUMNS, Target, certain_lines, new_part
from nescio.report.card_probe import (
    Curve,
    column_curve,
    column_importance,
    ignorance_map,
    judge,
    learned_values,
    seen_share,
    typical_row,
    verdicts,
)
from nescio.report.card_statistics import (
    LEVELS,
    Coverage,
    Judged,
    accuracy,
    coverage,
    ranking,
    reliability,
)
from nescio.report.card_style import some_rows
from nescio.report.card_table import UserTable
from nescio.report.card_words import Findings, percent, short, trust_marks, trust_sentences, written
from nescio.report.html import page_template

__all__ = ["card"]

MOST_ROWS = 5_000  # judged: a share is then known to one per cent, and quantiles take seconds
MOST_CURVES = 6
MOST_TARGETS = 3  # drawn; with more, the others are in the table alone
SEEN = 0.5  # a share of training rows among the rows to judge by that is no accident
"""Tables with repeated rows have some by chance."""


def card(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    new: Any = None,
    refit: Any = None,
    title: str | None = None,
    row_names: Sequence[object] | None = None,
    new_names: Sequence[object] | None = None,
    edge: float = EDGE_RATE,
    outside: float = OUTSIDE_RATE,
) -> str:
    """The page as HTML text.

    Parameters
    ----------
    model
        A fitted regressor.
    X, y
        Rows that the model was **not** fitted on, and their targets. Without them the page has only what needs none.
    new
        A table without targets: verdict counts, and the rows to look at.
    refit
        The same regressor fitted without the rows ``X``, where ``model`` itself learned from all rows: accuracy and
        calibration are then those of ``refit``, curves and map those of ``model``, and the page says so.
    title
        The heading; by default the targets' names.
    row_names, new_names
        Names of the rows of ``X`` and ``new``; by default their numbers, from 1.
    edge, outside
        Rates of false alarms of the verdicts.

    At most 5,000 rows, drawn at random, are judged. Nothing is written; the page loads nothing when it is opened.
    """
    check_fraction("edge", edge)
    check_fraction("outside", outside)
    if (X is None) != (y is None):
        raise InputError("X and y must be given together: rows that the model was not fitted on, and their targets.")
    if X is None and new is None:
        raise InputError("a card needs held-out rows X and y, or a new table, to speak of; got neither.")
    names = _target_names(model, y)
    fresh = None if new is None else UserTable(new, model.columns_)
    if X is not None:
        table, targets, labels = _held_out(UserTable(X, model.columns_), y, names, row_names)
        asked = model if refit is None else refit
        judged = judge(asked, table, targets, names, edge, outside)
        costs = column_importance(asked, table, targets)
        watch = watch_rows(asked.support(table.X), asked.support_, edge, outside)
        seen = seen_share(asked, table) > SEEN
        if seen:
            warnings.warn(
                "most rows of X are rows the model was fitted on: the card's numbers will be too good, and it says so.",
                UserWarning,
                stacklevel=2,
            )
    else:
        table = fresh.take(some_rows(fresh.rows, MOST_ROWS))  # type: ignore[union-attr]
        judged, costs, labels, watch, seen = [], None, [], None, False
    weight = np.zeros(table.width) if costs is None else np.mean(np.maximum(costs, 0.0) / model.y_scale_, axis=1)
    ranked = np.argsort(-weight, kind="stable")
    shown = [int(column) for column in ranked[:SHOWN_COLUMNS]]
    words = verdicts(model, table.X, edge, outside)
    curves = _curves(model, table, words, ranked, weight, edge, outside)
    plan = ignorance_map(model, table, table.names if model.columns_ is None else model.encoded_names_)
    sheet = Sheet(model, table, labels, curves, shown, watch, seen)
    return page_template(
        "card.html.j2", percent=percent, short=short, written=written, counted=counted, groups=_groups
    ).render(
        levels=LEVELS,
        title=title or " and ".join(short(name) for name in names),
        facts=model_facts(model, refit, None if X is None else len(X), table.rows, outside, names),
        columns=describe_columns(model, table, costs, ranked),
        targets=[_target(sheet, number, one) for number, one in enumerate(judged)],
        alone=[] if judged else curve_drawings(model, curves, 0, names[0]),
        map=None if plan is None else map_drawing(plan, words, edge, outside),
        shown=[table.names[column] for column in shown],
        new=None if fresh is None else new_part(model, fresh, _labels(fresh, new_names), shown, edge, outside),
        contract=contract_lines(model, refit, X, y),
        version=_version(),
    )


@dataclass(frozen=True)
class Sheet:
    """What the parts on single targets share."""

    model: Any
    table: UserTable
    labels: Sequence[str]
    curves: Sequence[Curve]
    shown: Sequence[int]
    watch: Watch | None
    seen: bool


def _target_names(model: Any, y: Any) -> list[str]:
    given = getattr(model, "target_names_", None)
    if given is None and hasattr(y, "columns") and len(y.columns) == model.n_outputs_:
        given = list(y.columns)
    if given is None and model.n_outputs_ == 1:
        given = [getattr(y, "name", None) or "y"]
    return [str(name) for name in given] if given is not None else [f"y{p}" for p in range(model.n_outputs_)]


def _held_out(
    table: UserTable, y: Any, names: Sequence[str], row_names: Sequence[object] | None
) -> tuple[UserTable, np.ndarray, list[str]]:
    """The rows to judge, at most so many, with their targets ``(N, P)`` and names."""
    targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    if targets.shape != (table.rows, len(names)):
        raise InputError(
            f"y must have {counted(len(names), 'value')} for each of the {table.rows} rows of X; its shape is "
            f"{targets.shape}."
        )
    if table.rows < 2:
        raise InputError(f"X and y must have at least 2 rows to judge by; got {table.rows}.")
    gaps = int((~np.isfinite(targets)).any(axis=1).sum())
    if gaps:
        raise InputError(f"y must have no gaps; {gaps} of its {len(targets)} rows do: drop these rows.")
    labels = _labels(table, row_names)
    if table.rows > MOST_ROWS:
        some = some_rows(table.rows, MOST_ROWS)
        table, targets, labels = table.take(some), targets[some], [labels[row] for row in some]
    return table, targets, labels


def _labels(table: UserTable, names: Sequence[object] | None) -> list[str]:
    if names is None:
        return [str(row + 1) for row in range(table.rows)]
    if len(names) != table.rows:
        raise InputError(f"row names must be one for each of the {table.rows} rows; got {len(names)}.")
    return [short(name, 24) for name in names]


def _curves(
    model: Any, rows: UserTable, words: np.ndarray, ranked: np.ndarray, weight: np.ndarray, edge: float, outside: float
) -> list[Curve]:
    """The columns that matter most, at most six, over and beyond their data."""
    row = typical_row(model, rows, words)
    curves: list[Curve] = []
    for column in ranked:
        if len(curves) == MOST_CURVES or (curves and weight[column] <= 0.0):
            break
        data = learned_values(model, rows, int(column))
        curve = column_curve(model, rows, row, int(column), data, edge, outside)
        if curve is not None:
            curves.append(curve)
    return curves


def _target(sheet: Sheet, number: int, judged: Judged) -> Target:
    """All about one target: numbers, words, figures and rows."""
    reached, lines, ranks = accuracy(judged), coverage(judged), ranking(judged)
    level = outside_level(sheet.model, number)
    inner = judged.std[judged.verdict != "outside"]
    usual = float(np.median(inner if len(inner) else judged.std))
    given = getattr(sheet.model, "outside", "auto")
    chosen = "function" if callable(given) else "data" if isinstance(given, str) else "number"
    findings = Findings(judged.name, reached, lines, ranks, sheet.watch, usual, level, chosen, sheet.seen)
    lower, upper = judged.intervals[0.9]
    certain, uncertain = certain_lines(sheet.table, judged, sheet.labels, sheet.shown)
    full = number < MOST_TARGETS
    return Target(
        name=judged.name,
        sentences=trust_sentences(findings),
        marks=trust_marks(findings),
        accuracy=reached,
        coverage=lines,
        ranking=ranks,
        distance=reliability(judged.pit).distance,
        median_std=float(np.median(judged.std)),
        width=float(np.median(upper - lower)),
        outside=level,
        drawings=judged_drawings(number, judged, level) if full else [],
        curves=curve_drawings(sheet.model, sheet.curves, number, judged.name) if full else [],
        certain=certain,
        uncertain=uncertain,
    )


def _groups(lines: Sequence[Coverage]) -> dict[str, list[Coverage]]:
    """Lines by group, in the order in which they come."""
    found: dict[str, list[Coverage]] = {}
    for line in lines:
        found.setdefault(line.group, []).append(line)
    return found


def _version() -> str:
    from nescio import __version__

    return __version__
