"""The phases of split training on images: encoder and mean first, then, with these frozen, the precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from nescio.distributions import Gamma, StudentT
from nescio.generative.arrays import as_pixels
from nescio.generative.core import Autoencoder, PrecisionDecoder
from nescio.generative.training import fit_module, sampler_of
from nescio.objectives import PointLosses
from nescio.objectives.vae import (
    bernoulli_log_prob,
    entropy_loss,
    latent_kl,
    shared_variance_log_prob,
    v3ae_loss,
    vae_loss,
)
from nescio.training import Draw, Schedule

__all__ = ["CHUNK", "Course", "encode_all", "fit_autoencoder", "fit_entropy", "fit_precision", "fit_scale", "padded"]

CHUNK = 512
"""Images in one forward pass. Every pass has this many, so that an image's code does not depend on its batch."""


@dataclass(frozen=True)
class Course:
    """How a phase is trained: what the phases have in common."""

    epochs: int
    batch_size: int
    learning_rate: float
    n_samples: int
    n_latents: int
    seed: int
    device: torch.device
    compile: bool | str
    progress: Callable[[int], object] | None
    final_fraction: float = 0.02

    def steps(self, count: int) -> int:
        """Steps of one epoch over ``count`` images."""
        return -(-count // self.batch_size)

    def run(
        self, module: nn.Module, step: Any, count: int, *, pool: int = 0, pseudo: int = 0, fixed: bool = False
    ) -> None:
        """Train ``module`` on batches of ``count`` images, a chunk of an epoch at a time, and freeze it.

        ``fixed`` leaves the statistics of batch normalisation as they are.
        """
        each = self.steps(count)
        noise = (self.n_samples, self.n_latents)
        sampler = sampler_of(count, self.batch_size, noise, self.seed, self.device, pool=pool, pseudo=pseudo)
        schedule = Schedule(
            each * self.epochs,
            self.batch_size,
            self.learning_rate,
            final_fraction=self.final_fraction,
            check_every=each,
            keep="last",
        )
        module.train(not fixed)
        fit_module(module, step, sampler, schedule, compile=self.compile, progress=self.progress)
        module.eval().requires_grad_(False)

    def reseeded(self, seed: int, epochs: int) -> Course:
        """The same with another seed and another length."""
        return replace(self, seed=seed, epochs=epochs)


def fit_autoencoder(
    model: Autoencoder, images: Tensor, course: Course, *, likelihood: str = "gaussian", annealed: bool = False
) -> None:
    """Train encoder and mean decoder on ``images (N, C, H, W)``, then freeze them with their statistics.

    ``"gaussian"`` has one variance for all pixels, the best one for each batch; ``"bernoulli"`` is what the authors
    ran, ``annealed`` with the weight of the code's divergence rising from 0 to 1 over the phase.
    """
    total = course.steps(len(images)) * course.epochs
    taken = torch.zeros((), device=course.device)  # on the device, so that a captured step can count

    def step(call: Callable[..., Any], draw: Draw) -> PointLosses:
        x = as_pixels(images[draw.rows[0]])
        loc, scale, logits = call(x, draw.noise[0])  # type: ignore[index]
        target = x.flatten(1).expand_as(logits)
        if likelihood == "bernoulli":
            log_prob = bernoulli_log_prob(target, logits)
        else:
            log_prob = shared_variance_log_prob(target, torch.sigmoid(logits))
        weight: Tensor | float = 1.0
        if annealed:
            taken.add_(1.0)
            weight = taken / total
        return PointLosses(vae_loss(log_prob, latent_kl(loc, scale), latent_weight=weight).unsqueeze(0))

    course.run(model, step, len(images))


def padded(rows: Tensor, device: torch.device) -> Tensor:
    """``rows (N, ...)`` on a device, filled up with zeros to ``CHUNK`` of them."""
    return torch.cat([rows, rows.new_zeros(CHUNK - len(rows), *rows.shape[1:])]).to(device)


@torch.no_grad()
def encode_all(model: Autoencoder, images: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
    """Location and scale of the codes of ``images (N, C, H, W)``, ``(N, L)`` each, on ``device``."""
    parts = []
    for chunk in torch.split(images, CHUNK):
        loc, scale = model.encode(as_pixels(padded(chunk, device)))
        parts.append((loc[: len(chunk)], scale[: len(chunk)]))
    return torch.cat([loc for loc, _ in parts]), torch.cat([scale for _, scale in parts])


def _drawn(codes: tuple[Tensor, Tensor], draw: Draw) -> Tensor:
    """Codes of the images of a step, ``(S, B, L)``; the encoder is frozen, so its answers are looked up."""
    loc, scale = codes
    rows = draw.rows[0]
    return loc[rows] + scale[rows] * draw.noise[0]  # type: ignore[index]


def _each(gamma: Gamma, change: Callable[[Tensor], Tensor]) -> Gamma:
    return Gamma(change(gamma.concentration), change(gamma.rate))


def fit_scale(
    network: nn.Module,
    model: Autoencoder,
    images: Tensor,
    codes: tuple[Tensor, Tensor],
    course: Course,
    smallest_scale: float,
) -> None:
    """Train the standard deviation of a Gaussian decoder, with everything else frozen."""

    def step(call: Callable[..., Any], draw: Draw) -> PointLosses:
        z = _drawn(codes, draw)
        with torch.no_grad():
            mean = torch.sigmoid(model.logits(z))
        scale = softplus(call(z.flatten(0, 1))[0].flatten(1)).view_as(mean) + smallest_scale
        x = as_pixels(images[draw.rows[0]]).flatten(1).expand_as(mean)
        log_prob = StudentT(torch.full_like(scale, torch.inf), mean, scale).log_prob(x)
        return PointLosses(vae_loss(log_prob, log_prob.new_zeros(log_prob.shape[1])).unsqueeze(0))

    course.run(network, step, len(images))


def fit_precision(
    network: PrecisionDecoder,
    model: Autoencoder,
    images: Tensor,
    codes: tuple[Tensor, Tensor],
    course: Course,
    inside_prior: Callable[[Tensor], Gamma],
    *,
    pool: Tensor | None = None,
    outside_prior: Gamma | None = None,
    kl_weight: float = 1.0,
    pseudo_weight: float = 1.0,
    pseudo_batch: int = 0,
) -> None:
    """Train the posterior over the precision at codes of the data and, towards its prior, at a pool of pseudo-inputs.

    ``inside_prior`` maps codes ``(B, L)`` to a prior ``(B, P)``, ``(B, 1)`` or ``(P,)``. ``pool`` is ``(K, L)`` and
    ``outside_prior`` one prior for each of its points, ``(K, P)`` or ``(K, 1)``.
    """

    apart = any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in network.modules())

    def posteriors(call: Callable[..., Any], inside: Tensor, off: Tensor | None) -> tuple[Gamma, Gamma | None]:
        if off is None:
            return Gamma(*call(inside)), None
        if apart:  # two batches with statistics of their own, as the authors have it
            return Gamma(*call(inside)), Gamma(*call(off))
        concentration, rate = call(torch.cat([inside, off]))
        count = len(inside)
        return Gamma(concentration[:count], rate[:count]), Gamma(concentration[count:], rate[count:])

    def step(call: Callable[..., Any], draw: Draw) -> PointLosses:
        z = _drawn(codes, draw)
        with torch.no_grad():
            mean = torch.sigmoid(model.logits(z))
        inside = z.flatten(0, 1)
        places = None if draw.pseudo is None else draw.pseudo[0]
        q, q_off = posteriors(call, inside, None if pool is None else pool[places])
        flat = (len(inside), mean.shape[-1])
        prior = _each(inside_prior(inside), lambda part: part.expand(flat).view_as(mean).unsqueeze(0))
        prior_off = None
        if q_off is not None and outside_prior is not None:
            wide = q_off.rate.shape
            prior_off = _each(outside_prior, lambda part: part[places].expand(wide).unsqueeze(0))
        return v3ae_loss(
            as_pixels(images[draw.rows[0]]).flatten(1),
            mean.unsqueeze(0),
            _each(q, lambda part: part.view_as(mean).unsqueeze(0)),
            prior,
            mean.new_zeros(1, mean.shape[1]),
            None if q_off is None else _each(q_off, lambda part: part.unsqueeze(0)),
            prior_off,
            kl_weight=kl_weight,
            pseudo_weight=pseudo_weight,
        )

    course.run(network, step, len(images), pool=0 if pool is None else len(pool), pseudo=pseudo_batch)


def fit_entropy(
    decoder: nn.Module,
    images: Tensor,
    codes: tuple[Tensor, Tensor],
    course: Course,
    pool: Tensor,
    pseudo_weight: float,
    pseudo_batch: int,
) -> None:
    """Train a Bernoulli decoder on: likely images at codes of the data, undecided ones at pseudo-inputs."""

    def step(call: Callable[..., Any], draw: Draw) -> PointLosses:
        z = _drawn(codes, draw)
        logits = call(z.flatten(0, 1))[0].flatten(1).view(*z.shape[:2], -1)
        off = call(pool[draw.pseudo[0]])[0].flatten(1)  # type: ignore[index]
        x = as_pixels(images[draw.rows[0]]).flatten(1)
        return entropy_loss(
            x,
            logits.unsqueeze(0),
            logits.new_zeros(1, len(x)),
            off.unsqueeze(0),
            pseudo_weight=pseudo_weight,
        )

    # Data and pseudo-inputs would share the statistics of batch normalisation: those of the first phase are kept.
    course.run(decoder, step, len(images), pool=len(pool), pseudo=pseudo_batch, fixed=True)
