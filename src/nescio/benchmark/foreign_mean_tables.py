"""What the runs around gradient boosting show: likelihoods beside NGBoost's, and coverage in its band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nescio.calibration import coverage_band

__all__ = ["summary"]

LEVEL, BAND = 0.9, 0.99
REGIONS = {"inside": (("standard", "all"), ("gap", "inside")), "hole": (("gap", "hole"),)}
WANTED = {"inside": 4, "hole": 5}
"""Sets of five on which the likelihood must be above NGBoost's."""


def summary(records: list[dict[str, Any]], sound: list[dict[str, Any]]) -> tuple[str, bool]:
    """The tables, and whether all that is claimed holds."""
    rival = {
        (row["dataset"], row["split"], int(row["trial"]), row["region"]): float(row["value"])
        for row in sound
        if row["method"] == "ngboost" and row["metric"] == "log_likelihood"
    }
    sets = list(dict.fromkeys(record["dataset"] for record in records))
    lines, holds = [f"{'set':10s} {'region':8s} {'trials':>6s} {'d-VV':>8s} {'NGBoost':>8s} {'above in':>9s}"], True
    for region, places in REGIONS.items():
        above = 0
        for name in sets:
            pairs = _pairs(records, rival, name, places)
            ours, theirs = (float(np.mean(column)) for column in zip(*pairs, strict=True))
            above += ours > theirs
            won = sum(mine > other for mine, other in pairs)
            lines.append(f"{name:10s} {region:8s} {len(pairs):6d} {ours:8.3f} {theirs:8.3f} {won:4d} of {len(pairs)}")
        lines.append(f"{region}: above NGBoost on {above} of {len(sets)} sets")
        holds &= above >= min(WANTED[region], len(sets))
    lines.append(f"{'set':10s} {'target':>6s} {'rows':>6s} {'covered':>8s} {'band':>15s} {'fitted':>8s} {'width':>6s}")
    for name in sets:
        for target in sorted({int(record["target"]) for record in records if record["dataset"] == name}):
            text, within = _coverage(records, name, target)
            lines.append(text)
            holds &= within
    same = all(str(record["identical"]) == "True" for record in records)
    lines.append(f"predictions of the mean identical to the booster's: {'yes' if same else 'NO'}")
    return "\n".join(lines), bool(holds and same)


def _pairs(
    records: list[dict[str, Any]], rival: dict[Any, float], name: str, places: Sequence[tuple[str, str]]
) -> list[tuple[float, float]]:
    """Log-likelihoods of each split, the mean over targets, and NGBoost's."""
    found: dict[Any, list[float]] = {}
    for record in records:
        if record["dataset"] == name and (record["split"], record["region"]) in places:
            key = (name, record["split"], int(record["trial"]), record["region"])
            found.setdefault(key, []).append(float(record["log_likelihood"]))
    return [(float(np.mean(values)), rival[key]) for key, values in found.items()]


def _coverage(records: list[dict[str, Any]], name: str, target: int) -> tuple[str, bool]:
    mine = [
        record
        for record in records
        if record["dataset"] == name
        and int(record["target"]) == target
        and (record["split"], record["region"]) in REGIONS["inside"]
    ]
    rows = sum(int(record["inside_rows"]) for record in mine)
    covered, fitted = (sum(int(record[key]) for record in mine) for key in ("covered", "covered_fitted"))
    # Trials are taken as independent.
    low, high = coverage_band(
        [(int(record["inside_rows"]), int(record["calibration_rows"])) for record in mine], LEVEL, BAND
    )
    within = low <= covered <= high
    share = np.mean([float(record["width"]) / float(record["width_fitted"]) for record in mine])
    return (
        f"{name:10s} {target:6d} {rows:6d} {covered / rows:8.3f} {low / rows:7.3f}-{high / rows:5.3f}"
        f"{'' if within else ' OUT'} {fitted / rows:8.3f} {share:6.3f}",
        within,
    )
