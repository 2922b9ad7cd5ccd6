"""The closed form of a small step against autograd through the general formulas, in double precision."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from nescio.distributions import Gamma
from nescio.objectives import dissipative_loss, join_priors, joint_dissipative_loss
from nescio.objectives.closed_form import FEW, joint_terms

ROWS, PSEUDO, OUTPUTS = 5, 7, 2


def draw(seed: int, spread: float, dtype: torch.dtype) -> dict[str, Tensor]:
    """Two models; shapes from 1 up and rates over ``spread`` decades on either side of one."""
    generator = torch.Generator().manual_seed(seed)
    decades = lambda *shape: 10.0 ** (spread * (2.0 * torch.rand(shape, generator=generator) - 1.0))
    both = (2, ROWS + PSEUDO, OUTPUTS)
    values = {
        "y": torch.randn(2, ROWS, OUTPUTS, generator=generator),
        "loc": torch.randn(2, ROWS, OUTPUTS, generator=generator),
        "concentration": 1.0 + decades(*both),
        "rate": decades(*both),
        "prior_concentration": 1.0 + decades(*both),
        "prior_rate": decades(*both),
    }
    return {name: value.float().to(dtype) for name, value in values.items()}


def loss_and_gradients(case: dict[str, Tensor], joint: bool) -> tuple[Tensor, Tensor, list[Tensor]]:
    leaves = [case[name].clone().requires_grad_() for name in ("loc", "concentration", "rate")]
    q = Gamma(leaves[1], leaves[2])
    prior = Gamma(case["prior_concentration"], case["prior_rate"])
    kl_weight = torch.tensor([[[0.3]], [[1.7]]], dtype=leaves[0].dtype)
    if joint:
        terms = joint_dissipative_loss(case["y"], leaves[0], q, prior, kl_weight=kl_weight, pseudo_weight=0.6)
    else:
        cut = lambda gamma, part: Gamma(gamma.concentration[:, part], gamma.rate[:, part])
        data, hats = slice(None, ROWS), slice(ROWS, None)
        parts = (cut(q, data), cut(prior, data), cut(q, hats), cut(prior, hats))
        terms = dissipative_loss(case["y"], leaves[0], *parts, kl_weight=kl_weight, pseudo_weight=0.6)
    weight = torch.linspace(0.5, 2.0, ROWS, dtype=leaves[0].dtype)
    total = (terms.inside * weight).sum() + terms.outside.square().sum()
    return terms.inside.detach(), terms.outside.detach(), list(torch.autograd.grad(total, leaves))


@pytest.mark.parametrize("seed", range(5))
def test_a_small_step_has_the_values_and_gradients_of_the_general_loss(seed):
    single, double = draw(seed, 1.0, torch.float32), draw(seed, 1.0, torch.float64)
    inside, outside, gradients = loss_and_gradients(single, joint=True)
    expected_inside, expected_outside, expected = loss_and_gradients(double, joint=False)
    assert_close(inside.double(), expected_inside, rtol=2e-6, atol=2e-6)
    assert_close(outside.double(), expected_outside, rtol=2e-6, atol=2e-6)
    for found, wanted in zip(gradients, expected, strict=True):
        assert_close(found.double(), wanted, rtol=2e-5, atol=2e-5)


def test_a_small_step_is_the_closed_form_and_a_large_one_is_not():
    case = draw(0, 1.0, torch.float32)
    inside, _, _ = loss_and_gradients(case, joint=True)
    parts = [case[name] for name in ("concentration", "rate", "prior_concentration", "prior_rate")]
    by_hand, _ = joint_terms(case["y"], case["loc"], *parts, torch.tensor([[[0.3]], [[1.7]]]), 0.6)
    assert torch.equal(inside, by_hand.sum(-1))
    wide = {name: value.repeat(1, FEW, 1)[:, : FEW * value.shape[1]] for name, value in case.items()}
    q = Gamma(wide["concentration"], wide["rate"])
    prior = Gamma(wide["prior_concentration"], wide["prior_rate"])
    large = joint_dissipative_loss(wide["y"], wide["loc"], q, prior)
    assert large.inside.shape == (2, ROWS * FEW)
    assert large.outside.shape == (2, PSEUDO * FEW)


@pytest.mark.parametrize("spread", [3.0, 6.0])
def test_values_and_gradients_are_finite_over_decades(spread):
    case = draw(3, spread, torch.float32)
    for name in ("rate", "prior_rate"):
        case[name] = case[name].square()  # to twelve decades on either side
    inside, outside, _ = loss_and_gradients(case, joint=True)
    assert all(bool(torch.isfinite(part).all()) for part in (inside, outside))
    leaves = [case[name].clone().requires_grad_() for name in ("loc", "concentration", "rate")]
    prior = Gamma(case["prior_concentration"], case["prior_rate"])
    terms = joint_dissipative_loss(case["y"], leaves[0], Gamma(leaves[1], leaves[2]), prior)
    total = terms.inside.sum() + terms.outside.sum()
    assert all(bool(torch.isfinite(part).all()) for part in torch.autograd.grad(total, leaves))


def test_divergence_and_its_gradient_vanish_where_posterior_and_prior_agree():
    case = draw(1, 1.0, torch.float32)
    case["prior_concentration"], case["prior_rate"] = case["concentration"], case["rate"]
    leaves = [case[name].clone().requires_grad_() for name in ("concentration", "rate")]
    prior = Gamma(case["prior_concentration"], case["prior_rate"])
    terms = joint_dissipative_loss(case["y"], case["loc"], Gamma(*leaves), prior)
    assert_close(terms.outside, torch.zeros_like(terms.outside), atol=1e-6, rtol=0.0)
    for gradient in torch.autograd.grad(terms.outside.sum(), leaves):
        assert_close(gradient, torch.zeros_like(gradient), atol=1e-5, rtol=0.0)


def test_joined_priors_stand_in_the_order_of_the_points():
    inside, outside = Gamma(torch.tensor(2.0), torch.tensor(3.0)), Gamma(torch.tensor([5.0, 6.0]), torch.tensor(7.0))
    joined = join_priors(inside, outside, torch.Size([2, 1, 2]), torch.Size([2, 3, 2]))
    assert joined.concentration.tolist() == [[[2.0, 2.0], *[[5.0, 6.0]] * 3]] * 2
    assert joined.rate.tolist() == [[[3.0, 3.0], *[[7.0, 7.0]] * 3]] * 2
