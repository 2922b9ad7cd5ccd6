"""Benchmark splits: nothing on both sides, thirds that are thirds, and the authors' own rows in protocol paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from nescio._validation import InputError
from nescio.datasets.benchmark_splits import make_splits, usable_features


def lattice(n: int, d: int, levels: int, seed: int) -> np.ndarray:
    """Rows on a coarse grid, so that ties and copies abound."""
    return np.random.default_rng(seed).integers(0, levels, (n, d)) * 0.7 - 2.1


def smooth(n: int = 120, d: int = 5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(2.0, 3.0, (n, d))


tables = st.builds(lattice, st.integers(5, 90), st.integers(1, 5), st.integers(2, 12), st.integers(0, 10**6))


def as_rows(X: np.ndarray, rows: np.ndarray) -> set[tuple[float, ...]]:
    return {tuple(row) for row in X[rows]}


def check_laws(X: np.ndarray, split) -> None:
    """What every sound split keeps, found out by looking at the rows themselves."""
    everything = [*split.train, *split.test["all"]]
    assert sorted(everything) == list(range(len(X)))
    for rows in (split.train, *split.test.values()):
        assert len(rows) > 0
        assert (np.diff(rows) > 0).all()
    assert not as_rows(X, split.train) & as_rows(X, split.test["all"])
    parts = [rows for region, rows in split.test.items() if region != "all"]
    if parts:
        assert sorted(np.concatenate(parts)) == split.test["all"].tolist()


@given(tables, st.sampled_from(["standard", "gap", "tail"]), st.integers(1, 6), st.integers(0, 99))
@settings(max_examples=120, deadline=None)
def test_a_sound_split_is_a_partition_and_no_input_is_on_both_sides(X, kind, trials, seed):
    try:
        splits = make_splits(X, kind, trials=trials, seed=seed)
    except InputError:
        assert len(np.unique(X, axis=0)) < 2 if kind == "standard" else usable_features(X) == []
        return
    for number, split in enumerate(splits):
        assert (split.kind, split.trial) == (kind, number)
        check_laws(X, split)


@given(tables, st.integers(0, 99))
@settings(max_examples=80, deadline=None)
def test_a_hole_is_a_window_of_one_feature_with_data_on_both_sides(X, seed):
    for split in make_splits(X, "gap", trials=9, seed=seed) if usable_features(X) else []:
        assert set(split.test) == {"all", "inside", "hole"}
        values, outside = X[split.test["hole"], split.feature], np.ones(len(X), bool)
        outside[split.test["hole"]] = False
        others = X[outside, split.feature]
        assert not ((others >= values.min()) & (others <= values.max())).any()
        assert (others < values.min()).any()
        assert (others > values.max()).any()
        assert len(X) / 6 <= len(values) <= len(X) * 2 / 3


def test_tail_and_gap_are_each_others_opposites():
    X = smooth()
    for gap, tail in zip(make_splits(X, "gap"), make_splits(X, "tail"), strict=True):
        assert gap.feature == tail.feature
        seen_by_tail = np.sort(np.concatenate([tail.train, tail.test["inside"]]))
        np.testing.assert_array_equal(seen_by_tail, gap.test["hole"])
        np.testing.assert_array_equal(np.sort(np.concatenate([gap.train, gap.test["inside"]])), tail.test["tail"])
        assert set(tail.test) == {"all", "inside", "tail"}


@pytest.mark.parametrize(("kind", "held_out", "inside"), [("gap", 40, 8), ("tail", 80, 4)])
def test_without_ties_the_parts_have_the_sizes_named(kind, held_out, inside):
    splits = make_splits(smooth(), kind)
    assert [split.feature for split in splits] == [0, 1, 2, 3, 4]
    region = "hole" if kind == "gap" else "tail"
    assert {len(split.test[region]) for split in splits} == {held_out}
    assert {len(split.test["inside"]) for split in splits} == {inside}
    split = splits[2]
    ranks = np.argsort(np.argsort(smooth()[:, 2]))[split.test["hole" if kind == "gap" else "inside"]]
    assert ranks.min() >= 40
    assert ranks.max() < 80


def test_a_cut_by_position_would_put_one_value_on_both_sides():
    X = np.column_stack([np.repeat(np.arange(8.0), 7), smooth(56, 1)[:, 0]])
    ordered = np.sort(X[:, 0])
    assert ordered[56 // 3 - 1] == ordered[56 // 3]  # the wrong twin tears this value
    (split, *_) = make_splits(X, "gap")
    assert split.feature == 0
    assert not set(X[split.train, 0]) & set(X[split.test["hole"], 0])


def test_columns_that_cannot_be_cut_are_left_out():
    rng = np.random.default_rng(5)
    n = 90
    good = rng.normal(size=n)
    columns = [
        np.full(n, 0.1),  # constant
        rng.integers(0, 3, n),  # three values
        np.where(np.arange(n) < 80, 0.0, good),  # one value holds almost all rows
        good,
        5.0 - 2.0 * good,  # the same middle third, seen from the other side
        rng.integers(0, 4, n),  # four values are enough
    ]
    X = np.column_stack(columns).astype(float)
    assert usable_features(X) == [3, 5]
    assert [split.feature for split in make_splits(X, "tail")] == [3, 5]
    with pytest.raises(InputError, match="no column of X can be cut into thirds for a gap split"):
        make_splits(X[:, :3], "gap")


def test_a_middle_or_a_rest_of_copies_is_no_split():
    column = np.array([0.0] * 4 + [1.0] * 5 + [2.0, 3.0, 4.0])
    assert usable_features(column[:, None]) == []  # its middle third is the value 1, five times
    assert usable_features(np.column_stack([column, np.arange(12) % 5])) == [0, 1]


def test_where_features_abound_the_chosen_are_spread_over_all():
    X = smooth(60, 40)
    for seed in range(20):
        chosen = [split.feature for split in make_splits(X, "gap", trials=8, seed=seed)]
        assert [feature // 5 for feature in chosen] == list(range(8))
    others = [split.feature for split in make_splits(X, "gap", trials=8, seed=20)]
    assert others != chosen


def test_trials_differ_and_a_trial_does_not_depend_on_how_many_there_are():
    X = smooth()
    many, few = make_splits(X, "standard", trials=6), make_splits(X, "standard", trials=3)
    assert len({tuple(split.test["all"]) for split in many}) == 6
    for left, right in zip(many, few, strict=False):
        np.testing.assert_array_equal(left.test["all"], right.test["all"])
    gaps = {split.feature: split for split in make_splits(X, "gap", trials=5)}
    for split in make_splits(X, "gap", trials=2):
        np.testing.assert_array_equal(split.train, gaps[split.feature].train)
    assert make_splits(X, "standard", seed=1)[0].test["all"].tolist() != many[0].test["all"].tolist()


def test_the_global_generator_is_neither_used_nor_moved():
    X = smooth()
    np.random.seed(3)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = [make_splits(X, "gap", protocol=protocol)[1].train for protocol in ("paper", "sound")]
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    again = [make_splits(X, "gap", protocol=protocol)[1].train for protocol in ("paper", "sound")]
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("n", [308, 505])
def test_the_papers_standard_split_is_the_one_scikit_learn_draws_after_seeding(n):
    X = smooth(n, 3)
    for split in make_splits(X, "standard", protocol="paper", trials=3):
        train, test = train_test_split(np.arange(n), test_size=int(n * 0.1), random_state=2 + split.trial)
        assert split.train.tolist() == sorted(train)
        assert split.test["all"].tolist() == sorted(test)


SIZES = [(505, 13, 303, 202), (768, 8, 461, 307), (1599, 11, 960, 639), (308, 6, 185, 123)]


@pytest.mark.parametrize(("n", "d", "train", "test"), SIZES)
def test_the_papers_shifted_split_has_the_authors_sizes(n, d, train, test):
    splits = make_splits(smooth(n, d), "gap", protocol="paper", trials=d)
    assert [split.feature for split in splits] == list(range(d))
    assert {(len(split.train), len(split.test["all"])) for split in splits} == {(train, test)}


def test_the_papers_hole_is_the_middle_third_of_the_other_nine_tenths():
    X = smooth(210, 4)
    for split in make_splits(X, "gap", protocol="paper"):
        standard = make_splits(X, "standard", protocol="paper", trials=4)[split.feature]
        np.testing.assert_array_equal(split.test["inside"], standard.test["all"])
        values = X[standard.train, split.feature]
        cut = np.sort(values)[[63, 125]]  # 189 rows are left; positions 63 to 125
        hole = standard.train[(values >= cut[0]) & (values <= cut[1])]
        np.testing.assert_array_equal(split.test["hole"], hole)
        np.testing.assert_array_equal(np.sort(np.concatenate([split.train, hole])), standard.train)


def test_the_paper_tears_copies_apart_where_we_do_not():
    X = np.repeat(smooth(40, 2), 5, axis=0)
    torn = make_splits(X, "standard", protocol="paper")[0]
    assert as_rows(X, torn.train) & as_rows(X, torn.test["all"])
    check_laws(X, make_splits(X, "standard")[0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kind": "random"}, "kind must be one of 'standard', 'gap', 'tail'; got 'random'"),
        ({"kind": "gap", "protocol": "ours"}, "protocol must be one of 'paper', 'sound'"),
        ({"kind": "gap", "trials": 0}, "trials must be a whole number of at least 1"),
        ({"kind": "gap", "seed": -1}, "seed must be a whole number of at least 0"),
        ({"kind": "tail", "protocol": "paper"}, "the authors ran no tail split"),
        ({"kind": "gap", "X": np.array([[1.0], [np.nan]])}, "X must be finite"),
        ({"kind": "gap", "X": np.arange(5.0)}, r"shape \(N, D\)"),
        ({"kind": "standard", "X": np.ones((9, 2))}, "at least 2 different rows"),
        ({"kind": "standard", "X": np.ones((9, 2)), "protocol": "paper"}, "at least 10 rows"),
    ],
)
def test_mistakes_are_told_in_a_sentence(arguments, words):
    with pytest.raises(InputError, match=words):
        make_splits(**{"X": smooth(), **arguments})
