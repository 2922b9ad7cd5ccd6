"""Infinite degrees of freedom are the Gaussian, exactly, alone and in mixtures, beside heavier tails or without."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scoringrules
import torch
from scipy import integrate, stats
from torch.testing import assert_close

from nescio.distributions import StudentT, StudentTMixture

LOC, SCALE = np.array([-0.6, 2.0, 40.0]), np.array([1.7, 0.03, 9.0])
Y = np.array([0.4, 1.95, -17.0])


def gaussian(dtype: torch.dtype = torch.float64) -> StudentT:
    return StudentT(*(torch.as_tensor(part, dtype=dtype) for part in (np.full(3, np.inf), LOC, SCALE)))


def test_density_cdf_quantile_and_score_are_scipys_gaussian():
    t, y, oracle = gaussian(), torch.as_tensor(Y), stats.norm(LOC, SCALE)
    assert_close(t.log_prob(y).numpy(), oracle.logpdf(Y), rtol=1e-13, atol=0.0)
    assert_close(t.cdf(y).numpy(), oracle.cdf(Y), rtol=1e-13, atol=0.0)
    for p in (1e-9, 0.03, 0.5, 0.999):
        assert_close(t.icdf(p).numpy(), oracle.ppf(p), rtol=1e-12, atol=0.0)
    assert t.icdf(0.0).tolist() == [-math.inf] * 3
    assert t.icdf(1.0).tolist() == [math.inf] * 3
    assert_close(t.crps(y).numpy(), scoringrules.crps_normal(Y, LOC, SCALE), rtol=1e-12, atol=0.0)
    near = StudentT(torch.full((3,), 60.0, dtype=torch.float64), t.loc, t.scale)
    for function in ("log_prob", "cdf", "crps"):
        assert not torch.allclose(getattr(near, function)(y), getattr(t, function)(y), rtol=1e-4), "60 is not infinity"


def test_all_of_the_variance_is_aleatoric():
    t = gaussian()
    assert_close(t.variance.numpy(), SCALE**2, rtol=1e-14, atol=0.0)
    assert t.epistemic_variance.tolist() == [0.0, 0.0, 0.0]
    assert t.epistemic_factor.tolist() == [1.0, 1.0, 1.0]
    assert torch.equal(t.mean, t.loc)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_finite_and_those_of_the_gaussian_among_finite_df(dtype):
    df = torch.tensor([math.inf, 3.0, math.inf, 1e6], dtype=dtype, requires_grad=True)
    loc, scale = (
        torch.tensor(v, dtype=dtype, requires_grad=True) for v in ([0.3, -1.0, 5.0, 0.0], [2.0, 0.5, 1e-3, 1])
    )
    y = torch.tensor([1.0, -4.0, 5.0, 0.7], dtype=dtype)
    t = StudentT(df, loc, scale)
    gradients = torch.autograd.grad((t.log_prob(y) + t.variance + t.epistemic_variance).sum(), (df, loc, scale))
    assert all(bool(torch.isfinite(gradient).all()) for gradient in gradients)
    to_loc, to_scale = torch.autograd.grad(t.log_prob(y).sum(), (loc, scale))
    z = ((y - loc) / scale).detach()
    assert_close(to_loc[0], (z / scale)[0].detach())
    assert_close(to_scale[0], ((z.square() - 1) / scale)[0].detach())


def test_finite_and_infinite_df_live_in_one_tensor():
    df = torch.tensor([math.inf, 4.0, math.inf], dtype=torch.float64)
    mixed, y = StudentT(df, torch.as_tensor(LOC), torch.as_tensor(SCALE)), torch.as_tensor(Y)
    finite = StudentT(torch.full_like(df, 4.0), mixed.loc, mixed.scale)
    for call in (lambda t: t.log_prob(y), lambda t: t.cdf(y), lambda t: t.crps(y), lambda t: t.icdf(0.2)):
        expected = torch.where(torch.isinf(df), call(gaussian()), call(finite))
        assert_close(call(mixed), expected, rtol=1e-14, atol=0.0)


def test_samples_follow_the_gaussian_and_their_neighbours_keep_their_tails():
    t = StudentT(*(torch.tensor(v, dtype=torch.float64) for v in ([math.inf, 5.0], [0.7, -3.0], [1.4, 0.2])))
    samples = t.sample((40_000,), torch.Generator().manual_seed(3)).numpy()
    assert stats.kstest(samples[:, 0], stats.norm(0.7, 1.4).cdf).pvalue > 1e-4
    assert stats.kstest(samples[:, 1], stats.t(5.0, -3.0, 0.2).cdf).pvalue > 1e-4
    assert stats.kstest(samples[:, 1], stats.norm(-3.0, 0.2).cdf).pvalue < 1e-4


def parts(count: int, points: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    return 4.0 * rng.normal(size=(count, points)) + 1.0, np.exp(rng.normal(size=(count, points)))


def mixture(loc: np.ndarray, scale: np.ndarray) -> StudentTMixture:
    return StudentTMixture(StudentT(math.inf, torch.as_tensor(loc), torch.as_tensor(scale)))


def test_a_mixture_of_gaussians_has_the_plain_averages_and_its_quantiles_invert_them():
    loc, scale = parts(100)
    m, y = mixture(loc, scale), torch.as_tensor(Y)
    assert_close(m.log_prob(y).numpy(), np.log(stats.norm.pdf(Y, loc, scale).mean(0)), rtol=1e-11, atol=0.0)
    assert_close(m.cdf(y).numpy(), stats.norm.cdf(Y, loc, scale).mean(0), rtol=1e-12, atol=0.0)
    for p in (1e-6, 0.3, 0.95):
        assert_close(m.cdf(m.icdf(p)), torch.full((3,), p, dtype=torch.float64), rtol=1e-9, atol=0.0)
    assert_close(m.variance.numpy(), (scale**2).mean(0) + loc.var(0), rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("count", [2, 7])
def test_the_score_of_a_mixture_of_gaussians_matches_scoringrules_and_quadrature(count):
    loc, scale = parts(count)
    found = mixture(loc, scale).crps(torch.as_tensor(Y)).numpy()
    even = np.full((3, count), 1.0 / count)
    np.testing.assert_allclose(found, scoringrules.crps_mixnorm(Y, loc.T, scale.T, even), rtol=1e-10)
    for column, y in enumerate(Y):
        m, s = loc[:, column], scale[:, column]
        squared = lambda x, sign: float(stats.norm.cdf(sign * (x - m) / s).mean() ** 2)  # noqa: B023
        right = sum(
            integrate.quad(squared, *ends, args=(sign,), epsabs=1e-12, limit=400)[0]
            for ends, sign in (((-60.0, y), 1.0), ((y, 60.0), -1.0))
        )
        assert found[column] == pytest.approx(right, rel=1e-8)
    without_half = found - 0.5 * np.abs(loc[:, None] - loc[None]).mean((0, 1))
    assert not np.allclose(without_half, found, rtol=1e-3)


def test_chunks_do_not_change_the_score(monkeypatch):
    loc, scale = parts(12, points=9)
    y = torch.linspace(-3.0, 9.0, 9, dtype=torch.float64)
    whole = mixture(loc, scale).crps(y)
    monkeypatch.setattr("nescio.distributions.mixture_numerics._CHUNK", 150)
    assert_close(mixture(loc, scale).crps(y), whole, rtol=1e-14, atol=0.0)


def test_gaussian_points_and_heavier_ones_share_a_mixture():
    loc, scale = parts(3)
    df = np.array([[np.inf, np.inf, 5.0], [np.inf, 3.0, 5.0], [np.inf, np.inf, 9.0]])
    m = StudentTMixture(StudentT(*(torch.as_tensor(part) for part in (df, loc, scale))))
    found = m.crps(torch.as_tensor(Y)).numpy()
    for column, y in enumerate(Y):
        d, mu, s = df[:, column], loc[:, column], scale[:, column]
        cuts = [-1e5, -1e3, -50.0, y, 50.0, 1e3, 1e5]
        cdf = lambda x, sign: float(stats.t.cdf(sign * (x - mu) / s, d).mean() ** 2)  # noqa: B023
        right = sum(
            integrate.quad(cdf, low, high, args=(1.0 if high <= y else -1.0,), epsabs=1e-12, limit=400)[0]
            for low, high in itertools.pairwise(cuts)
        )
        assert found[column] == pytest.approx(right, rel=1e-7)
    quantile = m.icdf(0.07)
    assert_close(m.cdf(quantile), torch.full((3,), 0.07, dtype=torch.float64), rtol=1e-9, atol=0.0)
    assert bool(torch.isfinite(m.sample((5,), torch.Generator().manual_seed(0))).all())
