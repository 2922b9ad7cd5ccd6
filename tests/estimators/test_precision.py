"""Phase two: what it does with the pools that it is given."""

from __future__ import annotations

import pytest
import torch

from nescio._random import generators
from nescio.distributions import Gamma
from nescio.estimators.precision import PseudoInputs, _to, fit_precision, stacked_prior
from nescio.networks import MLP, make_head
from nescio.training import Schedule


def test_pools_are_trained_on_in_memory_of_their_own():
    many = torch.randn(3, 20, 4, generator=torch.Generator().manual_seed(0)).exp()
    given = PseudoInputs(many[:2], Gamma(many[1:, :, :1], many[:2, :, 1:2]), 0.5, 8)
    own = _to(given, torch.device("cpu"))
    for part, source in [
        (own.points, given.points),
        (own.prior.concentration, given.prior.concentration),
        (own.prior.rate, given.prior.rate),
    ]:
        assert source._base is not None
        assert torch.equal(part, source)
        assert part._base is None
    assert (own.weight, own.batch, own.select) == (0.5, 8, None)


@pytest.mark.parametrize("blind", [(), (1,), (0, 2)])
def test_a_model_learns_nothing_from_inputs_that_it_does_not_see(blind):
    draws = torch.Generator().manual_seed(5)
    x, residuals = torch.randn(40, 3, generator=draws) + 2.0, torch.randn(40, 1, generator=draws)
    points, prior = torch.randn(3, 50, 3, generator=draws) * 4.0, torch.full((3, 50, 1), 3.0)
    head, sees = make_head("variance_shape"), torch.ones(3, 3)
    sees[list(blind), -1] = 0.0
    inside, kl_weight, offset = stacked_prior(torch.tensor([0.7]), [(3.0, 0.5)] * 3, head)

    def trained(factor):
        moved = torch.tensor([1.0, 1.0, factor])
        parameters, criterion = fit_precision(
            x * moved,
            residuals,
            None,
            [torch.arange(30)] * 3,
            [torch.arange(30, 40)] * 3,
            MLP(3, 1, (6,), "tanh", 2),
            head,
            Schedule(30, 8, 0.05, check_every=10),
            inside_prior=inside,
            kl_weight=kl_weight,
            offset=offset,
            pseudo=PseudoInputs(points * moved, Gamma(prior, 2.0 * prior), 1.0, 8),
            sees=sees,
            warm_up=Schedule(10, 8, 0.05, check_every=10),
            streams=generators(0, "precision", 3),
            device=torch.device("cpu"),
            compile=False,
            progress=None,
        )
        return parameters | {"criterion": criterion}

    one, other = trained(1.0), trained(-3.0)
    for name in one:
        for model in range(3):
            assert torch.equal(one[name][model], other[name][model]) == (model in blind), (name, model)
