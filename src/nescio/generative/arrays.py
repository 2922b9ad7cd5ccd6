"""Images in: arrays, tensors or a data set, checked, as one tensor of bytes or of numbers between 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from nescio._validation import InputError

__all__ = ["as_pixels", "image_tensor"]

CHANNELS = (1, 3, 4)  # grey, colour, colour with transparency


def image_tensor(images: Any, image_shape: Sequence[int] | None = None) -> Tensor:
    """Images as ``(N, C, H, W)``: ``uint8`` where they were bytes, else ``float32`` between 0 and 1.

    NumPy arrays are ``(N, H, W)`` or ``(N, H, W, C)``, tensors ``(N, H, W)`` or ``(N, C, H, W)``; four axes whose
    channels can only be the other way round are taken that way. A map-style ``Dataset`` gives an image, or a tuple that
    begins with one, for each index. With ``image_shape`` the images must have that ``(C, H, W)``.
    """
    channels_first = not isinstance(images, np.ndarray)
    if isinstance(images, Dataset):
        images = _from_dataset(images)
    try:
        found = images.detach().cpu() if isinstance(images, Tensor) else torch.from_numpy(np.ascontiguousarray(images))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"images must be an array of bytes or of floats between 0 and 1; got {type(images).__name__}."
        ) from error
    if found.ndim not in (3, 4) or 0 in found.shape:
        raise InputError(
            "images must have three axes (image, row, column) or four, with channels, and none of them empty; "
            f"got the shape {tuple(found.shape)}."
        )
    if found.ndim == 3:
        found = found.unsqueeze(1)
    elif _swapped(found.shape, channels_first):
        found = found.movedim(-1, 1) if channels_first else found
    elif not channels_first:
        found = found.movedim(-1, 1)
    found = _checked_values(found)
    if image_shape is not None and tuple(found.shape[1:]) != tuple(image_shape):
        raise InputError(
            f"these images are {_words(found.shape[1:])}, but the model was fitted to {_words(image_shape)}."
        )
    return found.contiguous()


def as_pixels(images: Tensor) -> Tensor:
    """Images ``(N, C, H, W)`` as ``float32`` between 0 and 1."""
    return images.float() / 255.0 if images.dtype == torch.uint8 else images.float()


def _swapped(shape: Sequence[int], channels_first: bool) -> bool:
    first, last = shape[1] in CHANNELS, shape[-1] in CHANNELS
    return (last and not first) if channels_first else (first and not last)


def _checked_values(images: Tensor) -> Tensor:
    if images.dtype == torch.uint8:
        return images
    if not images.is_floating_point():
        raise InputError(
            f"images must be bytes (uint8) or floats between 0 and 1; got {images.dtype}. Convert them to uint8."
        )
    if not bool(torch.isfinite(images).all()):
        raise InputError("images must not hold NaN or infinite pixels; clean or drop these images.")
    low, high = float(images.min()), float(images.max())
    if low < 0.0 or high > 1.0:
        hint = " Divide by 255." if 1.0 < high <= 255.0 and low >= 0.0 else ""
        raise InputError(f"images of floats must lie between 0 and 1; these reach from {low:g} to {high:g}.{hint}")
    return images.float()


def _from_dataset(dataset: Any) -> Tensor:
    try:
        count = len(dataset)
    except TypeError as error:
        raise InputError("images must be a data set with a length; an endless one cannot be read whole.") from error
    parts = [dataset[index] for index in range(count)]
    if not parts:
        raise InputError("images must hold at least one image; the data set is empty.")
    parts = [part[0] if isinstance(part, tuple | list) else part for part in parts]
    try:
        return torch.stack([torch.as_tensor(np.asarray(part)) for part in parts])
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError("the images of the data set must all have one shape and hold numbers.") from error


def _words(shape: Sequence[int]) -> str:
    channels, height, width = shape
    return f"{height} x {width} with {channels} channel{'s' if channels > 1 else ''}"
