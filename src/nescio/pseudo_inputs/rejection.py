"""Keep pseudo-inputs off the data: what falls too near a training row is drawn again, and in the end pushed away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from nescio._validation import InputError, check_fraction, check_integer, check_positive
from nescio.densities import NeighbourDistance, fit_neighbours
from nescio.pseudo_inputs.base import Placement, check_placed, check_request, draw_normal, fit_placement

__all__ = ["Rejected"]

# Each push goes this much farther than the one before it; the last lies at most this much beyond what was needed.
_PUSH = 1.25
# Fewest proposals asked for at once: small calls cost as much as this one.
_SMALLEST_REDRAW = 16


@dataclass(frozen=True)
class Rejected:
    """Another placement, with every point nearer to the data than ``threshold`` drawn again.

    Nearness is the mean distance to the ``k`` nearest of at most ``max_rows`` training rows, repeats dropped.
    ``threshold="auto"`` is ``factor`` times the ``quantile`` of the rows' own distance to each other; where that is no
    positive finite number (a single distinct row), ``factor`` times 1.0, the spread of a standardised column.
    Points still too near after ``max_rounds`` draws are pushed straight away from their nearest row, as far as needed:
    every point returned keeps the distance. What is drawn again follows from the model's own refusals, so
    model m never depends on its stack mates.
    """

    placement: Placement
    threshold: float | str = "auto"
    factor: float = 1.5
    quantile: float = 0.95
    k: int = 1
    max_rounds: int = 20
    max_rows: int = 10_000
    neighbours: NeighbourDistance | None = None

    def __post_init__(self) -> None:
        if isinstance(self.threshold, str):
            if self.threshold != "auto":
                raise InputError(f"threshold must be 'auto' or a positive number; got {self.threshold!r}.")
        else:
            check_positive("threshold", self.threshold)
        check_positive("factor", self.factor)
        check_fraction("quantile", self.quantile)
        check_integer("k", self.k, least=1)
        check_integer("max_rounds", self.max_rounds, least=0)
        check_integer("max_rows", self.max_rows, least=1)

    def fitted(self, points: Tensor) -> Rejected:
        """The same placement with its neighbours, its threshold and the inner placement settled for ``points``."""
        placement, neighbours, threshold = self._settle(points)
        return replace(self, placement=placement, neighbours=neighbours, threshold=threshold)

    def __call__(self, points: Tensor, count: int, generators: Sequence[torch.Generator]) -> Tensor:
        check_request(points, count, generators)
        placement, neighbours, threshold = self._settle(points)
        placed = check_placed(placement(points, count, generators), points, count, len(generators)).clone()
        near = neighbours.distance(placed) < threshold
        for _ in range(self.max_rounds):
            if not bool(near.any()):
                return placed
            fresh = _redraw(placement, points, near, generators)
            placed[near] = fresh
            near[near.clone()] = neighbours.distance(fresh) < threshold
        models = near.any(dim=1).nonzero()[:, 0].tolist()
        if models:
            spare = torch.zeros_like(placed)
            spare[models] = draw_normal(placed.shape[1:], [generators[model] for model in models], like=placed)
            placed[near] = _push_away(placed[near], spare[near], neighbours, threshold)
        return placed

    def _settle(self, points: Tensor) -> tuple[Placement, NeighbourDistance, float]:
        neighbours = self.neighbours
        if neighbours is None:
            neighbours = fit_neighbours(points, self.k, self.max_rows)
        threshold = self.threshold
        if isinstance(threshold, str):
            typical = float(torch.quantile(neighbours.leave_one_out().double(), self.quantile))
            threshold = self.factor * (typical if 0.0 < typical < torch.inf else 1.0)
        return fit_placement(self.placement, points), neighbours, threshold


def _redraw(placement: Placement, points: Tensor, near: Tensor, generators: Sequence[torch.Generator]) -> Tensor:
    """New proposals for the slots marked in ``near (M, count)``, in its order.

    A model asks for its own need rounded up to a power of two, never for that of its stack mates; models that ask for
    the same number are served together.
    """
    needs = near.sum(dim=1).tolist()
    count = near.shape[1]
    asked = [min(max(1 << (need - 1).bit_length(), _SMALLEST_REDRAW), count) if need else 0 for need in needs]
    fresh = points.new_empty((*near.shape, points.shape[1]))
    for size in sorted(set(asked) - {0}):
        models = [model for model, own in enumerate(asked) if own == size]
        proposals = placement(points, size, [generators[model] for model in models])
        slots = near[models]
        place = (slots.cumsum(dim=1) - 1).clamp(min=0, max=size - 1)
        fresh[models] = check_placed(proposals, points, size, len(models)).gather(
            1, place.unsqueeze(-1).expand(-1, -1, points.shape[1])
        )
    return fresh[near]


def _push_away(x: Tensor, spare: Tensor, neighbours: NeighbourDistance, threshold: float) -> Tensor:
    """Move each of ``x (n, D)`` along the ray from its nearest row until it is ``threshold`` away from all of them.

    Such a place exists: beyond the diameter of the data plus the threshold, every row is far enough. ``spare`` gives
    the direction of a point that lies on its row.
    """
    rows = neighbours.reference[neighbours.nearest(x)].to(x)
    direction = x - rows
    direction = torch.where((direction == 0).all(dim=-1, keepdim=True), spare, direction)
    direction = direction / torch.linalg.vector_norm(direction, dim=-1, keepdim=True)
    pushed, reach = x.clone(), threshold
    near = torch.ones(len(x), dtype=torch.bool, device=x.device)
    while bool(near.any()):
        reach *= _PUSH
        pushed[near] = rows[near] + reach * direction[near]
        near[near.clone()] = neighbours.distance(pushed[near]) < threshold
    return pushed
