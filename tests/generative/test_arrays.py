"""Images in: every shape that can be meant is read, and what cannot is refused with one sentence."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from nescio._validation import InputError
from nescio.generative.arrays import as_pixels, image_tensor

BYTES = np.arange(2 * 7 * 5 * 3, dtype=np.uint8).reshape(2, 7, 5, 3)


def test_arrays_have_channels_last_and_tensors_first():
    wanted = torch.as_tensor(BYTES).permute(0, 3, 1, 2)
    assert torch.equal(image_tensor(BYTES), wanted)
    assert torch.equal(image_tensor(wanted), wanted)
    assert torch.equal(image_tensor(np.ascontiguousarray(wanted.numpy())), wanted)  # can only be channels first
    assert torch.equal(image_tensor(torch.as_tensor(BYTES)), wanted)
    assert image_tensor(BYTES[..., 0]).shape == (2, 1, 7, 5)


def test_bytes_stay_bytes_and_become_shares_of_255():
    assert image_tensor(BYTES).dtype == torch.uint8
    torch.testing.assert_close(as_pixels(image_tensor(BYTES))[0, 1, 0, 0], torch.tensor(1.0 / 255.0))
    floats = BYTES / 255.0
    torch.testing.assert_close(as_pixels(image_tensor(floats)), as_pixels(image_tensor(BYTES)))


def test_a_dataset_gives_its_images_with_or_without_labels():
    images = torch.as_tensor(BYTES).permute(0, 3, 1, 2)
    assert torch.equal(image_tensor(TensorDataset(images, torch.zeros(2))), images)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (BYTES.astype(float), r"between 0 and 1; these reach from 0 to 209\. Divide by 255\."),
        (BYTES / 255.0 - 0.5, "between 0 and 1; these reach from -0.5"),
        (BYTES.astype(np.int64), r"must be bytes \(uint8\) or floats"),
        (np.full((2, 4, 5), np.nan), "must not hold NaN or infinite pixels"),
        (BYTES[0, 0], r"three axes .* got the shape \(5, 3\)"),
        (BYTES[:0], "none of them empty"),
        (np.array([["a"]]), "must be an array of bytes"),
        ("cats", "must be an array of bytes"),
    ],
)
def test_what_is_no_image_is_refused(images, message):
    with pytest.raises(InputError, match=message):
        image_tensor(images)


def test_another_shape_than_the_model_knows_is_refused():
    with pytest.raises(InputError, match="are 7 x 5 with 3 channels, but the model was fitted to 6 x 5 with 1 channel"):
        image_tensor(BYTES, (1, 6, 5))
