"""Far from the data, on the way there, and the same answer in any batch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from nescio.estimators.rows import Rows
from nescio.testing.report import Check

__all__ = ["away_checks", "batch_check", "reference_rows"]

FAR = (20.0, 1e2, 1e3, 1e4, 1e5, 1e6)  # standard deviations, times sqrt(D)
STEPS = 40  # between the data and the first of these distances, closer together near the data
BEYOND = 1e30  # standard deviations: nothing but finite numbers is asked for here
BOUNDS = 0.85, 1.15  # of the std far away, over the level
CLEARANCE = 0.1  # standard deviations, times sqrt(D): nearer to a row than this, less noise may be the truth
LEAST_ON_THE_WAY = 0.7  # of the median std inside
ROUNDING = 1e-12
DIRECTIONS = 64  # random ones, and as many corners
MOST_COLUMNS = 256  # of a wide table, drawn at random, both ways along each
LONE_ROWS = 12  # predicted alone and in a batch
MOST_INSIDE = 2_000  # rows for the median inside


def reference_rows(model: Any) -> np.ndarray:
    """The training rows that a model keeps, standardised, ``(R, D)``."""
    rows: np.ndarray = model.support_.neighbours.reference.cpu().numpy()
    return rows


def away_checks(model: Any, rows: Rows | None, outside: Any, rng: np.random.Generator) -> Iterator[Check]:
    """The level far away, no dip on the way, finite numbers.

    The way begins beyond the rim: where a point is stranger than any training row, and no longer next to one.
    """
    reference = reference_rows(model)
    inside = _some(_points(model, reference) if rows is None else rows, rng)
    usual = np.median(_std(model, inside), axis=0)
    rim = max([CLEARANCE * math.sqrt(reference.shape[1]), *model.support_.scores[-1:]])
    least, tried, seen = math.inf, 0, [inside]
    movable = _movable(model)
    kinds = _directions(movable, rng) if movable.any() else {}
    if not kinds:
        yield Check("level far away", None, *BOUNDS, "no column is a number, so there is no way to go far")
    for kind, directions in kinds.items():
        far, way = _far(reference, directions), _way_out(reference, directions, rng)
        way = way[model.support_.score(way) > rim]
        seen += [_points(model, points) for points in (far, way, BEYOND * directions) if len(points)]
        ratio = _std(model, _points(model, far)) / _level(model, _points(model, far), outside)
        note = f"std over the level outside, at {len(far)} points from {FAR[0]:g} to {FAR[-1]:g} times sqrt(D)"
        yield Check(f"level far away, {kind}", _farthest_from_one(ratio), *BOUNDS, note)
        if len(way):
            least = np.minimum(least, (_std(model, _points(model, way)) / usual).min())
            tried += len(way)
    note = f"std over its median inside, at {tried} points off the data"
    yield Check("no dip on the way", float(least) if tried else None, LEAST_ON_THE_WAY, math.inf, note)
    bad, total = sum(_not_finite(model, part) for part in seen), sum(len(part.standardised) for part in seen)
    note = f"means, stds and supports that are not, at {total} points"
    yield Check("finite everywhere", float(bad), 0.0, 0.0, note)


def _movable(model: Any) -> np.ndarray:
    """Which encoded columns are numbers that can take any value, ``(D,)``: no levels, no marks of gaps."""
    mask = np.full(len(model.x_shift_), model.columns_ is None)
    if model.columns_ is not None:
        for column, place in zip(model.columns_.columns, model.columns_.places(), strict=True):
            if column.is_number and column.kind != "boolean":
                mask[place.start] = True
    return mask


def _directions(movable: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Unit vectors ``(Q, D)`` by kind, along the columns that can move."""
    columns = np.eye(len(movable))[movable]
    count = len(columns)
    random, corners = rng.normal(size=(DIRECTIONS, count)), rng.choice([-1.0, 1.0], size=(DIRECTIONS, count))
    axes = columns[rng.permutation(count)[:MOST_COLUMNS]]
    return {
        "random directions": random / np.linalg.norm(random, axis=1, keepdims=True) @ columns,
        "single columns": np.vstack([axes, -axes]),
        "corners": corners / math.sqrt(count) @ columns,
    }


def _outermost(reference: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """For each direction the row that lies farthest along it: r beyond it, no row is nearer than r, ``(Q, D)``."""
    rows: np.ndarray = reference[(reference @ directions.T).argmax(axis=0)]
    return rows


def _far(reference: np.ndarray, directions: np.ndarray) -> np.ndarray:
    distances = math.sqrt(reference.shape[1]) * np.array(FAR)
    return _paths(_outermost(reference, directions), directions, distances)


def _way_out(reference: np.ndarray, directions: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Paths from the outermost rows, and as many from rows at random, which may leave the data by a bay of theirs."""
    distances = FAR[0] * math.sqrt(reference.shape[1]) * np.square(np.arange(1, STEPS + 1) / STEPS)
    anywhere = reference[rng.integers(len(reference), size=len(directions))]
    return np.vstack([_paths(s, directions, distances) for s in (_outermost(reference, directions), anywhere)])


def _paths(start: np.ndarray, directions: np.ndarray, distances: np.ndarray) -> np.ndarray:
    points: np.ndarray = start + np.multiply.outer(distances, directions)
    return points.reshape(-1, start.shape[1])


def _points(model: Any, z: np.ndarray) -> Rows:
    """Standardised points ``(N, D)`` as the model reads them."""
    rows: Rows = model._rows_from_encoded(model.x_shift_ + model.x_scale_ * z)
    return rows


def _some(rows: Rows, rng: np.random.Generator) -> Rows:
    count = len(rows.standardised)
    if count <= MOST_INSIDE:
        return rows
    kept = np.sort(rng.permutation(count)[:MOST_INSIDE])
    return Rows(None, rows.encoded[kept], rows.standardised[kept])


def _std(model: Any, rows: Rows) -> np.ndarray:
    """Standard deviations ``(N, P)``, in units of y."""
    return np.asarray(model._distribution(rows).std).reshape(-1, model.n_outputs_)


def _level(model: Any, rows: Rows, outside: Any) -> np.ndarray:
    """What the std must come to, ``(P,)`` or ``(N, P)``: as asked for, as the model says, or the targets' spread."""
    function = getattr(model, "level_", None)  # of x, in standardised units
    if outside is None and function is not None:
        return np.asarray(function(rows.encoded) * model.y_scale_)
    stated = getattr(model, "outside_std_", model.y_scale_)
    return np.asarray(stated if outside is None else outside, dtype=np.float64)


def _farthest_from_one(ratio: np.ndarray) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.abs(np.log(ratio))
    return float(ratio.flat[np.argmax(np.where(np.isnan(distance), np.inf, distance))])


def _not_finite(model: Any, rows: Rows) -> int:
    dist = model._distribution(rows)
    return sum(int((~np.isfinite(part)).sum()) for part in (dist.mean, dist.std, model._p_values(rows)))


def batch_check(model: Any, X: Any, rng: np.random.Generator) -> Check:
    """The same answer for a row alone and among others; without ``X`` for rows that the model keeps, and far ones."""
    table: Any = X
    if X is None:
        reference = rng.permutation(reference_rows(model))[:MOST_INSIDE]
        table = model.x_shift_ + model.x_scale_ * np.vstack([reference, FAR[0] + reference[:LONE_ROWS]])

    def answer(chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        part = _safe_indexing(table, chosen)
        rows = model._rows_from_encoded(part) if X is None else model._read(part)
        dist = model._distribution(rows)
        return dist.mean, dist.std, model._p_values(rows)

    batch = np.sort(rng.permutation(len(table))[:MOST_INSIDE])
    lone = np.unique(np.append(rng.permutation(len(batch))[: LONE_ROWS - 1], len(batch) - 1))
    mean, std, p = (part[lone] for part in answer(batch))
    alone = [np.concatenate(parts) for parts in zip(*(answer(batch[[row]]) for row in lone), strict=True)]
    gaps = (np.abs(alone[0] - mean) / std, np.abs(alone[1] / std - 1.0), np.abs(alone[2] - p))
    note = f"largest relative difference between {len(lone)} rows predicted alone and among {len(batch)}"
    return Check("independent of the batch", float(np.max([gap.max() for gap in gaps])), 0.0, ROUNDING, note)
