"""The image sets of the paper, read from a local folder or the user's cache, downloaded on demand, and checked."""

from __future__ import annotations

import hashlib
import io
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nescio._files import written_beside
from nescio._validation import InputError, check_one_of, join_names
from nescio.datasets.fetch import cache_folder, checked_bytes, download
from nescio.datasets.image_formats import ImageArrays, read_images
from nescio.datasets.image_sources import IMAGE_SOURCES

__all__ = ["ImageData", "fetch_images", "find_images", "image_names", "load_images", "verify_images"]

ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")
RENAMED = {"kmnist": "kmnist_2018"}
"""Names in a folder's manifest, and ours: its KMNIST is the release of winter 2018, with other glyphs than today's."""


class ImageData(NamedTuple):
    """One set: images ``(N, H, W)`` or ``(N, H, W, C)`` and labels ``(N,)``, ``uint8``, upright.

    Where only a test part is to be had, the training arrays are empty.
    """

    name: str
    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray


def image_names(root: str | os.PathLike[str] | None = None) -> list[str]:
    """The names at hand, sorted: those in ``root``, or else those in ``NESCIO_DATA`` and in the cache."""
    here = set(_manifest(root))
    if root is None:
        here |= {name for name in IMAGE_SOURCES if _cached(name) is not None}
    return sorted(here)


def find_images(name: str) -> dict[str, Any] | None:
    """What the manifest or the cache says of a set, with its ``path``; None where it is in neither."""
    return _manifest(None).get(name) or _cached(name)


def load_images(name: str, root: str | os.PathLike[str] | None = None, *, download: bool = False) -> ImageData:
    """Read one set, from ``root`` alone, or else from the folder that ``NESCIO_DATA`` names or from the user's cache.

    A folder has a ``manifest.json`` and ``images/<name>.npz``; the file's SHA-256 must be the one that the manifest, or
    the cache's own note, has for it. With ``download=True`` a set that is in neither is fetched first.

    Paper: tab:gen_mod_datasets. ``cifar10_subset`` is a sample of 20,000 of the 60,000 images of ``cifar10``, and
    ``kmnist_2018`` the test part of an early release; neither stands in for the set whose name it resembles.
    """
    entry = _manifest(root).get(name)
    if entry is None and root is None:
        entry = _cached(name)
        if entry is None and download and name in IMAGE_SOURCES:
            entry = fetch_images(name)
    if entry is None:
        known = sorted(_manifest(root)) if root is not None else sorted({*_manifest(None), *IMAGE_SOURCES})
        if name not in known:
            raise InputError(f"name must be one of {join_names(known, limit=20)}; got {name!r}.")
        where = "NESCIO_DATA does not have it" if os.environ.get("NESCIO_DATA") else "NESCIO_DATA is not set"
        raise InputError(
            f"the image set '{name}' is not here: {where}, and it is not in the cache; run: nescio data get {name}."
        )
    path = Path(entry["path"])
    packed = checked_bytes(path, str(entry["sha256"]))
    try:
        with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
            train, train_labels, test, test_labels = (arrays[key] for key in ARRAYS)
    except (ValueError, KeyError, OSError) as error:
        raise InputError(f"the data file {path} does not hold {join_names(ARRAYS)} ({error}).") from None
    return ImageData(name, train, train_labels, test, test_labels)


def verify_images(name: str, root: str | os.PathLike[str] | None = None) -> str:
    """Read a set again and compare it with all that is known of it; says in words what that was, raises on a fault."""
    data = load_images(name, root)
    source = IMAGE_SOURCES.get(name)
    if source is not None and (data.train.shape, data.test.shape) != (source.train, source.test):
        raise InputError(
            f"'{name}' has images of shape {data.train.shape} and {data.test.shape} instead of {source.train} and "
            f"{source.test}."
        )
    return "the file is the one in the manifest" if name in _manifest(root) else "unchanged since it was downloaded"


def fetch_images(name: str, *, force: bool = False) -> dict[str, Any]:
    """Download a set's files into the cache, unless it is there, compare their MD5 sums, and store it as one file.

    What does not pass is not written; what was in the cache before stays.
    """
    check_one_of("name", name, IMAGE_SOURCES)
    source, before, folder = IMAGE_SOURCES[name], _cached(name), cache_folder()
    if before is not None and not force:
        return before
    if folder is None:
        raise InputError("downloads need pooch: pip install 'nescio[data]'.")
    files = []
    for url, md5 in source.files:
        try:
            data = download(url, folder)
        except InputError as error:
            raise InputError(
                f"'{name}' was not fetched from {url}: {str(error).rstrip('.')}; or let NESCIO_DATA name a folder that "
                "has it."
            ) from None
        found = hashlib.md5(data, usedforsecurity=False).hexdigest()
        if found != md5:
            raise InputError(
                f"'{name}' from {url} has the MD5 sum {found} instead of {md5}; nothing was written. Try again later."
            )
        files.append(data)
    arrays = read_images(files, source.form)
    if (arrays.train.shape, arrays.test.shape) != (source.train, source.test):
        raise InputError(
            f"'{name}' has images of shape {arrays.train.shape} and {arrays.test.shape} instead of {source.train} and "
            f"{source.test}; nothing was written."
        )
    return _write(name, arrays, folder)


def _write(name: str, arrays: ImageArrays, folder: Path) -> dict[str, Any]:
    packed = io.BytesIO()
    np.savez_compressed(packed, **dict(zip(ARRAYS, arrays, strict=True)))  # type: ignore[arg-type]
    target = folder / "images" / f"{name}.npz"
    entry = {
        "name": name,
        "sha256": hashlib.sha256(packed.getvalue()).hexdigest(),
        "fetched": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    note = target.with_suffix(".json")
    note.unlink(missing_ok=True)  # the note last: without it there is nothing in the cache, and with it there is all
    with written_beside(target) as handle:
        handle.write(packed.getvalue())
    with written_beside(note) as handle:
        handle.write((json.dumps(entry, indent=1) + "\n").encode())
    return entry | {"path": target}


def _cached(name: str) -> dict[str, Any] | None:
    folder = cache_folder()
    note = None if folder is None else folder / "images" / f"{name}.json"
    if note is None or not note.is_file():
        return None
    try:
        entry = dict(json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"the note {note} cannot be read ({error}); delete it and fetch '{name}' again.") from None
    return entry | {"path": note.with_suffix(".npz")}


def _manifest(root: str | os.PathLike[str] | None) -> dict[str, dict[str, Any]]:
    """Entries of a folder's images by our names, each with its path; none where there is no folder."""
    named = root if root is not None else os.environ.get("NESCIO_DATA") or None
    if named is None:
        return {}
    path = Path(named) / "manifest.json"
    try:
        entries = json.loads(path.read_text(encoding="utf-8")).get("images", [])
        return {
            RENAMED.get(str(entry["name"]), str(entry["name"])): {**entry, "path": Path(named) / str(entry["file"])}
            for entry in entries
        }
    except OSError as error:
        raise InputError(
            f"the manifest {path} cannot be read ({error.strerror}); NESCIO_DATA must name the folder that holds it."
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the manifest {path} does not list image sets under 'images'; fetch it again.") from error
