"""How a column of a training table is to be encoded, told from its type and its content."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold
from sklearn.preprocessing import TargetEncoder

from nescio._validation import ROW, InputError, RowError, counted
from nescio.preprocessing.columns import SMALLEST_SCALE, Block, Column
from nescio.preprocessing.frames import Cells, looks_like_date, parse_dates, parse_numbers

__all__ = ["CODE", "learn_column"]

MOST_ONE_HOT = 20
"""Levels that have a column each. With more, distances are made of little else, and levels have few rows each; the
average target of a level (shrunk towards that of all rows where the level is rare, and in training taken from other
rows) is one number that says what the level means for the target. Numbers in the order of the alphabet would not."""
SMOOTH = 10.0  # rows of the overall average that a level's own are mixed with; "auto" takes a lone row at its word
MOST_LEVELS = 10_000
LONGEST_LEVEL = 200  # characters: beyond it a cell is a text to be read
FEW_LEVELS = 5
RARE = 0.01  # share of rows to come that bring a level of their own, from where it is worth a word
CODE = re.compile(r"0\d+")  # a number would not have the zero
OWN = float("nan")  # the column's own standard deviation


def learn_column(name: str, cells: Cells, y: np.ndarray, seed: int) -> tuple[Column, Block]:
    """The column and its encoded training rows; ``y (N, P)`` tells what many levels mean."""
    if cells.kind == "empty":
        column = Column(name, "empty", gaps=True)
        return column, column.encode(cells)
    if cells.kind != "text":
        return _learn_number(name, cells)
    days = parse_dates(cells.values)
    if not bool(np.isnan(days[~cells.gaps]).any()):
        return _learn_number(name, Cells("date", days))
    if not cells.declared:
        _refuse_other_dates(name, cells, days)
    return _learn_text(name, cells, y, seed)


def _learn_number(name: str, cells: Cells) -> tuple[Column, Block]:
    values = cells.values
    if np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        raise RowError(
            f"X contains infinity in column '{name}' ({counted(int(np.isinf(values).sum()), 'row')}, the first is "
            f"{ROW}); leave these cells empty or drop the rows.",
            row,
        )
    gaps = np.isnan(values)
    origin = float(values[~gaps].min()) if cells.kind == "date" else 0.0
    strategy = "most_frequent" if cells.kind == "boolean" else "median"
    fill = float(SimpleImputer(strategy=strategy).fit(values[:, None] - origin).statistics_[0])
    share = float(gaps.mean())
    scales = (OWN, max(np.sqrt(share * (1.0 - share)), SMALLEST_SCALE / np.sqrt(2.0))) if share else (OWN,)
    seen = values[~gaps]
    note = "constant" if bool((seen == seen[0]).all()) else ""
    column = Column(name, cells.kind, bool(share), fill, origin, scales=scales, note=note)
    return column, column.encode(cells)


def _learn_text(name: str, cells: Cells, y: np.ndarray, seed: int) -> tuple[Column, Block]:
    counts = Counter(cells.values.tolist())
    gaps = counts.pop(None, 0)
    levels = tuple(sorted(counts))
    rows = len(cells.values) - gaps
    _refuse_free_text(name, levels, rows, cells)
    note = "constant" if len(levels) == 1 and not gaps else ""
    if len(levels) <= MOST_ONE_HOT:
        shares = np.array([*counts.values(), gaps]) / len(cells.values)
        scale = max(np.sqrt(1.0 - np.square(shares).sum()), SMALLEST_SCALE)
        column = Column(
            name, "category", bool(gaps), levels=levels, scales=(float(scale),) * (len(levels) + bool(gaps)), note=note
        )
        return column, column.encode(cells)
    once = sum(count == 1 for count in counts.values()) / rows  # the share of new levels to come (Good and Turing)
    if once > RARE:
        note = f"about {once:.0%} of new rows will bring a level of their own, and count as outside"
    blank = np.zeros((len(levels) + bool(gaps), y.shape[1]))
    scales = (OWN,) * y.shape[1]
    draft = Column(name, "many levels", bool(gaps), levels=levels, averages=blank, default=blank[0], scales=scales)
    codes = draft._ordinal.transform(cells.values[:, None])
    training = np.empty((len(codes), y.shape[1]))
    averages = []
    for number, target in enumerate(y.T):
        encoder = TargetEncoder(target_type="continuous", smooth=SMOOTH)
        for others, rows in KFold(5, shuffle=True, random_state=seed % 2**32).split(codes):
            training[rows, number] = encoder.fit(codes[others], target[others]).transform(codes[rows])[:, 0]
        encoder.fit(codes, target)
        averages.append((encoder.encodings_[0], encoder.target_mean_))
    column = Column(
        name,
        "many levels",
        bool(gaps),
        levels=levels,
        averages=np.stack([table for table, _ in averages], axis=1),
        default=np.array([mean for _, mean in averages], dtype=np.float64),
        scales=scales,
        note=note,
    )
    return column, Block(training, {})


def _refuse_other_dates(name: str, cells: Cells, days: np.ndarray) -> None:
    """Refuse dates in another form than ours, and text among dates: as levels, new ones would all be unknown."""
    counts = Counter(text for text in cells.values.tolist() if text is not None)
    dates = sum(count for text, count in counts.items() if looks_like_date(text))
    if dates > counts.total() / 2:
        row = int((np.isnan(days) & ~cells.gaps).argmax())
        raise RowError(
            f"column '{name}' looks like dates; write them as 2024-05-01 ('{cells.values[row][:30]}' in {ROW} is not).",
            row,
        )


def _refuse_free_text(name: str, levels: tuple[str, ...], rows: int, cells: Cells) -> None:
    numbers = parse_numbers(np.array(levels, dtype=object))
    odd = [level for level, number in zip(levels, numbers, strict=True) if np.isnan(number)]
    codes = cells.declared or any(CODE.fullmatch(level) for level in levels)
    if not codes and len(levels) > FEW_LEVELS and len(odd) < len(levels) / 2:
        if odd:
            row = cells.values.tolist().index(odd[0])
            raise RowError(
                f"column '{name}' holds text among numbers ('{odd[0][:30]}' in {ROW}); leave such cells empty.", row
            )
        raise InputError(f"column '{name}' holds numbers as text; convert it to numbers or drop it.")
    remedy = "drop it (--ignore or --id in the command line), or group its values"
    if len(levels) > max(FEW_LEVELS, rows / 2):
        raise InputError(
            f"column '{name}' holds text that is nearly always another one ({len(levels)} different values in {rows} "
            f"rows); {remedy}."
        )
    if len(levels) > MOST_LEVELS:
        raise InputError(f"column '{name}' has {len(levels)} levels, more than {MOST_LEVELS}; {remedy}.")
    if max(map(len, levels)) > LONGEST_LEVEL:
        raise InputError(f"column '{name}' holds texts of more than {LONGEST_LEVEL} characters; {remedy}.")
