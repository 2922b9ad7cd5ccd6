"""Codes fitted anew with the decoder as it is: for all images together, or for each on its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from nescio._random import child_seed
from nescio._validation import check_integer
from nescio.generative.arrays import as_pixels
from nescio.generative.core import SMALLEST_SCALE, Autoencoder, Decoded
from nescio.generative.phases import CHUNK, Course
from nescio.objectives import PointLosses
from nescio.objectives.vae import latent_kl, vae_loss
from nescio.training import Draw

__all__ = ["refit_codes", "refit_encoder"]

PAIRS = 2  # of opposite draws for each image


def refit_encoder(
    model: Autoencoder,
    decoded: Decoded,
    images: Tensor,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
    compile: bool | str = "auto",
) -> None:
    """Train the encoder on ``images (N, C, H, W)``, its batch normalisation included; the decoder does not move."""
    check_integer("epochs", epochs, least=1)
    latents = model.encode(as_pixels(images[:1]))[0].shape[1]

    def step(call: Callable[..., Any], draw: Draw) -> PointLosses:
        x = as_pixels(images[draw.rows[0]])
        raw = call(x)
        loc, scale = raw[0], softplus(raw[1]) + SMALLEST_SCALE
        z = loc + scale * draw.noise[0]  # type: ignore[index]
        flat = z.flatten(0, 1)
        log_prob = decoded(model.logits(flat), flat).log_prob(x.flatten(1).repeat(len(z), 1))
        return PointLosses(vae_loss(log_prob.view(len(z), len(x), -1), latent_kl(loc, scale)).unsqueeze(0))

    model.encoder.requires_grad_(True)
    course = Course(
        epochs, min(batch_size, len(images)), learning_rate, 1, latents, child_seed(seed, "refit"), images.device,
        compile, None, final_fraction=1.0,
    )  # fmt: skip
    course.run(model.encoder, step, len(images))


def refit_codes(
    model: Autoencoder,
    decoded: Decoded,
    x: Tensor,
    loc: np.ndarray,
    scale: np.ndarray,
    steps: int,
    learning_rate: float,
    seed: int,
    device: torch.device,
) -> np.ndarray:
    """The bound of each image ``x (N, P)`` after its own code's location and scale went ``steps`` up the bound.

    Source: xiao2020 (there the whole encoder is fitted to one image at a time).  Adam moves every number by itself, so
    images fitted in one batch do not see each other. All images have the same few draws of noise, in pairs of
    opposite sign. The code with the best bound on the way is kept, and its bound is taken with other draws:
    with the same ones it would be none.
    """
    check_integer("steps", steps, least=0)
    found = []
    stream = torch.Generator().manual_seed(child_seed(seed, "refit"))
    half = torch.randn(2, PAIRS, 1, loc.shape[1], generator=stream)
    drawn, fresh = (torch.cat([part, -part]).to(device) for part in half)

    def bounds(where: Tensor, width: Tensor, target: Tensor, noise: Tensor) -> Tensor:
        z = (where + width.exp() * noise).flatten(0, 1)
        log_prob = decoded(model.logits(z), z).log_prob(target.repeat(len(noise), 1)).sum(1)
        return log_prob.view(len(noise), -1).mean(0) - latent_kl(where, width.exp())

    for start in range(0, len(x), CHUNK):
        rows = slice(start, start + CHUNK)
        target = x[rows].to(device)
        where = torch.as_tensor(loc[rows]).to(device).requires_grad_()
        width = torch.as_tensor(scale[rows]).to(device).log().requires_grad_()
        optimiser = torch.optim.Adam([where, width], lr=learning_rate)
        best = torch.full((len(target),), -torch.inf, device=device)
        kept = [where.detach().clone(), width.detach().clone()]
        for _ in range(steps + 1):
            bound = bounds(where, width, target, drawn)
            better = (bound.detach() > best).unsqueeze(1)
            best = torch.fmax(best, bound.detach())
            kept = [torch.where(better, now.detach(), old) for now, old in zip((where, width), kept, strict=True)]
            where.grad, width.grad = torch.autograd.grad(-bound.sum(), [where, width])
            optimiser.step()
        with torch.no_grad():
            found.append(bounds(kept[0], kept[1], target, fresh).double().cpu())
    return np.asarray(torch.cat(found).numpy())
