"""Records of models of images out of a store: long, sorted CSV files, one for likelihoods and one for detection."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from nescio.benchmark.exports import DIGITS, read_text, run_number, write_export
from nescio.benchmark.image_runs import PRESETS
from nescio.benchmark.store import Record, Store

__all__ = ["KEYS", "export_detection", "export_images", "image_rows", "read_image_rows"]

KEYS = {
    "images": ("protocol", "dataset", "method", "latent", "seed", "metric"),
    "detection": ("protocol", "inside", "outside", "method", "latent", "score", "refit", "seed", "metric"),
}
"""Columns that say what a number is, for each kind of file."""

Row = dict[str, object]


def export_images(store: Store, path: Path) -> int:
    """Write ``protocol, dataset, method, latent, seed, metric, value``; how many records there were."""
    return _export(store, path, "images")


def export_detection(store: Store, path: Path) -> int:
    """Write ``inside, outside, method, latent, score, refit, seed, metric, value``; how many records there were."""
    return _export(store, path, "detection")


def image_rows(store: Store, kind: str) -> list[Mapping[str, str]]:
    """The rows that an export of this kind would have, as a reader of it would see them."""
    return [{name: str(value) for name, value in row.items()} for row in _rows(store, kind, {})]


def read_image_rows(path: Path) -> tuple[str, list[Mapping[str, str]]]:
    """What an exported file holds, ``"images"`` or ``"detection"``, and its rows; an empty word for another file."""
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    for kind, keys in KEYS.items():
        if set(keys) <= set(reader.fieldnames or ()):
            return kind, list(reader)
    return "", []


def _export(store: Store, path: Path, kind: str) -> int:
    runs: dict[tuple[str, ...], int] = {}
    return write_export(store, path, _rows(store, kind, runs), runs)


def _rows(store: Store, kind: str, runs: dict[tuple[str, ...], int]) -> list[Row]:
    describe: Callable[[Record], Row] = {"images": _image, "detection": _detection}[kind]
    rows: Iterator[Row] = (
        {
            "protocol": _preset(record),
            **describe(record),
            "value": f"{record.value:.{DIGITS}g}",
            "provenance": run_number(record, runs),
        }
        for name in (kind, *(f"{kind}-{preset}" for preset in PRESETS))
        for record in store.records(name)
        if record.metric != "seconds"
    )
    return sorted(rows, key=lambda row: tuple(row[name] for name in KEYS[kind]))


def _image(record: Record) -> Row:
    return {
        "dataset": record.dataset,
        "method": record.method,
        "latent": int(record.split.removeprefix("latent-")),
        "seed": record.trial,
        "metric": record.metric,
    }


def _detection(record: Record) -> Row:
    score, refit, metric = record.metric.split("/")
    return {
        "inside": record.dataset,
        "outside": record.region,
        "method": record.method,
        "latent": int(record.split.removeprefix("latent-")),
        "score": score,
        "refit": refit,
        "seed": record.trial,
        "metric": metric,
    }


def _preset(record: Record) -> str:
    """What was run; times are those of the models of the same name."""
    return record.protocol.partition("-")[2].removeprefix("times").removeprefix("-") or "sound"
