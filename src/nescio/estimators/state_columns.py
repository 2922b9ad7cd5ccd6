"""The training table in a saved model: how its columns become numbers, their ranges, and which rows are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from nescio._fields import Fields, Tensors
from nescio._validation import InputError
from nescio.calibration import Support
from nescio.densities import NeighbourDistance
from nescio.preprocessing import KINDS, Column, ColumnEncoder

__all__ = ["TrainingTable", "table_state", "take_support", "take_table"]

OWN = 0.0  # stands in the file for the column's own standard deviation: a file holds no NaN


class TrainingTable(NamedTuple):
    """What a file says about the training table."""

    columns: ColumnEncoder | None
    x_range: np.ndarray
    """Smallest and largest encoded values, ``(2, D)``."""


def table_state(model: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and a description of the training table of a fitted regressor."""
    columns: ColumnEncoder | None = model.columns_
    arrays = {"x_range": model.x_range_, "support_rows": model.support_.rows.astype(np.float64)}
    if columns is None:
        return arrays, {"encoded": None}
    entries = {}
    for number, column in enumerate(columns.columns):
        entries[str(number)] = {
            "name": column.name,
            "kind": column.kind,
            "gaps": column.gaps,
            "n_levels": len(column.levels),
            "levels": list(column.levels),
            "note": column.note,
        }
        if column.averages is not None and column.default is not None:
            arrays[f"columns/{number}/averages"] = np.concatenate([column.averages, column.default[None]])
    arrays["columns/fill"] = np.array([column.fill for column in columns.columns])
    arrays["columns/origin"] = np.array([column.origin for column in columns.columns])
    arrays["columns/scales"] = np.nan_to_num(columns.scales, nan=OWN)
    return arrays, {"encoded": len(columns.encoded_names), "columns": entries}


def take_table(entry: Fields, tensors: Tensors, n_features: int, outputs: int) -> TrainingTable:
    """The training table as :func:`table_state` described it."""
    width = entry.optional_whole("encoded", least=1)
    columns = None
    if width is not None:
        columns = _take_columns(entry.section("columns"), tensors, n_features, outputs)
        if len(columns.scales) != width:
            raise InputError(f"the manifest's model.table.encoded must be {len(columns.scales)}; got {width}.")
    entry.done()
    x_range = tensors.take("x_range", (2, width or n_features), np.float64)
    if (x_range[0] > x_range[1]).any():
        raise InputError("the tensor 'x_range' must hold the smallest and the largest values; the file is damaged.")
    return TrainingTable(columns, x_range)


def take_support(entry: Fields, tensors: Tensors, inputs: int) -> Support:
    """The support, with the numbers that its reference rows had in the training table."""
    k, count = entry.whole("k", least=1), entry.whole("reference", least=1)
    reference = tensors.take("support_reference", (count, inputs), np.float64)
    scores = tensors.take("support_scores", (entry.whole("scores", least=0),), np.float64)
    rows = tensors.take("support_rows", (count,), np.float64)
    entry.done()
    if (np.diff(scores) < 0).any() or (scores < 0).any():
        raise InputError("the tensor 'support_scores' must be ascending distances; the model file is damaged.")
    if (rows < 0).any() or (rows > 2**53).any() or (rows != np.floor(rows)).any():
        raise InputError("the tensor 'support_rows' must hold numbers of rows; the model file is damaged.")
    return Support(NeighbourDistance(torch.tensor(reference), k=k), scores, rows.astype(np.int64))


def _take_columns(entry: Fields, tensors: Tensors, count: int, outputs: int) -> ColumnEncoder:
    drafts = [_take_column(entry.section(str(number)), tensors, number, outputs) for number in range(count)]
    entry.done()
    names = [column.name for column in drafts]
    if len(set(names)) < len(names):
        raise InputError("the manifest's model.table has two columns of one name.")
    fill = tensors.take("columns/fill", (count,), np.float64)
    origin = tensors.take("columns/origin", (count,), np.float64)
    scales = tensors.take("columns/scales", (sum(column.width for column in drafts),), np.float64)
    if (scales < 0).any():
        raise InputError("the tensor 'columns/scales' must not be negative; the model file is damaged.")
    columns, start = [], 0
    for number, column in enumerate(drafts):
        own = tuple(float(scale) if scale > 0 else float("nan") for scale in scales[start : start + column.width])
        start += column.width
        columns.append(replace(column, fill=float(fill[number]), origin=float(origin[number]), scales=own))
    return ColumnEncoder(columns)


def _take_column(entry: Fields, tensors: Tensors, number: int, outputs: int) -> Column:
    name, kind, gaps = entry.text("name"), entry.word("kind", KINDS), entry.flag("gaps")
    levels = tuple(entry.names("levels", entry.whole("n_levels", least=0)) or ())
    note = entry.text("note")
    entry.done()
    text = kind in ("category", "many levels")
    if len(set(levels)) < len(levels) or bool(levels) is not text:
        raise InputError(f"the manifest's levels of column {number} do not fit its kind '{kind}'.")
    width = {"category": len(levels) + gaps, "many levels": outputs, "empty": 0}.get(kind, 1 + gaps)
    column = Column(name, kind, gaps, levels=levels, scales=(1.0,) * width, note=note)
    if kind != "many levels":
        return column
    averages = tensors.take(f"columns/{number}/averages", (len(levels) + gaps + 1, outputs), np.float64)
    return replace(column, averages=averages[:-1], default=averages[-1])
