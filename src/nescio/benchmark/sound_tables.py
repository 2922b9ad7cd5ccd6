"""Protocol sound: means with their errors, paired differences, counts, ranks, and the worst split of each method."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nescio.benchmark.cells import EMPTY, Cell, Group, Results, Table
from nescio.benchmark.names import DATASETS, METHODS, METRICS, PARTIAL
from nescio.benchmark.statistics import (
    TEST_OVER_TRAIN,
    mean_ranks,
    paired_difference,
    spread,
    win_and_draws,
    worst,
)

__all__ = [
    "MAIN_METRICS", "count_table", "difference_tables", "mean_tables", "rank_table", "worst_tables",
]  # fmt: skip

MAIN_METRICS = (
    "log_likelihood", "rmse", "crps", "coverage_90", "width_90", "calibration_error", "auroc_near", "auroc_far",
    "auroc_box", "auroc_push", "auroc_hole", "auroc_tail", "auroc_support_near", "seconds",
)  # fmt: skip
WHERE = (("standard", "all"), ("gap", "inside"), ("gap", "hole"), ("tail", "inside"), ("tail", "tail"))
COMPARED = ("log_likelihood", "crps")


def _groups(results: Results, metrics: Sequence[str]) -> list[Group]:
    """Groups of protocol sound in the order of the metrics; the union of regions only where a metric has no other.

    What is measured off the data has the region ``all`` in every split.
    """
    order = [*WHERE, ("gap", "all"), ("tail", "all")]
    found = [Group("sound", split, region, metric) for metric in metrics for split, region in order]
    regional = {(group.split, group.metric) for group in results if group.region != "all"}
    return [
        group for group in found
        if group in results and not (group.region == "all" and (group.split, group.metric) in regional)
    ]  # fmt: skip


def _methods(results: Results, group: Group) -> list[str]:
    there = {method for methods in results[group].values() for method in methods}
    return [method for method in METHODS if method in there] + sorted(there - set(METHODS))


def _datasets(results: Results, group: Group) -> list[str]:
    there = results[group]
    return [name for name in DATASETS if name in there] + sorted(there.keys() - set(DATASETS))


def _title(what: str, group: Group) -> str:
    region = "" if group.split == "standard" or group.region == "all" else f", region {group.region}"
    return f"{what}: {group.metric} ({METRICS[group.metric].unit}), split {group.split}{region}"


def _name(what: str, group: Group) -> str:
    return "_".join(("sound", what, group.metric, group.split, group.region))


def mean_tables(results: Results, metrics: Sequence[str] = MAIN_METRICS) -> list[Table]:
    """Mean ± standard error over trials, methods by data sets, the best mean of each data set marked."""
    tables = []
    for group in _groups(results, metrics):
        datasets = _datasets(results, group)
        cells = {
            dataset: {method: spread(values.values()) for method, values in results[group][dataset].items()}
            for dataset in datasets
        }
        wins = {dataset: win_and_draws(group.metric, cells[dataset]) for dataset in datasets}
        ranked = METRICS[group.metric].better != 0
        rows = []
        for method in _methods(results, group):
            row = [Cell(method)]
            for dataset in datasets:
                found, win = cells[dataset].get(method), wins[dataset]
                best = ranked and win is not None and win.best == method
                row.append(EMPTY if found is None else Cell(found.mean, found.standard_error, best=best))
            rows.append(tuple(row))
        numbers = sorted({cell.n for of in cells.values() for cell in of.values()})
        trials = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]}"
        note = f"Mean ± standard error over {trials} splits, as if they were independent; they share training rows."
        tables.append(
            Table(_name("mean", group), _title("Means", group), ("method", *datasets), tuple(rows), (note,), digits=3)
        )
    return tables


def difference_tables(
    results: Results, reference: str = "d-vv", metrics: Sequence[str] = COMPARED, level: float = 0.95
) -> list[Table]:
    """Mean paired differences of one method to all others, with corrected intervals; positive is better for it."""
    tables = []
    for group in _groups(results, metrics):
        ratio = TEST_OVER_TRAIN.get((group.split, group.region))
        if ratio is None or not any(reference in methods for methods in results[group].values()):
            continue
        sign = METRICS[group.metric].better or 1
        rows = []
        for rival in _methods(results, group):
            if rival == reference:
                continue
            row = [Cell(rival)]
            for dataset in _datasets(results, group):
                ours, theirs = (
                    {trial: sign * value for trial, value in results[group][dataset].get(method, {}).items()}
                    for method in (reference, rival)
                )
                gap = paired_difference(ours, theirs, ratio, level)
                row.append(EMPTY if gap is None else Cell(gap.mean, interval=(gap.low, gap.high), best=gap.low > 0))
            rows.append(tuple(row))
        notes = (
            f"Positive: {reference} is better. Mean over the splits that both have, with the {100 * level:.0f} % "
            f"interval of the corrected resampled t-test (test rows over training rows {ratio:.2f}, where no ties "
            "move the cuts); marked where it lies above 0.",
        )
        title = _title(f"{reference} against each method", group)
        columns = ("method", *_datasets(results, group))
        tables.append(Table(_name("difference", group), title, columns, tuple(rows), notes, digits=3))
    return tables


def rank_table(results: Results, metrics: Sequence[str] = MAIN_METRICS) -> list[Table]:
    """Mean rank of each method over the full data sets, a row for each metric, split and region."""
    groups = [group for group in _groups(results, metrics) if METRICS[group.metric].better]
    ranks = {}
    for group in groups:
        full = [dataset for dataset in _datasets(results, group) if dataset not in PARTIAL]
        means = [{m: spread(v.values()).mean for m, v in results[group][dataset].items()} for dataset in full]
        ranks[group] = mean_ranks(group.metric, means), len(full)
    methods = [method for method in METHODS if any(method in of for of, _ in ranks.values())]
    rows = []
    for group, (of, count) in ranks.items():
        if of:
            top = min(of.values())
            cells = [Cell(of[m], best=of[m] == top) if m in of else EMPTY for m in methods]
            rows.append((Cell(group.metric), Cell(group.split), Cell(group.region), Cell(float(count)), *cells))
    columns = ("metric", "split", "region", "data sets", *methods)
    notes = ("1 is the best; of the means over splits, on the full data sets; methods that have all of them.",)
    return [Table("sound_ranks", "Mean ranks", columns, tuple(rows), notes, labels=4)] if rows else []


def count_table(results: Results, metrics: Sequence[str] = MAIN_METRICS) -> list[Table]:
    """The paper's rule on our numbers: on how many data sets a method is best, and how many it draws with there."""
    groups = [group for group in _groups(results, metrics) if METRICS[group.metric].better]
    methods = [method for method in METHODS if any(method in _methods(results, group) for group in groups)]
    rows = []
    for group in groups:
        tally = dict.fromkeys(_methods(results, group), (0, 0))
        for dataset in _datasets(results, group):
            if dataset in PARTIAL:
                continue
            cells = {method: spread(values.values()) for method, values in results[group][dataset].items()}
            win = win_and_draws(group.metric, cells)
            if win is not None:
                tally[win.best] = tally[win.best][0] + 1, tally[win.best][1] + len(win.draws)
        top = max((count for count, _ in tally.values()), default=0)
        of = [
            Cell(float(tally[m][0]), second=tally[m][1], best=0 < top == tally[m][0]) if m in tally else EMPTY
            for m in methods
        ]
        rows.append((Cell(group.metric), Cell(group.split), Cell(group.region), *of))
    notes = (
        "Best / draws, by the paper's rule: a two-sided z test at 0.05 with the standard error sqrt(s1²/n1 + s2²/n2). "
        "It takes splits for independent and unpaired; the paired differences are the better guide.",
    )
    columns = ("metric", "split", "region", *methods)
    title = "Full data sets on which each method is best"
    return [Table("sound_counts", title, columns, tuple(rows), notes, labels=3, digits=0)] if rows else []


def worst_tables(results: Results, metrics: Sequence[str] = ("log_likelihood",)) -> list[Table]:
    """The worst split of each method on each data set, and its number."""
    tables = []
    for group in _groups(results, metrics):
        datasets = _datasets(results, group)
        rows = []
        for method in _methods(results, group):
            row = [Cell(method)]
            for dataset in datasets:
                values = results[group][dataset].get(method)
                trial, value = worst(group.metric, values) if values else (-1, math.nan)
                row.append(Cell(value, second=trial) if values else EMPTY)
            rows.append(tuple(row))
        notes = ("The worst value of all splits / the number of that split.",)
        columns = ("method", *datasets)
        tables.append(Table(_name("worst", group), _title("Worst split", group), columns, tuple(rows), notes, digits=3))
    return tables
