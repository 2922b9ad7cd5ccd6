"""Priors over the precision of pixels: the same for all, one per channel or pixel, or growing with the distance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from sklearn.cluster import MiniBatchKMeans
from torch import Tensor

from nescio._validation import check_one_of
from nescio.distributions import Gamma
from nescio.objectives import PriorFunction, constant_prior

__all__ = ["PRIORS", "CodePrior", "centroids", "distance_prior", "inside_prior"]

CodePrior = PriorFunction
"""From codes ``(B, L)`` to a prior that broadcasts to ``(B, P)``."""

PRIORS = ("weak", "residual", "channel", "pixel", "distance", "distance_linear")
WEAK = 2.0, 1e-6  # the authors' shape and rate for the likelihood table
SMALLEST_VARIANCE = 1e-6  # of a pixel: half a grey value in 256, squared, is 4e-6
FAR = 1e4  # how many times the rate at the data the authors' prior has far away
SCALE = 0.3  # of the authors' sigmoid; its middle lies where it is a thousandth at distance zero
MIDDLE = math.log(999.0) * SCALE
CENTROIDS = 50  # of K-means, in the authors' code; the paper says the number of classes


def inside_prior(
    kind: str | tuple[Any, ...],
    shape: float,
    residual_variance: Tensor,
    image_shape: Sequence[int],
    codes: Tensor,
    seed: int,
) -> CodePrior:
    """The prior at the data, by its name, as ``(shape, rate)``, or as ``("distance", shape, rate)``.

    ``"weak"`` is Gamma(2, 1e-6), the authors'; ``"residual"``, ``"channel"`` and ``"pixel"`` have the mean squared
    residual as their level, over all pixels, those of a channel, or each pixel. ``residual_variance`` is ``(P,)``.
    """
    if not isinstance(kind, str) and isinstance(kind[0], str):
        name, concentration, rate = kind
        return distance_prior(centroids(codes, seed), concentration, rate, linear=name.endswith("linear"))
    if not isinstance(kind, str):
        concentration, rate = kind
        return constant_prior(Gamma(codes.new_tensor([concentration]), codes.new_tensor([rate])))
    check_one_of("prior", kind, PRIORS)
    if kind == "weak":
        return inside_prior(WEAK, shape, residual_variance, image_shape, codes, seed)
    if kind.startswith("distance"):
        base = float(residual_variance.mean()) * (shape - 1.0) / (1.0 + 1e-3 * FAR)
        return distance_prior(centroids(codes, seed), shape, max(base, 1e-9), linear=kind.endswith("linear"))
    variance = residual_variance.clamp_min(SMALLEST_VARIANCE)
    if kind == "residual":
        variance = variance.mean().reshape(1)
    elif kind == "channel":
        channels = variance.view(image_shape[0], -1).mean(1, keepdim=True)
        variance = channels.expand(image_shape[0], variance.numel() // image_shape[0]).reshape(-1)
    return constant_prior(Gamma(torch.full_like(variance, shape), (shape - 1.0) * variance))


def centroids(codes: Tensor, seed: int, count: int = CENTROIDS) -> Tensor:
    """K-means centroids of codes ``(N, L)``, ``(K, L)``."""
    rows = codes.detach().cpu().double().numpy()
    found = MiniBatchKMeans(min(count, len(rows)), random_state=seed % 2**32, n_init=3).fit(rows)
    return torch.as_tensor(found.cluster_centers_).to(codes)


def distance_prior(
    centres: Tensor, concentration: float, rate: float, *, far: float = FAR, linear: bool = False
) -> CodePrior:
    r"""A prior whose rate grows with the distance d from the nearest centroid.

    .. math:: b(z) = b\,\bigl((1 - s) + s X\bigr), \qquad s = \mathrm{sigmoid}\Bigl(\frac{d - c}{0.3}\Bigr), \quad
              c = 0.3 \log 999

    Paper: sec:appendix-generative-models-experiments.  ``linear`` has :math:`s = \min(d / 2c, 1)` instead, as the text
    there says; the sigmoid is what was run.
    """

    def prior(z: Tensor) -> Gamma:
        distance = torch.cdist(z, centres.to(z)).amin(1, keepdim=True)
        share = (distance / (2.0 * MIDDLE)).clamp_max(1.0) if linear else torch.sigmoid((distance - MIDDLE) / SCALE)
        return Gamma(torch.full_like(share, concentration), rate * ((1.0 - share) + share * far))

    return prior
