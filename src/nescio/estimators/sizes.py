"""What the size of a table decides: whether it is small, and how many folds, posteriors and divisions it gets."""

from __future__ import annotations

from typing import Any

__all__ = [
    "FEW_INPUTS",
    "SMALL",
    "count_divisions",
    "count_folds",
    "count_members",
    "count_repeats",
    "first_to_see",
    "is_small",
]

FEW_INPUTS = 3  # up to here some hundred rows and 20,000 pseudo-inputs cover the data and their rim well
VERY_FEW_ROWS = 500  # below it folds cost little
SMALL = 1_000  # rows below which a posterior depends much on its luck, and so does what it says between them
FEW_ROWS = 2_000  # up to here the pilot chooses by three divisions of the rows, since one is a coarse judge
MANY_ROWS = 10_000  # from here on a posterior is learned well, and the time of many would be felt
MEMBERS = 5  # as many as a deep ensemble usually has
MANY_MEMBERS = 10  # on small tables: halve what luck is left, at little cost
FEW_MEMBERS = 2  # a single one dips here or there off the data, two hardly at one place
REPEATS = 2  # two networks that did not see a row are closer to the bag than one


def is_small(n_rows: int, n_inputs: int) -> bool:
    """Whether a table has few rows in more than a few inputs, so that even the nearest row is far away in some."""
    return n_rows < SMALL and n_inputs > FEW_INPUTS


def count_folds(model: Any, n_rows: int) -> int:
    """Into how many folds the rows are dealt."""
    if model.n_folds != "auto":
        return int(min(model.n_folds, n_rows))
    if model.mean is not None:
        # It sees all rows in the end, and errs less than those of the folds: of more folds, by less.
        return 20 if n_rows < MANY_ROWS else 10
    return 20 if n_rows < VERY_FEW_ROWS else 10 if n_rows < FEW_ROWS else 5


def count_members(model: Any, n_rows: int, n_inputs: int) -> int:
    """How many posteriors are trained and mixed."""
    if model.n_members != "auto":
        return int(model.n_members)
    if n_rows >= MANY_ROWS:
        return FEW_MEMBERS
    return MANY_MEMBERS if is_small(n_rows, n_inputs) else MEMBERS


def first_to_see(n_members: int, n_rows: int, n_inputs: int) -> int:
    """The member from which on every other one sees the distance from the data: the second, so that of five two do.

    The first where it is alone, and on a small table, whose ten members are shared out evenly either way; with few
    inputs none of them need see it.
    """
    return int(n_members > 1 and n_inputs > FEW_INPUTS and not is_small(n_rows, n_inputs))


def count_repeats(model: Any, n_rows: int, n_inputs: int) -> int:
    """How often the folds are dealt: so often that each member has a network of its own."""
    return max(REPEATS, -(-count_members(model, n_rows, n_inputs) // count_folds(model, n_rows)))


def count_divisions(n_rows: int) -> int:
    """By how many divisions of the rows the pilot chooses."""
    return 3 if n_rows <= FEW_ROWS else 1
