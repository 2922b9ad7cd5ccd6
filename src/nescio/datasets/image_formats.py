"""Published image files as arrays. Nothing in them is executed, and nothing is unpacked to disk."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from nescio._validation import InputError, check_one_of

__all__ = ["ImageArrays", "read_idx", "read_images"]

UNSIGNED_BYTES = 0x08  # the only type of the idx files that these sets have


class ImageArrays(NamedTuple):
    """Images ``(N, H, W)`` or ``(N, H, W, C)`` and labels ``(N,)``, all ``uint8``; training part and test part."""

    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray


def read_images(files: Sequence[bytes], form: str) -> ImageArrays:
    """The arrays of a set's files in the order of its source; every fault is one sentence."""
    check_one_of("form", form, FORMS)
    try:
        found = FORMS[form](files)
    except InputError:
        raise
    except (OSError, EOFError, ValueError, KeyError, struct.error, zipfile.BadZipFile, tarfile.TarError) as error:
        raise InputError(f"the file is damaged or of another form than '{form}' ({error}).") from None
    for images, labels in ((found.train, found.train_labels), (found.test, found.test_labels)):
        if len(images) != len(labels):
            raise InputError(f"the files hold {len(images)} images and {len(labels)} labels.")
    return found


def read_idx(packed: bytes) -> np.ndarray:
    """An idx file of bytes: a magic number with the number of axes, their lengths, the values; may be gzipped."""
    data = gzip.decompress(packed) if packed[:2] == b"\x1f\x8b" else packed
    zero, kind, axes = struct.unpack(">HBB", data[:4])
    if zero != 0 or kind != UNSIGNED_BYTES:
        raise InputError("the file is no idx file of bytes.")
    shape = struct.unpack(f">{axes}I", data[4 : 4 + 4 * axes])
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * axes)
    if values.size != np.prod(shape, dtype=np.int64):
        raise InputError(f"the idx file has {values.size} bytes instead of {int(np.prod(shape, dtype=np.int64))}.")
    return values.reshape(shape)


def _idx(files: Sequence[bytes]) -> ImageArrays:
    train, train_labels, test, test_labels = map(read_idx, files)
    return ImageArrays(train, train_labels, test, test_labels)


def _emnist_letters(files: Sequence[bytes]) -> ImageArrays:
    """The letters, upright: the published images lie on their side. Labels from 0, as in the other sets."""
    with zipfile.ZipFile(io.BytesIO(files[0])) as archive:
        members = {name.rpartition("/")[2]: name for name in archive.namelist()}

        def part(which: str) -> tuple[np.ndarray, np.ndarray]:
            images, labels = (
                read_idx(archive.read(members[f"emnist-letters-{which}-{what}-ubyte.gz"]))
                for what in ("images-idx3", "labels-idx1")
            )
            return np.ascontiguousarray(images.transpose(0, 2, 1)), labels - 1

        return ImageArrays(*part("train"), *part("test"))


def _cifar(files: Sequence[bytes]) -> ImageArrays:
    """Records of one label and 3072 bytes, channel by channel."""
    with tarfile.open(fileobj=io.BytesIO(files[0]), mode="r:*") as archive:
        members = {name.rpartition("/")[2]: name for name in archive.getnames()}

        def records(name: str) -> np.ndarray:
            handle = archive.extractfile(members[name])
            if handle is None:
                raise InputError(f"the archive has no file {name}.")
            return np.frombuffer(handle.read(), np.uint8).reshape(-1, 3073)

        parts = {
            "train": np.concatenate([records(f"data_batch_{number}.bin") for number in range(1, 6)]),
            "test": records("test_batch.bin"),
        }
    pixels = {
        name: np.ascontiguousarray(rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        for name, rows in parts.items()
    }
    return ImageArrays(pixels["train"], parts["train"][:, 0].copy(), pixels["test"], parts["test"][:, 0].copy())


def _svhn(files: Sequence[bytes]) -> ImageArrays:
    """Matlab files with images last and the digit 0 labelled 10."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    found = []
    for data in files:
        try:
            table = loadmat(io.BytesIO(data), variable_names=["X", "y"])
        except (MatReadError, NotImplementedError, TypeError) as error:
            raise InputError(f"the file is damaged or no Matlab file ({error}).") from None
        images, labels = np.asarray(table["X"], dtype=np.uint8), np.asarray(table["y"]).reshape(-1)
        found += [np.ascontiguousarray(images.transpose(3, 0, 1, 2)), (labels % 10).astype(np.uint8)]
    train, train_labels, test, test_labels = found
    return ImageArrays(train, train_labels, test, test_labels)


FORMS: dict[str, Callable[[Sequence[bytes]], ImageArrays]] = {
    "idx": _idx,
    "emnist letters": _emnist_letters,
    "cifar binary": _cifar,
    "svhn matlab": _svhn,
}
