"""Records in, tables out: which tables there are for what was run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from nescio._validation import InputError, join_names
from nescio.benchmark import ablation_tables, overview, paper_tables, sound_tables
from nescio.benchmark.ablations import ABLATION_METRICS
from nescio.benchmark.cells import Table, gather
from nescio.benchmark.detection_tables import detection_tables
from nescio.benchmark.exports import Value, read_values, stored_values, times_rows
from nescio.benchmark.image_exports import KEYS, image_rows, read_image_rows
from nescio.benchmark.image_tables import image_tables
from nescio.benchmark.setting_tables import regression_times_table
from nescio.benchmark.store import Store

__all__ = ["all_tables", "tables_of_files", "tables_of_store"]


def tables_of_files(
    paths: Iterable[Path], protocol: str | None = None, *, metrics: Sequence[str] | None = None, reference: str = "d-vv"
) -> list[Table]:
    """The tables of exported records of any kind; empty where a ``protocol`` is asked for that no file has."""
    values: list[Value] = []
    times: list[dict[str, str]] = []
    tables: list[Table] = []
    for path in paths:
        if of_times := times_rows(path):
            times += of_times
            continue
        kind, rows = read_image_rows(path)
        rows = [row for row in rows if protocol in (None, row["protocol"])]
        if kind:
            tables += image_tables(rows) if kind == "images" else detection_tables(rows)
        else:
            values += read_values(path, protocol)
    return [*(all_tables(values, metrics=metrics, reference=reference, times=times) if values else ()), *tables]


def tables_of_store(
    store: Store, protocol: str | None = None, *, metrics: Sequence[str] | None = None, reference: str = "d-vv"
) -> list[Table]:
    """The tables of the records of a store."""
    images, detection = (
        [row for row in image_rows(store, kind) if protocol in (None, row["protocol"])]
        for kind in ("images", "detection")
    )
    values = [value for value in stored_values(store, protocol) if value.protocol.partition("-")[0] not in KEYS]
    tables = all_tables(values, metrics=metrics, reference=reference) if values else []
    return [*tables, *image_tables(images), *detection_tables(detection)]


def all_tables(
    values: Iterable[Value],
    *,
    metrics: Sequence[str] | None = None,
    reference: str = "d-vv",
    times: Sequence[Mapping[str, str]] = (),
) -> list[Table]:
    """The tables of both protocols and of the ablations, of those that have records.

    ``metrics`` are those of protocol sound and of the ablations, the main ones by default; ``reference`` is the method
    that the others of protocol sound are compared with; ``times`` are records of where the time of runs went.
    Statistics are computed here; nothing is drawn.
    """
    for name in metrics or ():
        if name not in ABLATION_METRICS:
            raise InputError(f"metrics must be among {join_names(ABLATION_METRICS, 60)}; got '{name}'.")
    results = gather(values)
    protocols = {group.protocol for group in results}
    tables: list[Table] = []
    if "paper" in protocols:
        tables += [
            paper_tables.agreement_table(results),
            *paper_tables.count_tables(results),
            *paper_tables.raw_tables(results),
            regression_times_table(results, results, times),
        ]
    if "ablation" in protocols:
        tables += ablation_tables.ablation_tables(results, metrics or ())
    if "sound" in protocols:
        chosen = tuple(metrics or sound_tables.MAIN_METRICS)
        compared = (
            tuple(name for name in metrics if ABLATION_METRICS[name].better) if metrics else sound_tables.COMPARED
        )
        tables += [
            *overview.ahead_table(results, reference),
            *overview.detection_table(results),
            *sound_tables.difference_tables(results, reference, compared),
            *sound_tables.rank_table(results, chosen),
            *sound_tables.count_table(results, chosen),
            *sound_tables.mean_tables(results, chosen),
            *sound_tables.worst_tables(results, compared if metrics else ("log_likelihood",)),
        ]
    return tables
