"""Phase two: what it does with the pools that it is given."""

from __future__ import annotations

import torch

from nescio.distributions import Gamma
from nescio.estimators.precision import PseudoInputs, _to


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
