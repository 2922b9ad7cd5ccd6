"""Placements of the toy figures: fixed intervals, and a grid from which the hardest points are taken at every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nescio._validation import InputError, check_integer
from nescio.pseudo_inputs.base import check_request, draw_uniform

__all__ = ["BruteForce", "UniformIntervals"]


@dataclass(frozen=True)
class UniformIntervals:
    """Uniform points in fixed intervals, an equal share in each. Paper: fig:pi_placement.

    With several features an interval stands for the box that has it as every side. The default intervals hug the toy
    data on (0, 10), in its own units. Only the shape of ``points`` is used.
    """

    intervals: tuple[tuple[float, float], ...] = ((-3.0, 0.5), (10.2, 13.0))

    def __post_init__(self) -> None:
        if not self.intervals or any(not low < high for low, high in self.intervals):
            raise InputError(f"intervals must be pairs (low, high) with low < high; got {self.intervals!r}.")

    def __call__(self, points: Tensor, count: int, generators: Sequence[torch.Generator]) -> Tensor:
        check_request(points, count, generators)
        place = draw_uniform((count, points.shape[1]), generators, like=points)
        share = torch.arange(count, device=points.device) % len(self.intervals)
        low, high = torch.tensor(self.intervals, dtype=points.dtype, device=points.device)[share].unbind(dim=-1)
        return low[:, None] + (high - low)[:, None] * place


@dataclass(frozen=True)
class BruteForce:
    """A grid on one input, of which each training step takes the points with the largest KL. Paper: fig:toy_result.

    The call returns the whole grid as the pool, the same for every model, whatever ``count`` is; ``select`` then picks
    among it.
    """

    low: float = -25.0
    high: float = 35.0
    grid: int = 4000
    hardest: int = 1000
    stride: int = 2

    def __post_init__(self) -> None:
        check_integer("grid", self.grid, least=2)
        check_integer("hardest", self.hardest, least=1)
        check_integer("stride", self.stride, least=1)
        if not self.low < self.high:
            raise InputError(f"low must be below high; got {self.low!r} and {self.high!r}.")
        if not self.stride <= self.hardest <= self.grid:
            raise InputError(f"hardest must lie between stride and grid; got {self.hardest!r}.")

    def __call__(self, points: Tensor, count: int, generators: Sequence[torch.Generator]) -> Tensor:
        check_request(points, count, generators)
        if points.shape[1] != 1:
            raise InputError(f"BruteForce lays a grid on a single input; got points with {points.shape[1]} features.")
        pool = torch.linspace(self.low, self.high, self.grid, dtype=points.dtype, device=points.device)
        return pool[None, :, None].repeat(len(generators), 1, 1)

    def select(self, kl: Tensor) -> Tensor:
        """Grid numbers ``(M, hardest // stride)`` of every ``stride``-th of the hardest points, by ``kl (M, grid)``."""
        if kl.ndim != 2 or kl.shape[1] != self.grid:
            raise InputError(f"kl must have shape (M, {self.grid}); got {tuple(kl.shape)}.")
        ranked = kl.topk(self.hardest, dim=1).indices
        return ranked[:, : self.hardest // self.stride * self.stride : self.stride]
