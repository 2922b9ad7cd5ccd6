"""``--card`` of ``nescio fit`` and ``nescio predict``: the card of a model, beside what the command is for."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nescio._files import check_destination, written_beside
from nescio._validation import InputError
from nescio.cli.tables import check_not_input

if TYPE_CHECKING:
    import polars as pl

__all__ = ["check_card", "check_card_rows", "row_names", "write_fit_card", "write_new_card"]

SHARE = 5  # one row in five is judged by a fit that has not seen it
MOST_JUDGED = 5_000  # as many as a card takes
LEAST_ROWS = 10  # two to judge by, and eight to learn from


def check_card(path: Path, out: Path, *inputs: Path) -> None:
    """Refuse a card that cannot be written or drawn, before any work is done for it."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--card is a page, so its name must end in .html; got '{path}'.")
    check_not_input(path, *inputs, option="--card")
    if path.resolve() == out.resolve():
        raise InputError(f"--card and --out are both '{path}'; give another name to one of them.")
    check_destination(path)
    try:
        importlib.import_module("nescio.report.card_page")
    except ModuleNotFoundError as error:
        raise InputError(f"--card needs {error.name}: pip install 'nescio[cli]'.") from error


def check_card_rows(rows: int) -> None:
    """Refuse a table too small to set rows aside."""
    if rows < LEAST_ROWS:
        raise InputError(f"--card sets rows aside to judge by and needs at least {LEAST_ROWS}; the table has {rows}.")


def row_names(frame: pl.DataFrame, ids: Sequence[str]) -> list[str] | None:
    """What the id columns say of each row; None without such columns, or where the table lacks one."""
    if not ids or not set(ids) <= set(frame.columns):
        return None
    return [" ".join(str(cell) for cell in row) for row in frame.select(list(ids)).iter_rows()]


def write_fit_card(path: Path, model: Any, table: pl.DataFrame, y: np.ndarray, names: Sequence[str], seed: int) -> int:
    """Judge the model by a second fit that has not seen one row in five; the number of those rows."""
    from sklearn.base import clone

    from nescio.report import card

    order = np.random.default_rng(seed).permutation(len(y))
    count = min(max(len(y) // SHARE, 2), MOST_JUDGED)
    judged, rest = np.sort(order[:count]), np.sort(order[count:])
    targets = y[:, 0] if y.shape[1] == 1 else y
    refit = clone(model).set_params(verbose=True).fit(table[rest], targets[rest])
    labels = [names[row] for row in judged]
    write(path, card(model, table[judged], targets[judged], refit=refit, row_names=labels))
    return count


def write_new_card(path: Path, model: Any, inputs: Any, names: list[str] | None, edge: float, outside: float) -> None:
    """The verdicts on a new table, and its rows to look at."""
    from nescio.report import card

    write(path, card(model, new=inputs, new_names=names, edge=edge, outside=outside))


def write(path: Path, text: str) -> None:
    """Write beside, and rename."""
    with written_beside(path) as handle:
        handle.write(text.encode())
