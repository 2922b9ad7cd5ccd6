"""Inside the data, on rows that the model was not fitted on: coverage of intervals, false alarms of verdicts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import betabinom, binom

from nescio.calibration import EDGE_RATE, OUTSIDE_RATE
from nescio.estimators.rows import Rows
from nescio.testing.away import reference_rows
from nescio.testing.report import Check

__all__ = ["fresh_checks"]

MOST_KEPT = 10_000  # training rows that a model keeps
FEWEST = 20  # fresh rows: fewer cannot contradict a rate of 9 in 10


def fresh_checks(
    model: Any, X: Any, rows: Rows | None, y: np.ndarray | None, level: float, chance: float
) -> list[Check]:
    """Coverage of the intervals and false alarms of the verdicts, on the rows that are fresh."""
    names = (f"coverage of {100 * level:g} % intervals", "false alarms, edge or outside", "false alarms, outside")
    why, fresh = _fresh(model, rows)
    if rows is None or fresh is None:
        return [Check(name, None, 0.0, 1.0, why) for name in names]
    p = model._p_values(rows)
    checks = [_coverage(names[0], model, X, y, fresh & (p > EDGE_RATE), level, chance)]
    first = np.unique(rows.standardised[fresh], axis=0, return_index=True)[1]  # the support counts twins once
    for name, rate in zip(names[1:], (EDGE_RATE, OUTSIDE_RATE), strict=True):
        if not model.support_.can_tell(rate):
            note = f"{len(model.support_.scores)} training rows are too few for 1 false alarm in {round(1 / rate)}"
            checks.append(Check(name, None, 0.0, 1.0, note))
            continue
        known = len(model.support_.scores) + 1  # the rate itself varies with the rows it was calibrated on
        most = betabinom.ppf(1.0 - chance, len(first), rate * known, (1.0 - rate) * known) / len(first)
        note = f"share of {len(first)} fresh rows that are so called, at a rate of 1 in {round(1 / rate)}"
        checks.append(Check(name, float(np.mean(p[fresh][first] <= rate)), 0.0, float(most), note))
    return checks


def _coverage(
    name: str, model: Any, X: Any, y: np.ndarray | None, chosen: np.ndarray, level: float, chance: float
) -> Check:
    """The coverage that is farthest from its level, of all targets, with the band of the whole family."""
    count = int(chosen.sum())
    if y is None or count < FEWEST:
        why = "no targets were given" if y is None else f"{count} fresh rows inside are too few"
        return Check(name, None, 0.0, 1.0, why)
    lower, upper = (np.asarray(end).reshape(y.shape) for end in model.predict_interval(X, level))
    covered = ((lower <= y) & (y <= upper))[chosen].mean(axis=0)
    law = binom(count, level)
    if model.conformal_ is not None:  # calibrated on rows that were themselves drawn
        known = len(model.conformal_.inside) + 1
        most = math.ceil(level * known - 1e-9)
        if most >= known:
            return Check(name, None, 0.0, 1.0, f"{known - 1} rows to calibrate with are too few")
        law = betabinom(count, most, known - most)
    tail = 0.5 * chance / len(covered)
    worst = covered[np.argmax(np.abs(covered - level))]
    return Check(
        name, float(worst), law.ppf(tail) / count, law.ppf(1.0 - tail) / count, f"share of {count} fresh rows inside"
    )


def _fresh(model: Any, rows: Rows | None) -> tuple[str, np.ndarray | None]:
    """Which rows the model was not fitted on and can judge by their numbers, or why that cannot be told.

    A model keeps its distinct training rows, up to 10,000; of a larger table a share, and then rows that were seen are
    known by that share of them.
    """
    if rows is None:
        return "no rows were given", None
    reference = reference_rows(model)
    known = {row.tobytes() for row in reference + 0.0}  # minus zero is zero
    seen = np.array([row.tobytes() in known for row in rows.standardised + 0.0])
    kept = 1.0 if len(reference) < MOST_KEPT else len(reference) / model.n_rows_
    if seen.mean() > 0.5 * kept:
        return "most of the rows given are training rows; give rows that were held out", None
    fresh = ~seen if rows.strange is None else ~seen & ~rows.strange  # the never seen is called outside at no rate
    return f"{int(fresh.sum())} fresh rows are too few", fresh if fresh.sum() >= FEWEST else None
