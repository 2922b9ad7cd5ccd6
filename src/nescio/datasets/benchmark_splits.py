"""Which rows a benchmark trains on and which it tests on: random tenths, holes and tails, in two protocols."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nescio._random import child_seed
from nescio._validation import InputError, check_integer, check_one_of
from nescio.datasets.splits import group_rows, grouped_train_test

__all__ = ["KINDS", "PROTOCOLS", "Split", "make_splits", "usable_features"]

KINDS = ("standard", "gap", "tail")
PROTOCOLS = ("paper", "sound")

TEST_FRACTION = 0.1  # the usual one for these sets, and the paper's
LEAST_VALUES = 4  # a hole needs two values beside it, and one value is no range to reach across
FIRST_SEED = 2  # the authors seed trial t with 2 + t


class Split(NamedTuple):
    """Row numbers of one trial, each list sorted.

    ``test`` holds a list per region: ``all`` always; for a gap also ``inside`` and ``hole``, for a tail ``inside`` and
    ``tail``, which together are ``all``. ``feature`` is the column that the hole or the tails were cut along.
    """

    kind: str
    trial: int
    feature: int | None
    train: np.ndarray
    test: dict[str, np.ndarray]


def make_splits(X: np.ndarray, kind: str, *, protocol: str = "sound", trials: int = 10, seed: int = 0) -> list[Split]:
    """The splits of one table ``(N, D)``, at most ``trials`` of them.

    Paper: sec:regression (a hole: the middle third of the rows, sorted by one feature, goes to the test set).

    ``standard``: a random tenth of the rows is held out, ``trials`` times. ``gap``: the middle third by one feature is
    the region ``hole``, and a tenth of the other rows is ``inside``. ``tail``: the model sees the middle third only;
    the outer thirds are the region ``tail`` and a tenth of the middle third is ``inside``. For gap and tail there is
    one split per usable feature, or per chosen one where there are more than ``trials``: the usable ones are cut into
    ``trials`` runs of neighbours and one is drawn from each. A feature's split does not depend on ``trials``.

    Protocol ``sound``: rows of identical inputs are always on one side, and thirds are cut where the feature's value
    changes, so that no value is on both sides. Which features can be cut so, ``usable_features`` says.

    Protocol ``paper`` is what the authors ran, ``standard`` and ``gap`` only: trial t draws its tenth with the seed
    2 + t, the hole is cut from the other nine tenths by position, every feature counts, and copies of a row may be on
    both sides. They standardised with these nine tenths, hole included: ``train`` and ``hole`` together.
    """
    X = _finite_table(X)
    check_one_of("kind", kind, KINDS)
    check_one_of("protocol", protocol, PROTOCOLS)
    check_integer("trials", trials, least=1)
    check_integer("seed", seed, least=0)
    if protocol == "paper":
        return _paper_splits(X, kind, trials, seed)
    if kind == "standard":
        return [_standard(X, trial, seed) for trial in range(trials)]
    usable = usable_features(X)
    if not usable:
        raise InputError(
            f"no column of X can be cut into thirds for a {kind} split: each has fewer than {LEAST_VALUES} different "
            "values or too many equal ones; use the standard split."
        )
    chosen = _spread(usable, trials, seed)
    return [_thirds(X, kind, trial, feature, seed) for trial, feature in enumerate(chosen)]


def usable_features(X: np.ndarray) -> list[int]:
    """Columns of ``(N, D)`` along which the rows can be cut into thirds at a change of value.

    A column is left out if it has fewer than 4 different values; if ties leave no middle part of between a sixth and
    two thirds of the rows with other values on both sides; if the middle or the rest would be copies of one row; or
    if its middle part is that of an earlier column, since the same split twice would be counted as two.
    """
    X = _finite_table(X)
    groups = group_rows(X)
    found: list[int] = []
    seen: set[bytes] = set()
    for feature in range(X.shape[1]):
        middle = _middle(X[:, feature])
        if middle is None or middle.tobytes() in seen:
            continue
        if min(len(np.unique(groups[middle])), len(np.unique(groups[~middle]))) < 2:
            continue
        seen.add(middle.tobytes())
        found.append(feature)
    return found


def _standard(X: np.ndarray, trial: int, seed: int) -> Split:
    train, test = grouped_train_test(X, TEST_FRACTION, child_seed(seed, "standard", trial))
    return Split("standard", trial, None, train, {"all": test})


def _thirds(X: np.ndarray, kind: str, trial: int, feature: int, seed: int) -> Split:
    middle = _middle(X[:, feature])
    if middle is None:
        raise InputError(f"column {feature} of X cannot be cut into thirds; choose one of usable_features(X).")
    held_out = middle if kind == "gap" else ~middle
    region = "hole" if kind == "gap" else "tail"
    rest, outside = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    train, inside = grouped_train_test(X[rest], TEST_FRACTION, child_seed(seed, kind, feature))
    test = {"all": np.sort(np.concatenate([rest[inside], outside])), "inside": rest[inside], region: outside}
    return Split(kind, trial, feature, rest[train], test)


def _middle(values: np.ndarray) -> np.ndarray | None:
    """Mask of the middle third, its ends moved to the nearest change of value; None where there is no such part."""
    n = len(values)
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < LEAST_VALUES:
        return None
    below = np.cumsum(counts)[:-1]  # rows under each change of value
    low, high = (int(np.argmin(np.abs(below - third * n / 3.0))) for third in (1, 2))
    size = below[high] - below[low]
    if not n <= 6 * size <= 4 * n:  # a third, give or take a factor of two
        return None
    middle: np.ndarray = (values > distinct[low]) & (values <= distinct[high])
    return middle


def _spread(usable: list[int], trials: int, seed: int) -> list[int]:
    """All of ``usable``, or ``trials`` of them, one drawn from each of as many runs of neighbours."""
    if len(usable) <= trials:
        return usable
    rng = np.random.default_rng(child_seed(seed, "features"))
    return [int(rng.choice(run)) for run in np.array_split(np.array(usable), trials)]


def _paper_splits(X: np.ndarray, kind: str, trials: int, seed: int) -> list[Split]:
    n, d = X.shape
    if kind == "tail":
        raise InputError("the authors ran no tail split; use protocol 'sound' for it.")
    if n < 10:
        raise InputError(f"X must have at least 10 rows for a tenth of them to be held out; it has {n}.")
    splits = []
    numbers = range(trials) if kind == "standard" else _spread(list(range(d)), trials, seed)
    for trial, number in enumerate(numbers):
        # The permutation that scikit-learn's train_test_split draws: its first tenth is the test set.
        shuffled = np.random.RandomState(FIRST_SEED + seed + number).permutation(n)
        test, rest = shuffled[: int(TEST_FRACTION * n)], shuffled[int(TEST_FRACTION * n) :]
        if kind == "standard":
            splits.append(Split(kind, trial, None, np.sort(rest), {"all": np.sort(test)}))
            continue
        ordered = rest[np.argsort(X[rest, number], kind="stable")]
        low, high = int(len(rest) / 3), int(2 * len(rest) / 3)
        hole, train = ordered[low:high], np.concatenate([ordered[:low], ordered[high:]])
        regions = {"all": np.concatenate([test, hole]), "inside": test, "hole": hole}
        splits.append(
            Split(kind, trial, number, np.sort(train), {name: np.sort(rows) for name, rows in regions.items()})
        )
    return splits


def _finite_table(X: np.ndarray) -> np.ndarray:
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise InputError(f"X must be a table of shape (N, D); got shape {X.shape}.")
    if not np.isfinite(X).all():
        raise InputError("X must be finite to be sorted and split; fill or drop the rows with gaps first.")
    return X
