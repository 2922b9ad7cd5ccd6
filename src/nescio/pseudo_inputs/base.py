"""What a placement is, and how each model of a stack draws from its own generator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from nescio._validation import InputError, check_integer

__all__ = [
    "FittablePlacement",
    "Placement",
    "check_placed",
    "check_request",
    "draw_normal",
    "draw_rows",
    "draw_uniform",
    "fit_placement",
]


class Placement(Protocol):
    """Puts pseudo-inputs where the data are not; any callable of this signature is one.

    ``points (N, D)`` are the standardised training inputs, ``generators`` one per model of the stack; the result is
    ``(M, count, D)`` in the dtype and on the device of ``points``. Model m's points depend on its own generator alone.
    """

    def __call__(self, points: Tensor, count: int, generators: Sequence[torch.Generator]) -> Tensor:
        """``count`` pseudo-inputs for each of the ``M = len(generators)`` models."""
        ...


@runtime_checkable
class FittablePlacement(Protocol):
    """A placement that learns something from the points and can learn it once for many calls."""

    def fitted(self, points: Tensor) -> Placement:
        """The same placement with its density already fitted to ``points``."""
        ...


def fit_placement(placement: Placement, points: Tensor) -> Placement:
    """Fit ``placement`` to ``points`` if it has anything to fit; the result gives the same points, call after call."""
    return placement.fitted(points) if isinstance(placement, FittablePlacement) else placement


def check_request(points: Tensor, count: int, generators: Sequence[torch.Generator]) -> None:
    """Refuse points that are not a table with rows, and a count or a stack of nothing."""
    if points.ndim != 2 or points.shape[0] < 1 or points.shape[1] < 1 or not points.is_floating_point():
        raise InputError(f"points must be a floating-point table (N, D) with rows; got {tuple(points.shape)}.")
    check_integer("count", count, least=1)
    if len(generators) < 1:
        raise InputError("generators must hold one generator per model; got none.")


def check_placed(placed: Tensor, points: Tensor, count: int, models: int) -> Tensor:
    """Refuse what a placement of the user's returned if it is not ``(M, count, D)``."""
    wanted = (models, count, points.shape[1])
    if tuple(placed.shape) != wanted:
        raise InputError(
            f"a placement must return the shape (models, count, features) = {wanted}; got {tuple(placed.shape)}."
        )
    return placed


def draw_normal(shape: Sequence[int], generators: Sequence[torch.Generator], like: Tensor) -> Tensor:
    """Standard normal numbers ``(M, *shape)`` in the dtype and on the device of ``like``.

    Drawn in float64, so that a model in float32 meets the same points up to rounding.
    """
    drawn = [torch.randn(*shape, generator=own, device=own.device, dtype=torch.float64) for own in generators]
    return torch.stack([numbers.to(like) for numbers in drawn])


def draw_uniform(shape: Sequence[int], generators: Sequence[torch.Generator], like: Tensor) -> Tensor:
    """Uniform numbers in [0, 1), ``(M, *shape)``, in the dtype and on the device of ``like``."""
    drawn = [torch.rand(*shape, generator=own, device=own.device, dtype=torch.float64) for own in generators]
    return torch.stack([numbers.to(like) for numbers in drawn])


def draw_rows(points: Tensor, count: int, generators: Sequence[torch.Generator]) -> Tensor:
    """``count`` rows of ``points (N, D)`` for each model, ``(M, count, D)``, with replacement only when it must be.

    Rows come in random order, whole passes over the table first: every row is drawn as often as any other, give or
    take one.
    """
    check_request(points, count, generators)
    passes = -(-count // len(points))
    picked = []
    for own in generators:
        orders = [torch.randperm(len(points), generator=own, device=own.device) for _ in range(passes)]
        picked.append(torch.cat(orders)[:count].to(points.device))
    return points[torch.stack(picked)]
