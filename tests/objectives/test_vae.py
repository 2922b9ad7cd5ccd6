"""Objectives of the generative models against torch.distributions, quadrature and the laws they must obey."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import Bernoulli, Categorical, Normal, kl_divergence
from torch.testing import assert_close

from nescio.distributions import Gamma, StudentT, expected_log_prob, gamma_kl
from nescio.objectives import (
    bernoulli_log_prob,
    entropy_loss,
    latent_kl,
    reconstruction_entropy,
    v3ae_loss,
    vae_loss,
)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(st.integers(1, 5), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_the_latent_divergence_is_torch_s_and_rejects_its_twins(latents, seed):
    loc, scale = 2.0 * normal(4, latents, seed=seed) + 0.7, normal(4, latents, seed=seed + 1).exp()
    posterior, prior = Normal(loc, scale), Normal(torch.zeros_like(loc), torch.ones_like(loc))
    found = latent_kl(loc, scale)
    assert_close(found, kl_divergence(posterior, prior).sum(-1), rtol=1e-10, atol=1e-10)
    reversed_ = kl_divergence(prior, posterior).sum(-1)
    of_variance = latent_kl(loc, scale.square())
    assert (found - reversed_).abs().max() > 1e-3
    assert (found - of_variance).abs().max() > 1e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_latent_divergence_is_finite_positive_and_exact_near_the_prior(dtype):
    scale = torch.logspace(-6, 6, 25, dtype=dtype).requires_grad_()
    value = latent_kl(torch.zeros(25, 1, dtype=dtype), scale.unsqueeze(1))
    assert torch.isfinite(value).all()
    assert (value >= 0).all()
    assert torch.isfinite(torch.autograd.grad(value.sum(), scale)[0]).all()
    near = 1.0 + torch.tensor([1e-3], dtype=dtype)
    expected = (near - 1.0).square() * (1.0 - (near - 1.0) / 3.0)  # the series of the closed form about one
    assert_close(latent_kl(torch.zeros(1, dtype=dtype), near), expected.squeeze(), rtol=2e-3, atol=0.0)


def test_the_bernoulli_likelihood_is_torch_s_at_black_and_white_and_linear_between():
    logits = 3.0 * normal(5, 7)
    black, white = torch.zeros_like(logits), torch.ones_like(logits)
    assert_close(bernoulli_log_prob(black, logits), Bernoulli(logits=logits).log_prob(black), rtol=1e-12, atol=1e-12)
    assert_close(bernoulli_log_prob(white, logits), Bernoulli(logits=logits).log_prob(white), rtol=1e-12, atol=1e-12)
    grey = bernoulli_log_prob(0.3 * white, logits)
    assert_close(grey, 0.3 * bernoulli_log_prob(white, logits) + 0.7 * bernoulli_log_prob(black, logits))


@given(st.integers(2, 30), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_the_entropy_is_that_of_the_normalised_reconstruction(pixels, seed):
    logits = 4.0 * normal(3, pixels, seed=seed)
    found = reconstruction_entropy(logits)
    assert_close(found, Categorical(probs=torch.sigmoid(logits)).entropy(), rtol=1e-10, atol=1e-10)
    assert (found <= math.log(pixels) + 1e-12).all()
    of_pixels = Bernoulli(logits=logits).entropy().sum(-1)
    assert (found - of_pixels).abs().max() > 1e-6  # another quantity


@pytest.mark.parametrize("level", [-500.0, -3.0, 0.0, 500.0])
def test_an_even_reconstruction_has_the_largest_entropy_however_dark(level):
    logits = torch.full((1, 784), level, requires_grad=True)
    value = reconstruction_entropy(logits)
    assert value.item() == pytest.approx(math.log(784), rel=1e-5)
    assert torch.isfinite(torch.autograd.grad(value.sum(), logits)[0]).all()


def gammas(*shape: int, seed: int) -> Gamma:
    return Gamma(1.2 + normal(*shape, seed=seed).exp(), 0.1 + normal(*shape, seed=seed + 1).exp())


def test_the_v3ae_loss_is_the_sum_of_its_terms_written_out():
    S, B, P, K = 3, 4, 5, 6
    x, loc, q, divergence = (
        normal(B, P) + 1.5,
        normal(S, B, P, seed=1),
        gammas(S, B, P, seed=2),
        normal(B, seed=4).exp(),
    )
    inside, outside, q_pseudo = gammas(P, seed=5), gammas(P, seed=7), gammas(K, P, seed=9)
    found = v3ae_loss(
        x, loc, q, inside, divergence, q_pseudo, outside, kl_weight=0.6, latent_weight=0.3, pseudo_weight=1.7
    )
    for image in range(B):
        total = 0.3 * divergence[image]
        for sample in range(S):
            own = Gamma(q.concentration[sample, image], q.rate[sample, image])
            fit = expected_log_prob(x[image], loc[sample, image], own)
            total = total - (fit - 0.6 * gamma_kl(own, inside)).sum() / S
        assert_close(found.inside[image], total, rtol=1e-12, atol=1e-12)
    for point in range(K):
        own = Gamma(q_pseudo.concentration[point], q_pseudo.rate[point])
        assert_close(found.outside[point], 1.7 * gamma_kl(own, outside).sum(), rtol=1e-12, atol=1e-12)


def test_without_pseudo_inputs_there_is_no_outside_term():
    x, loc, q = normal(2, 3), normal(1, 2, 3), gammas(1, 2, 3, seed=3)
    assert v3ae_loss(x, loc, q, gammas(3, seed=5), torch.zeros(2)).outside is None
    assert entropy_loss(torch.sigmoid(x), loc, torch.zeros(2)).outside is None


def test_the_bound_is_tight_at_the_conjugate_posterior_and_the_marginal_is_above_it():
    x, loc, prior = normal(4, 3) + 2.0, normal(1, 4, 3, seed=1), gammas(3, seed=2)
    q = Gamma((prior.concentration + 0.5).expand(1, 4, 3), prior.rate + 0.5 * (x - loc).square())
    loss = v3ae_loss(x, loc, q, prior, torch.zeros(4)).inside
    evidence = StudentT.from_gamma(loc, Gamma(prior.concentration.expand(1, 4, 3), prior.rate.expand(1, 4, 3)))
    assert_close(loss, -evidence.log_prob(x.expand_as(loc)).sum(-1)[0], rtol=1e-11, atol=1e-11)
    free = v3ae_loss(x, loc, q, prior, torch.zeros(4), marginal=True).inside
    assert (free < loss).all()  # Jensen: the log of a mean is above the mean of the log


def test_the_outside_term_draws_to_the_prior_and_the_entropy_up():
    prior = Gamma(torch.tensor([3.0]), torch.tensor([0.5]))
    raw = torch.zeros(2, 1, 1, dtype=torch.float64, requires_grad=True)
    x, loc, q = normal(1, 1), normal(1, 1, 1), gammas(1, 1, 1, seed=1)
    for _ in range(2_000):
        pseudo = Gamma(1.0 + raw[0].exp(), raw[1].exp())
        value = v3ae_loss(x, loc, q, prior, torch.zeros(1), pseudo, prior).outside
        (gradient,) = torch.autograd.grad(value.sum(), raw)
        raw = (raw - 0.1 * gradient).detach().requires_grad_()
    assert 1.0 + raw[0].exp().item() == pytest.approx(3.0, abs=0.05)
    assert raw[1].exp().item() == pytest.approx(0.5, abs=0.02)
    logits = normal(1, 8).requires_grad_()
    value = entropy_loss(torch.full((1, 8), 0.5).double(), logits.unsqueeze(0), torch.zeros(1), logits).outside
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    assert reconstruction_entropy(logits - 0.1 * gradient) > reconstruction_entropy(logits)


def test_the_loss_of_a_plain_vae_averages_over_codes_and_sums_over_pixels():
    log_prob, divergence = normal(3, 4, 5), normal(4).exp()
    expected = 0.5 * divergence - log_prob.sum(2).mean(0)
    assert_close(vae_loss(log_prob, divergence, latent_weight=0.5), expected, rtol=1e-12, atol=1e-12)
