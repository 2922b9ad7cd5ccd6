"""Ways to join statistics against naive loops, SciPy and the laws they should keep."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri
from sklearn.covariance import LedoitWolf

from nescio._validation import InputError
from nescio.generative.combination import (
    COMBINATIONS,
    QUANTILES,
    Copod,
    Directed,
    Mahalanobis,
    NormalScores,
    WhitenedDensity,
    make_combination,
)

DIRECTIONS = [1, -1, 0]


def table(rows: int, seed: int) -> np.ndarray:
    """Three dependent columns of different units, two of them skewed, one to each side."""
    normal = np.random.default_rng(seed).standard_normal((rows, 3))
    first, second = normal[:, 0], 0.7 * normal[:, 0] + 0.5 * normal[:, 1]
    return np.stack([3.0 + np.exp(0.8 * first), 1e4 - 200 * np.exp(second), 1e-3 * normal[:, 2] + 5.0], axis=1)


INSIDE, ROWS = table(800, 0), table(40, 1)


def naive_copod(inside: np.ndarray, row: np.ndarray) -> float:
    """The published algorithm for one row, counted among the others."""
    together = np.vstack([inside, row])
    left = [np.mean(together[:, k] <= row[k]) for k in range(inside.shape[1])]
    right = [np.mean(together[:, k] >= row[k]) for k in range(inside.shape[1])]
    skewed = [left[k] if stats.skew(inside[:, k]) < 0 else right[k] for k in range(inside.shape[1])]
    return max(-np.log(tail).sum() for tail in (left, right, skewed))


def test_copod_is_the_published_algorithm():
    assert stats.skew(INSIDE[:, 0]) > 1
    assert stats.skew(INSIDE[:, 1]) < -1
    rows = np.vstack([ROWS, INSIDE[:5], INSIDE.min(axis=0) - 1, INSIDE.max(axis=0) + 1])
    found = Copod(INSIDE)(rows)
    expected = [naive_copod(INSIDE, row) for row in rows]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    swapped = -np.log([[np.mean(np.append(INSIDE[:, k], r[k]) <= r[k]) for k in range(3)] for r in rows]).sum(1)
    assert not np.allclose(found, swapped)  # the wrong twin: one tail alone


def test_copod_sees_ranks_alone_and_finds_its_largest_score_in_a_corner():
    bent = lambda values: np.column_stack([np.log(values[:, 0]), values[:, 1] ** 3, np.exp(values[:, 2])])
    np.testing.assert_array_equal(
        Copod(INSIDE)(ROWS) > 3.0, Copod(bent(INSIDE))(bent(ROWS)) > 3.0
    )  # skewness may change its sign, the tails may not
    corner = np.array([[INSIDE[:, 0].max() + 1, INSIDE[:, 1].max() + 1, INSIDE[:, 2].max() + 1]])
    assert Copod(INSIDE)(corner)[0] == pytest.approx(3 * np.log(801))


def test_normal_scores_of_gaussian_columns_are_their_standard_scores_at_any_distance():
    places = (np.arange(20_000) + 0.5) / 20_000
    column = 7.0 - 3.0 * stats.norm.ppf(places)
    normal = NormalScores(np.column_stack([column, 1e-5 * column]))
    values = np.array([-200.0, -2.0, 1.0, 6.5, 7.0, 12.0, 16.0, 5000.0])
    found = normal(np.column_stack([values, 1e-5 * values]))
    np.testing.assert_allclose(found[:, 0], (values - 7.0) / 3.0, rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(found[:, 1], found[:, 0], rtol=1e-9, atol=1e-9)


def test_normal_scores_rise_throughout_and_are_gaussian_inside():
    values = np.sort(np.concatenate([np.linspace(-1e5, 1e5, 4001), INSIDE[:, 1], INSIDE[:, 0]]))
    normal = NormalScores(INSIDE[:, :2])
    found = normal(np.column_stack([values, values]))
    assert (np.diff(found, axis=0) >= 0).all()
    assert (np.diff(found[[0, 1, -2, -1]], axis=0) > 0).all()  # beyond all that was seen they still rise
    inside = NormalScores(INSIDE)(INSIDE)
    for column in inside.T:
        assert stats.kstest(column, "norm").pvalue > 0.2
    ends = NormalScores(INSIDE)(np.quantile(INSIDE, QUANTILES[[0, -1]], axis=0))
    np.testing.assert_allclose(ends, np.outer(ndtri(QUANTILES[[0, -1]]), np.ones(3)), rtol=1e-12)


def test_beyond_what_was_seen_scores_go_on_at_the_slope_of_their_own_side():
    low, middle, high = np.quantile(INSIDE, [QUANTILES[0], 0.5, QUANTILES[-1]], axis=0)
    reach = ndtri(QUANTILES[-1])
    assert (np.abs(np.log((high - middle) / (middle - low)))[:2] > 0.5).all()  # the sides differ
    for times in (1.5, 4.0, 100.0):
        found = NormalScores(INSIDE)(np.stack([middle + times * (low - middle), middle + times * (high - middle)]))
        np.testing.assert_allclose(found, np.outer([-times * reach, times * reach], np.ones(3)), rtol=1e-10)


def test_equal_values_score_alike_in_the_middle_of_their_ranks():
    column = np.repeat([0.0, 1.0, 5.0], [300, 500, 200])[:, None]
    found = NormalScores(column)(np.array([[0.0], [1.0], [5.0]]))[:, 0]
    probabilities = np.split(QUANTILES, np.searchsorted(QUANTILES, [0.3, 0.8]))
    expected = [ndtri(part).mean() for part in probabilities]
    np.testing.assert_allclose(found, expected, atol=0.02)  # a quantile at a jump may lie between two values


def test_a_side_without_width_goes_on_at_the_slope_of_the_whole_column():
    column = np.repeat([2.0, 3.0, 4.0], [600, 300, 100])[:, None]
    edge, below, further = NormalScores(column)(np.array([[2.0], [1.0], [-6.0]]))[:, 0]
    assert edge - below == pytest.approx(ndtri(QUANTILES[-1]) / 2.0)
    assert edge - further == pytest.approx(8.0 * (edge - below))


def test_a_column_without_spread_is_left_out():
    flat = np.column_stack([INSIDE, np.full(len(INSIDE), 4.0)])
    moved = np.column_stack([ROWS, np.full(len(ROWS), 9.0)])
    np.testing.assert_allclose(NormalScores(flat)(moved)[:, 3], 0.0, atol=1e-12)
    still = np.column_stack([ROWS, np.full(len(ROWS), 4.0)])
    for kind in ("mahalanobis", "normal", "kde", "directed"):
        score = make_combination(kind, flat, [1, 0, 0, 0])
        np.testing.assert_allclose(score(moved), score(still), rtol=1e-10)
    for kind in COMBINATIONS:
        constant = make_combination(kind, np.full((30, 2), 3.0), [1, 0])
        assert np.isfinite(constant(np.array([[3.0, 3.0], [4.0, 1.0]]))).all(), kind


def test_mahalanobis_is_the_shrunk_quadratic_form_of_standardised_rows():
    mean, spread = INSIDE.mean(axis=0), INSIDE.std(axis=0)
    covariance = LedoitWolf().fit((INSIDE - mean) / spread).covariance_
    rows = (ROWS - mean) / spread
    expected = [row @ np.linalg.solve(covariance, row) for row in rows]
    distance = Mahalanobis(INSIDE)
    np.testing.assert_allclose(distance(ROWS), expected, rtol=1e-9)
    np.testing.assert_allclose(np.square(distance.whiten(ROWS)).sum(axis=1), expected, rtol=1e-9)
    units = np.array([10.0, -0.01, 3.0])
    np.testing.assert_allclose(Mahalanobis(INSIDE * units - 2)(ROWS * units - 2), expected, rtol=1e-8)


def test_inside_rows_have_the_distances_of_a_chi_squared_variable():
    distances = make_combination("normal", table(4000, 2))(table(4000, 3))
    assert np.median(distances) == pytest.approx(stats.chi2(3).median(), rel=0.1)


def test_the_kernel_density_is_the_mean_of_gaussians_on_whitened_rows():
    inside = INSIDE[:50]
    whiten = Mahalanobis(inside).whiten
    centres, points = whiten(inside), whiten(ROWS[:6])
    width = np.sqrt(centres.var(axis=0).mean()) * 50 ** (-1 / 7)
    densities = [np.mean([stats.multivariate_normal(c, width**2).pdf(x) for c in centres]) for x in points]
    np.testing.assert_allclose(WhitenedDensity(inside)(ROWS[:6]), -np.log(densities), rtol=1e-9)


def test_the_directed_score_is_a_soft_maximum_of_normal_scores():
    distance = make_combination("normal", INSIDE)
    evidence = lambda rows: np.column_stack([rows[:, 0], -rows[:, 1], np.sqrt(distance(rows))])
    normal = NormalScores(evidence(INSIDE))
    expected = np.log(np.exp(normal(evidence(ROWS))).sum(axis=1))
    np.testing.assert_allclose(Directed(INSIDE, DIRECTIONS)(ROWS), expected, rtol=1e-10)


def test_only_the_directed_score_tells_the_ordinary_side_from_the_foreign_one():
    inside = np.random.default_rng(5).standard_normal((3000, 2)) * [2.0, 0.1]
    high, low = np.array([[5.0, 0.0]]), np.array([[-5.0, 0.0]])
    directed, distance = make_combination("directed", inside, [1, 0]), make_combination("mahalanobis", inside)
    assert directed(high)[0] > directed(low)[0] + 0.3
    assert distance(high)[0] == pytest.approx(distance(low)[0], rel=0.2)


@pytest.mark.parametrize("kind", COMBINATIONS)
def test_the_further_a_row_is_the_larger_its_score(kind):
    score = make_combination(kind, INSIDE, DIRECTIONS)
    middle, step = np.median(INSIDE, axis=0), np.array([1.0, -100.0, 0.0])
    far = score(np.array([middle + distance * step for distance in (0.0, 3.0, 30.0, 300.0, 3e4)]))
    assert (np.diff(far) >= 0).all()
    assert far[2] > np.quantile(score(INSIDE), 0.99)
    if kind != "copod":  # ranks end with the table
        assert (np.diff(far) > 0).all()


@pytest.mark.parametrize("kind", COMBINATIONS)
def test_scores_do_not_depend_on_the_batch(kind):
    score = make_combination(kind, INSIDE, DIRECTIONS)
    one_by_one = np.concatenate([score(row[None]) for row in ROWS])
    np.testing.assert_allclose(score(ROWS), one_by_one, rtol=1e-9)


@pytest.mark.parametrize("kind", COMBINATIONS)
@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("column", [0, 2])
def test_numbers_that_are_not_finite_are_foreign_and_do_no_harm(kind, value, column):
    inside = INSIDE.copy()
    inside[:2, column] = value  # a few inside rows too
    score = make_combination(kind, inside, DIRECTIONS)
    strange = ROWS[0].copy()
    strange[column] = value
    found = score(np.vstack([ROWS, strange]))
    assert np.isfinite(found).all()
    assert found[-1] > found[0]
    clean = make_combination(kind, INSIDE, DIRECTIONS)(ROWS)
    least = 0.9 if kind == "copod" else 0.97  # the skewness of a symmetric column takes the sign of its outliers
    assert np.corrcoef(found[:-1], clean)[0, 1] > least


def test_what_cannot_be_joined_is_refused():
    with pytest.raises(
        InputError, match="combine must be one of 'mahalanobis', 'normal', 'copod', 'kde', 'directed'; got 'sum'"
    ):
        make_combination("sum", INSIDE)
    with pytest.raises(InputError, match=r"at least 2 rows; got \(1, 3\)"):
        make_combination("kde", INSIDE[:1])
