"""What the mean leaves unexplained: the level that a shared variance and the inside priors are set by."""

from __future__ import annotations

import torch
from torch import Tensor

from nescio._random import child_seed
from nescio.generative.arrays import as_pixels
from nescio.generative.base import Learned
from nescio.generative.phases import CHUNK

__all__ = ["pixel_variance", "residual_variance"]


@torch.no_grad()
def residual_variance(learned: Learned) -> Tensor:
    """Mean squared residual of each pixel ``(P,)`` over the training images, at one drawn code of each."""
    loc, scale = learned.codes
    noise = torch.Generator().manual_seed(child_seed(learned.seed, "residuals"))
    z = loc + scale * torch.randn(loc.shape, generator=noise).to(loc)
    total = z.new_zeros(learned.images[0].numel(), dtype=torch.float64)
    for images, codes in zip(torch.split(learned.images, CHUNK), torch.split(z, CHUNK), strict=True):
        residual = as_pixels(images).flatten(1) - torch.sigmoid(learned.model.logits(codes))
        total += residual.double().square().sum(0)
    return (total / len(z)).float()


@torch.no_grad()
def pixel_variance(images: Tensor) -> Tensor:
    """Variance of each pixel ``(P,)`` over ``images (N, C, H, W)``."""
    count = len(images)
    first = second = torch.zeros((), dtype=torch.float64, device=images.device)
    for part in torch.split(images, CHUNK):
        x = as_pixels(part).flatten(1).double()
        first, second = first + x.sum(0), second + x.square().sum(0)
    return (second / count - (first / count) ** 2).clamp_min(0.0).float()
