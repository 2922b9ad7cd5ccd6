"""Image sets: published forms made on the spot, downloads from a server of our own, and the folder at hand."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import struct
import tarfile
import zipfile

import numpy as np
import pytest
from scipy.io import savemat

from nescio._validation import InputError
from nescio.datasets import image_names, load_images, verify_images
from nescio.datasets.image_formats import read_idx, read_images
from nescio.datasets.image_sources import IMAGE_SOURCES, ImageSource
from nescio.datasets.images import fetch_images

needs_data = pytest.mark.skipif("NESCIO_DATA" not in os.environ, reason="NESCIO_DATA does not name the data folder")


def pixels(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, size=shape, dtype=np.uint8)


def idx(values: np.ndarray, *, pack: bool = True) -> bytes:
    data = struct.pack(">HBB", 0, 8, values.ndim) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()
    return gzip.compress(data) if pack else data


TRAIN, TEST = pixels(7, 28, 28), pixels(3, 28, 28, seed=1)
TRAIN_LABELS, TEST_LABELS = pixels(7, seed=2) % 10, pixels(3, seed=3) % 10


def archive_of(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()


def test_an_idx_file_is_read_packed_or_not():
    np.testing.assert_array_equal(read_idx(idx(TRAIN)), TRAIN)
    np.testing.assert_array_equal(read_idx(idx(TRAIN_LABELS, pack=False)), TRAIN_LABELS)


def test_letters_are_turned_upright_and_counted_from_zero():
    prefix = "gzip/emnist-letters-"
    files = archive_of(
        {
            prefix + "train-images-idx3-ubyte.gz": idx(TRAIN),
            prefix + "train-labels-idx1-ubyte.gz": idx(TRAIN_LABELS + 1),
            prefix + "test-images-idx3-ubyte.gz": idx(TEST),
            prefix + "test-labels-idx1-ubyte.gz": idx(TEST_LABELS + 1),
        }
    )
    found = read_images([files], "emnist letters")
    np.testing.assert_array_equal(found.train[2], TRAIN[2].T)
    np.testing.assert_array_equal(found.test_labels, TEST_LABELS)


def test_cifar_s_channels_come_last():
    images = pixels(10, 32, 32, 3)
    labels = pixels(10, seed=4) % 10
    records = np.concatenate([labels[:, None], images.transpose(0, 3, 1, 2).reshape(10, -1)], axis=1).astype(np.uint8)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for number in range(6):
            name = f"cifar-10-batches-bin/{'test_batch' if number == 5 else f'data_batch_{number + 1}'}.bin"
            data = records[:2].tobytes() if number == 5 else records[2 * number : 2 * number + 2].tobytes()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    found = read_images([packed.getvalue()], "cifar binary")
    np.testing.assert_array_equal(found.train, images)
    np.testing.assert_array_equal(found.train_labels, labels)
    np.testing.assert_array_equal(found.test, images[:2])


def test_house_numbers_have_their_images_first_and_the_nought_as_nought():
    def matlab(images: np.ndarray, labels: np.ndarray) -> bytes:
        packed = io.BytesIO()
        savemat(packed, {"X": images.transpose(1, 2, 3, 0), "y": np.where(labels == 0, 10, labels)[:, None]})
        return packed.getvalue()

    images, labels = pixels(5, 32, 32, 3), np.array([0, 3, 9, 0, 1])
    found = read_images([matlab(images, labels), matlab(images[:2], labels[:2])], "svhn matlab")
    np.testing.assert_array_equal(found.train, images)
    np.testing.assert_array_equal(found.train_labels, labels)
    np.testing.assert_array_equal(found.test_labels, [0, 3])


@pytest.mark.parametrize(
    ("files", "form", "words"),
    [
        ([b"nothing", b"", b"", b""], "idx", "no idx file|damaged"),
        ([idx(TRAIN)[:-9], b"", b"", b""], "idx", "damaged"),
        ([idx(TRAIN, pack=False)[:-9], b"", b"", b""], "idx", "bytes instead of"),
        ([idx(TRAIN), idx(TEST_LABELS), idx(TEST), idx(TEST_LABELS)], "idx", "7 images and 3 labels"),
        ([archive_of({"other": b""})], "emnist letters", "damaged or of another form"),
        ([b"PK no archive"], "emnist letters", "damaged"),
        ([b"no archive"], "cifar binary", "damaged"),
        ([b"no matrix", b""], "svhn matlab", "damaged"),
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(files, form, words):
    with pytest.raises(InputError, match=words):
        read_images(files, form)


@pytest.fixture
def tiny(served, monkeypatch):
    """Ten images in four files on a server of our own, and an empty cache."""
    pytest.importorskip("pooch")
    folder, address = served
    files = {"a": idx(TRAIN), "b": idx(TRAIN_LABELS), "c": idx(TEST), "d": idx(TEST_LABELS)}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    listed = tuple((address + name, hashlib.md5(data).hexdigest()) for name, data in files.items())
    source = ImageSource("tiny", "made up", listed, "idx", TRAIN.shape, TEST.shape)
    monkeypatch.setitem(IMAGE_SOURCES, "tiny", source)
    return folder


def test_a_set_is_downloaded_checked_and_read_from_the_cache_after_that(tiny, tmp_path):
    with pytest.raises(InputError, match=r"not here: NESCIO_DATA is not set.*nescio data get tiny"):
        load_images("tiny")
    data = load_images("tiny", download=True)
    np.testing.assert_array_equal(data.train, TRAIN)
    np.testing.assert_array_equal(data.test_labels, TEST_LABELS)
    for path in tiny.iterdir():
        path.unlink()
    np.testing.assert_array_equal(load_images("tiny").test, TEST)
    assert "tiny" in image_names()
    assert verify_images("tiny") == "unchanged since it was downloaded"
    (tmp_path / "cache" / "images" / "tiny.npz").write_bytes(b"other")
    with pytest.raises(InputError, match="SHA-256"):
        verify_images("tiny")


@pytest.mark.parametrize("fault", ["sum", "shape", "missing"])
def test_what_does_not_pass_leaves_nothing_behind(tiny, tmp_path, monkeypatch, fault):
    source = IMAGE_SOURCES["tiny"]
    if fault == "sum":
        (tiny / "c").write_bytes(idx(TEST + 1))
    elif fault == "shape":
        monkeypatch.setitem(IMAGE_SOURCES, "tiny", source._replace(test=(4, 28, 28)))
    else:
        (tiny / "d").unlink()
    with pytest.raises(
        InputError, match={"sum": "MD5 sum", "shape": "instead of", "missing": "was not fetched"}[fault]
    ):
        fetch_images("tiny")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def folder_with(tmp_path, name: str = "kmnist", **arrays: np.ndarray):
    (tmp_path / "images").mkdir(exist_ok=True)
    path = tmp_path / "images" / f"{name}.npz"
    np.savez_compressed(path, **arrays)
    entry = {"name": name, "file": f"images/{name}.npz", "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    (tmp_path / "manifest.json").write_text(json.dumps({"uci": [], "images": [entry]}))
    return tmp_path


def test_the_early_kuzushiji_has_a_name_of_its_own(tmp_path):
    arrays = {"train_images": TRAIN[:0], "train_labels": TRAIN_LABELS[:0], "test_images": TEST}
    root = folder_with(tmp_path, **arrays, test_labels=TEST_LABELS)
    assert image_names(root) == ["kmnist_2018"]
    np.testing.assert_array_equal(load_images("kmnist_2018", root).test, TEST)
    assert len(load_images("kmnist_2018", root).train) == 0
    with pytest.raises(InputError, match="name must be one of 'kmnist_2018'"):
        load_images("kmnist", root)


def test_a_folder_s_faults_are_told(tmp_path):
    root = folder_with(tmp_path, train_images=TRAIN)
    with pytest.raises(InputError, match="does not hold"):
        load_images("kmnist_2018", root)
    (root / "images" / "kmnist.npz").unlink()
    with pytest.raises(InputError, match="cannot be read"):
        load_images("kmnist_2018", root)
    (root / "manifest.json").write_text("[]")
    with pytest.raises(InputError, match="does not list image sets"):
        load_images("kmnist_2018", root)


@needs_data
def test_the_sets_at_hand_are_whole():
    assert {"fashion_mnist", "mnist", "kmnist_2018", "notmnist", "omniglot_small", "cifar10_subset"} <= set(
        image_names()
    )
    data = load_images("omniglot_small")
    assert data.test.shape == (4840, 28, 28)
    assert data.test.dtype == np.uint8
    assert verify_images("kmnist_2018") == "the file is the one in the manifest"
