"""The UCI regression sets of the paper's tables, read from a local folder and checked against their manifest."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nescio._validation import InputError, join_names

__all__ = ["UCIData", "load_uci", "uci_names"]


class UCIData(NamedTuple):
    """One table: ``X`` is ``(N, D)``, ``y`` is ``(N, P)``, as published, neither shuffled nor scaled."""

    name: str
    X: np.ndarray
    y: np.ndarray
    features: tuple[str, ...]
    targets: tuple[str, ...]


def uci_names(root: str | os.PathLike[str] | None = None) -> list[str]:
    """The names that ``load_uci`` knows in this folder, sorted."""
    return sorted(_manifest(_folder(root)))


def load_uci(name: str, root: str | os.PathLike[str] | None = None) -> UCIData:
    """Read ``<root>/uci/<name>.csv.gz``; ``root`` is the folder that ``NESCIO_DATA`` names unless given.

    The file's SHA-256 must be the one in ``<root>/manifest.json``. Paper: tab:uci_benchmarks_sources.
    """
    folder = _folder(root)
    sets = _manifest(folder)
    if name not in sets:
        raise InputError(f"name must be one of {join_names(sorted(sets), limit=20)}; got {name!r}.")
    entry = sets[name]
    path = folder / str(entry["file"])
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise InputError(f"the data file {path} cannot be read ({error.strerror}); put it there and retry.") from error
    found = hashlib.sha256(packed).hexdigest()
    if found != entry["sha256"]:
        raise InputError(
            f"the data file {path} is not the one in the manifest: SHA-256 {found[:12]}... "
            f"instead of {str(entry['sha256'])[:12]}...; fetch it again."
        )
    text = io.StringIO(gzip.decompress(packed).decode("utf-8"))
    table = np.loadtxt(text, delimiter=",", skiprows=1, ndmin=2)
    features, targets = tuple(map(str, entry["features"])), tuple(map(str, entry["targets"]))
    if table.shape != (entry["n"], len(features) + len(targets)):
        raise InputError(f"the data file {path} has shape {table.shape}, which its manifest entry does not describe.")
    return UCIData(name, table[:, : len(features)].copy(), table[:, len(features) :].copy(), features, targets)


def _folder(root: str | os.PathLike[str] | None) -> Path:
    if root is None:
        root = os.environ.get("NESCIO_DATA") or None
    if root is None:
        raise InputError("NESCIO_DATA is not set; let it name the folder that holds manifest.json and uci/.")
    return Path(root)


def _manifest(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / "manifest.json"
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["uci"]
        return {str(entry["name"]): entry for entry in entries}
    except OSError as error:
        raise InputError(
            f"the manifest {path} cannot be read ({error.strerror}); NESCIO_DATA must name the folder that holds it."
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"the manifest {path} does not list data sets under 'uci'; fetch it again.") from error
