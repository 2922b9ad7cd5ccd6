"""The comparison of protocol sound on one page: where a method is ahead of each other one, and what it detects."""

from __future__ import annotations

from statistics import median

from nescio.benchmark.cells import EMPTY, Cell, Group, Results, Table
from nescio.benchmark.names import METHODS, PARTIAL
from nescio.benchmark.statistics import TEST_OVER_TRAIN, Difference, paired_difference, spread

__all__ = ["ahead_table", "detection_table"]

PLACES = (("standard", "all"), ("gap", "inside"), ("gap", "hole"), ("tail", "tail"))
DETECTED = (
    ("auroc_near", "standard"), ("auroc_far", "standard"), ("auroc_box", "standard"), ("auroc_push", "standard"),
    ("auroc_hole", "gap"), ("auroc_tail", "tail"), ("auroc_support_near", "standard"),
)  # fmt: skip


def _gaps(results: Results, place: tuple[str, str], reference: str, rival: str) -> dict[str, Difference]:
    """Paired differences of the log-likelihood on each full data set that has both."""
    found: dict[str, Difference] = {}
    for dataset, methods in results.get(Group("sound", *place, "log_likelihood"), {}).items():
        gap = paired_difference(methods.get(reference, {}), methods.get(rival, {}), TEST_OVER_TRAIN[place])
        if gap is not None and dataset not in PARTIAL:
            found[dataset] = gap
    return found


def ahead_table(results: Results, reference: str = "d-vv") -> list[Table]:
    """On how many full data sets the reference has the higher mean log-likelihood, and where it falls back most."""
    rows = []
    for rival in METHODS:
        cells = []
        for place in PLACES:
            gaps = _gaps(results, place, reference, rival)
            if rival == reference or not gaps:
                cells += [EMPTY] * 3
                continue
            ahead = sum(gap.mean > 0 for gap in gaps.values())
            low = min(gaps, key=lambda dataset: gaps[dataset].low)
            middle = median(gap.mean for gap in gaps.values())
            cells += [Cell(f"{ahead} of {len(gaps)}"), Cell(middle), Cell(f"{gaps[low].low:+.2f} ({low})")]
        if any(cell.value is not None for cell in cells):
            rows.append((Cell(rival), *cells))
    if not rows:
        return []
    names = ("standard", "gap, inside", "gap, hole", "tail")
    columns = ("method", *(f"{name}: {what}" for name in names for what in ("ahead on", "median", "lowest end")))
    notes = (
        f"Log-likelihood of {reference} minus that of the method, in nats and standardised units, on full data sets. "
        "Ahead: the mean over paired splits is above zero. Lowest end: of the corrected 95 % intervals.",
    )
    return [Table("sound_ahead", f"Where {reference} is ahead", columns, tuple(rows), notes, digits=2)]


def detection_table(results: Results) -> list[Table]:
    """AUROC of the predictive std against points off the data, averaged over the full data sets."""
    means: dict[str, dict[str, float]] = {}
    for metric, split in DETECTED:
        for method in METHODS:
            of = results.get(Group("sound", split, "all", metric), {})
            sets = [spread(trials[method].values()).mean for name, trials in of.items()
                    if name not in PARTIAL and method in trials]  # fmt: skip
            if sets:
                means.setdefault(method, {})[metric] = sum(sets) / len(sets)
    if not means:
        return []
    best = {metric: max(of.get(metric, 0.0) for of in means.values()) for metric, _ in DETECTED}
    rows = [
        (Cell(method), *(Cell(of[m], best=of[m] == best[m]) if m in of else EMPTY for m, _ in DETECTED))
        for method, of in means.items()
    ]
    notes = (
        "Mean over the full data sets of the mean over splits. The last column is the AUROC of the support, the same "
        "neighbour distance for all methods.",
    )
    columns = ("method", *(metric.removeprefix("auroc_") for metric, _ in DETECTED))
    return [Table("sound_detection", "Detection of points off the data (AUROC)", columns, tuple(rows), notes, digits=3)]
