"""Points on the rim of the data: where the density, along a random ray, has fallen to that of the rarest rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from nescio._validation import InputError, check_fraction, check_integer, check_positive
from nescio.densities import Density, NeighbourDistance, fit_gaussian_mixture, fit_neighbours, subsample_rows
from nescio.pseudo_inputs.base import check_request, draw_normal, draw_rows

__all__ = ["LevelSet"]

# Doublings of the first stride: 2^60 strides reach beyond any data that floating point can hold apart.
_DOUBLINGS = 60


@dataclass(frozen=True)
class LevelSet:
    r"""A point on the ray from a training row, in a uniformly random direction, where the log-density is at a level.

    The level is the ``quantile`` of the training rows' log-density, lowered by ``margin`` nats. The ray starts from a
    row at or above the level; strides, doubled from ``first_stride``, find where it is first seen below, and
    ``bisections`` halvings narrow the place down. The outer end is returned: its log-density is below the level.

    ``density``: ``"mixture"`` (a Gaussian mixture of at most ``n_components``), ``"neighbours"`` (the distance to the
    ``k`` nearest rows, the level then from the rows' leave-one-out distances), or a fitted density. No more than
    ``max_rows`` random rows are looked at. For a single distinct row the mixture's rim lies on the row and that of the
    neighbours at distance 1.

    Deviation: alg:pig takes a fixed number of steps and may stop anywhere; here the density reached is what is fixed.
    """

    quantile: float = 0.01
    margin: float = 0.0
    density: str | Density = "mixture"
    n_components: int = 64
    covariance_type: str = "diag"
    k: int = 1
    max_rows: int = 10_000
    first_stride: float = 0.1
    bisections: int = 24
    seed: int = 0
    level: float | None = None

    def __post_init__(self) -> None:
        check_fraction("quantile", self.quantile)
        check_positive("first_stride", self.first_stride)
        check_integer("bisections", self.bisections, least=1)
        if not (math.isfinite(self.margin) and self.margin >= 0):
            raise InputError(f"margin must be a finite number of nats of at least 0; got {self.margin!r}.")
        if isinstance(self.density, str) and self.density not in ("mixture", "neighbours"):
            raise InputError(f"density must be 'mixture', 'neighbours' or a fitted density; got {self.density!r}.")

    def fitted(self, points: Tensor) -> LevelSet:
        """The same placement with its density and level settled for ``points``."""
        density, level = self._settle(points)
        return replace(self, density=density, level=level)

    def __call__(self, points: Tensor, count: int, generators: Sequence[torch.Generator]) -> Tensor:
        check_request(points, count, generators)
        density, level = self._settle(points)
        candidates = subsample_rows(points, self.max_rows, self.seed)
        dense = candidates[density.log_prob(candidates) >= level]
        rows = draw_rows(dense if len(dense) else candidates, count, generators).double()
        direction = draw_normal(rows.shape[1:], generators, like=rows)
        direction = direction / torch.linalg.vector_norm(direction, dim=-1, keepdim=True)
        return self.walk(density, level, rows, direction).to(points)

    def walk(self, density: Density, level: float, rows: Tensor, direction: Tensor) -> Tensor:
        """From ``rows (*, D)`` along the unit vectors ``direction`` to just below ``level``; nothing here is random."""
        inner = torch.zeros_like(rows[..., :1])
        outer = torch.full_like(inner, self.first_stride)
        for _ in range(_DOUBLINGS):
            inside = density.log_prob(rows + outer * direction).unsqueeze(-1) >= level
            if not bool(inside.any()):
                break
            inner = torch.where(inside, outer, inner)
            outer = torch.where(inside, 2.0 * outer, outer)
        for _ in range(self.bisections):
            middle = 0.5 * (inner + outer)
            inside = density.log_prob(rows + middle * direction).unsqueeze(-1) >= level
            inner = torch.where(inside, middle, inner)
            outer = torch.where(inside, outer, middle)
        return rows + outer * direction

    def _settle(self, points: Tensor) -> tuple[Density, float]:
        density = self.density
        if density == "neighbours":
            density = fit_neighbours(points, self.k, self.max_rows, self.seed)
        elif isinstance(density, str):
            density = fit_gaussian_mixture(
                points, self.n_components, self.covariance_type, seed=self.seed, max_rows=self.max_rows
            )
        return density, self._level(density, points) if self.level is None else self.level

    def _level(self, density: Density, points: Tensor) -> float:
        if isinstance(density, NeighbourDistance):
            typical = density.leave_one_out().double()
            typical = torch.where((typical > 0) & (typical < torch.inf), typical, 1.0)
            values = -points.shape[1] * typical.log()
        else:
            values = density.log_prob(subsample_rows(points, self.max_rows, self.seed).double())
        return float(torch.quantile(values, self.quantile)) - self.margin
