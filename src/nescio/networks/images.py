"""Encoders and decoders of images: dense layers for small grey ones, convolutions for others.

Encoders map images ``(B, C, H, W)`` to ``(B, width)``, decoders map codes ``(B, L)`` to images ``(B, C, H, W)``. Each
map (a mean, a scale, a shape) is a network of its own, as in the paper; with ``shared_trunk`` all maps of a stage have
their layers but the last in common, as in the authors' convolutional code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from nescio._validation import InputError, check_integer

__all__ = [
    "DENSE",
    "DEPTHS",
    "ManyMaps",
    "convolutional_decoder",
    "convolutional_encoder",
    "dense_decoder",
    "dense_encoder",
]

DENSE = (512, 256)
DEPTHS = (32, 64, 128, 256, 512)
SLOPE = 0.01  # of the leaky units; torch's default and the authors'


def _dense(widths: Sequence[int], batch_norm: bool) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers.append(nn.Linear(before, after))
        if batch_norm:
            layers.append(nn.BatchNorm1d(after))
        layers.append(nn.LeakyReLU(SLOPE))
    return layers


def dense_encoder(
    image_shape: Sequence[int], width: int, hidden: Sequence[int] = DENSE, *, batch_norm: bool = True
) -> nn.Sequential:
    """Fully connected layers of the ``hidden`` widths, then ``width`` numbers.

    Paper: sec:appendix-generative-models-experiments (two hidden layers, batch normalisation, leaky units).
    """
    pixels = _pixels(image_shape)
    return nn.Sequential(nn.Flatten(), *_dense((pixels, *hidden), batch_norm), nn.Linear((pixels, *hidden)[-1], width))


def dense_decoder(
    n_latents: int, image_shape: Sequence[int], hidden: Sequence[int] = DENSE, *, batch_norm: bool = True
) -> nn.Sequential:
    """The mirror of :func:`dense_encoder`: the same widths in the opposite order, then the pixels.

    Paper: sec:appendix-generative-models-experiments.
    """
    pixels, widths = _pixels(image_shape), (check_integer("n_latents", n_latents, least=1), *reversed(tuple(hidden)))
    return nn.Sequential(
        *_dense(widths, batch_norm), nn.Linear(widths[-1], pixels), nn.Unflatten(1, tuple(image_shape))
    )


def convolutional_encoder(
    image_shape: Sequence[int], width: int, depths: Sequence[int] = DEPTHS, *, batch_norm: bool = True
) -> nn.Sequential:
    """Convolutions of size 3 and stride 2, one for each depth, then ``width`` numbers.

    Paper: sec:appendix-generative-models-experiments (depths 32 to 512, padding 1).
    """
    channels, height, breadth = image_shape
    layers: list[nn.Module] = []
    for before, after in pairwise((channels, *depths)):
        layers.append(nn.Conv2d(before, after, 3, stride=2, padding=1))
        layers += [nn.BatchNorm2d(after)] if batch_norm else []
        layers.append(nn.LeakyReLU(SLOPE))
        height, breadth = _halved(height), _halved(breadth)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(depths[-1] * height * breadth, width))


def convolutional_decoder(
    n_latents: int, image_shape: Sequence[int], depths: Sequence[int] = DEPTHS, *, batch_norm: bool = True
) -> nn.Sequential:
    """The mirror of :func:`convolutional_encoder`: transposed convolutions, and a plain one to the channels.

    Paper: sec:appendix-generative-models-experiments. Any height and width: each layer goes back to the size that the
    encoder's had.
    """
    channels, height, breadth = image_shape
    sizes = [(height, breadth)]
    for _ in depths:
        sizes.append((_halved(sizes[-1][0]), _halved(sizes[-1][1])))
    (top, side), deepest = sizes[-1], depths[-1]
    layers: list[nn.Module] = [nn.Linear(n_latents, deepest * top * side), nn.Unflatten(1, (deepest, top, side))]
    outputs = (*reversed(tuple(depths)[:-1]), depths[0])
    for before, after, small, large in zip(reversed(depths), outputs, sizes[:0:-1], sizes[-2::-1], strict=True):
        missing = large[0] - 2 * small[0] + 1, large[1] - 2 * small[1] + 1
        layers.append(nn.ConvTranspose2d(before, after, 3, stride=2, padding=1, output_padding=missing))
        layers += [nn.BatchNorm2d(after)] if batch_norm else []
        layers.append(nn.LeakyReLU(SLOPE))
    return nn.Sequential(*layers, nn.Conv2d(depths[0], channels, 3, padding=1))


class ManyMaps(nn.Module):
    """Several maps of one input, ``(B, ...)`` to ``(maps, B, ...)``: networks side by side, or on one trunk.

    Parameters
    ----------
    networks
        One for each map, all alike; sequences of layers, where they share a trunk.
    shared_trunk
        Whether all layers but the last parametrised one are those of the first network.
    """

    def __init__(self, networks: Sequence[nn.Sequential], shared_trunk: bool = False) -> None:
        super().__init__()
        if not networks:
            raise InputError("networks must hold at least one network.")
        start = _last_parametrised(networks[0]) if shared_trunk else 0
        self.trunk = networks[0][:start] if shared_trunk else nn.Sequential()
        self.maps = nn.ModuleList([network[start:] if shared_trunk else network for network in networks])

    def forward(self, x: Tensor) -> Tensor:
        """All maps of ``x``."""
        features = self.trunk(x)
        return torch.stack([network(features) for network in self.maps])


def _last_parametrised(network: nn.Sequential) -> int:
    return max(place for place, layer in enumerate(network) if any(True for _ in layer.parameters()))


def _pixels(image_shape: Sequence[int]) -> int:
    return math.prod(check_integer("image_shape", int(size), least=1) for size in image_shape)


def _halved(size: int) -> int:
    """The length after a convolution of size 3, stride 2 and padding 1."""
    return (size + 1) // 2
