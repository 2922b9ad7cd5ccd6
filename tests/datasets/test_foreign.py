"""Foreign images: transforms against loops over pixels, other sets as they are, and what does not fit."""

from __future__ import annotations

import hashlib
import json
import os

import numpy as np
import pytest

from nescio._validation import InputError
from nescio.datasets.foreign import FOREIGN_TRANSFORMS, foreign_images
from nescio.datasets.images import ImageData

needs_data = pytest.mark.skipif(not os.environ.get("NESCIO_DATA"), reason="NESCIO_DATA names no folder")


def pixels(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def data(*shape: int, name: str = "own", seed: int = 0) -> ImageData:
    test = pixels(*shape, seed=seed)
    labels = np.arange(len(test)).astype(np.uint8)
    return ImageData(name, test[:0], labels[:0], test, labels)


def moved(image: np.ndarray, name: str) -> np.ndarray:
    """Pixel by pixel, from where each came."""
    size = len(image)
    result = np.empty_like(image)
    for i in range(size):
        for j in range(size):
            came_from = {
                "flip_vertical": (size - 1 - i, j),
                "flip_horizontal": (i, size - 1 - j),
                "rotate_90": (j, size - 1 - i),  # to the left: the last column becomes the first row
                "rotate_180": (size - 1 - i, size - 1 - j),
            }[name]
            result[i, j] = image[came_from]
    return result


@pytest.mark.parametrize("channels", [(), (3,)])
@pytest.mark.parametrize("name", ["flip_vertical", "flip_horizontal", "rotate_90", "rotate_180"])
def test_images_are_moved_as_the_name_says(name, channels):
    inside = data(4, 5, 5, *channels)
    found = foreign_images(name, inside, 0)
    np.testing.assert_array_equal(found, [moved(image, name) for image in inside.test])
    assert found.flags.c_contiguous
    assert not np.shares_memory(found, inside.test)


@pytest.mark.parametrize("channels", [(), (3,)])
@pytest.mark.parametrize("name", FOREIGN_TRANSFORMS)
def test_shape_and_kind_are_those_of_the_inside_and_a_seed_makes_it_certain(name, channels):
    inside = data(6, 7, 7, *channels)
    before = inside.test.copy()
    found, again, other = (foreign_images(name, inside, seed) for seed in (3, 3, 4))
    assert found.shape == inside.test.shape
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, again)
    np.testing.assert_array_equal(inside.test, before)
    assert np.array_equal(found, other) == (name not in ("noise", "constant"))


def test_noise_is_uniform_over_all_256_values():
    found = foreign_images("noise", data(40, 28, 28), 1)
    counts = np.bincount(found.ravel(), minlength=256)
    expected = found.size / 256
    statistic = np.square(counts - expected).sum() / expected
    assert abs(statistic - 255) < 5 * np.sqrt(2 * 255)  # chi-squared with 255 degrees of freedom


@pytest.mark.parametrize("channels", [(), (3,)])
def test_a_constant_image_is_one_grey_and_each_has_its_own(channels):
    found = foreign_images("constant", data(300, 4, 4, *channels), 2).reshape(300, -1)
    assert (found == found[:, :1]).all()
    assert len(np.unique(found[:, 0])) > 120  # of 256, 177 on average
    assert abs(found[:, 0].mean() - 127.5) < 5 * 73.9 / np.sqrt(300)


def test_oblong_images_are_mirrored_and_not_turned():
    inside = data(3, 4, 6)
    assert foreign_images("rotate_180", inside, 0).shape == (3, 4, 6)
    assert foreign_images("flip_vertical", inside, 0).shape == (3, 4, 6)
    with pytest.raises(InputError, match="'rotate_90' needs square images; those of 'own' are 4 x 6 grey"):
        foreign_images("rotate_90", inside, 0)


@pytest.fixture
def folder(tmp_path):
    """Three sets: two of one size, and one in colour."""
    (tmp_path / "images").mkdir()
    entries = []
    for name, test in (("first", pixels(5, 8, 8)), ("second", pixels(9, 8, 8, seed=1)), ("third", pixels(2, 8, 8, 3))):
        path = tmp_path / "images" / f"{name}.npz"
        labels = np.zeros(len(test), dtype=np.uint8)
        np.savez(path, train_images=test[:0], train_labels=labels[:0], test_images=test, test_labels=labels)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        entries.append({"name": name, "file": f"images/{name}.npz", "sha256": digest})
    (tmp_path / "manifest.json").write_text(json.dumps({"images": entries}))
    return tmp_path


def test_another_set_is_its_test_part(folder):
    np.testing.assert_array_equal(foreign_images("second", "first", root=folder), pixels(9, 8, 8, seed=1))
    np.testing.assert_array_equal(
        foreign_images("flip_vertical", "first", root=folder), pixels(5, 8, 8)[:, ::-1]
    )  # the inside by its name
    np.testing.assert_array_equal(foreign_images("second", data(4, 8, 8), 0, root=folder), pixels(9, 8, 8, seed=1))


def test_what_does_not_fit_is_refused_in_one_sentence(folder):
    message = "images of 'third' are 8 x 8 colour, those of 'first' 8 x 8 grey; they are not converted"
    with pytest.raises(InputError, match=message):
        foreign_images("third", "first", root=folder)
    with pytest.raises(InputError, match="'second' are 8 x 8 grey, those of 'own' 9 x 9 grey"):
        foreign_images("second", data(4, 9, 9), 0, root=folder)
    with pytest.raises(InputError, match="'first' is the inside set itself"):
        foreign_images("first", "first", root=folder)
    with pytest.raises(InputError, match="name must be one of 'first', 'second', 'third'; got 'fourth'"):
        foreign_images("fourth", "first", root=folder)
    with pytest.raises(InputError, match="'own' has no test images"):
        foreign_images("noise", data(0, 8, 8), 0)
    with pytest.raises(InputError, match="seed must be a whole number of at least 0"):
        foreign_images("noise", data(2, 8, 8), -1)


@needs_data
@pytest.mark.parametrize("name", ["kmnist_2018", "omniglot_small"])
def test_ink_is_light_on_a_black_ground(name):
    images = foreign_images(name, data(1, 28, 28))
    assert (images == 0).mean() > 0.6
    assert images[:, 0].mean() < images[:, 10:18].mean()
