"""The UCI regression sets of the paper's tables, read from a local folder or the user's cache, and checked."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nescio._validation import InputError, join_names
from nescio.datasets.fetch import cached_entry, checked_bytes, fetch
from nescio.datasets.formats import digest_of
from nescio.datasets.sources import SOURCES

__all__ = ["UCIData", "find_uci", "load_uci", "uci_names", "verify_uci"]


class UCIData(NamedTuple):
    """One table: ``X`` is ``(N, D)``, ``y`` is ``(N, P)``, as published, neither shuffled nor scaled."""

    name: str
    X: np.ndarray
    y: np.ndarray
    features: tuple[str, ...]
    targets: tuple[str, ...]


def uci_names(root: str | os.PathLike[str] | None = None) -> list[str]:
    """The names at hand, sorted: those in ``root``, or else those in ``NESCIO_DATA`` and in the cache."""
    folder = _folder(root)
    here = set(_manifest(folder)) if folder else set()
    if root is None:
        here |= {name for name in SOURCES if cached_entry(name) is not None}
    return sorted(here)


def load_uci(name: str, root: str | os.PathLike[str] | None = None, *, download: bool = False) -> UCIData:
    """Read one set, from ``root`` alone, or else from the folder that ``NESCIO_DATA`` names or from the user's cache.

    A folder has a ``manifest.json`` and ``uci/<name>.csv.gz``; the file's SHA-256 must be the one that the manifest, or
    the cache's own note, has for it. With ``download=True`` a set that is in neither is fetched into the cache first.

    Paper: tab:uci_benchmarks_sources. Two counts differ from the table. Boston has 506 rows, and the table says 505:
    the authors' loader takes the first row of the headerless file for a header (protocol ``paper`` drops it). Protein
    has 45,730 rows, as published; the table's 45,630 looks like a misprint, since the authors' loader drops none.
    ``superconductivity_partial`` is a sample of 1,472 of the 21,263 rows of ``superconductivity``, and never stands in
    for it.
    """
    entry = _entry(name, root, download)
    path = Path(entry["path"])
    packed = checked_bytes(path, str(entry["sha256"]))
    text = io.StringIO(gzip.decompress(packed).decode("utf-8"))
    table = np.loadtxt(text, delimiter=",", skiprows=1, ndmin=2)
    features, targets = tuple(map(str, entry["features"])), tuple(map(str, entry["targets"]))
    if table.shape != (entry["n"], len(features) + len(targets)):
        raise InputError(f"the data file {path} has shape {table.shape}, which its manifest entry does not describe.")
    return UCIData(name, table[:, : len(features)].copy(), table[:, len(features) :].copy(), features, targets)


def find_uci(name: str) -> dict[str, Any] | None:
    """What the manifest or the cache says of a set, with its ``path``; None where it is in neither."""
    return _entry(name, None, download=False) if name in uci_names() else None


def verify_uci(name: str, root: str | os.PathLike[str] | None = None) -> str:
    """Read a set again and compare it with all that is known of it; says in words what that was, raises on a fault."""
    entry = _entry(name, root, download=False)
    data = load_uci(name, root)
    source = SOURCES.get(name)
    if source is not None and (*data.X.shape, data.y.shape[1]) != source.shape:
        raise InputError(f"'{name}' has the shape {(*data.X.shape, data.y.shape[1])} instead of {source.shape}.")
    if source is not None and source.values is not None:
        if digest_of(np.hstack([data.X, data.y])) != source.values:
            raise InputError(f"'{name}' holds other numbers than the published table; fetch it again.")
        return "file and numbers are the ones known"
    if entry.get("checked") == "first use":
        return "unchanged since it was first downloaded; no checksum of the publisher's file is known"
    return "the file is the one in the manifest"


def _entry(name: str, root: str | os.PathLike[str] | None, download: bool) -> dict[str, Any]:
    """The manifest's or the cache's words on a set, with its ``path``."""
    folder = _folder(root)
    sets = _manifest(folder) if folder else {}
    if folder and name in sets:
        return sets[name] | {"path": folder / str(sets[name]["file"])}
    if root is not None or name not in SOURCES:
        known = sorted(sets) if root is not None else sorted({*sets, *SOURCES})
        raise InputError(f"name must be one of {join_names(known, limit=20)}; got {name!r}.")
    if download:
        return fetch(name)
    cached = cached_entry(name)
    if cached is None:
        where = "NESCIO_DATA is not set" if folder is None else f"the folder {folder} does not have it"
        raise InputError(
            f"the data set '{name}' is not here: {where}, and it is not in the cache; run: nescio data get {name}."
        )
    return cached


def _folder(root: str | os.PathLike[str] | None) -> Path | None:
    named = root if root is not None else os.environ.get("NESCIO_DATA") or None
    return None if named is None else Path(named)


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
