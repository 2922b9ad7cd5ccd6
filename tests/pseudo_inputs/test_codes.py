"""The walk down the density of codes: where it goes, what it depends on, and what it refuses."""

from __future__ import annotations

import pytest
import torch

from nescio._validation import InputError
from nescio.densities import AggregatePosterior
from nescio.pseudo_inputs import CodeDescent


def codes(count: int = 90, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Two clouds of codes, one wider than the other."""
    noise = torch.Generator().manual_seed(seed)
    loc = 0.3 * torch.randn(count, 2, generator=noise) + torch.tensor([[-2.0, 1.0]])
    loc[::2] += torch.tensor([[4.0, -1.5]])
    return loc, 0.05 + 0.1 * torch.rand(count, 2, generator=noise)


def placed(descent: CodeDescent, count: int, seed: int = 3) -> torch.Tensor:
    return descent.around(*codes(), count, torch.Generator().manual_seed(seed))


def test_a_walk_is_ten_unit_steps_down_the_log_density_of_its_own_batch():
    loc, scale = codes()
    found = placed(CodeDescent(batch=40, gate=None), 40)
    noise = torch.Generator().manual_seed(3)
    rows = torch.randperm(len(loc), generator=noise)[:40]
    z = (loc[rows] + 2.0 * torch.randn(40, 2, generator=noise)).double()
    density = AggregatePosterior(loc[rows], scale[rows])
    for _ in range(10):
        at = z.clone().requires_grad_(True)
        (gradient,) = torch.autograd.grad(density.log_prob(at).sum(), at)
        z = z - 0.4 * gradient / gradient.norm(dim=1, keepdim=True)
    torch.testing.assert_close(found, z.float(), rtol=1e-5, atol=1e-5)
    whole = AggregatePosterior(loc, scale)
    assert float(whole.log_prob(found).max()) < float(whole.log_prob(loc).min())


def test_a_gate_holds_points_whose_gradient_is_steep():
    starts = placed(CodeDescent(steps=0), 90)
    free, gated = placed(CodeDescent(gate=None), 90), placed(CodeDescent(gate=1e-6), 90)
    assert torch.equal(gated, starts)
    assert not torch.equal(free, starts)


def test_as_printed_a_walk_starts_at_samples_and_stops_where_the_density_is_flat():
    printed = CodeDescent(
        gradient="density", normalise=False, gate=None, tolerance=0.007, start_scale=None, batch=128, steps=10
    )
    loc, _ = codes()
    away = torch.cdist(placed(printed, 90), loc).amin(1)
    assert bool(torch.isfinite(away).all())
    assert float(placed(CodeDescent(start_scale=None, steps=0), 90).sub(loc.mean(0)).norm(dim=1).max()) < 4.0


@pytest.mark.parametrize("count", [1, 40, 90, 200])
def test_as_many_as_asked_for_and_the_first_ones_are_the_same(count):
    found = placed(CodeDescent(batch=32), count)
    assert found.shape == (count, 2)
    assert torch.equal(found[:1], placed(CodeDescent(batch=32), 1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch": 0}, "batch must be a whole number of at least 1"),
        ({"start_scale": -1.0}, "start_scale must be"),
        ({"steps": -1}, "steps must be a whole number"),
        ({"gradient": "up"}, "gradient must be one of"),
    ],
)
def test_a_bad_setting_gets_one_sentence(settings, message):
    with pytest.raises(InputError, match=message):
        CodeDescent(**settings)


def test_what_are_no_codes_is_refused():
    with pytest.raises(InputError, match="loc must be codes of shape"):
        CodeDescent().around(torch.zeros(3), torch.ones(3), 4, torch.Generator())
