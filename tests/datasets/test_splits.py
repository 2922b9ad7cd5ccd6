"""Splits: identical rows stay together, every row is used once, blocks are windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nescio._validation import InputError
from nescio.datasets import blocks, folds, group_rows, grouped_train_test


def table(n: int, d: int, levels: int, seed: int) -> np.ndarray:
    """Rows on a coarse lattice, so that ties and duplicates abound."""
    return np.random.default_rng(seed).integers(0, levels, (n, d)) * 0.37 - 1.3


tables = st.builds(table, st.integers(3, 60), st.integers(1, 4), st.integers(1, 9), st.integers(0, 10**6))


@given(tables)
@settings(max_examples=60, deadline=None)
def test_two_rows_share_a_group_exactly_when_they_are_equal(X):
    groups = group_rows(X)
    equal = (X[:, None, :] == X[None, :, :]).all(axis=-1)
    assert ((groups[:, None] == groups[None, :]) == equal).all()
    assert sorted(set(groups)) == list(range(groups.max() + 1))
    firsts = [int(np.flatnonzero(groups == g)[0]) for g in range(groups.max() + 1)]
    assert firsts == sorted(firsts)


def test_negative_zero_and_zero_are_the_same_input():
    assert group_rows(np.array([[0.0, 1.0], [-0.0, 1.0]])).tolist() == [0, 0]


@given(tables, st.floats(0.05, 0.95), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_a_train_test_split_is_a_partition_that_tears_no_group(X, fraction, seed):
    groups = group_rows(X)
    if groups.max() == 0:
        with pytest.raises(InputError, match="at least 2 different rows"):
            grouped_train_test(X, fraction, seed)
        return
    train, test = grouped_train_test(X, fraction, seed)
    assert len(train) > 0
    assert len(test) > 0
    assert sorted([*train, *test]) == list(range(len(X)))
    assert not set(groups[train]) & set(groups[test])
    assert abs(len(test) - fraction * len(X)) <= np.bincount(groups).max()


def test_an_ungrouped_split_would_tear_duplicates_apart():
    X = np.repeat(np.random.default_rng(3).normal(size=(40, 3)), 5, axis=0)
    groups = group_rows(X)
    torn = np.random.default_rng(0).permutation(len(X))  # the plain way, as a wrong twin
    assert set(groups[torn[:50]]) & set(groups[torn[50:]])
    train, test = grouped_train_test(X, 0.25, 0)
    assert len(test) == 50
    assert not set(groups[train]) & set(groups[test])


def test_the_split_depends_on_the_seed_and_on_nothing_else():
    X = table(50, 2, 9, 1)
    np.random.seed(1)  # noqa: NPY002  the global generator is set to see that it is not used
    first = grouped_train_test(X, 0.3, 7)[1]
    np.random.seed(2)  # noqa: NPY002
    assert np.array_equal(first, grouped_train_test(X, 0.3, 7)[1])
    assert not np.array_equal(first, grouped_train_test(X, 0.3, 8)[1])


@given(st.lists(st.integers(-5, 12), min_size=2, max_size=80), st.integers(2, 12), st.integers(0, 1000))
@settings(max_examples=80, deadline=None)
def test_folds_hold_every_row_out_once_and_tear_no_group(ids, k, seed):
    groups = np.array(ids)
    parts = folds(groups, k, seed)
    assert sorted(np.concatenate(parts)) == list(range(len(ids)))
    distinct = len(set(ids))
    assert len(parts) == min(k, distinct if distinct > 1 else len(ids))
    assert all(len(part) > 0 for part in parts)
    sizes = [len(part) for part in parts]
    if distinct > 1:
        assert max(sizes) - min(sizes) <= max(ids.count(i) for i in ids)
        held = [set(groups[part]) for part in parts]
        assert sum(map(len, held)) == distinct
    else:
        assert max(sizes) - min(sizes) <= 1


def test_folds_of_single_rows_differ_by_at_most_one():
    for n in (2, 5, 17, 100):
        sizes = [len(part) for part in folds(n, 5, 3)]
        assert max(sizes) - min(sizes) <= 1
        assert sum(sizes) == n


def test_single_rows_make_up_for_the_lumps_of_large_groups():
    ids = np.concatenate([np.repeat([0, 1, 2], [30, 7, 5]), np.arange(10, 88)])  # 120 rows, 40 per fold
    assert [len(part) for part in folds(ids, 3, 0)] == [40, 40, 40]


def test_a_single_row_cannot_be_folded():
    with pytest.raises(InputError, match="at least 2"):
        folds(1, 2, 0)
    with pytest.raises(InputError, match="at least 2 rows"):
        folds([4], 2, 0)


@given(tables, st.floats(0.05, 0.6), st.integers(0, 1000))
@settings(max_examples=80, deadline=None)
def test_blocks_leave_two_rows_in_and_one_out(X, fraction, seed):
    for held in blocks(X, 4, fraction, seed):
        assert 1 <= len(held) <= len(X) - 2
        assert len(set(held)) == len(held)
        assert len(held) < max(2 * max(round(fraction * len(X)), 1), 2)


def test_even_blocks_are_windows_of_one_feature():
    X = np.random.default_rng(5).normal(size=(200, 3)) * [1.0, 50.0, 0.1] + 4.0
    for held in blocks(X, 12, 0.25, 2)[::2]:
        inside = np.zeros(200, dtype=bool)
        inside[held] = True
        runs = [np.abs(np.diff(inside[np.argsort(X[:, j])].astype(int))).sum() for j in range(3)]
        assert min(runs) <= 2  # one run of held-out rows along some feature
        assert len(held) == 50


def test_odd_blocks_are_cut_by_two_parallel_planes():
    X = np.random.default_rng(6).normal(size=(300, 2)) * [1.0, 20.0] - 3.0
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    angles = np.linspace(0, np.pi, 2000, endpoint=False)
    for held in blocks(X, 6, 0.2, 11)[1::2]:
        inside = np.zeros(300, dtype=bool)
        inside[held] = True
        projections = Z @ np.stack([np.cos(angles), np.sin(angles)])
        runs = [np.abs(np.diff(inside[np.argsort(p)].astype(int))).sum() for p in projections.T]
        assert min(runs) <= 4  # one run, up to a swap of neighbours for want of the exact angle
        random = np.random.default_rng(0).permutation(inside)
        assert min(np.abs(np.diff(random[np.argsort(p)].astype(int))).sum() for p in projections.T) > 20


def test_blocks_cut_only_where_the_value_changes():
    X = np.random.default_rng(8).integers(0, 7, (140, 1)).astype(float)
    for held in blocks(X, 10, 0.3, 0):
        kept = np.setdiff1d(np.arange(140), held)
        assert not set(X[held, 0]) & set(X[kept, 0])


def test_blocks_of_constant_or_duplicate_or_few_rows_exist_where_they_can():
    assert blocks(np.zeros((2, 3)), 4) == []
    assert [len(held) for held in blocks(np.ones((8, 2)), 3)] == [2, 2, 2]
    assert all(len(held) == 1 for held in blocks(np.array([[1.0], [2.0], [4.0]]), 5))
    X = np.column_stack([np.full(30, 0.1), np.arange(30.0)])
    assert all(len(held) in (7, 8) for held in blocks(X, 6))
    mostly_zero = np.zeros((40, 1))
    mostly_zero[:3, 0] = [1, 2, 3]
    assert all(len(held) <= 19 for held in blocks(mostly_zero, 8))


def test_bad_arguments_are_named():
    with pytest.raises(InputError, match=r"X must be a table of shape \(N, D\); got shape \(3,\)"):
        group_rows(np.zeros(3))
    with pytest.raises(InputError, match="test_fraction must lie strictly between 0 and 1; got 1"):
        grouped_train_test(np.eye(4), 1.0, 0)
    with pytest.raises(InputError, match="k must be a whole number of at least 2; got 1"):
        folds(10, 1, 0)
