"""Toy problems: the samples follow the mean and spread that are given as the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nescio._validation import InputError
from nescio.datasets import toy_mean, toy_regression, toy_std, toy_symmetrical, toy_symmetrical_std


@pytest.mark.parametrize("draw", [toy_regression, toy_symmetrical])
def test_standardised_residuals_are_standard_normal(draw):
    data = draw(n=20_000, seed=4)
    z = (data.y - data.mean) / data.std
    assert stats.kstest(z, "norm").pvalue > 1e-4
    for low in range(0, 10, 2):  # in each stretch of x, so that the spread has the right shape too
        stretch = z[(data.x[:, 0] >= low) & (data.x[:, 0] < low + 2)]
        assert abs(stretch.std() - 1) < 5 / np.sqrt(2 * len(stretch))


def test_a_spread_added_linearly_would_be_noticed():
    data = toy_regression(n=20_000, seed=4)
    wrong = 0.3 + 0.3 * data.x[:, 0]  # standard deviations added instead of variances
    assert stats.kstest((data.y - data.mean) / wrong, "norm").pvalue < 1e-10


def test_the_truth_is_given_at_any_point():
    x = np.array([-2.0, 0.0, 3.0])
    np.testing.assert_allclose(toy_mean(x), [-2 * np.sin(-2.0), 0.0, 3 * np.sin(3.0)], rtol=1e-15)
    np.testing.assert_allclose(toy_std(x), np.hypot(0.3, 0.3 * x), rtol=1e-15)
    np.testing.assert_allclose(toy_symmetrical_std(x), 6 * stats.norm.pdf(x, 5, 1.5), rtol=1e-13)


def test_shapes_and_defaults():
    data = toy_regression()
    assert data.x.shape == (625, 1)
    assert data.y.shape == data.mean.shape == data.std.shape == (625,)
    assert data.x.min() >= 0
    assert data.x.max() <= 10


def test_a_hole_takes_rows_out_and_leaves_the_others_as_they_were():
    full, holed = toy_regression(seed=3), toy_regression(seed=3, hole=(2.0, 3.5))
    kept = (full.x[:, 0] <= 2.0) | (full.x[:, 0] >= 3.5)
    assert 0 < kept.sum() < 625
    np.testing.assert_array_equal(holed.y, full.y[kept])
    shifted = toy_regression(seed=3, shifted=True).x
    assert not ((shifted > 4) & (shifted < 7)).any()
    with pytest.raises(InputError, match="low < high"):
        toy_regression(hole=(3.0, 3.0))


def test_same_seed_same_data():
    np.testing.assert_array_equal(toy_regression(seed=9).y, toy_regression(seed=9).y)
    assert not np.array_equal(toy_regression(seed=9).y, toy_regression(seed=10).y)
