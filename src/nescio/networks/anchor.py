"""The anchor: far beyond everything that was trained on, the posterior becomes the outside prior by construction."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nescio.distributions import Gamma

__all__ = ["Anchor"]


BLOCK = 262_144  # products of rows and centres held at once: 2 MiB, which a core's cache holds
CHUNK = 16_384  # rows whose distances to all centres are held at once
ROUNDING = 1e-2  # times the size of a row: a smaller distance is taken again, in full precision


@dataclass(frozen=True)
class Anchor:
    r"""A weight :math:`w(x)` that rises from 0 to 1 with the distance from the data.

    .. math:: w = 3t^2 - 2t^3, \qquad t = \mathrm{clip}\Big(\frac{d(x) - s}{f - s}, 0, 1\Big)

    with :math:`d` the distance to the nearest of about a thousand ``centres (C, D)``, zero up to ``start`` and one from
    ``full`` on. A trained network extrapolates somewhere beyond its last pseudo-input; the anchor decides where. The
    same distance is also an input of the precision networks.

    Deviation: the paper trusts the trained networks everywhere, and shows them nothing but x.
    """

    centres: Tensor
    start: float
    full: float
    spacing: float = 1.0
    """The usual distance of a row from the nearest other centre."""

    def distance(self, x: Tensor) -> Tensor:
        """Distance of ``x (N, D)`` to the nearest centre, ``(N,)``.

        The squared distance is expanded into products, in double precision: a float32 would lose a distance below
        1e-3 times the size of a row, and the networks see it.
        """
        centres, rows = self.centres.to(x.device, torch.float64), x.double()
        products = torch.addmm(centres.square().sum(1), rows, centres.T, alpha=-2.0)
        return (products.amin(1) + rows.square().sum(1)).clamp_min(0.0).sqrt().to(x.dtype)

    def distances(self, x: Tensor) -> Tensor:
        """:meth:`distance` for any number of rows, a part of them at a time, ``(N, D)`` to ``(N,)``."""
        step = max(1, BLOCK // len(self.centres)) if x.device.type == "cpu" else CHUNK
        return torch.cat([self.distance(part) for part in torch.split(x, step)])

    def distance_to_others(self, x: Tensor) -> Tensor:
        """Distance of rows ``x (N, D)``, some of them centres, to the nearest centre that is not the same, ``(N,)``.

        Zero where there is no other. For a row that is new to the model this is :meth:`distance`.
        """
        centres = self.centres.to(x)
        found = []
        for part in torch.split(x, CHUNK):
            distance = self.distance(part)
            doubtful = (distance < ROUNDING * (1.0 + part.square().sum(1).sqrt())).nonzero()[:, 0]
            for rows in torch.split(doubtful, CHUNK // 8):
                exact = torch.cdist(part[rows], centres, compute_mode="donot_use_mm_for_euclid_dist")
                nearest = exact.masked_fill(exact == 0.0, torch.inf).amin(1)
                distance[rows] = torch.where(torch.isinf(nearest), 0.0, nearest)
            found.append(distance)
        return torch.cat(found)

    def append(self, x: Tensor, distance: Tensor) -> Tensor:
        r"""``x (N, D)`` with one more column, :math:`\log(1 + d / s)` with s the spacing, ``(N, D + 1)``."""
        return torch.cat([x, torch.log1p(distance / self.spacing).unsqueeze(-1)], dim=-1)

    def weight(self, distance: Tensor) -> Tensor:
        """How far the outside prior has taken over at a ``distance (*)`` from the centres, in [0, 1], ``(*)``."""
        t = ((distance - self.start) / (self.full - self.start)).clamp(0.0, 1.0)
        return t.square() * (3.0 - 2.0 * t)

    @staticmethod
    def blend(q: Gamma, prior: Gamma, weight: Tensor) -> Gamma:
        """Move the natural parameters of ``q`` to those of ``prior``; ``weight`` broadcasts against them."""
        return Gamma(
            torch.lerp(q.concentration, prior.concentration.expand_as(q.concentration), weight),
            torch.lerp(q.rate, prior.rate.expand_as(q.rate), weight),
        )
