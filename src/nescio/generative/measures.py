"""What a model of images is measured by, all of it from one checkpoint, in nats or in pixels between 0 and 1."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nescio._random import child_seed, seeded_scope
from nescio._validation import check_integer
from nescio.distributions import StudentT
from nescio.distributions.pixels import discretised_log_prob, truncated_log_prob
from nescio.objectives.vae import latent_kl

__all__ = ["image_measures", "ray_variances"]

PART = 1_000  # images whose pixels are measured at once
DIRECTIONS = 64
THREADS = 4  # more of them wait for memory


def image_measures(model: Any, images: Any, *, n_importance: int = 0, seed: int = 0) -> dict[str, float]:
    """Means over ``images`` of everything the tables have, with one drawn code per image.

    ``elbo``: the bound, nats per image. ``log_likelihood_expected``: its first term, E log p(x|z).
    ``log_likelihood_truncated``: the same with each pixel's density divided by its mass on [0, 1], without the code's
    divergence. ``bits_per_dim``: the bound with the probability of each of 256 grey values in place of a density, in
    bits per pixel, an upper bound on the code length. ``log_likelihood``: importance-weighted log p(x) with
    ``n_importance`` codes. ``rmse_mean``, ``rmse_sample``: root mean squared error, over all pixels, of the mean image
    and of an image drawn from the decoder. ``rmse_variance``: of the decoder's variance against the squared residual.

    Paper: tab:metrics-vae.
    """
    x = model.pixels(images)
    loc, scale = (torch.as_tensor(part) for part in model.encode(images))
    noise = torch.Generator().manual_seed(child_seed(seed, "codes of images"))
    z = loc + scale * torch.randn(loc.shape, generator=noise)
    divergence = latent_kl(loc.double(), scale.double())
    parts: list[dict[str, float]] = []
    masses = []
    with (
        seeded_scope(child_seed(seed, "pixels"), torch.device("cpu")),
        ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as pool,  # SciPy's part is long, and lets others run
    ):
        for start in range(0, len(x), PART):
            part, found = x[start : start + PART], model.decode(z[start : start + PART].numpy())
            parts.append(_pixel_sums(found, part))
            if isinstance(found, StudentT):
                masses.append(pool.submit(_mass_sums, found, part))
        parts += [mass.result() for mass in masses]
    sums = {name: sum(part.get(name, 0.0) for part in parts) for name in dict.fromkeys(n for p in parts for n in p)}
    count, pixels = x.shape
    result = {"elbo": (sums["log_prob"] - float(divergence.sum())) / count,
              "log_likelihood_expected": sums["log_prob"] / count}  # fmt: skip
    if "truncated" in sums:
        result["log_likelihood_truncated"] = sums["truncated"] / count
        nats = (float(divergence.sum()) - sums["discretised"]) / count
        result["bits_per_dim"] = nats / (pixels * math.log(2.0))
    for name in ("mean", "sample", "variance"):
        result[f"rmse_{name}"] = math.sqrt(sums[name] / (count * pixels))
    if check_integer("n_importance", n_importance, least=0):
        result["log_likelihood"] = float(model.score_samples(images, n_samples=n_importance, seed=seed).mean())
    return result


def _pixel_sums(found: Any, x: Tensor) -> dict[str, float]:
    residual = (x - found.mean).double().square()
    return {
        "log_prob": float(found.log_prob(x).double().sum()),
        "mean": float(residual.sum()),
        "sample": float((x - found.sample()).double().square().sum()),
        "variance": float((found.variance.double() - residual).square().sum()),
    }


def _mass_sums(found: StudentT, x: Tensor) -> dict[str, float]:
    double = StudentT(found.df.double(), found.loc.double(), found.scale.double())
    return {
        "truncated": float(truncated_log_prob(double, x.double()).sum()),
        "discretised": float(discretised_log_prob(double, x).sum()),
    }


def ray_variances(model: Any, radii: Any, *, directions: int = DIRECTIONS, seed: int = 0) -> np.ndarray:
    """The decoder's variance, averaged over pixels, along rays from the origin of codes, ``(directions, radii)``.

    Paper: fig:vae_variance_plots.  ``radii`` are in units of the radius of the data, the 99 % quantile of the norm of
    the training images' codes.
    """
    rng = np.random.default_rng(child_seed(seed, "rays"))
    rays = rng.normal(size=(directions, int(model.n_latents)))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    away = np.asarray(radii, dtype=float) * model.radius_
    codes = (rays[:, None, :] * away[None, :, None]).reshape(-1, rays.shape[1])
    return np.asarray(model.variance_map(codes)).reshape(directions, len(away))
