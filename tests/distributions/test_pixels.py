"""Truncated and discretised densities against quadrature, mpmath and the laws of probability."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from torch.testing import assert_close

from nescio._validation import InputError
from nescio.distributions import StudentT, discretised_log_prob, log_mass, truncated_log_prob

DFS = (2.2, 7.0, 40.0, math.inf)


def make(df: float, loc: float, scale: float) -> StudentT:
    return StudentT(*(torch.tensor([value], dtype=torch.float64) for value in (df, loc, scale)))


def exact_log_mass(df: float, low: float, high: float) -> float:
    """Of the standard distribution, by mpmath with 60 digits."""
    with mpmath.workdps(60):
        if math.isinf(df):
            mass = (mpmath.erf(high / mpmath.sqrt(2)) - mpmath.erf(low / mpmath.sqrt(2))) / 2
            if low > 0:
                mass = (mpmath.erfc(low / mpmath.sqrt(2)) - mpmath.erfc(high / mpmath.sqrt(2))) / 2
        else:
            v = mpmath.mpf(df)
            constant = mpmath.gamma((v + 1) / 2) / (mpmath.sqrt(v * mpmath.pi) * mpmath.gamma(v / 2))
            mass = mpmath.quad(lambda t: constant * (1 + t * t / v) ** (-(v + 1) / 2), mpmath.linspace(low, high, 8))
        return float(mpmath.log(mass))


@pytest.mark.parametrize("df", DFS)
@pytest.mark.parametrize(
    ("low", "high"), [(-0.3, 0.9), (2.0, 5.0), (-8.0, -3.0), (12.0, 12.5), (-1e-3, 2e-3), (0.0, 1.0)]
)
def test_the_mass_agrees_with_60_digits(df, low, high):
    scale, loc = 0.37, 1.9
    dist = make(df, loc, scale)
    found = log_mass(dist, loc + scale * low, loc + scale * high).item()
    assert found == pytest.approx(exact_log_mass(df, low, high), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("df", DFS)
@pytest.mark.parametrize(
    ("loc", "scale"),
    [(0.02, 1e-3), (0.6, 1e-3), *((loc, s) for loc in (0.02, 0.6, 1.7) for s in (0.05, 1.0, 1e4, 1e8))],
)
def test_the_truncated_density_integrates_to_one(df, loc, scale):
    dist = make(df, loc, scale)
    f = lambda y: math.exp(truncated_log_prob(dist, torch.tensor([y], dtype=torch.float64)).item())
    near = sorted({0.0, 1.0, *(min(max(loc + k * scale, 0.0), 1.0) for k in (-30, -5, -1, 0, 1, 5, 30))})
    total = sum(integrate.quad(f, a, b, epsabs=1e-12, epsrel=1e-11)[0] for a, b in itertools.pairwise(near))
    assert total == pytest.approx(1.0, abs=1e-8)


def test_truncation_agrees_with_scipy_and_is_impossible_outside():
    y = torch.tensor([0.0, 0.2, 0.71, 1.0], dtype=torch.float64)
    loc, scale = 0.8, 0.3
    oracle = stats.truncnorm((0 - loc) / scale, (1 - loc) / scale, loc, scale).logpdf(y.numpy())
    dist = StudentT(torch.full_like(y, math.inf), torch.full_like(y, loc), torch.full_like(y, scale))
    assert_close(truncated_log_prob(dist, y), torch.tensor(oracle), rtol=1e-10, atol=1e-10)
    assert (truncated_log_prob(make(5.0, 0.5, 0.1), torch.tensor([1.2])) == -math.inf).all()


def test_wrong_twins_are_told_apart():
    dist = make(4.0, 0.8, 0.3)
    y = torch.tensor([0.5], dtype=torch.float64)
    right = truncated_log_prob(dist, y).item()
    from_variance = truncated_log_prob(make(4.0, 0.8, 0.3 * math.sqrt(2.0)), y).item()
    gaussian_mass = dist.log_prob(y).item() - log_mass(make(math.inf, 0.8, 0.3), 0.0, 1.0).item()
    one_sided = dist.log_prob(y).item() - log_mass(dist, 0.0, math.inf).item()
    for twin in (from_variance, gaussian_mass, one_sided, dist.log_prob(y).item()):
        assert abs(right - twin) > 1e-3


@given(st.sampled_from(DFS), st.floats(-2.0, 3.0), st.floats(-3.0, 2.0), st.integers(2, 256))
@settings(max_examples=60, deadline=None)
def test_the_grey_values_are_a_probability(df, loc, log_scale, levels):
    y = torch.arange(levels, dtype=torch.float64) / (levels - 1)
    scale = 10.0**log_scale
    dist = StudentT(*(torch.full_like(y, value) for value in (df, loc, scale)))
    found = discretised_log_prob(dist, y, levels)
    assert (found <= 1e-12).all()
    assert found.exp().sum().item() == pytest.approx(1.0, abs=1e-9)


def test_a_collapsing_scale_gains_nothing_once_a_value_is_certain():
    y = torch.tensor([128 / 255], dtype=torch.float64)
    values = [discretised_log_prob(make(6.0, 128 / 255, scale), y).item() for scale in (1e-2, 1e-4, 1e-8, 1e-12)]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(0.0, abs=1e-9)
    assert truncated_log_prob(make(6.0, 128 / 255, 1e-12), y).item() > 20.0


def test_a_gaussian_keeps_its_digits_far_beyond_the_range_of_doubles():
    low, high = -310.0, -300.0
    with mpmath.workdps(60):
        exact = float(mpmath.log(mpmath.erfc(300 / mpmath.sqrt(2)) / 2))
    assert log_mass(make(math.inf, 0.0, 1.0), low, high).item() == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("df", [400.0, 2_000.0, 1e5])
def test_the_far_tail_of_a_student_t_is_finite_and_close(df):
    low, high = -290.0, -280.0
    found = log_mass(make(df, 0.0, 1.0), low, high).item()
    assert found == pytest.approx(exact_log_mass(df, low, high), abs=1e-2)


def test_bad_arguments_are_refused():
    with pytest.raises(InputError, match="low must not be above high"):
        log_mass(make(3.0, 0.0, 1.0), 1.0, 0.0)
    with pytest.raises(InputError, match="multiples of 1/255"):
        discretised_log_prob(make(3.0, 0.0, 1.0), torch.tensor([0.5001]))
    with pytest.raises(InputError, match="between 0 and 1"):
        discretised_log_prob(make(3.0, 0.0, 1.0), torch.tensor([2.0]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_everything_is_finite_over_decades(dtype):
    scale = torch.tensor(np.logspace(-7, 4, 23)).to(dtype)
    for df in DFS:
        for loc in (1e-7, 0.4, 1 - 1e-7):
            dist = StudentT(torch.full_like(scale, df), torch.full_like(scale, loc), scale)
            for y in (0.0, 100 / 255, 1.0):
                values = torch.full_like(scale, y)
                assert torch.isfinite(truncated_log_prob(dist, values)).all()
                assert torch.isfinite(discretised_log_prob(dist, values)).all()
