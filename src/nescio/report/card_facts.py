"""What a model is and what it learned from, in words and lines for its card."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nescio.estimators.explanation import plain_columns
from nescio.preprocessing import Column as TrainingColumn
from nescio.report.card_parts import Column, Facts
from nescio.report.card_table import UserTable
from nescio.report.card_words import short, written
from nescio.testing import Check, check_extrapolation

__all__ = ["contract_lines", "describe_columns", "model_facts", "outside_level"]


def model_facts(model: Any, refit: Any, rows: int | None, judged: int, outside: float, targets: Sequence[str]) -> Facts:
    """The model in words, its settings, and how it was judged: on ``judged`` of ``rows`` rows, None without any."""
    notes = []
    if rows is not None:
        if refit is not None:
            notes.append(
                f"The model learned from all {model.n_rows_:,} rows. To judge it, the same was fitted once more on "
                f"{refit.n_rows_:,} of them, and accuracy and calibration below are what that second fit says of the "
                f"{rows:,} rows it had not seen. The model itself knows more rows and should be a little better; the "
                "curves and the map below are its own."
            )
        else:
            notes.append(f"Accuracy and calibration below are judged on {rows:,} rows that were given as held out.")
        if judged < rows:
            notes.append(f"Of these {rows:,} rows, {judged:,} drawn at random were judged, to save time.")
    if not model.support_.can_tell(outside):
        notes.append(
            f"{len(model.support_.scores):,} distinct training rows are too few to call a row outside with one false "
            f"alarm in {round(1 / outside)}; rows far away are called edge, or unknown."
        )
    mean = getattr(model, "mean", None)
    settings = [
        ("mean", "its own networks" if mean is None else short(" ".join(repr(mean).split()), 80)),
        ("members mixed", f"{getattr(model, 'n_members_', None) or _members(model)}"),
        ("intervals", "calibrated on held-out rows" if model.conformal_ else "of the fitted distribution"),
        ("level outside", _level(model)),
        ("random state", str(getattr(model, "random_state", None))),
    ]
    words = (inspect.getdoc(type(model)) or "A regressor.").split("\n\n")[0].replace("\n", " ")
    return Facts(type(model).__name__, words, model.n_rows_, model.n_features_in_, targets, settings, notes)


def _members(model: Any) -> str:
    given = getattr(model, "n_members", None)
    return "chosen by the number of rows" if given == "auto" else str(given or 1)


def _level(model: Any) -> str:
    levels = getattr(model, "outside_std_", None)
    if levels is None:
        return "none"
    listed = ", ".join(written(float(level)) for level in levels)
    given = getattr(model, "outside", None)
    if callable(given):
        return f"a function of the row; {listed} on average"
    return f"{listed} ({'taken from the data, ' + repr(given) if isinstance(given, str) else 'as set'})"


def describe_columns(model: Any, rows: UserTable, costs: np.ndarray | None, ranked: np.ndarray) -> list[Column]:
    """All columns, the most important first: what training rows hold, what was done, what shuffling them costs."""
    told = model.columns_
    known = told or plain_columns(rows.names)
    places = known.places()
    cost = None if costs is None else costs.mean(axis=1)
    largest = 0.0 if cost is None else float(max(cost.max(), 0.0))
    columns = []
    for number in ranked:
        record = {} if told is None else told.columns[number].describe()
        columns.append(
            Column(
                rows.names[int(number)],
                str(record.get("kind", rows.kind(int(number)))),
                _span(known.columns[number], model.x_range_[:, places[number]]),
                str(record.get("done", "as it is")) + (f" ({record['note']})" if record.get("note") else ""),
                None if cost is None else float(cost[number]),
                0.0 if cost is None or largest <= 0.0 else float(max(cost[number], 0.0) / largest),
            )
        )
    return columns


def _span(column: TrainingColumn, ends: np.ndarray) -> str:
    """From where to where the training rows go, by the ends ``(2, d)`` of the encoded column, or their categories."""
    if column.kind == "empty":
        return "—"
    if not column.is_number:
        listed = ", ".join(short(level, 16) for level in column.levels[:3])
        return f"{listed}, … ({len(column.levels)} kinds)" if len(column.levels) > 3 else listed
    low, high = ends[:, 0]
    if column.kind == "number":
        return f"{low:,.6g} to {high:,.6g}".replace("-", "−")
    return " to ".join(dict.fromkeys([column.show(low), column.show(high)]))


def outside_level(model: Any, number: int) -> float | None:
    """The standard deviation far from the data for one target; None for a model that keeps none."""
    levels = getattr(model, "outside_std_", None)
    return None if levels is None else float(np.ravel(levels)[number])


def contract_lines(model: Any, refit: Any, X: Any, y: Any) -> list[Check]:
    """What the model promises, checked; what needs fresh rows on ``refit``, where there is one."""
    if refit is None:
        return [line for line in check_extrapolation(model, X, y).checks if line.passed is not None]
    own = [line for line in check_extrapolation(model).checks if line.passed is not None]
    fresh = [line for line in check_extrapolation(refit, X, y).checks if line.passed is not None]
    known = {line.name for line in own}
    return own + [replace(line, note=f"{line.note} (the second fit)") for line in fresh if line.name not in known]
