"""Published tables into a cache of the user's: downloaded, converted, checked, and written whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from nescio._files import written_beside
from nescio._validation import InputError, check_one_of
from nescio.datasets.formats import Table, digest_of, member_of, read_form
from nescio.datasets.sources import SOURCES, Source

__all__ = ["cache_folder", "cached_entry", "checked_bytes", "convert", "download", "fetch"]

SECONDS = 60.0  # without a byte from the publisher


def cache_folder() -> Path | None:
    """The folder that ``NESCIO_CACHE`` names, or this system's place for caches; None where pooch is not installed."""
    named = os.environ.get("NESCIO_CACHE")
    if named:
        return Path(named)
    try:
        import pooch
    except ModuleNotFoundError:
        return None
    return Path(pooch.os_cache("nescio"))


def cached_entry(name: str) -> dict[str, Any] | None:
    """What is known of a set in the cache, its file included; None where it is not there."""
    folder = cache_folder()
    path = folder / "uci" / f"{name}.json" if folder else None
    if path is None or not path.is_file():
        return None
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        return {str(key): value for key, value in entry.items()} | {"path": path.with_name(f"{name}.csv.gz")}
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"the note {path} cannot be read ({error}); delete it and fetch '{name}' again.") from None


def checked_bytes(path: Path, sha256: str) -> bytes:
    """What a data file holds, if it is the one that its manifest or the cache's note describes."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"the data file {path} cannot be read ({error.strerror}); put it there and retry.") from error
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise InputError(
            f"the data file {path} is not the one in the manifest: SHA-256 {found[:12]}... "
            f"instead of {sha256[:12]}...; fetch it again."
        )
    return data


def fetch(name: str, *, url: str | None = None, force: bool = False) -> dict[str, Any]:
    """Download one of the twelve sets into the cache, unless it is there; returns its entry.

    What arrives is compared with the digest of the numbers that ``sources.py`` knows. Where it knows none, the digest
    of the first download is recorded, the entry says so (``checked`` is ``first use``), and later downloads are
    compared with that. ``url`` is another address of the same file; ``force`` downloads what is there already.

    A table that does not pass is not written; what was in the cache before stays.
    """
    check_one_of("name", name, SOURCES)
    source, before = SOURCES[name], cached_entry(name)
    if before is not None and not force:
        return before
    folder = cache_folder()
    if folder is None:
        raise InputError("downloads need pooch: pip install 'nescio[data]'.")
    address = url or source.url
    with _told(source, address):
        table = convert(source, download(address, folder))
    digest = digest_of(table.values)
    expected, known = (source.values, "values") if source.values else (None, "first use")
    if expected is None and before is not None:
        expected = before.get("values_sha256")
    if expected not in (None, digest):
        since = "the copy this library was checked with" if source.values else "the first download"
        raise InputError(
            f"'{name}' from {address} holds other numbers than {since} (digest {digest[:12]}... instead of "
            f"{str(expected)[:12]}...); nothing was written."
        )
    return _write(folder, source, table, {"url": address, "checked": known, "values_sha256": digest})


def convert(source: Source, data: bytes) -> Table:
    """The numbers of a published file, features first and targets last, with the names that ``source`` has for them."""
    table = read_form(member_of(data, source.member) if source.member else data, source.form)
    rows, inputs, outputs = source.shape
    if table.values.shape != (rows, inputs + outputs):
        raise InputError(
            f"the file holds {table.values.shape[0]} rows of {table.values.shape[1]} numbers instead of {rows} of "
            f"{inputs + outputs}."
        )
    names = (*source.features, *source.targets) if source.features else table.header
    if names[inputs:] != source.targets:
        raise InputError(f"the last column of the file is called '{names[-1]}' instead of '{source.targets[-1]}'.")
    values = np.roll(table.values, -outputs, axis=1) if source.first else table.values
    return Table(values, names)


def download(url: str, folder: Path) -> bytes:
    """The bytes at an address; ``folder`` holds them while they arrive."""
    try:
        import pooch
    except ModuleNotFoundError:
        raise InputError("downloads need pooch: pip install 'nescio[data]'.") from None
    log = pooch.get_logger()
    log.addFilter(_serious)  # it would tell of every hash it does not know
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            loader = pooch.HTTPDownloader(progressbar=False, timeout=SECONDS)
            return Path(pooch.retrieve(url, None, "download", place, downloader=loader)).read_bytes()
    except OSError as error:
        response = getattr(error, "response", None)
        if response is not None:
            response.close()  # a refusal leaves its connection open
        reason = " ".join(str(error).split())[:160]
        raise InputError(f"the download failed ({reason}); see to the network and try again.") from None
    finally:
        log.removeFilter(_serious)


def _serious(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING


@contextmanager
def _told(source: Source, address: str) -> Iterator[None]:
    """Faults of the download with the name and the address in front, and what else can be done."""
    try:
        yield
    except InputError as error:
        raise InputError(
            f"'{source.name}' was not fetched from {address}: {str(error).rstrip('.')}; or let NESCIO_DATA name a "
            "folder that has it."
        ) from None


def _write(folder: Path, source: Source, table: Table, facts: dict[str, Any]) -> dict[str, Any]:
    packed = _packed(table)
    entry: dict[str, Any] = {
        "name": source.name,
        "file": f"uci/{source.name}.csv.gz",
        "sha256": hashlib.sha256(packed).hexdigest(),
        "n": len(table.values),
        "features": list(table.header[: source.shape[1]]),
        "targets": list(source.targets),
        "fetched": datetime.now(UTC).isoformat(timespec="seconds"),
    } | facts
    target = folder / "uci" / f"{source.name}.csv.gz"
    target.parent.mkdir(parents=True, exist_ok=True)
    # The note takes its place last: without it there is nothing in the cache. An older one stays until then, as it may
    # hold the digest of the first download.
    with written_beside(target.with_name(f"{source.name}.json")) as note, written_beside(target) as handle:
        note.write((json.dumps(entry, indent=1) + "\n").encode())
        note.flush()  # a full disk is noticed before the table is replaced
        handle.write(packed)
    return entry | {"path": target}


def _packed(table: Table) -> bytes:
    """A gzipped CSV, the same bytes for the same table; each number as short as it can be without loss."""
    text = io.StringIO(newline="")
    text.write(",".join(table.header) + "\n")
    for row in table.values.tolist():
        text.write(",".join(map(repr, row)) + "\n")
    return gzip.compress(text.getvalue().encode(), mtime=0)
