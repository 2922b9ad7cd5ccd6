"""Ways to hold rows out: identical inputs stay together, and blocks leave holes a model has to reach across."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from nescio._validation import InputError, check_fraction, check_integer

__all__ = ["blocks", "folds", "group_rows", "grouped_train_test"]


def group_rows(X: np.ndarray) -> np.ndarray:
    """One id per row of ``(N, D)``; rows of identical inputs share it. Ids count up in order of first appearance.

    >>> group_rows(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])).tolist()
    [0, 1, 0]
    """
    X = _table(X)
    if X.shape[1] == 0:
        return np.zeros(len(X), dtype=np.int64)
    rows = np.ascontiguousarray(X, dtype=np.float64) + 0.0  # -0.0 and 0.0 are one value with two bit patterns
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    groups: np.ndarray = rank[inverse]
    return groups


def grouped_train_test(X: np.ndarray, test_fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers for training and for testing, each sorted; identical inputs fall on one side.

    The test part is the one nearest to ``test_fraction`` of the rows that a random order of the groups allows.
    """
    check_fraction("test_fraction", test_fraction)
    groups = group_rows(X)
    sizes = np.bincount(groups)
    if len(sizes) < 2:
        raise InputError(f"X must hold at least 2 different rows to be split; all {len(groups)} are the same.")
    order = np.random.default_rng(seed).permutation(len(sizes))
    filled = np.cumsum(sizes[order])[:-1]  # at least one group is left to train on
    taken = int(np.argmin(np.abs(filled - test_fraction * len(groups)))) + 1
    in_test = np.isin(groups, order[:taken])
    return np.flatnonzero(~in_test), np.flatnonzero(in_test)


def folds(n_or_groups: int | Sequence[int] | np.ndarray, k: int, seed: int) -> list[np.ndarray]:
    """Deal the rows into ``k`` held-out parts of nearly one size; every row is held out once.

    ``n_or_groups`` is a number of rows, or one group id per row (``group_rows``): a group is never torn. Sizes then
    differ by no more than the largest group. With fewer groups than ``k`` there are as many folds as groups; rows
    that all belong to one group are dealt singly, since no grouped split exists.
    """
    check_integer("k", k, least=2)
    if isinstance(n_or_groups, (int, np.integer)):
        groups = np.arange(check_integer("n_or_groups", n_or_groups, least=2))
    else:
        groups = np.unique(np.asarray(n_or_groups), return_inverse=True)[1].ravel()
        if len(groups) < 2:
            raise InputError(f"folds need at least 2 rows; got {len(groups)}.")
    if groups.max() == 0:
        groups = np.arange(len(groups))
    sizes = np.bincount(groups)
    parts = min(k, len(sizes))
    order = np.random.default_rng(seed).permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]

    fold_of_group = np.empty(len(sizes), dtype=np.int64)
    loads = [(0, part) for part in range(parts)]
    several = int((sizes > 1).sum())
    for group in order[:several]:  # the largest first, each to the emptiest fold
        load, part = heapq.heappop(loads)
        fold_of_group[group] = part
        heapq.heappush(loads, (load + int(sizes[group]), part))
    singles = order[several:]
    fold_of_group[singles] = _fill_evenly(np.array([load for load, _ in sorted(loads, key=lambda x: x[1])]), singles)
    fold_of_row = fold_of_group[groups]
    return [np.flatnonzero(fold_of_row == part) for part in range(parts)]


def blocks(X: np.ndarray, count: int, fraction: float = 0.25, seed: int = 0) -> list[np.ndarray]:
    """Held-out row numbers of ``count`` contiguous blocks, each about ``fraction`` of the rows.

    A block is a window of the rows sorted along a random feature (even blocks) or a random direction of the
    standardised inputs (odd ones), at a random place, cut where the value changes. At least 2 rows stay in and 1 is
    held out; with fewer than 3 rows there is no such block and the list is empty. Where ties leave no window of less
    than twice the size asked for, another feature or direction is tried, and in the end a random set of rows is taken.
    """
    X = _table(X)
    check_integer("count", count, least=0)
    check_fraction("fraction", fraction)
    n = len(X)
    if n < 3:
        return []
    rng = np.random.default_rng(seed)
    spread = X.std(axis=0)
    spread[np.ptp(X, axis=0) == 0] = 0.0  # rounding can leave a constant column a spread above zero
    varying = np.flatnonzero(spread > 0)
    groups = group_rows(X)
    distinct = X[np.unique(groups, return_index=True)[1]][:, varying]
    distinct = (distinct - distinct.mean(axis=0)) / spread[varying]
    width = min(max(round(fraction * n), 1), n - 2)
    return [_block(rng, distinct, groups, width, along_feature=index % 2 == 0) for index in range(count)]


def _block(
    rng: np.random.Generator, distinct: np.ndarray, groups: np.ndarray, width: int, along_feature: bool
) -> np.ndarray:
    n = len(groups)
    for _ in range(10 if distinct.shape[1] else 0):
        if along_feature:
            projection = distinct[:, rng.integers(distinct.shape[1])]
        else:
            projection = distinct @ rng.standard_normal(distinct.shape[1])
        values = projection[groups]  # by group: a product need not round alike for equal rows in different places
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        cuts = np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, [n]])
        start = rng.integers(n - width + 1)
        low = int(np.argmin(np.abs(cuts - start)))
        low = min(low, len(cuts) - 2)
        high = low + 1 + int(np.argmin(np.abs(cuts[low + 1 :] - (cuts[low] + width))))
        size = cuts[high] - cuts[low]
        if size <= n - 2 and size < max(2 * width, 2):
            return np.sort(order[cuts[low] : cuts[high]])
    return np.sort(rng.permutation(n)[:width])


def _fill_evenly(loads: np.ndarray, singles: np.ndarray) -> np.ndarray:
    """The part for each of ``singles`` such that the loads end as even as they can."""
    order = np.argsort(loads, kind="stable")
    before = np.cumsum(loads[order])
    open_parts = len(loads)
    while open_parts > 1 and before[open_parts - 1] + len(singles) < open_parts * loads[order[open_parts - 1]]:
        open_parts -= 1
    total = before[open_parts - 1] + len(singles)
    level, extra = divmod(int(total), open_parts)
    wanted = np.full(open_parts, level)
    wanted[:extra] += 1
    room = wanted - loads[order[:open_parts]]
    return np.repeat(order[:open_parts], room)


def _table(X: np.ndarray) -> np.ndarray:
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise InputError(f"X must be a table of shape (N, D); got shape {X.shape}.")
    return X
