"""The parts of a variational autoencoder: encoder and mean decoder, and what the decoder says of its own precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from nescio._validation import InputError, check_one_of
from nescio.distributions import Gamma, StudentT
from nescio.networks import Anchor, Head
from nescio.networks.images import (
    ManyMaps,
    convolutional_decoder,
    convolutional_encoder,
    dense_decoder,
    dense_encoder,
)

__all__ = ["Autoencoder", "Decoded", "PrecisionDecoder", "make_decoder", "make_encoder"]

SMALLEST_SCALE = 1e-4  # of a code: a posterior of no width has no density
LARGE_IMAGE = 28 * 28  # grey pixels up to which dense layers are the paper's choice


def _kind(network: str | Callable[..., Any], name: str, image_shape: Sequence[int]) -> str:
    check_one_of(name, network, ("auto", "dense", "convolutional"))
    if network != "auto":
        return str(network)
    return "dense" if image_shape[0] * image_shape[1] * image_shape[2] <= LARGE_IMAGE else "convolutional"


def make_encoder(
    network: str | Callable[..., Any], image_shape: Sequence[int], n_latents: int, *, shared_trunk: bool = False
) -> nn.Module:
    """Two maps of an image, location and raw scale of its code: ``(B, C, H, W)`` to ``(2, B, L)``.

    ``network`` is ``"dense"``, ``"convolutional"``, ``"auto"`` (dense up to 28 x 28 grey pixels) or a function
    ``(image_shape, width) -> nn.Module`` that is called once for each map.
    """
    if not callable(network):
        network = {"dense": dense_encoder, "convolutional": convolutional_encoder}[
            _kind(network, "encoder", image_shape)
        ]
    return ManyMaps([network(image_shape, n_latents) for _ in range(2)], shared_trunk)


def make_decoder(
    network: str | Callable[..., Any],
    n_latents: int,
    image_shape: Sequence[int],
    maps: int,
    *,
    batch_norm: bool,
    shared_trunk: bool = False,
) -> nn.Module:
    """Maps of a code to images, ``(B, L)`` to ``(maps, B, C, H, W)``.

    ``network`` is a name as for :func:`make_encoder` or a function ``(n_latents, image_shape) -> nn.Module``, which is
    called once for each map and says itself whether it has batch normalisation.
    """
    if not callable(network):
        kinds = {"dense": dense_decoder, "convolutional": convolutional_decoder}
        network = partial(kinds[_kind(network, "decoder", image_shape)], batch_norm=batch_norm)
    return ManyMaps([network(n_latents, image_shape) for _ in range(maps)], shared_trunk)


class Autoencoder(nn.Module):
    """Encoder and mean decoder, what the first phase trains and then freezes."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def encode(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Location and scale of the codes of ``images (B, C, H, W)``, ``(B, L)`` each."""
        raw = self.encoder(images)
        return raw[0], softplus(raw[1]) + SMALLEST_SCALE

    def logits(self, z: Tensor) -> Tensor:
        """The mean image of codes ``z (*, L)`` before its sigmoid, ``(*, P)``."""
        images: Tensor = self.decoder(z.reshape(-1, z.shape[-1]))[0]
        return images.reshape(*z.shape[:-1], -1)

    def forward(self, images: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Location and scale of the codes, and the logits of codes drawn with ``noise (S, B, L)``, ``(S, B, P)``."""
        loc, scale = self.encode(images)
        return loc, scale, self.logits(loc + scale * noise)


class PrecisionDecoder(nn.Module):
    """Maps of a code to the Gamma posterior over the precision of each pixel, around a starting point."""

    def __init__(self, maps: nn.Module, head: Head, offset: Tensor) -> None:
        super().__init__()
        self.maps, self.head = maps, head
        self.register_buffer("offset", offset)  # (2, P) or (2, 1): raw values that training starts from

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Shape and rate at codes ``z (B, L)``, ``(B, P)`` each."""
        raw = self.maps(z).flatten(2) + self.offset.unsqueeze(1)  # type: ignore[operator]
        q = self.head(raw.unsqueeze(0))
        return q.concentration[0], q.rate[0]


@dataclass(frozen=True)
class Decoded:
    """How a decoder answers: from the logits of the mean and the codes to a distribution over pixels.

    At most one of these is there: ``variance`` (one number, or one per pixel), a network of the ``scale``, or one of
    the Gamma posterior over the ``precision``, which far from the codes of the data becomes the ``outside`` prior. With
    none of them pixels are Bernoulli.
    """

    variance: Tensor | None = None
    scale: nn.Module | None = None
    precision: PrecisionDecoder | None = None
    outside: Gamma | None = None
    anchor: Anchor | None = None
    smallest_scale: float = 1e-3

    def posterior(self, z: Tensor) -> Gamma:
        """q(precision | z) at codes ``z (B, L)``, ``(B, P)``."""
        if self.precision is None:
            raise InputError("this model has no posterior over the precision.")
        q = Gamma(*self.precision(z))
        if self.anchor is None or self.outside is None:
            return q
        with torch.no_grad():  # a distance of zero has no gradient, and where the weight moves the data are far
            weight = self.anchor.weight(self.anchor.distance(z)).unsqueeze(1)
        return Anchor.blend(q, self.outside, weight)

    def __call__(self, logits: Tensor, z: Tensor) -> torch.distributions.Distribution:
        """The distribution of the pixels, ``(B, P)``, of codes ``z (B, L)``."""
        if self.precision is not None:
            return StudentT.from_gamma(torch.sigmoid(logits), self.posterior(z))
        if self.scale is not None:
            scale = softplus(self.scale(z)[0].flatten(1)) + self.smallest_scale
        elif self.variance is not None:
            scale = self.variance.sqrt().expand_as(logits)
        else:
            return torch.distributions.Bernoulli(logits=logits, validate_args=False)
        return StudentT(torch.full_like(scale, torch.inf), torch.sigmoid(logits), scale)
