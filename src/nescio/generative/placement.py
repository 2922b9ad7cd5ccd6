"""Pseudo-inputs in the space of codes, off those of the training images."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from nescio._random import child_seed, generators
from nescio._validation import InputError
from nescio.generative.base import Learned
from nescio.pseudo_inputs import CodeDescent, MultiScale, Placement, Rejected

__all__ = ["drawn_codes", "place_codes"]

DEFAULT = Rejected(MultiScale(1.5, 8.0), factor=4.0)
LEAST_DISTANCE = 1.0
"""From the nearest code, in units of the codes' standard Gaussian prior: in two or three latent dimensions the codes
lie so close together that a few times their spacing is still among them."""


def place_codes(learned: Learned, placement: Placement | CodeDescent | None, count: int) -> Tensor:
    """Pseudo-inputs ``(K, L)`` away from codes drawn for the training images."""
    (stream,) = generators(learned.seed, "pseudo-inputs", 1)
    if isinstance(placement, CodeDescent):
        return placement.around(*learned.codes, count, stream)
    points = drawn_codes(learned)
    chosen = placement
    if chosen is None:
        settled = DEFAULT.fitted(points)
        chosen = replace(settled, threshold=max(float(settled.threshold), LEAST_DISTANCE))
    placed = chosen(points, count, [stream])
    if placed.shape[0] != 1 or placed.shape[2] != points.shape[1] or not bool(torch.isfinite(placed).all()):
        raise InputError(
            f"placement must return finite points of shape (1, {count}, {points.shape[1]}); it returned "
            f"{tuple(placed.shape)}."
        )
    return placed[0].to(points)


def drawn_codes(learned: Learned) -> Tensor:
    """One code drawn for each training image, ``(N, L)``."""
    loc, scale = learned.codes
    noise = torch.Generator().manual_seed(child_seed(learned.seed, "drawn codes"))
    return loc + scale * torch.randn(loc.shape, generator=noise).to(loc)
