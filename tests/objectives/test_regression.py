"""The losses: the paper's equations by a naive loop, their laws, and the mistakes one might make."""

from __future__ import annotations

import math

import mpmath
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from nescio._validation import InputError
from nescio.distributions import Gamma, StudentT
from nescio.objectives import (
    PointLosses,
    dissipative_loss,
    elbo,
    join_priors,
    joint_dissipative_loss,
    variational_loss,
)


def random_gamma(*shape: int, seed: int) -> Gamma:
    generator = torch.Generator().manual_seed(seed)
    draw = lambda: torch.rand(shape, generator=generator, dtype=torch.float64)
    return Gamma(1.05 + 4 * draw(), 0.1 + 2 * draw())


def naive_kl(alpha: float, beta: float, a: float, b: float) -> float:
    shapes = (alpha - a) * mpmath.digamma(alpha) - mpmath.loggamma(alpha) + mpmath.loggamma(a)
    return float(shapes + a * mpmath.log(beta / b) + alpha * (b - beta) / beta)


def naive_expectation(y: float, loc: float, alpha: float, beta: float) -> float:
    mean_log = float(mpmath.digamma(alpha)) - math.log(beta)
    return -0.5 * (math.log(2 * math.pi) - mean_log + (y - loc) ** 2 * alpha / beta)


@pytest.fixture
def case() -> tuple[Tensor, Tensor, Gamma, Gamma, Gamma, Gamma]:
    generator = torch.Generator().manual_seed(7)
    y, loc = (torch.randn(2, 5, 3, generator=generator, dtype=torch.float64) + shift for shift in (1.5, 0.7))
    return (
        y,
        loc,
        random_gamma(2, 5, 3, seed=1),
        random_gamma(3, seed=2),
        random_gamma(2, 4, 3, seed=3),
        random_gamma(3, seed=4),
    )


def naive_loss(case, kl_weight: float, pseudo_weight: float) -> tuple[list[list[float]], list[list[float]]]:
    y, loc, q, inside, pseudo, outside = case
    at = lambda gamma, *index: (float(gamma.concentration[index]), float(gamma.rate[index]))
    inner = [[0.0] * 5 for _ in range(2)]
    outer = [[0.0] * 4 for _ in range(2)]
    for m in range(2):
        for p in range(3):
            for n in range(5):
                fit = naive_expectation(float(y[m, n, p]), float(loc[m, n, p]), *at(q, m, n, p))
                inner[m][n] -= fit - kl_weight * naive_kl(*at(q, m, n, p), *at(inside, p))
            for k in range(4):
                outer[m][k] += pseudo_weight * naive_kl(*at(pseudo, m, k, p), *at(outside, p))
    return inner, outer


@pytest.mark.parametrize(("kl_weight", "pseudo_weight"), [(1.0, 1.0), (0.5, 2.3), (0.0, 0.0)])
def test_dissipative_loss_matches_the_naive_loop(case, kl_weight, pseudo_weight):
    losses = dissipative_loss(*case, kl_weight=kl_weight, pseudo_weight=pseudo_weight)
    inner, outer = naive_loss(case, kl_weight, pseudo_weight)
    assert_close(losses.inside, torch.tensor(inner, dtype=torch.float64), rtol=1e-10, atol=1e-12)
    assert_close(losses.outside, torch.tensor(outer, dtype=torch.float64), rtol=1e-10, atol=1e-12)
    assert losses.penalty is None


def test_equal_priors_and_unit_weights_are_the_paper_s_loss_and_not_its_misprint(case):
    y, loc, q, prior, pseudo, _ = case
    losses = dissipative_loss(y, loc, q, prior, pseudo, prior)
    total = float(losses.inside.sum() + losses.outside.sum())
    fit = sum(
        naive_expectation(*values)
        for values in zip(*(t.flatten().tolist() for t in (y, loc, q.concentration, q.rate)), strict=True)
    )
    expand = lambda gamma, like: (
        part.expand(like.batch_shape).flatten().tolist() for part in (gamma.concentration, gamma.rate)
    )
    divergence = lambda gamma: sum(
        naive_kl(*row) for row in zip(*expand(gamma, gamma), *expand(prior, gamma), strict=True)
    )
    assert total == pytest.approx(-(fit - divergence(q)) + divergence(pseudo), rel=1e-10)
    printed = -fit - divergence(q) + divergence(pseudo)
    outside_rewarded = -(fit - divergence(q)) - divergence(pseudo)
    for wrong in (printed, outside_rewarded):
        assert wrong != pytest.approx(total, rel=1e-3)


def test_elbo_is_per_output_and_the_loss_is_its_negative(case):
    y, loc, q, prior, *_ = case
    bound = elbo(y, loc, q, prior, 0.5)
    assert bound.shape == y.shape
    assert torch.equal(variational_loss(y, loc, q, prior, 0.5), -bound)
    per_model = torch.tensor([0.5, 0.9], dtype=torch.float64)[:, None, None]
    assert_close(elbo(y, loc, q, prior, per_model)[0], bound[0], rtol=1e-14, atol=0.0)
    assert not torch.allclose(elbo(y, loc, q, prior, per_model)[1], bound[1])


def test_elbo_never_exceeds_the_evidence(case):
    y, loc, q, prior, *_ = case
    evidence = StudentT.from_gamma(loc, prior).log_prob(y)
    assert bool((elbo(y, loc, q, prior) <= evidence + 1e-12).all())


def test_with_all_weight_on_pseudo_inputs_the_optimum_is_the_outside_prior():
    prior = Gamma(torch.tensor([2.5, 1.4], dtype=torch.float64), torch.tensor([0.9, 3.0], dtype=torch.float64))
    raw = torch.zeros(2, 1, 1, 2, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [raw], max_iter=200, tolerance_grad=1e-12, tolerance_change=0.0, line_search_fn="strong_wolfe"
    )
    nowhere = torch.zeros(1, 0, 2, dtype=torch.float64)

    def closure() -> Tensor:
        optimiser.zero_grad()
        pseudo = Gamma(raw[0].exp(), raw[1].exp())
        losses = dissipative_loss(nowhere, nowhere, Gamma(nowhere, nowhere), prior, pseudo, prior)
        loss = losses.outside.sum() + losses.inside.sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    assert_close(raw[0].exp().flatten().detach(), prior.concentration, rtol=1e-6, atol=0.0)
    assert_close(raw[1].exp().flatten().detach(), prior.rate, rtol=1e-6, atol=0.0)


def test_inside_optimum_adds_half_over_the_kl_weight_to_the_prior_shape():
    prior, weight = Gamma(torch.tensor([2.0], dtype=torch.float64), torch.tensor([0.8], dtype=torch.float64)), 0.5
    y, loc = torch.tensor([1.9], dtype=torch.float64), torch.tensor([0.4], dtype=torch.float64)
    alpha = (prior.concentration + 0.5 / weight).requires_grad_()
    beta = (prior.rate + 0.5 / weight * (y - loc).square()).requires_grad_()
    gradients = torch.autograd.grad(elbo(y, loc, Gamma(alpha, beta), prior, weight).sum(), (alpha, beta))
    for gradient in gradients:
        assert abs(float(gradient)) < 1e-12


def test_without_pseudo_inputs_there_is_no_outside_term(case):
    y, loc, q, prior, *_ = case
    losses = dissipative_loss(y, loc, q, prior, None, None)
    assert losses == PointLosses(losses.inside, None, None)
    assert losses.inside.shape == (2, 5)


def test_shapes_that_would_broadcast_wrongly_are_refused(case):
    y, loc, q, prior, *_ = case
    with pytest.raises(InputError, match="must have one shape"):
        elbo(y[0], loc, q, prior)
    with pytest.raises(InputError, match="p must broadcast"):
        elbo(y, loc, q, random_gamma(5, 1, 3, 1, seed=0))


def test_losses_trace_whole_under_compile(case):
    torch.compiler.reset()
    y, loc, q, inside, pseudo, outside = case

    def loss(alpha: Tensor, beta: Tensor) -> Tensor:
        losses = dissipative_loss(y, loc, Gamma(alpha, beta), inside, pseudo, outside, kl_weight=0.5)
        return losses.inside.mean() + losses.outside.mean()

    compiled = torch.compile(torch.func.grad_and_value(loss, argnums=(0, 1)), fullgraph=True, backend="aot_eager")
    gradients, value = compiled(q.concentration, q.rate)
    expected, right = torch.func.grad_and_value(loss, argnums=(0, 1))(q.concentration, q.rate)
    assert_close(value, right, rtol=1e-10, atol=0.0)
    assert_close(gradients, expected, rtol=1e-7, atol=1e-8)


def test_the_joint_loss_under_compile_is_the_one_of_two_passes(case):
    torch.compiler.reset()
    y, loc, q, inside, pseudo, outside = case
    both = Gamma(torch.cat([q.concentration, pseudo.concentration], dim=-2), torch.cat([q.rate, pseudo.rate], dim=-2))

    def joint(alpha: Tensor, beta: Tensor) -> PointLosses:
        prior = join_priors(inside, outside, y.shape, pseudo.concentration.shape)
        return joint_dissipative_loss(y, loc, Gamma(alpha, beta), prior, kl_weight=0.5, pseudo_weight=0.3)

    found = torch.compile(joint, fullgraph=True, backend="aot_eager")(both.concentration, both.rate)
    expected = dissipative_loss(y, loc, q, inside, pseudo, outside, kl_weight=0.5, pseudo_weight=0.3)
    assert_close(found.inside, expected.inside, rtol=1e-10, atol=1e-12)
    assert_close(found.outside, expected.outside, rtol=1e-10, atol=1e-12)
