"""Priors keep the level they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from nescio._validation import InputError
from nescio.distributions import Gamma, StudentT
from nescio.objectives import constant_prior, graded_prior, prior_from_level, prior_from_residuals, toy_prior


def predictive_std(prior: Gamma) -> Tensor:
    return StudentT.from_gamma(torch.zeros_like(prior.rate), prior).variance.sqrt()


@given(st.floats(1e-3, 1e3), st.floats(1.001, 100.0))
def test_the_level_is_the_predictive_standard_deviation(level, concentration):
    prior = prior_from_level(torch.tensor(level, dtype=torch.float64), concentration)
    assert float(predictive_std(prior)) == pytest.approx(level, rel=1e-10)
    assert float(prior.concentration) == pytest.approx(concentration, rel=1e-15)


def test_a_level_may_be_a_number_or_one_per_output():
    assert prior_from_level(15.0, 3.0).batch_shape == ()
    assert_close(prior_from_level(torch.tensor([2.0, 5.0]), 3.0).rate, torch.tensor([8.0, 50.0]))


@pytest.mark.parametrize("concentration", [1.0, 0.8, math.inf])
def test_a_shape_without_a_variance_is_refused(concentration):
    with pytest.raises(
        InputError, match="concentration must be a finite number that exceeds 1 for a finite predictive"
    ):
        prior_from_level(1.0, concentration)


@pytest.mark.parametrize("level", [0.0, -2.0, math.nan, math.inf])
def test_a_level_that_is_no_level_is_refused(level):
    with pytest.raises(InputError, match="level must be finite and positive"):
        prior_from_level(level, 3.0)


def test_residuals_give_their_mean_square_per_output():
    residuals = torch.tensor([[1.0, -3.0], [2.0, 0.5], [-4.0, 1.0]], dtype=torch.float64)
    prior = prior_from_residuals(residuals, 1.5)
    assert_close(prior.rate, 0.5 * torch.tensor([7.0, 41 / 12], dtype=torch.float64), rtol=1e-12, atol=0.0)
    assert not torch.allclose(prior.rate, 0.5 * residuals.var(0)), "residuals are not centred"
    assert not torch.allclose(prior.rate, 0.5 * residuals.square().mean(0).sqrt()), "squares, not their root"


def test_weights_count_as_repeated_rows():
    residuals = torch.tensor([[1.0, -3.0], [2.0, 0.5], [-4.0, 1.0]], dtype=torch.float64)
    weights = torch.tensor([2.0, 0.0, 3.0], dtype=torch.float64)
    repeated = residuals[[0, 0, 2, 2, 2]]
    weighted = prior_from_residuals(residuals, 2.5, weights)
    assert_close(weighted.rate, prior_from_residuals(repeated, 2.5).rate, rtol=1e-12, atol=0.0)


def test_perfect_residuals_stop_at_the_floor():
    prior = prior_from_residuals(torch.zeros(4, 1, dtype=torch.float64), 3.0, floor=1e-6)
    assert float(predictive_std(prior)) == pytest.approx(1e-3, rel=1e-10)


def test_residuals_and_weights_of_the_wrong_shape_are_refused():
    with pytest.raises(InputError, match=r"residuals must be \(N, P\)"):
        prior_from_residuals(torch.ones(4), 3.0)
    with pytest.raises(InputError, match=r"one value per row of residuals, \(4,\); got \(4, 1\)"):
        prior_from_residuals(torch.ones(4, 1), 3.0, torch.ones(4, 1))
    with pytest.raises(InputError, match="weights must not be negative"):
        prior_from_residuals(torch.ones(4, 1), 3.0, torch.zeros(4))


@pytest.mark.parametrize("std", [0.3, 4.47, 20.0])
def test_toy_prior_matches_the_targets_and_its_misprint_does_not(std):
    prior = toy_prior(torch.tensor(std, dtype=torch.float64))
    assert float(predictive_std(prior)) == pytest.approx(std, rel=1e-10)
    misprint = Gamma(torch.tensor(1 + 1e-3 / std, dtype=torch.float64), torch.tensor(1e-3, dtype=torch.float64))
    assert float(predictive_std(misprint)) != pytest.approx(std, rel=1e-2)


def test_a_constant_prior_is_the_same_everywhere():
    prior = prior_from_level(2.0, 3.0)
    assert constant_prior(prior)(torch.randn(5, 2)) is prior


KNOTS = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64)
VARIANCES = torch.tensor([[0.1, 0.2], [0.4, 0.2], [9.0, 5.0]], dtype=torch.float64)


LEVEL = torch.tensor([3.0, 1.5], dtype=torch.float64)


def near(variance):
    """Distance as the norm, and the same variance near by everywhere."""
    return lambda x: (x.norm(dim=-1), torch.tensor(variance, dtype=torch.float64).expand(*x.shape[:-1], 2))


def test_a_graded_prior_adds_the_growth_to_what_is_near_and_never_passes_the_level():
    prior = graded_prior(near([0.5, 0.3]), KNOTS, VARIANCES, LEVEL, 3.0)
    radii = torch.linspace(0.0, float(KNOTS[-1]), 42, dtype=torch.float64).reshape(2, 21)
    gamma = prior(radii.unsqueeze(-1) * torch.tensor([0.6, 0.8], dtype=torch.float64))
    assert gamma.batch_shape == (2, 21, 2)
    for output, base in enumerate((0.5, 0.3)):
        grown = base + np.interp(radii.numpy(), KNOTS.numpy(), VARIANCES[:, output].numpy())
        expected = np.minimum(grown, LEVEL[output].item() ** 2)
        assert (grown > expected).any() or output == 0
        assert_close(predictive_std(gamma)[..., output].square(), torch.as_tensor(expected), rtol=1e-10, atol=0.0)


def test_a_ceiling_holds_up_to_the_last_knot_below_the_level_only_and_never_below_the_noise_near_by():
    radii = torch.linspace(0.0, float(KNOTS[-1]), 30, dtype=torch.float64)
    points = radii.unsqueeze(-1) * torch.tensor([0.6, 0.8], dtype=torch.float64)
    base = (0.5, 3.0)  # the second is noisier than its ceiling, and than its level
    ceiling = torch.tensor([2.0, 1.2], dtype=torch.float64)
    prior = graded_prior(near(base), KNOTS, VARIANCES, LEVEL, 3.0, ceiling)
    for output, least in enumerate(base):
        grown = least + np.interp(radii.numpy(), KNOTS.numpy(), VARIANCES[:, output].numpy())
        expected = np.minimum(grown, max(least, ceiling[output].item() ** 2))
        assert (grown > expected).any()
        found = predictive_std(prior(points))[..., output].square()
        assert_close(found, torch.as_tensor(expected), rtol=1e-10, atol=0.0)
    far = points[-1:] * 3.0
    assert_close(predictive_std(prior(far))[0], LEVEL, rtol=1e-10, atol=0.0)
    high = graded_prior(near(base), KNOTS, VARIANCES, LEVEL, 3.0, 10.0 * ceiling)
    assert_close(
        high(points).rate, graded_prior(near(base), KNOTS, VARIANCES, LEVEL, 3.0)(points).rate, rtol=0.0, atol=0.0
    )
    with pytest.raises(InputError, match="ceiling must be finite and positive"):
        graded_prior(near(base), KNOTS, VARIANCES, LEVEL, 3.0, -ceiling)


def test_growth_in_a_unit_of_noise_is_in_proportion_to_the_noise_near_by():
    radii = torch.linspace(0.0, float(KNOTS[-1]), 30, dtype=torch.float64)
    points = radii.unsqueeze(-1) * torch.tensor([0.6, 0.8], dtype=torch.float64)
    base, unit = (0.5, 0.06), torch.tensor([0.25, 0.3], dtype=torch.float64)
    found = predictive_std(graded_prior(near(base), KNOTS, VARIANCES, LEVEL, 3.0, unit=unit)(points)).square()
    plain = predictive_std(graded_prior(near(base), KNOTS, VARIANCES, LEVEL, 3.0)(points)).square()
    for output, (least, times) in enumerate(zip(base, (2.0, 0.2), strict=True)):
        grown = least + times * np.interp(radii.numpy(), KNOTS.numpy(), VARIANCES[:, output].numpy())
        expected = torch.as_tensor(np.minimum(grown, LEVEL[output].item() ** 2))
        assert_close(found[:, output], expected, rtol=1e-10, atol=0.0)
        assert not torch.allclose(plain[:, output], expected, rtol=1e-2)
    as_usual = graded_prior(near(base), KNOTS, VARIANCES, LEVEL, 3.0, unit=torch.tensor(base, dtype=torch.float64))
    assert_close(predictive_std(as_usual(points)).square(), plain, rtol=1e-10, atol=0.0)  # near noise of one unit
    with pytest.raises(InputError, match="unit must be finite and positive"):
        graded_prior(near(base), KNOTS, VARIANCES, LEVEL, 3.0, unit=0.0 * unit)


def test_a_graded_prior_comes_down_to_the_level_from_noisier_data():
    prior = graded_prior(near([20.0, 30.0]), KNOTS, VARIANCES, LEVEL, 3.0)
    here, there = (predictive_std(prior(torch.tensor([[r, 0.0]], dtype=torch.float64)))[0] for r in (0.0, 1e3))
    assert_close(here.square(), torch.tensor([20.0, 30.0], dtype=torch.float64), rtol=1e-10, atol=0.0)
    assert_close(there, LEVEL, rtol=1e-10, atol=0.0)


def test_a_graded_prior_is_the_level_from_three_times_the_last_knot_on_and_half_way_in_the_logarithm():
    prior = graded_prior(near([0.5, 0.3]), KNOTS, 0.0 * VARIANCES, LEVEL, 3.0)
    last = float(KNOTS[-1])
    at = lambda r: predictive_std(prior(torch.tensor([[r, 0.0]], dtype=torch.float64)))[0]
    assert_close(at(3.0 * last), LEVEL, rtol=1e-10, atol=0.0)
    assert_close(at(1e300), LEVEL, rtol=1e-10, atol=0.0)
    middle = (torch.tensor([0.5, 0.3], dtype=torch.float64).sqrt() * LEVEL).sqrt()
    assert_close(at(2.0 * last), middle, rtol=1e-10, atol=0.0)
    single = graded_prior(near([0.5, 0.3]), KNOTS[-1:], VARIANCES[:1], LEVEL, 3.0)
    assert bool(torch.isfinite(single(torch.tensor([[0.0, 0.0], [1e300, 0.0]], dtype=torch.float64)).rate).all())


def test_a_graded_prior_refuses_what_is_no_curve():
    with pytest.raises(InputError, match="strictly rising"):
        graded_prior(near([1.0, 1.0]), KNOTS.flip(0), VARIANCES, LEVEL, 3.0)
    with pytest.raises(InputError, match=r"knots must be \(Q,\)"):
        graded_prior(near([1.0, 1.0]), KNOTS[:2], VARIANCES, LEVEL, 3.0)
    with pytest.raises(InputError, match="growth must be finite and not negative"):
        graded_prior(near([1.0, 1.0]), KNOTS, -VARIANCES, LEVEL, 3.0)
    with pytest.raises(InputError, match="level must be finite and positive"):
        graded_prior(near([1.0, 1.0]), KNOTS, VARIANCES, -LEVEL, 3.0)
