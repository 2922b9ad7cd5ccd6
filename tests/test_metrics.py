"""Metrics against oracles that are computed another way: quadrature, naive loops, scoringrules, counting by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scoringrules
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from nescio import metrics
from nescio._validation import InputError
from nescio.distributions import StudentT, StudentTMixture

N, P = 37, 2


def tensor(values) -> torch.Tensor:
    return torch.as_tensor(np.asarray(values), dtype=torch.float64)


def problem(seed: int = 0, members: int = 3) -> tuple[StudentTMixture, torch.Tensor]:
    """A mixture of shape (N, P), its outputs in different units, and targets that it does not fit perfectly."""
    rng = np.random.default_rng(seed)
    unit = np.array([1.7, 40.0])
    loc = (rng.normal(1.0, 1.0, (N, P)) + 0.3 * rng.normal(size=(members, N, P))) * unit
    scale = np.exp(rng.normal(-0.5, 0.6, (members, N, P))) * unit
    df = rng.uniform(2.5, 30.0, (members, N, P))
    y = loc.mean(0) + rng.normal(0.2, 1.1, (N, P)) * unit
    return StudentTMixture(StudentT(tensor(df), tensor(loc), tensor(scale))), tensor(y)


def gaussian(loc, std) -> StudentT:
    """A Gaussian of shape (N, P)."""
    loc, std = tensor(loc), tensor(std)
    return StudentT(torch.full_like(loc, torch.inf), loc, std)


def members_of(dist: StudentTMixture, row: int, output: int) -> list:
    parts = dist.components
    return [
        stats.t(float(parts.df[m, row, output]), float(parts.loc[m, row, output]), float(parts.scale[m, row, output]))
        for m in range(len(parts.loc))
    ]


def test_log_likelihood_and_pit_match_scipy_point_by_point():
    dist, y = problem()
    found, probabilities = metrics.log_likelihood(dist, y), metrics.pit(dist, y)
    assert found.shape == (N,)
    for row in range(N):
        densities = [np.mean([t.pdf(float(y[row, p])) for t in members_of(dist, row, p)]) for p in range(P)]
        assert float(found[row]) == pytest.approx(np.log(densities).mean(), rel=1e-10)
        assert float(found[row]) != pytest.approx(np.log(densities).sum(), rel=1e-3)  # the sum is the wrong twin
        for p in range(P):
            expected = np.mean([t.cdf(float(y[row, p])) for t in members_of(dist, row, p)])
            assert float(probabilities[row, p]) == pytest.approx(expected, rel=1e-10)


def test_crps_matches_quadrature_for_a_mixture_and_scoringrules_for_one_member():
    dist, y = problem()
    for row in (0, 5, 11):
        scores = []
        for p in range(P):
            parts, target = members_of(dist, row, p), float(y[row, p])
            below = lambda x, parts=parts: np.mean([t.cdf(x) for t in parts]) ** 2
            above = lambda x, parts=parts: np.mean([t.sf(x) for t in parts]) ** 2
            low = integrate.quad(below, -np.inf, target, epsabs=1e-10, epsrel=1e-9)[0]
            scores.append(low + integrate.quad(above, target, np.inf, epsabs=1e-10, epsrel=1e-9)[0])
        assert float(metrics.crps(dist, y)[row]) == pytest.approx(np.mean(scores), rel=1e-6)
    single, y = problem(members=1)
    parts = [part[0].numpy() for part in (single.components.df, single.components.loc, single.components.scale)]
    expected = scoringrules.crps_t(y.numpy(), *parts).mean(-1)
    np.testing.assert_allclose(metrics.crps(single, y).numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_an_interval_holds_its_probability_and_its_scores_match_a_naive_loop(level):
    dist, y = problem(1)
    lower, upper = metrics.interval(dist, level)
    np.testing.assert_allclose((dist.cdf(upper) - dist.cdf(lower)).numpy(), level, rtol=1e-10)
    np.testing.assert_allclose(dist.cdf(lower).numpy(), (1 - level) / 2, rtol=1e-9)
    covered, widths = metrics.coverage(lower, upper, y), metrics.width(lower, upper)
    score = metrics.interval_score(lower, upper, y, level)
    assert 0 < float(covered.mean()) < 1
    for row in range(N):
        hits, sizes, penalties = [], [], []
        for low, high, target in zip(lower[row].tolist(), upper[row].tolist(), y[row].tolist(), strict=True):
            hits.append(float(low <= target <= high))
            sizes.append(high - low)
            penalties.append(2 / (1 - level) * (max(low - target, 0) + max(target - high, 0)))
        assert float(covered[row]) == pytest.approx(np.mean(hits))
        assert float(widths[row]) == pytest.approx(np.mean(sizes), rel=1e-12)
        assert float(score[row]) == pytest.approx(np.mean(sizes) + np.mean(penalties), rel=1e-12)


@pytest.mark.parametrize("rows", [1, 4])
def test_the_interval_score_of_a_single_output_is_that_of_its_column(rows):
    dist, y = problem(1)
    lower, upper = metrics.interval(dist, 0.5)
    both = metrics.interval_score(lower, upper, y, 0.5)[:rows]
    columns = [metrics.interval_score(*(part[:rows, p : p + 1] for part in (lower, upper, y)), 0.5) for p in range(P)]
    assert columns[0].shape == (rows,)
    np.testing.assert_allclose(torch.stack(columns).mean(0), both, rtol=1e-12)


def test_the_interval_score_is_smallest_for_the_true_quantiles():
    draws = tensor(stats.norm(3.0, 2.0).ppf((np.arange(20_000) + 0.5) / 20_000)[:, None])
    mean = lambda half: float(
        metrics.interval_score(torch.full_like(draws, 3 - half), torch.full_like(draws, 3 + half), draws, 0.9).mean()
    )
    best = 2.0 * stats.norm.ppf(0.95)
    assert mean(best) < min(mean(best * 0.9), mean(best * 1.1))


def test_an_unbounded_interval_is_covered_wide_and_infinitely_bad():
    y = tensor([[1.0, 2.0], [3.0, 4.0]])
    lower = tensor([[-np.inf, 1.0], [2.0, 3.0]])
    upper = tensor([[np.inf, 3.0], [4.0, 5.0]])
    assert metrics.coverage(lower, upper, y).tolist() == [1.0, 1.0]
    assert metrics.width(lower, upper).tolist() == [math.inf, 2.0]
    assert metrics.interval_score(lower, upper, y, 0.9).tolist() == [math.inf, 2.0]


def test_the_ends_of_an_interval_belong_to_it():
    ends = tensor([[1.0], [2.0]])
    assert metrics.coverage(ends, ends + 1.0, ends).tolist() == [1.0, 1.0]
    assert metrics.coverage(ends - 1.0, ends, ends).tolist() == [1.0, 1.0]


def test_calibration_error_matches_a_naive_count_of_intervals():
    dist, y = problem(2, members=1)
    expected = []
    for percent in range(1, 100):
        lower, upper = metrics.interval(dist, percent / 100)
        inside = ((lower <= y) & (y <= upper)).double().mean(0)
        expected += (inside - percent / 100).abs().tolist()
    assert metrics.calibration_error(metrics.pit(dist, y)) == pytest.approx(np.mean(expected), rel=1e-9)


def test_calibration_error_has_its_known_values():
    even = tensor((np.arange(10_000) + 0.5)[:, None] / 10_000)
    assert metrics.calibration_error(even) < 2e-4
    assert metrics.calibration_error(torch.full((50, 1), 0.5)) == pytest.approx(0.5)  # far too wide
    assert metrics.calibration_error(torch.ones(50, 1)) == pytest.approx(0.5)  # far too narrow
    opposed = torch.cat([torch.full((50, 1), 0.5), torch.ones(50, 1)], dim=1)
    assert metrics.calibration_error(opposed) == pytest.approx(0.5)  # pooled outputs would cancel in part
    draws = np.random.default_rng(0).uniform(size=(400, 900))
    assert metrics.calibration_error(tensor(draws)) == pytest.approx(0.3133 / 20, rel=0.05)  # the floor at N = 400


def naive_ence(error: np.ndarray, variance: np.ndarray, bins: int) -> float:
    order = np.argsort(variance)
    parts = np.array_split(order, bins)
    return float(np.mean([
        abs(np.sqrt(variance[part].mean()) - np.sqrt((error[part] ** 2).mean())) / np.sqrt(variance[part].mean())
        for part in parts
    ]))  # fmt: skip


def test_ence_matches_a_naive_loop_and_rejects_its_twins():
    rng = np.random.default_rng(3)
    std, loc = np.exp(rng.normal(size=(60, 2))), rng.normal(4.0, 2.0, (60, 2))
    y = loc + std * rng.normal(0.3, 1.4, (60, 2))
    found = metrics.ence(gaussian(loc, std), tensor(y), bins=10)
    expected = np.mean([naive_ence((y - loc)[:, p], std[:, p] ** 2, 10) for p in range(2)])
    assert found == pytest.approx(expected, rel=1e-9)
    pooled = naive_ence((y - loc).ravel(), std.ravel() ** 2, 10)
    means_of_roots = np.mean([
        np.mean([abs(std[b, p].mean() - np.abs(y - loc)[b, p].mean()) / std[b, p].mean()
                 for b in np.array_split(np.argsort(std[:, p]), 10)]) for p in range(2)
    ])  # fmt: skip
    assert abs(found - pooled) > 1e-3
    assert abs(found - means_of_roots) > 1e-3


def test_ence_is_zero_when_each_error_is_its_std_and_one_for_infinite_variance():
    std = np.linspace(0.5, 3.0, 30)[:, None]
    assert metrics.ence(gaussian(np.zeros((30, 1)), std), tensor(std)) == pytest.approx(0.0, abs=1e-9)
    assert metrics.ence(gaussian(np.zeros((30, 1)), std), tensor(2 * std)) == pytest.approx(1.0, rel=1e-9)
    heavy = StudentT(tensor(np.full((30, 1), 1.5)), tensor(np.zeros((30, 1))), tensor(std))
    assert metrics.ence(heavy, tensor(std)) == 1.0


def naive_aurc(error: np.ndarray, std: np.ndarray) -> float:
    order = np.argsort(std)
    return float(np.mean([(error[order[:k]] ** 2).mean() for k in range(1, len(std) + 1)]))


def test_aurc_matches_a_naive_loop_and_averages_over_the_orders_of_ties():
    rng = np.random.default_rng(4)
    loc, std = rng.normal(2.0, 1.0, (25, 2)), rng.uniform(0.5, 2.0, (25, 2))
    y = loc + std * rng.normal(size=(25, 2))
    expected = np.mean([naive_aurc((y - loc)[:, p], std[:, p]) for p in range(2)])
    assert metrics.aurc(gaussian(loc, std), tensor(y)) == pytest.approx(expected, rel=1e-10)
    constant = metrics.aurc(gaussian(loc, np.ones_like(std)), tensor(y))
    assert constant == pytest.approx(((y - loc) ** 2).mean(), rel=1e-10)
    loc, y, std = np.zeros((4, 1)), np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([[1.0], [2.0], [2.0], [2.0]])
    orders = [(0, 1, 2, 3), (0, 1, 3, 2), (0, 2, 1, 3), (0, 2, 3, 1), (0, 3, 1, 2), (0, 3, 2, 1)]
    average = np.mean([naive_aurc(y[list(order), 0], np.arange(4)) for order in orders])
    assert metrics.aurc(gaussian(loc, std), tensor(y)) == pytest.approx(average, rel=1e-10)


def test_aurc_rewards_a_std_that_ranks_the_errors():
    error = np.linspace(0.1, 3.0, 40)[:, None]
    right = metrics.aurc(gaussian(np.zeros_like(error), error), tensor(error))
    wrong = metrics.aurc(gaussian(np.zeros_like(error), error[::-1].copy()), tensor(error))
    assert right < (error**2).mean() < wrong


def test_the_papers_three_errors_match_their_definitions():
    dist, y = problem(5)
    parts = dist.components
    mean = parts.loc.mean(0).numpy()
    variance = (parts.scale**2 * parts.df / (parts.df - 2)).mean(0).numpy() + parts.loc.numpy().var(0)
    error = (y.numpy() - mean) ** 2
    assert metrics.rmse(dist, y) == pytest.approx(np.sqrt(error.mean()), rel=1e-12)
    assert metrics.rmse_variance(dist, y) == pytest.approx(np.sqrt(((variance - error) ** 2).mean()), rel=1e-10)
    twins = [
        np.sqrt(((np.sqrt(variance) - np.sqrt(error)) ** 2).mean()),
        np.sqrt(((variance - error.mean()) ** 2).mean()),
    ]
    assert all(abs(metrics.rmse_variance(dist, y) / twin - 1) > 1e-3 for twin in twins)
    heavy = StudentT(tensor([[1.8]]), tensor([[0.0]]), tensor([[1.0]]))
    assert metrics.rmse_variance(heavy, tensor([[0.3]])) == math.inf


def test_the_sample_error_is_that_of_one_draw_and_its_square_has_the_known_mean():
    rng = np.random.default_rng(6)
    loc, std, y = rng.normal(size=(40_000, 1)), np.full((40_000, 1), 0.8), rng.normal(1.0, 1.0, (40_000, 1))
    dist = gaussian(loc, std)
    found = metrics.rmse_sample(dist, tensor(y), torch.Generator().manual_seed(1))
    draws = dist.sample(generator=torch.Generator().manual_seed(1)).numpy()
    assert found == pytest.approx(np.sqrt(((draws - y) ** 2).mean()), rel=1e-12)
    squares = (y - loc) ** 2 + std**2
    spread = np.sqrt((4 * (y - loc) ** 2 * std**2 + 2 * std**4).sum()) / len(y)
    assert abs(found**2 - squares.mean()) < 5 * spread
    state = torch.get_rng_state()
    metrics.rmse_sample(dist, tensor(y), torch.Generator().manual_seed(1))
    assert torch.equal(torch.get_rng_state(), state)


@given(st.floats(1e-3, 1e3), st.floats(-50.0, 50.0), st.integers(0, 5))
@settings(max_examples=20, deadline=None)
def test_units_change_every_metric_as_its_docstring_says(unit, shift, seed):
    dist, y = problem(seed, members=2)
    parts = dist.components
    other = StudentTMixture(StudentT(parts.df, parts.loc * unit + shift, parts.scale * unit))
    there = y * unit + shift
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
    close(metrics.log_likelihood(other, there), metrics.log_likelihood(dist, y) - math.log(unit))
    close(metrics.pit(other, there), metrics.pit(dist, y))
    close(metrics.crps(other, there), metrics.crps(dist, y) * unit)
    here, moved = metrics.interval(dist, 0.9), metrics.interval(other, 0.9)
    close(metrics.width(*moved), metrics.width(*here) * unit)
    close(metrics.interval_score(*moved, there, 0.9), metrics.interval_score(*here, y, 0.9) * unit)
    close(metrics.coverage(*moved, there), metrics.coverage(*here, y))
    close(metrics.ence(other, there), metrics.ence(dist, y))
    close(metrics.aurc(other, there), metrics.aurc(dist, y) * unit**2)
    close(metrics.rmse(other, there), metrics.rmse(dist, y) * unit)
    close(metrics.rmse_variance(other, there), metrics.rmse_variance(dist, y) * unit**2)


def test_the_order_of_rows_does_not_matter_even_with_ties():
    rng = np.random.default_rng(8)
    loc, y = rng.normal(size=(50, 2)), rng.normal(1.0, 2.0, (50, 2))
    std = rng.integers(1, 5, (50, 2)) * 0.5
    turned = rng.permutation(50)
    for metric in (metrics.ence, metrics.aurc, metrics.rmse, metrics.rmse_variance):
        first = metric(gaussian(loc, std), tensor(y))
        assert metric(gaussian(loc[turned], std[turned]), tensor(y[turned])) == pytest.approx(first, rel=1e-12)
    probabilities = metrics.pit(gaussian(loc, std), tensor(y))
    assert metrics.calibration_error(probabilities[turned]) == metrics.calibration_error(probabilities)


scores = st.lists(st.integers(-4, 4).map(float) | st.just(math.inf), min_size=1, max_size=30)


@given(scores, scores)
@settings(max_examples=100, deadline=None)
def test_detection_matches_counting_pairs_and_trying_thresholds(inside, outside):
    pairs = [float(b > a) + 0.5 * float(b == a) for a in inside for b in outside]
    assert metrics.auroc(np.array(inside), np.array(outside)) == pytest.approx(np.mean(pairs))
    assert metrics.auroc(np.array(outside), np.array(inside)) == pytest.approx(1 - np.mean(pairs))
    flagging = [t for t in outside if np.mean([b >= t for b in outside]) >= 0.95]
    assert metrics.fpr95(np.array(inside), np.array(outside)) == pytest.approx(
        np.mean([a >= max(flagging) for a in inside])
    )


def test_detection_has_its_known_values_and_depends_on_ranks_alone():
    low, high = np.array([0.1, 0.2, 0.3]), np.array([0.4, np.inf])
    assert (metrics.auroc(low, high), metrics.fpr95(low, high)) == (1.0, 0.0)
    assert (metrics.auroc(high, low), metrics.fpr95(high, low)) == (0.0, 1.0)
    assert metrics.auroc(low, low) == 0.5
    twenty = np.arange(20.0)  # 19 of 20 are 95 %: the threshold is 1, and 0 may be missed
    assert metrics.fpr95(np.array([0.0, 0.5, 0.9, 1.0]), twenty) == 0.25
    rng = np.random.default_rng(9)
    inside, outside = rng.normal(size=60), rng.normal(1.0, 1.0, 45)
    assert metrics.auroc(np.exp(inside * 200), np.exp(outside * 200)) == metrics.auroc(inside, outside)
    assert metrics.fpr95(inside * 1e-200, outside * 1e-200) == metrics.fpr95(inside, outside)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda d, y: metrics.log_likelihood(d, y[:, :1]), r"dist and y must have one shape \(N, P\)"),
        (lambda d, y: metrics.crps(d, y[:, 0]), r"y must have the shape \(N, P\)"),
        (lambda d, y: metrics.rmse(d, y[:0]), "at least one row"),
        (lambda d, y: metrics.interval(d, 1.0), "level must lie strictly between 0 and 1"),
        (lambda d, y: metrics.coverage(y, y, y[:, :1]), "must have one shape"),
        (lambda d, y: metrics.calibration_error(y[:, 0]), r"probabilities must have the shape \(N, P\)"),
        (lambda d, y: metrics.ence(d, y, bins=0), "bins must be a whole number"),
        (lambda d, y: metrics.auroc(np.array([1.0]), np.array([np.nan])), "outside_score must be a list of numbers"),
        (lambda d, y: metrics.fpr95(np.array([]), np.array([1.0])), "inside_score must be a list of numbers"),
    ],
)
def test_mistakes_are_told_in_a_sentence(call, words):
    with pytest.raises(InputError, match=words):
        call(*problem())
