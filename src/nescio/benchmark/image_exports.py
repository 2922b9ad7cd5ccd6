"""Records of models of images out of a store: long, sorted CSV files, one for likelihoods and one for detection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nescio._validation import InputError
from nescio.benchmark.exports import DIGITS, provenance_path
from nescio.benchmark.records import write_records
from nescio.benchmark.store import Record, Store

__all__ = ["export_detection", "export_images"]


def export_images(store: Store, path: Path) -> int:
    """Write ``protocol, dataset, method, latent, seed, metric, value``; how many records there were."""

    def row(record: Record) -> dict[str, Any]:
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

    def row(record: Record) -> dict[str, Any]:
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
    return "quick" if record.protocol.endswith("-quick") else "sound"


def _export(store: Store, path: Path, protocol: str, row: Any) -> int:
    runs: dict[tuple[str, ...], int] = {}
    rows = []
    for name in (protocol, f"{protocol}-quick"):
        for record in store.records(name):
            if record.metric == "seconds":
                continue
            run = (record.commit, record.versions, record.hardware, record.date)
            number = runs.setdefault(run, len(runs) + 1)
            rows.append({**row(record), "value": f"{record.value:.{DIGITS}g}", "provenance": number})
    if not rows:
        raise InputError(f"the store '{store.path}' has no records to write; run the benchmark first.")
    facts = ("commit", "versions", "hardware", "date")
    listed = [{"provenance": number, **dict(zip(facts, run, strict=True))} for run, number in runs.items()]
    write_records(provenance_path(path), listed)
    write_records(path, rows)
    return len(rows)
