"""Records out of a store and in again: one long, sorted CSV, and a small one beside it that says what made them."""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from nescio._validation import InputError
from nescio.benchmark.records import write_records
from nescio.benchmark.store import Record, Store

__all__ = [
    "COLUMNS",
    "DIGITS",
    "Value",
    "export_records",
    "provenance_path",
    "read_text",
    "read_values",
    "run_number",
    "stored_values",
    "times_rows",
    "write_export",
]

COLUMNS = ("protocol", "dataset", "split", "method", "trial", "region", "metric", "value", "seed", "provenance")
DIGITS = 9  # more than float32 holds


class Value(NamedTuple):
    """One record without what made it."""

    protocol: str
    dataset: str
    split: str
    method: str
    trial: int
    region: str
    metric: str
    value: float


def provenance_path(path: Path) -> Path:
    """The file beside an export that lists its runs: ``uci_sound.csv`` has ``uci_sound_provenance.csv``."""
    stem, _, ending = path.name.partition(".")
    return path.with_name(f"{stem}_provenance.{ending}")


def export_records(store: Store, path: Path, protocol: str | None = None) -> int:
    """Write the records of a store, and the provenance that their last column refers to; how many there were."""
    runs: dict[tuple[str, ...], int] = {}
    return write_export(store, path, list(_rows(store.records(protocol), runs)), runs)


def run_number(record: Record, runs: dict[tuple[str, ...], int]) -> int:
    """The number of the run that made a record, a new one at its first record."""
    return runs.setdefault((record.commit, record.versions, record.hardware, record.date), len(runs) + 1)


def write_export(store: Store, path: Path, rows: list[dict[str, object]], runs: dict[tuple[str, ...], int]) -> int:
    """Write ``rows``, and beside them the runs that their column ``provenance`` refers to; how many rows there were."""
    if not rows:
        raise InputError(f"the store '{store.path}' has no records to write; run the benchmark first.")
    facts = ("commit", "versions", "hardware", "date")
    listed = [{"provenance": number, **dict(zip(facts, run, strict=True))} for run, number in runs.items()]
    write_records(provenance_path(path), listed)
    write_records(path, rows)
    return len(rows)


def _rows(records: Iterable[Record], runs: dict[tuple[str, ...], int]) -> Iterator[dict[str, object]]:
    for record in records:
        key = (*record[:7], f"{record.value:.{DIGITS}g}", record.seed, run_number(record, runs))
        yield dict(zip(COLUMNS, key, strict=True))


def stored_values(store: Store, protocol: str | None = None) -> list[Value]:
    """The values of a store, sorted."""
    return [Value._make(record[:8]) for record in store.records(protocol)]


def read_text(path: Path) -> str:
    """What an exported file holds, plain or packed (``.gz``)."""
    try:
        packed = path.read_bytes()
        return (gzip.decompress(packed) if path.suffix == ".gz" else packed).decode("utf-8")
    except (OSError, EOFError, UnicodeError, zlib.error) as error:
        raise InputError(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def times_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a file of records of where the time of a run went; none where it is another file."""
    rows = csv.DictReader(io.StringIO(read_text(path), newline=""))
    return list(rows) if "worker_seconds" in (rows.fieldnames or ()) else []


def read_values(path: Path, protocol: str | None = None) -> list[Value]:
    """The values of an exported CSV, plain or packed (``.gz``), in its order."""
    rows = csv.reader(io.StringIO(read_text(path), newline=""))
    header = next(rows, [])
    missing = [name for name in COLUMNS[:8] if name not in header]
    if missing:
        raise InputError(f"'{path}' is not an export of benchmark records: it has no column '{missing[0]}'.")
    places = [header.index(name) for name in COLUMNS[:8]]
    values = []
    for number, row in enumerate(rows, start=2):
        try:
            cells = [row[place] for place in places]
            value = Value._make([*cells[:4], int(cells[4]), *cells[5:7], float(cells[7] or math.nan)])
        except (IndexError, ValueError) as error:
            raise InputError(f"line {number} of '{path}' is not a record; export it again.") from error
        if protocol in (None, value.protocol):
            values.append(value)
    return values
