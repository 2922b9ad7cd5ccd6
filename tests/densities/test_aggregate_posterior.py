"""The aggregate posterior against torch's own mixtures, autograd and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal
from torch.testing import assert_close

from nescio._validation import InputError
from nescio.densities import AggregatePosterior, aggregate_posterior


def posteriors(count: int, latents: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    loc = 3.0 * torch.randn(count, latents, generator=generator, dtype=torch.float64) - 1.5
    return loc, 0.1 + torch.rand(count, latents, generator=generator, dtype=torch.float64)


def oracle(loc: torch.Tensor, scale: torch.Tensor) -> MixtureSameFamily:
    return MixtureSameFamily(Categorical(torch.ones(len(loc)).double()), Independent(Normal(loc, scale), 1))


@given(st.integers(1, 6), st.integers(1, 40), st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_log_prob_and_score_agree_with_torch_and_autograd(latents, count, seed):
    loc, scale = posteriors(count, latents, seed)
    z = (4.0 * torch.randn(9, latents, generator=torch.Generator().manual_seed(seed + 1)).double()).requires_grad_()
    expected = oracle(loc, scale).log_prob(z)
    density = AggregatePosterior(loc, scale)
    assert_close(density.log_prob(z), expected, rtol=1e-9, atol=1e-9)
    (gradient,) = torch.autograd.grad(expected.sum(), z)
    assert_close(density.score(z.detach()), gradient, rtol=1e-8, atol=1e-7)


def test_wrong_twins_are_told_apart():
    loc, scale = posteriors(7, 2)
    z = torch.tensor([[0.3, -2.0], [4.0, 1.0]], dtype=torch.float64)
    right = AggregatePosterior(loc, scale).log_prob(z)
    product = Independent(Normal(loc, scale), 1).log_prob(z[:, None]).sum(1)  # as printed
    pooled = oracle(loc, scale.square().mean(0).sqrt().expand_as(scale)).log_prob(z)  # one width for all
    variances = oracle(loc, scale.square()).log_prob(z)  # variances taken for standard deviations
    for twin in (product, pooled, variances):
        assert (right - twin).abs().min() > 1e-3


def test_the_density_integrates_to_one():
    grid = np.linspace(-40, 40, 40_001)
    values = AggregatePosterior(*posteriors(11, 1)).log_prob(torch.tensor(grid[:, None])).exp().numpy()
    assert abs(integrate.trapezoid(values, grid) - 1) < 1e-10


def test_blocks_do_not_change_the_result(monkeypatch):
    loc, scale = posteriors(13, 3)
    z = posteriors(50, 3, seed=5)[0].reshape(5, 10, 3)
    density = AggregatePosterior(loc, scale)
    whole = density.log_prob(z), density.score(z)
    monkeypatch.setattr(aggregate_posterior, "_BLOCK", 30)
    assert_close((density.log_prob(z), density.score(z)), whole, rtol=1e-12, atol=1e-12)
    assert whole[0].shape == (5, 10)


@pytest.mark.parametrize("distance", [1e1, 1e4, 1e7])
def test_far_away_everything_is_finite_and_the_score_points_back(distance):
    loc, scale = posteriors(20, 4)
    z = torch.full((1, 4), distance)
    density = AggregatePosterior(loc.float(), scale.float())
    assert torch.isfinite(density.log_prob(z)).all()
    assert (density.score(z) < 0).all()


def test_samples_have_the_moments_of_the_mixture():
    loc, scale = posteriors(6, 2)
    draws = AggregatePosterior(loc, scale).sample((60_000,), torch.Generator().manual_seed(2))
    error = draws.std(0) / 60_000**0.5
    assert ((draws.mean(0) - loc.mean(0)).abs() < 5 * error).all()
    variance = scale.square().mean(0) + loc.var(0, correction=0)
    spread = ((draws - draws.mean(0)) ** 2).std(0) / 60_000**0.5
    assert ((draws.var(0) - variance).abs() < 5 * spread).all()


@pytest.mark.parametrize(
    ("loc", "scale", "words"),
    [
        (torch.zeros(3), torch.ones(3), "tables"),
        (torch.zeros(3, 2), torch.ones(3, 1), "one shape"),
        (torch.zeros(2, 2), torch.zeros(2, 2), "scale positive"),
        (torch.full((2, 2), torch.nan), torch.ones(2, 2), "loc must be finite"),
    ],
)
def test_bad_posteriors_are_refused(loc, scale, words):
    with pytest.raises(InputError, match=words):
        AggregatePosterior(loc, scale)


def test_points_of_another_width_are_refused():
    with pytest.raises(InputError, match="must have 2 coordinates; got 3"):
        AggregatePosterior(*posteriors(4, 2)).log_prob(torch.zeros(5, 3))
