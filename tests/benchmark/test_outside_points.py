"""Points off the data: as far as they say, in the directions they say, and the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nescio._validation import InputError
from nescio.benchmark.outside_points import box, far, near, outside_points, push


def rows(n: int = 3000, seed: int = 0) -> np.ndarray:
    """Three columns of different means and widths, and a constant one."""
    x = np.random.default_rng(seed).normal(size=(n, 4)) * [1.0, 2.0, 0.5, 0.0] + [0.0, 1.0, -2.0, 0.7]
    return x


@pytest.mark.parametrize(("kind", "scale"), [(near, 1.0), (far, 3.0)])
def test_displacements_are_normal_with_the_scale_named(kind, scale):
    x = rows()
    moved = (kind(x, np.random.default_rng(1)) - x) / scale
    assert stats.kstest(moved.ravel(), "norm").pvalue > 1e-3
    assert stats.kstest(moved.ravel(), stats.norm(scale=1.1).cdf).pvalue < 1e-6  # the test would notice a tenth
    assert np.abs(np.corrcoef(moved.T) - np.eye(4)).max() < 0.1


def test_the_box_has_the_authors_half_width_and_is_uniform_in_it():
    x = rows()
    points = box(x, np.random.default_rng(2))
    for column in range(3):
        centre, half = x[:, column].mean(), np.ptp(x[:, column]) * x[:, column].std()
        assert stats.kstest(points[:, column], stats.uniform(centre - half, 2 * half).cdf).pvalue > 1e-3
        twin = stats.uniform(centre - np.ptp(x[:, column]), 2 * np.ptp(x[:, column]))  # without the std
        assert column == 0 or stats.kstest(points[:, column], twin.cdf).pvalue < 1e-6
    np.testing.assert_allclose(points[:, 3], 0.7)


def test_a_pushed_row_leaves_the_training_range_in_one_input_by_one_to_two_ranges():
    train, x = rows(seed=3), rows(900, seed=4)
    points = push(x, train, np.random.default_rng(5))
    changed = points != x
    assert (changed.sum(1) == 1).all()
    assert not changed[:, 3].any()
    assert (changed[:, :3].sum(0) > 230).all()
    beyond = np.maximum(points - train.max(0), train.min(0) - points)[:, :3] / np.ptp(train, axis=0)[:3]
    distances = beyond[changed[:, :3]]
    assert stats.kstest(distances, stats.uniform(1.0, 1.0).cdf).pvalue > 1e-3
    ups = (points > train.max(0) + 1e-9)[changed].mean()
    assert 0.4 < ups < 0.6


def test_a_push_does_not_depend_on_units():
    train, x, unit = rows(seed=3), rows(50, seed=4), np.array([3.0, 0.1, 700.0, 2.0])
    here = push(x, train, np.random.default_rng(6))
    there = push(x * unit, train * unit, np.random.default_rng(6))
    np.testing.assert_allclose(there, here * unit, rtol=1e-12)


def test_kinds_have_streams_of_their_own_and_leave_their_arguments_alone():
    train, x = rows(seed=3), rows(40, seed=4)
    kept = x.copy()
    first, again, other = (outside_points(x, train, seed) for seed in (7, 7, 8))
    assert list(first) == ["near", "far", "box", "push"]
    for name, points in first.items():
        assert points.shape == x.shape
        np.testing.assert_array_equal(points, again[name])
        assert (points != other[name]).any()
    assert not np.allclose(first["near"] - x, (first["far"] - x) / 3.0)
    np.testing.assert_array_equal(x, kept)


def test_rows_that_do_not_vary_cannot_be_pushed():
    with pytest.raises(InputError, match="train must have a column that varies"):
        push(rows(5), np.ones((6, 4)), np.random.default_rng(0))
