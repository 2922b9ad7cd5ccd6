"""What a card asks of a model: answers for held-out rows, what each column does, and where ignorance begins."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from nescio.report.card_statistics import LEVELS, Judged
from nescio.report.card_table import CATEGORY, DATE, NUMBER, UserTable
from nescio.report.card_words import short

__all__ = [
    "Curve",
    "Map",
    "column_curve",
    "column_importance",
    "ignorance_map",
    "judge",
    "learned_values",
    "seen_share",
    "typical_row",
    "verdicts",
]

GRID = 121  # points of a curve
MOST_CATEGORIES = 7
UNSEEN = "(never seen)"
IMPORTANCE_ROWS, REPEATS, MANY_COLUMNS = 1_000, 3, 40
MAP_GRID, MAP_ROWS, MAP_NEAREST = 56, 2_000, 3
TOGETHER = 4_096  # rows asked at once: a bound on memory


@dataclass(frozen=True)
class Curve:
    """What the model says as one column runs over and beyond its data, the rest of a typical row unchanged.

    ``x (G,)`` holds numbers, dates or categories; ``mean``, ``aleatoric`` and ``std`` are ``(G, P)``; ``data`` are
    values of training rows, or of held-out rows where those are not kept.
    """

    column: int
    name: str
    kind: str
    x: np.ndarray
    mean: np.ndarray
    aleatoric: np.ndarray
    std: np.ndarray
    verdict: np.ndarray
    data: np.ndarray
    level: np.ndarray | None
    """The level outside, ``(G, P)``; None for a model that keeps none."""


@dataclass(frozen=True)
class Map:
    """Two directions of the data: training rows and held-out rows on it ``(N, 2)``, and the support on a grid.

    ``support (H, W)`` at ``(across[j], up[i])`` is the median for the nearest rows, moved there.
    """

    across: np.ndarray
    up: np.ndarray
    support: np.ndarray
    rows: np.ndarray
    judged: np.ndarray
    labels: tuple[str, str]
    share: float
    """Of the inputs' variance, what the two directions hold; 1 where they are the two columns themselves."""


def verdicts(model: Any, X: Any, edge: float, outside: float) -> np.ndarray:
    """A word per row; where there are too few training rows for one, the card says so elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return np.asarray(model.verdict(X, edge=edge, outside=outside))


def judge(model: Any, table: UserTable, y: np.ndarray, names: list[str], edge: float, outside: float) -> list[Judged]:
    """Ask for the whole distribution of each row, and set it beside ``y (N, P)``: one record per target."""
    parts: list[list[np.ndarray]] = []
    known: dict[float, list[np.ndarray]] = {level: [] for level in LEVELS}
    for start in range(0, table.rows, TOGETHER):
        rows = np.arange(start, min(start + TOGETHER, table.rows))
        X = model._read(table.take(rows).X)
        X = X._replace(p=model._p_values(X))  # of all answers the slowest, and all intervals ask for it
        dist = model.predict_dist(X)
        came = y[rows, 0] if model.single_target_ else y[rows]
        answers = [dist.mean, dist.std, dist.cdf(came), dist.log_prob(came)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # too few rows to calibrate: the counts will show it
            for level in LEVELS:
                answers += model.predict_interval(X, level=level)
                known[level].append(_calibrated(model, X, level))
        parts.append([np.asarray(answer).reshape(len(rows), -1) for answer in answers])
    mean, std, pit, log_prob, *ends = (np.concatenate(answer) for answer in zip(*parts, strict=True))
    words = verdicts(model, table.X, edge, outside)
    return [
        Judged(
            name,
            y[:, p],
            mean[:, p],
            std[:, p],
            pit[:, p],
            log_prob[:, p],
            words,
            {level: (ends[2 * n][:, p], ends[2 * n + 1][:, p]) for n, level in enumerate(LEVELS)},
            float(model.y_shift_[p]),
            float(model.y_scale_[p]),
            None if model.conformal_ is None else {level: np.concatenate(found) for level, found in known.items()},
        )
        for p, name in enumerate(names)
    ]


def _calibrated(model: Any, X: Any, level: float) -> np.ndarray:
    """How many rows the interval of each row was calibrated on, ``(N,)``; 0 where it is the distribution's own."""
    kinds, scores = model.interval_kind(X, level=level), model.conformal_
    if scores is None:
        return np.zeros(len(kinds), dtype=int)
    edge = len(scores.edge if scores.enough("edge", level) else scores.inside)  # with too few there, as inside or wider
    return np.select([kinds == "inside", kinds == "edge"], [len(scores.inside), edge], 0)


def learned_values(model: Any, table: UserTable, column: int) -> np.ndarray:
    """Values of a column among the training rows that the model keeps; where they are encoded, among these rows."""
    encoded = table.names if model.columns_ is None else model.encoded_names_
    name = table.names[column]
    if table.kind(column) != NUMBER or name not in encoded:
        return table.values(column)
    place = encoded.index(name)
    kept = _kept(model)[:, place] * model.x_scale_[place] + model.x_shift_[place]
    return np.append(kept, model.x_range_[:, place])  # of a large table not all rows are kept


def _kept(model: Any) -> np.ndarray:
    """Up to 10,000 training rows, standardised, ``(R, D)``; repeated ones once."""
    return np.asarray(model.support_.neighbours.reference.cpu().numpy())


def seen_share(model: Any, table: UserTable) -> float:
    """The share of rows whose inputs are those of a training row, as far as the rows that the model keeps can tell."""
    kept = _kept(model)
    known = {row.tobytes() for row in kept}
    found = np.mean([row.tobytes() in known for row in model._read(table.X).standardised])
    return float(min(1.0, found * max(1.0, model.n_rows_ / len(kept))))


def typical_row(model: Any, table: UserTable, verdict: np.ndarray) -> int:
    """The row nearest to the middle of its columns, among those inside if there are any."""
    x = model._read(table.X).standardised
    away = np.linalg.norm(x - np.median(x, axis=0), axis=1)
    away[verdict == "outside"] += away.max() + 1.0
    return int(np.argmin(away))


def column_importance(model: Any, table: UserTable, y: np.ndarray, seed: int = 0) -> np.ndarray:
    """How much the root mean squared error grows when a column is shuffled among the rows, ``(D, P)``."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(table.rows)[:IMPORTANCE_ROWS]
    table, y = table.take(rows), y[rows]
    repeats = REPEATS if table.width <= MANY_COLUMNS else 1
    orders = [rng.permutation(table.rows) for _ in range(repeats)]

    def mean_square(X: Any) -> np.ndarray:
        return np.mean(np.square(np.asarray(model.predict(X)).reshape(y.shape) - y), axis=0)

    usual = np.sqrt(mean_square(table.X))
    shuffled = [
        np.sqrt(np.mean([mean_square(table.permuted(column, order)) for order in orders], axis=0))
        for column in range(table.width)
    ]
    return np.stack(shuffled) - usual


def column_curve(
    model: Any, table: UserTable, row: int, column: int, data: np.ndarray, edge: float, outside: float
) -> Curve | None:
    """Let one column of one row run a data range beyond its data on both sides; None where it does not vary."""
    kind = table.kind(column)
    if kind == CATEGORY:
        known, counts = np.unique([str(value) for value in data if value is not None and value == value],
                                  return_counts=True)  # fmt: skip
        if len(known) < 2:
            return None
        x = _categories(table, column, known[np.argsort(-counts, kind="stable")][:MOST_CATEGORIES])
    else:
        data = data[~np.isnan(data)]
        if not len(data) or data.min() == data.max():
            return None
        steps = data.astype("datetime64[us]").astype(np.float64) if kind == DATE else data.astype(np.float64)
        low, high = float(steps.min()), float(steps.max())
        x = np.linspace(low - (high - low), high + (high - low), GRID)
        x = x.astype("int64").astype("datetime64[us]") if kind == DATE else x
    X = table.varied(row, column, x)
    dist = model.predict_dist(X)
    mean, aleatoric, std = (np.asarray(part).reshape(len(x), -1) for part in (dist.mean, dist.aleatoric_std, dist.std))
    return Curve(
        column,
        table.names[column],
        kind,
        x,
        mean,
        aleatoric,
        std,
        verdicts(model, X, edge, outside),
        data,
        _levels(model, X),
    )


def _levels(model: Any, X: Any) -> np.ndarray | None:
    """The level outside at each row, ``(N, P)`` in units of y; None for a model that keeps none."""
    levels = getattr(model, "outside_std_", None)
    if levels is None:
        return None
    encoded = model._read(X).encoded
    function = getattr(model, "level_", None)
    return np.tile(levels, (len(encoded), 1)) if function is None else function(encoded) * model.y_scale_


def _categories(table: UserTable, column: int, known: np.ndarray) -> np.ndarray:
    """Categories in the type that the column has, and one that was never seen where that can be said."""
    raw = {str(value): value for value in table.values(column)}
    values: list[Any] = [raw.get(name, name) for name in known]
    if all(isinstance(value, str) for value in values):
        values.append(UNSEEN)
    x = np.empty(len(values), dtype=object)
    x[:] = values
    return x


def ignorance_map(model: Any, table: UserTable, names: list[str]) -> Map | None:
    """The support on a plane through the data: its two columns, or the two directions in which it is widest.

    With more than two columns a spot of the plane is asked for the nearest rows on it, moved there: a bare point of the
    plane would leave all other directions at their means, where there may be no data. None for a single column.
    """
    learned = _kept(model)
    judged = model._read(table.X).standardised[:MAP_ROWS]
    rng = np.random.default_rng(0)
    rows = learned[rng.permutation(len(learned))[:MAP_ROWS]]
    if rows.shape[1] < 2 or len(rows) < 3:
        return None
    centre = rows.mean(axis=0)
    if rows.shape[1] == 2:
        directions, share = np.eye(2), 1.0
    else:
        _, widths, turned = np.linalg.svd(rows - centre, full_matrices=False)
        directions = turned[:2] * np.sign(turned[:2][np.arange(2), np.abs(turned[:2]).argmax(axis=1)])[:, None]
        share = float(np.square(widths[:2]).sum() / np.square(widths).sum())
    flat, flat_judged = ((part - centre) @ directions.T for part in (rows, judged))
    low, high = flat.min(axis=0), flat.max(axis=0)
    room = 0.6 * (high - low) + 1e-9
    across, up = (np.linspace(low[k] - room[k], high[k] + room[k], MAP_GRID) for k in range(2))
    places = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    _, nearest = cKDTree(flat).query(places, k=MAP_NEAREST)
    moved = rows[nearest] + (places[:, None] - flat[nearest]) @ directions
    encoded = moved.reshape(-1, rows.shape[1]) * model.x_scale_ + model.x_shift_
    support = np.median(model._p_values(model._rows_from_encoded(encoded)).reshape(-1, MAP_NEAREST), axis=1)
    support = support.reshape(MAP_GRID, MAP_GRID)
    if rows.shape[1] > 2:
        labels = (_direction(directions[0], names), _direction(directions[1], names))
        return Map(across, up, support, flat, flat_judged, labels, share)
    scale, shift = model.x_scale_, model.x_shift_ + centre * model.x_scale_  # back to the units of the columns
    across, up = across * scale[0] + shift[0], up * scale[1] + shift[1]
    return Map(across, up, support, flat * scale + shift, flat_judged * scale + shift, (names[0], names[1]), share)


def _direction(direction: np.ndarray, names: list[str]) -> str:
    """The two columns that turn a direction most, with their signs."""
    strongest = np.argsort(-np.abs(direction), kind="stable")[:2]
    words = [f"{'+' if direction[k] > 0 else '−'} {short(names[k], 20)}" for k in strongest if abs(direction[k]) > 0.15]
    return " ".join(words).removeprefix("+ ")
