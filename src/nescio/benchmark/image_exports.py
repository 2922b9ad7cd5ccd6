"""Records of models of images out of a store: long, sorted CSV files, one for likelihoods and one for detection."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nescio.benchmark.exports import DIGITS, run_number, write_export
from nescio.benchmark.image_runs import PRESETS
from nescio.benchmark.store import Record, Store

__all__ = ["export_detection", "export_images"]


def export_images(store: Store, path: Path) -> int:
    """Write ``protocol, dataset, method, latent, seed, metric, value``; how many records there were."""

    def row(record: Record) -> dict[str, object]:
        return {
            "protocol": _preset(record),
            "dataset": record.dataset,
            "method": record.method,
            "latent": int(record.split.removeprefix("latent-")),
            "seed": record.trial,
            "metric": record.metric,
        }

    return _export(store, path, "images", row)


def export_detection(store: Store, path: Path) -> int:
    """Write ``inside, outside, method, latent, score, refit, seed, metric, value``; how many records there were."""

    def row(record: Record) -> dict[str, object]:
        score, refit, metric = record.metric.split("/")
        return {
            "protocol": _preset(record),
            "inside": record.dataset,
            "outside": record.region,
            "method": record.method,
            "latent": int(record.split.removeprefix("latent-")),
            "score": score,
            "refit": refit,
            "seed": record.trial,
            "metric": metric,
        }

    return _export(store, path, "detection", row)


def _preset(record: Record) -> str:
    """What was run; times are those of the models of the same name."""
    return record.protocol.partition("-")[2].removeprefix("times").removeprefix("-") or "sound"


def _export(store: Store, path: Path, protocol: str, row: Callable[[Record], dict[str, object]]) -> int:
    runs: dict[tuple[str, ...], int] = {}
    rows = [
        {**row(record), "value": f"{record.value:.{DIGITS}g}", "provenance": run_number(record, runs)}
        for name in (protocol, *(f"{protocol}-{preset}" for preset in PRESETS))
        for record in store.records(name)
        if record.metric != "seconds"
    ]
    return write_export(store, path, rows, runs)
