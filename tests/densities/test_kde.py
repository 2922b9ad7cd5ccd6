"""Kernel densities against scikit-learn, autograd and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from sklearn.neighbors import KernelDensity
from torch.testing import assert_close

from nescio._validation import InputError
from nescio.densities import GaussianKDE, fit_kde


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("bandwidth", [0.05, 0.4, 3.0])
def test_log_prob_agrees_with_scikit_learn(bandwidth):
    points, x = normal(70, 3) * 2 + 5, normal(40, 3, seed=1) * 4 + 5
    oracle = KernelDensity(bandwidth=bandwidth, rtol=0, atol=0).fit(points.numpy()).score_samples(x.numpy())
    assert_close(GaussianKDE(points, bandwidth).log_prob(x), torch.tensor(oracle), rtol=1e-10, atol=1e-9)


def test_the_density_integrates_to_one():
    grid = np.linspace(-20, 25, 20_001)
    density = GaussianKDE(normal(9, 1) * 2 + 1, 0.3)
    assert abs(integrate.trapezoid(density.log_prob(torch.tensor(grid[:, None])).exp().numpy(), grid) - 1) < 1e-10


@given(st.integers(1, 6), st.integers(1, 30), st.floats(0.05, 5.0), st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_the_score_is_the_gradient_of_log_prob(features, rows, bandwidth, seed):
    points = normal(rows, features, seed=seed) + 2
    x = (normal(7, features, seed=seed + 1) * 3).requires_grad_(True)
    density = GaussianKDE(points, bandwidth)
    (gradient,) = torch.autograd.grad(density.log_prob(x).sum(), x)
    assert_close(density.score(x.detach()), gradient, rtol=1e-8, atol=1e-8)


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_the_density_moves_and_turns_with_the_data(seed):
    points, x = normal(12, 3, seed=seed), normal(5, 3, seed=seed + 1)
    rotation = torch.linalg.qr(normal(3, 3, seed=seed + 2)).Q
    density, moved = GaussianKDE(points, 0.7), GaussianKDE(points @ rotation.T + 3.5, 0.7)
    assert_close(moved.log_prob(x @ rotation.T + 3.5), density.log_prob(x), rtol=1e-9, atol=1e-9)
    assert_close(moved.score(x @ rotation.T + 3.5), density.score(x) @ rotation.T, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("distance", [1e0, 1e3, 1e6])
def test_nothing_underflows_in_81_dimensions(dtype, distance):
    points = normal(30, 81)
    density = fit_kde(points, 0.1)
    x = (points[:4] + distance).to(dtype)
    assert torch.isfinite(density.log_prob(x)).all()
    assert torch.isfinite(density.score(x)).all()
    assert density.log_prob(x).dtype == dtype


def test_the_rules_for_the_bandwidth():
    points = normal(200, 4) * 3 + 1
    spread = np.sqrt(np.mean(np.var(points.numpy(), axis=0)))
    assert fit_kde(points).bandwidth == pytest.approx(spread * 200 ** (-1 / 8), rel=1e-12)
    assert fit_kde(points, "silverman").bandwidth == pytest.approx(spread * (200 * 6 / 4) ** (-1 / 8), rel=1e-12)
    assert fit_kde(7.0 * points).bandwidth == pytest.approx(7.0 * fit_kde(points).bandwidth, rel=1e-10)
    with pytest.raises(InputError, match="bandwidth must be one of 'scott', 'silverman'"):
        fit_kde(points, "narrow")
    with pytest.raises(InputError, match="bandwidth must be a finite number that exceeds 0"):
        fit_kde(points, 0.0)
    with pytest.raises(InputError, match=r"points must be a table \(R, D\) with at least 1 row; got \(4,\)"):
        GaussianKDE(points[0], 1.0)
    with pytest.raises(InputError, match=r"x must have 4 features on its last axis; got \(3, 1\)"):
        fit_kde(points).log_prob(points[:3, :1])


def test_one_row_repeats_and_constant_columns_are_legal():
    row = normal(1, 3)
    constant = normal(20, 3)
    constant[:, 0] = 0.1
    for table in (row, row.repeat(6, 1), constant):
        density = fit_kde(table)
        assert torch.isfinite(density.log_prob(table)).all()
        assert torch.isfinite(density.score(table + 0.1)).all()
    assert fit_kde(row).bandwidth == 1.0


def test_samples_have_the_moments_of_the_density():
    density = GaussianKDE(normal(6, 2) * 2 + 3, 0.5)
    draws = density.sample((30_000,), torch.Generator().manual_seed(2))
    variance = density.points.var(dim=0, correction=0) + 0.25
    assert ((draws.mean(dim=0) - density.mean).abs() < 5 * (variance / 30_000).sqrt()).all()
    squares = (draws - density.mean).square()
    assert ((squares.mean(dim=0) - variance).abs() < 5 * squares.std(dim=0) / 30_000**0.5).all()
    assert density.sample((2, 0), torch.Generator()).shape == (2, 0, 2)


def test_blocks_and_the_subsample_keep_shapes_and_values():
    density = fit_kde(normal(5000, 2), max_rows=3000, seed=1)
    assert density.points.shape == (3000, 2)
    assert torch.equal(density.points, fit_kde(normal(5000, 2), max_rows=3000, seed=1).points)
    x = normal(1000, 2, seed=3)
    assert_close(density.log_prob(x)[900:901], density.log_prob(x[900:901]), rtol=1e-12, atol=1e-12)
    assert density.score(x.reshape(10, 100, 2)).shape == (10, 100, 2)
    assert density.log_prob(x[:0]).shape == (0,)
