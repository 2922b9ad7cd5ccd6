"""Images that do not belong to a set: its own, turned or mirrored, noise, constant ones, and those of other sets."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from nescio._validation import InputError, check_integer
from nescio.datasets.images import ImageData, load_images

__all__ = ["FOREIGN_TRANSFORMS", "foreign_images"]

Transform = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def _constant(images: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    grey = generator.integers(0, 256, size=(len(images), *[1] * (images.ndim - 1)), dtype=np.uint8)
    return np.broadcast_to(grey, images.shape)


FOREIGN_TRANSFORMS: dict[str, Transform] = {
    "flip_vertical": lambda images, generator: images[:, ::-1],
    "flip_horizontal": lambda images, generator: images[:, :, ::-1],
    "rotate_90": lambda images, generator: np.rot90(images, axes=(1, 2)),
    "rotate_180": lambda images, generator: np.rot90(images, 2, axes=(1, 2)),
    "noise": lambda images, generator: generator.integers(0, 256, size=images.shape, dtype=np.uint8),
    "constant": _constant,
}
"""Foreign images that need no other set: ``(N, H, W)`` or ``(N, H, W, C)`` to the same shape.

``flip_vertical`` stands images on their heads, ``flip_horizontal`` mirrors them, ``rotate_90`` turns them to the left.
``noise`` is uniform and independent in every pixel, ``constant`` one random grey for each image.
"""


def foreign_images(
    name: str, inside: ImageData | str, seed: int = 0, *, root: str | os.PathLike[str] | None = None
) -> np.ndarray:
    """Images foreign to the set ``inside``, ``uint8`` and of the size and channels of its test images.

    ``name`` is one of ``FOREIGN_TRANSFORMS``, applied to the test images of ``inside`` (as many come out), or the name
    of another set, whose whole test part is given. ``inside`` is a set or its name; sets come from ``load_images``.

    Polarity: ``fashion_mnist``, ``mnist``, ``kmnist_2018``, ``notmnist`` and ``omniglot_small`` all have light ink on a
    black ground. Omniglot is published as black ink on white; a number for it belongs to this, inverted polarity alone.
    """
    check_integer("seed", seed, least=0)
    own = load_images(inside, root) if isinstance(inside, str) else inside
    if not len(own.test):
        raise InputError(f"'{own.name}' has no test images to compare foreign ones with.")
    if name in FOREIGN_TRANSFORMS:
        if name == "rotate_90" and own.test.shape[1] != own.test.shape[2]:
            raise InputError(f"'rotate_90' needs square images; those of '{own.name}' are {_size(own.test)}.")
        return np.ascontiguousarray(FOREIGN_TRANSFORMS[name](own.test, np.random.default_rng(seed)))
    if name == own.name:
        raise InputError(f"'{name}' is the inside set itself; name another set, or a transform of it.")
    images = load_images(name, root).test
    if images.shape[1:] != own.test.shape[1:]:
        raise InputError(
            f"images of '{name}' are {_size(images)}, those of '{own.name}' {_size(own.test)}; they are not converted."
        )
    return images


def _size(images: np.ndarray) -> str:
    height, width, *channels = images.shape[1:]
    return f"{height} x {width} {'colour' if channels else 'grey'}"
