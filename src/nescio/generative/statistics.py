"""Numbers per image that scores of foreignness are made of: one pass through encoder and decoder, no sampling."""

from __future__ import annotations

import math
import zlib
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution

from nescio._validation import check_integer
from nescio.densities import AggregatePosterior
from nescio.distributions import StudentT
from nescio.generative.arrays import as_pixels, image_tensor
from nescio.objectives import latent_kl

__all__ = ["LatentModel", "PrecisionModel", "compressed_bits", "image_statistics", "total_variation"]

GREY_VARIANCE = 1.0 / (12.0 * 255.0**2)
"""Variance of the rounding to 256 grey values: a Bernoulli pixel is never taken to be surer than that."""

SMALLEST_NORM = 1e-12  # far below one grey value, so that the logarithm of a perfect reconstruction is finite


class LatentModel(Protocol):
    """What a fitted model must offer; images are as in :func:`~nescio.generative.arrays.image_tensor`."""

    @property
    def codes_(self) -> AggregatePosterior:
        """Posteriors of training images' codes."""
        ...

    def encode(self, images: Any, /) -> tuple[np.ndarray, np.ndarray]:
        """Location and scale of the codes, ``(N, L)`` each."""
        ...

    def decode(self, z: np.ndarray, /) -> Distribution:
        """The distribution of the pixels, ``(N, P)``."""
        ...

    def pixels(self, images: Any, /) -> Tensor:
        """The images as the decoder sees them, ``(N, P)`` between 0 and 1."""
        ...

    def elbo(self, images: Any, *, n_samples: int = 1, seed: int = 0) -> np.ndarray:
        """The evidence lower bound, ``(N,)``, nats."""
        ...

    def score_samples(self, images: Any, *, n_samples: int = 100, seed: int = 0) -> np.ndarray:
        """The importance-weighted log-likelihood, ``(N,)``, nats."""
        ...


@runtime_checkable
class PrecisionModel(Protocol):
    """What a model with a posterior over its precision offers beyond that."""

    def knowledge(self, z: np.ndarray, /) -> np.ndarray:
        """Divergence of the posterior at a code from the outside prior, ``(N,)``, nats."""
        ...

    def epistemic_variance(self, z: np.ndarray, /) -> np.ndarray:
        """The part of the variance that a known precision would remove, ``(N,)``, mean over pixels."""
        ...


def image_statistics(model: LatentModel, images: Any, *, chunk: int = 1000) -> dict[str, np.ndarray]:
    r"""Statistics of each image at the mean of its code, by name, ``(N,)`` of float64 each.

    ================== ================================================================================================
    residual           :math:`\|x - \hat x\|`, and ``log_residual``
    spread             norm of the decoder's scale, and ``log_spread``, the sum of its logarithms (of the standard
                       deviation where the decoder is Bernoulli)
    code_norm          :math:`\|\mu_z\|`
    code_spread        :math:`\|\sigma_z\|`, and ``log_code_spread``, the sum of its logarithms
    surprise           :math:`\sum_p \log(1 + (x_p - \hat x_p)^2 / \sigma_p^2)`
    total_variation    of the image, ``mean_variation``, that of the mean image, and ``residual_variation``
    log_likelihood     of the image, given the mean of its code
    code_divergence    KL of its code's posterior from the standard Gaussian
    code_density       log-density of the mean code among those of training images
    total_variance     of the decoder, mean over pixels, and ``log_total_variance``
    knowledge          of models with a posterior over the precision, as are ``epistemic_variance`` (mean over pixels)
                       and ``log_epistemic_variance``
    ================== ================================================================================================

    A variance may be infinite, and with it its statistics. Images go through in chunks, which bounds the memory and
    does not change the numbers beyond rounding.

    Source: huang2024 (norms of what encoder and decoder give, as statistics of an image).
    """
    rows = check_integer("chunk", chunk, least=1)
    parts = [_statistics(model, part) for part in torch.split(image_tensor(images), rows)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _statistics(model: LatentModel, images: Tensor) -> dict[str, np.ndarray]:
    code_loc, code_scale = model.encode(images)
    loc, scale = torch.as_tensor(code_loc).double(), torch.as_tensor(code_scale).double()
    decoder, pixels = model.decode(code_loc), model.pixels(images)
    centre, spread = _centre(decoder).double(), _spread(decoder).double()
    error = pixels.double() - centre
    residual = torch.linalg.vector_norm(error, dim=1)
    total = decoder.variance.double().mean(1)
    columns = {
        "residual": residual,
        "log_residual": residual.clamp(min=SMALLEST_NORM).log(),
        "spread": torch.linalg.vector_norm(spread, dim=1),
        "log_spread": spread.log().sum(1),
        "code_norm": torch.linalg.vector_norm(loc, dim=1),
        "code_spread": torch.linalg.vector_norm(scale, dim=1),
        "log_code_spread": scale.log().sum(1),
        "surprise": torch.log1p((error / spread).square()).sum(1),
        "total_variation": total_variation(images),
        "mean_variation": variation(centre.view(images.shape)),
        "residual_variation": variation(error.view(images.shape)),
        "log_likelihood": decoder.log_prob(pixels).double().sum(1),
        "code_divergence": latent_kl(loc, scale),
        "code_density": model.codes_.log_prob(loc.to(model.codes_.loc.device)).cpu(),
        "total_variance": total,
        "log_total_variance": total.log(),
    }
    if isinstance(model, PrecisionModel):
        epistemic = torch.as_tensor(model.epistemic_variance(code_loc)).double()
        columns |= {
            "knowledge": torch.as_tensor(model.knowledge(code_loc)),
            "epistemic_variance": epistemic,
            "log_epistemic_variance": epistemic.log(),
        }
    return {name: column.detach().double().numpy() for name, column in columns.items()}


def _centre(decoder: Distribution) -> Tensor:
    return decoder.loc if isinstance(decoder, StudentT) else decoder.mean  # a mean does not exist at df <= 1


def _spread(decoder: Distribution) -> Tensor:
    return decoder.scale if isinstance(decoder, StudentT) else decoder.variance.clamp(min=GREY_VARIANCE).sqrt()


def total_variation(images: Tensor) -> Tensor:
    """Sum of absolute differences of neighbouring pixels, ``(N, C, H, W)`` to ``(N,)``; grey values from 0 to 1."""
    return variation(as_pixels(images).double())


def variation(pixels: Tensor) -> Tensor:
    """Sum of absolute differences of neighbours, ``(N, C, H, W)`` to ``(N,)``."""
    return pixels.diff(dim=2).abs().sum((1, 2, 3)) + pixels.diff(dim=3).abs().sum((1, 2, 3))


def compressed_bits(images: Any) -> np.ndarray:
    """Bits of each image after lossless compression, ``(N,)``: an upper bound on its complexity.

    As a PNG file without its header: the pixels, or their differences from those to the left, from those above, or from
    the better guess of the two (Paeth's), are deflated, and the shortest result counts. Floats are rounded to 256 grey
    values first.

    Source: serra2020, Section 3 (the shortest of several compressors).
    """
    found = image_tensor(images)
    grey = found if found.dtype == torch.uint8 else (255.0 * found).round().to(torch.uint8)
    pixels = np.ascontiguousarray(grey.movedim(1, -1).numpy())
    shortest = np.full(len(pixels), math.inf)
    for filtered in _filters(pixels):
        lengths = [len(zlib.compress(image.tobytes(), 9)) for image in filtered]
        shortest = np.minimum(shortest, 8.0 * np.array(lengths))
    return shortest


def _filters(pixels: np.ndarray) -> list[np.ndarray]:
    """Images ``(N, H, W, C)`` of bytes, as they are and as differences modulo 256; outside the image all is zero."""
    padded = np.pad(pixels, ((0, 0), (1, 0), (1, 0), (0, 0))).astype(np.int16)
    left, above, corner = padded[:, 1:, :-1], padded[:, :-1, 1:], padded[:, :-1, :-1]
    guess = left + above - corner
    to_left, to_above, to_corner = (np.abs(guess - other) for other in (left, above, corner))
    nearest = np.where(to_above <= to_corner, above, corner)
    paeth = np.where((to_left <= to_above) & (to_left <= to_corner), left, nearest)
    return [pixels, *((pixels - guess).astype(np.uint8) for guess in (left, above, paeth))]
