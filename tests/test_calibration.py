"""How errors grow with distance, and how the pilot weighs the prior: curves and choices with known answers."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

import nescio
from nescio._random import generators, hashed_uniform
from nescio.calibration import error_growth
from nescio.distributions import Gamma, expected_log_prob, gamma_kl
from nescio.estimators.pilot import CANDIDATES, fit_pilot, prior_for
from nescio.networks import MLP, VarianceShapeHead
from nescio.training import Schedule


def test_growth_follows_a_rising_error_and_never_falls():
    rng = np.random.default_rng(0)
    distance = rng.uniform(0.0, 2.0, 4000)
    excess = np.c_[distance**2 + 0.1 * rng.normal(size=4000), -1.0 + 0.1 * rng.normal(size=4000)]
    knots, growth = error_growth(distance, excess + 2.0, np.full_like(excess, 2.0))
    assert (np.diff(knots) > 0).all()
    assert (np.diff(growth, axis=0) >= 0).all()
    np.testing.assert_allclose(growth[:, 0], knots**2, atol=0.15)
    np.testing.assert_array_equal(growth[:, 1], 0.0)  # an error below the noise is no growth
    assert knots[-1] == pytest.approx(np.quantile(distance, 0.99))


def test_growth_weighs_the_rows_that_it_is_learned_from():
    rng = np.random.default_rng(1)
    distance, weights = np.sort(rng.uniform(0.5, 2.0, 60)), rng.integers(1, 9, 60).astype(float)
    excess = distance[:, None] + 0.6 * rng.normal(size=(60, 2))
    noise = rng.uniform(0.1, 0.3, size=(60, 2))
    knots, growth = error_growth(distance, excess + noise, noise, weights)

    def isotonic(values, heft):
        """Its min-max formula: the highest, over where to begin, of the lowest mean, over where to end."""
        mean = lambda first, last: np.average(values[first : last + 1], weights=heft[first : last + 1])
        return [max(min(mean(j, k) for k in range(i, 60)) for j in range(i + 1)) for i in range(60)]

    for output in range(2):
        curve = np.maximum(isotonic(excess[:, output], weights), 0.0)
        np.testing.assert_allclose(growth[:, output], np.interp(knots, distance, curve), rtol=1e-9)
        plain = np.maximum(isotonic(excess[:, output], np.ones(60)), 0.0)
        assert not np.allclose(growth[:, output], np.interp(knots, distance, plain), rtol=0.01)


def test_growth_is_a_curve_for_gridded_and_for_constant_distances():
    for distance, df in product((np.tile([0.25, 0.25 + 1e-8, 0.5], 50), np.zeros(30), np.full(30, 2.0)), (np.inf, 6.0)):
        ones = np.ones((len(distance), 1))
        knots, growth = error_growth(distance, ones, 0.0 * ones, df=df)
        assert (np.diff(knots) > 0).all()
        assert len(knots) == len(growth) >= 1
        assert knots[-1] > 0


def most_likely_levels(error, noise, df):
    """The growths at two distances, half of the rows each, by a search."""
    law = stats.norm if np.isinf(df) else stats.t(df, scale=np.sqrt((df - 2.0) / df))

    def loss(levels):
        std = np.sqrt(noise + np.repeat(np.exp(levels), len(error) // 2))
        return -(law.logpdf(error / std) - np.log(std)).sum()

    settings = {"method": "Nelder-Mead", "options": {"xatol": 1e-8, "fatol": 1e-10}}
    return np.exp(optimize.minimize(loss, np.log([0.1, 0.5]), **settings).x)


@pytest.mark.parametrize("df", [2.5, 6.0, 40.0])
def test_growth_makes_errors_with_a_few_far_astray_most_likely(df):
    """A mean of squares would be led by the few."""
    rng = np.random.default_rng(2)
    distance = np.repeat([0.5, 1.5], 400)
    error = np.where(distance < 1, 0.4, 0.9) * rng.normal(size=800) * np.where(rng.uniform(size=800) < 0.03, 9.0, 1.0)
    noise = np.full((800, 1), 0.05)
    knots, growth = error_growth(distance, np.square(error)[:, None], noise, df=df)
    found = np.interp([0.5, 1.5], knots, growth[:, 0])
    np.testing.assert_allclose(found, most_likely_levels(error, noise[:, 0], df), rtol=0.02)
    knots, growth = error_growth(distance, np.square(error)[:, None], noise)
    squares = np.interp([0.5, 1.5], knots, growth[:, 0])
    assert (np.abs(squares / found - 1.0) > 0.1).all()


@pytest.mark.parametrize("df", [2.5, 6.0, 40.0, np.inf])
@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_growth_is_most_likely_where_the_noise_differs_from_row_to_row(df, spread):
    """Rows with much noise say little of the growth; least squares would count them most."""
    rng = np.random.default_rng(5)
    distance, noise = np.repeat([0.5, 1.5], 400), np.exp(rng.normal(-3.0, spread, 800))
    tails = rng.normal(size=800) if np.isinf(df) else rng.standard_t(df, 800) * np.sqrt((df - 2.0) / df)
    error = np.sqrt(noise + np.where(distance < 1, 0.02, 0.5)) * tails
    rows = distance, np.square(error)[:, None], noise[:, None]
    found, alike = (
        np.interp([0.5, 1.5], knots, growth[:, 0])
        for knots, growth in (error_growth(*rows, df=df, by_precision=weighed) for weighed in (True, False))
    )
    np.testing.assert_allclose(found, most_likely_levels(error, noise, df), rtol=0.02)
    assert (np.abs(alike / found - 1.0) > 0.02).any()


@pytest.mark.parametrize("df", [4.0, np.inf])
def test_by_precision_a_weight_is_so_many_rows_and_equal_noise_changes_nothing(df):
    rng = np.random.default_rng(6)
    distance, weights = np.repeat([0.5, 1.0, 1.5], 30), rng.integers(1, 5, 90)
    square, noise = (
        np.square(np.repeat([0.3, 0.7, 1.2], 30) * rng.normal(size=90))[:, None],
        rng.uniform(0.01, 0.3, (90, 1)),
    )
    places, settings = [0.5, 1.0, 1.5], {"df": df, "by_precision": True}
    read = lambda found: np.interp(places, found[0], found[1][:, 0])
    weighed = read(error_growth(distance, square, noise, weights.astype(float), **settings))
    several = error_growth(*(np.repeat(part, weights, axis=0) for part in (distance, square, noise)), **settings)
    np.testing.assert_allclose(read(several), weighed, rtol=1e-3, atol=1e-5)
    equal = np.full_like(noise, 0.05)
    likeliest, plain = (read(error_growth(distance, square, equal, df=df, by_precision=way)) for way in (True, False))
    np.testing.assert_allclose(likeliest, plain, rtol=0.01)


def test_growth_with_tails_counts_a_weight_as_so_many_rows_and_levels_what_would_fall():
    rng = np.random.default_rng(3)
    distance = np.repeat([0.5, 1.0, 1.5], 30)
    square = np.square(np.repeat([0.3, 1.2, 0.8], 30) * rng.standard_t(4, size=90))[:, None]
    noise, weights = np.full((90, 1), 0.02), rng.integers(1, 5, 90)
    found = error_growth(distance, square, noise, weights.astype(float), df=5.0)
    several = error_growth(*(np.repeat(part, weights, axis=0) for part in (distance, square, noise)), df=5.0)
    near, middle, far = (np.interp(place, found[0], found[1][:, 0]) for place in (0.5, 1.0, 1.5))
    assert np.interp(0.5, several[0], several[1][:, 0]) == pytest.approx(near, rel=1e-3)
    assert np.interp(1.5, several[0], several[1][:, 0]) == pytest.approx(far, rel=1e-3)
    assert near < 0.5 * middle
    assert middle == pytest.approx(far, rel=0.01)  # one level for both, the likeliest

    def loss(log_level):
        scale = np.sqrt((0.02 + np.exp(log_level)) * 3.0 / 5.0)
        return -(weights[30:] * stats.t.logpdf(np.sqrt(square[30:, 0]), 5.0, scale=scale)).sum()

    level = optimize.minimize_scalar(loss, bounds=(-5.0, 3.0), options={"xatol": 1e-10}).x
    assert far == pytest.approx(np.exp(level), rel=0.01)


@given(st.floats(1.5, 20.0), st.floats(0.01, 0.9), st.floats(0.05, 20.0), st.floats(0.05, 20.0))
@settings(max_examples=50, deadline=None)
def test_the_prior_gives_the_tails_and_the_shrinkage_asked_for(tail, shrinkage, prior_variance, square):
    """At the posterior named in the docstring the gradient of the loss is zero, for a squared residual ``square``."""
    shape, weight = prior_for(tail, shrinkage)
    parameters = torch.tensor([shape, (shape - 1.0) * prior_variance], dtype=torch.float64)
    prior = Gamma(*parameters)
    variance = shrinkage * prior_variance + (1.0 - shrinkage) * square
    q = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (tail, variance * (tail - 1.0))]
    residual = torch.tensor(square, dtype=torch.float64).sqrt()
    loss = weight * gamma_kl(Gamma(*q), prior) - expected_log_prob(residual, torch.zeros_like(residual), Gamma(*q))
    for gradient, scale in zip(torch.autograd.grad(loss, q), (tail, variance * tail), strict=True):
        assert float(gradient) * scale == pytest.approx(0.0, abs=1e-8)


def pilot(residuals, x):
    head, network = VarianceShapeHead(), MLP(1, 1, (16,), maps=2)
    return fit_pilot(
        x,
        residuals,
        np.arange(len(x)),
        None,
        network,
        head,
        Schedule(200, 256, 1e-2),
        CANDIDATES,
        variance=residuals.square().mean(0),
        seed=0,
        repeats=1,
        validation_fraction=0.25,
        device=torch.device("cpu"),
        compile=False,
        progress=None,
    )


def test_the_pilot_believes_in_even_noise_where_it_is_even_and_not_where_it_is_not():
    stream = generators(0, "pilot", 1)[0]
    x = torch.rand(1200, 1, generator=stream) * 4 - 2
    noise = torch.randn(1200, 1, generator=stream)
    even, uneven = pilot(noise, x), pilot(noise * torch.exp(1.5 * x), x)
    strength = lambda result: (result.shape - 1.0) * result.kl_weight
    assert strength(even) == pytest.approx(max((shape - 1.0) * weight for shape, weight in CANDIDATES))
    assert strength(uneven) < 0.2
    left, right = uneven.variance[x[:, 0] < -1].mean(), uneven.variance[x[:, 0] > 1].mean()
    assert right > 20 * left


def test_the_pilot_sees_heavy_tails():
    stream = generators(1, "pilot", 1)[0]
    x = torch.rand(1500, 1, generator=stream)
    noise = torch.randn(1500, 1, generator=stream)
    heavy = noise / torch.as_tensor(np.random.default_rng(0).chisquare(3.0, (1500, 1)) / 3.0).float().sqrt()
    posterior_shape = lambda result: result.shape + 0.5 / result.kl_weight
    assert posterior_shape(pilot(heavy, x)) < posterior_shape(pilot(noise, x))


def test_hashed_numbers_are_uniform_and_belong_to_their_row():
    rows = np.random.default_rng(0).normal(size=(20_000, 3))
    numbers = hashed_uniform(rows)
    assert 0.0 <= numbers.min() < numbers.max() < 1.0
    assert abs(numbers.mean() - 0.5) < 5 / np.sqrt(12 * len(rows))
    np.testing.assert_array_equal(hashed_uniform(rows[::-1]), numbers[::-1])
    assert len(np.unique(numbers)) == len(rows)


def test_the_rates_of_the_verdicts_are_written_once():
    sources = Path(nescio.__file__).parent.rglob("*.py")
    written = [path.name for path in sources if re.search(r"\b1 / 200?\b", path.read_text(encoding="utf-8"))]
    assert written == ["calibration.py"]
