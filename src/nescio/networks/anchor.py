"""The anchor: far beyond everything that was trained on, the posterior becomes the outside prior by construction."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nescio.distributions import Gamma

__all__ = ["Anchor"]


@dataclass(frozen=True)
class Anchor:
    r"""A weight :math:`w(x)` that rises from 0 to 1 with the distance from the data.

    .. math:: w = 3t^2 - 2t^3, \qquad t = \mathrm{clip}\Big(\frac{d(x) - s}{f - s}, 0, 1\Big)

    with :math:`d` the distance to the nearest of a few hundred ``centres (C, D)``, zero up to ``start`` and one from
    ``full`` on. A trained network extrapolates somewhere beyond its last pseudo-input; the anchor decides where.

    Deviation: the paper trusts the trained networks everywhere.
    """

    centres: Tensor
    start: float
    full: float

    def distance(self, x: Tensor) -> Tensor:
        """Distance of ``x (N, D)`` to the nearest centre, ``(N,)``.

        The squared distance is expanded into products, which loses about seven digits of a float32; the anchor
        compares it with radii of several standard deviations, where that does not matter.
        """
        centres = self.centres.to(x)
        products = torch.addmm(centres.square().sum(1), x, centres.T, alpha=-2.0)
        return (products.amin(1) + x.square().sum(1)).clamp_min(0.0).sqrt()

    def weight(self, x: Tensor) -> Tensor:
        """How far the outside prior has taken over at ``x (N, D)``, in [0, 1], ``(N,)``."""
        t = ((self.distance(x) - self.start) / (self.full - self.start)).clamp(0.0, 1.0)
        return t.square() * (3.0 - 2.0 * t)

    @staticmethod
    def blend(q: Gamma, prior: Gamma, weight: Tensor) -> Gamma:
        """Move the natural parameters of ``q`` to those of ``prior``; ``weight`` broadcasts against them."""
        return Gamma(
            torch.lerp(q.concentration, prior.concentration.expand_as(q.concentration), weight),
            torch.lerp(q.rate, prior.rate.expand_as(q.rate), weight),
        )
