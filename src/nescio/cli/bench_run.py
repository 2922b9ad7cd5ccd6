"""A plan of a benchmark carried out for a person: checked, run or resumed, told of, exported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from nescio._files import check_destination
from nescio._validation import InputError, counted

if TYPE_CHECKING:
    from nescio.benchmark.plan import Request, Stack
    from nescio.benchmark.run import Summary
    from nescio.benchmark.store import Failure

__all__ = ["check_run", "run", "without_absent", "without_uninstalled"]

FAULT, INTERRUPTED = 1, 130


def without_absent(requests: dict[str, Request]) -> dict[str, Request]:
    """The requests without the data sets that nobody named and that are not on this machine, which is told."""
    from nescio.benchmark.stack import keep_present

    kept, absent = keep_present(requests)
    if absent:
        whole = [name for name in requests if name not in kept]
        told = f"; so nothing is left of {', '.join(whole)}" if whole else ""
        typer.echo(f"Not run, since not on this machine: {', '.join(absent)} (see nescio data list){told}.", err=True)
    return kept


def without_uninstalled(request: Request) -> Request:
    """The request without the methods that nobody named and whose library is not installed, which is told.

    What a store has of them stays in it, and in its exports.
    """
    from nescio.benchmark.methods import without_library

    lacking = without_library(request.methods)
    if lacking:
        names = ", ".join(lacking)
        typer.echo(f"Not run, since not installed: {names} (pip install 'nescio[peers]').", err=True)
    return request._replace(methods=tuple(name for name in request.methods if name not in lacking))


def check_run(store: Path, csv: Path | None, jobs: int, times: Path | None = None) -> None:
    """Refuse what would come to nothing, before anything runs."""
    if jobs < 1:
        raise InputError(f"--jobs must be a whole number of at least 1; got {jobs}.")
    for path in (store, csv, times):
        if path is not None:
            check_destination(path)


def run(
    plan: Sequence[Stack],
    store: Path,
    csv: Path | None,
    export: Callable[[Any, Path], int],
    *,
    energy: bool,
    jobs: int,
    times: Path | None = None,
    **engine: Any,
) -> None:
    """Run what is missing, write the export, tell how it went."""
    from nescio.benchmark.energy import measured_energy
    from nescio.benchmark.records import provenance, write_records
    from nescio.benchmark.run import run_plan, time_records
    from nescio.benchmark.store import Store

    if not plan:
        raise InputError("there is nothing to run: none of these methods is run on these data sets.")
    if engine.get("address") is None:
        _check_libraries(plan, store)
    provenance()  # kept from here on: an export into the tree that ran changes what git says of it
    meter = measured_energy() if energy else nullcontext()
    with Store(store, create=True) as records:
        try:
            with meter as used:
                summary = run_plan(plan, records, jobs=jobs, **engine)
        except KeyboardInterrupt:
            typer.echo(f"Interrupted; what was finished is in {store}, and the same command goes on.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        asked = {task for stack in plan for task in stack.tasks}
        failures = [failure for failure in records.failures() if failure.task in asked]
        typer.echo(_account(summary, failures), err=True)
        if used is not None:
            typer.echo(used.words(), err=True)
        if times is not None and summary.spent:  # a run that had nothing to do leaves the account of the one before
            protocol = plan[0].tasks[0].protocol
            write_records(times, time_records(summary, protocol, jobs, None if used is None else used.facts()))
        stored = {task.protocol for task in records.done()}
        if csv is not None and (not failures or stored & {task.protocol for task in asked}):
            typer.echo(f"Wrote {export(records, csv)} records to {csv}.", err=True)
    if failures:
        raise typer.Exit(FAULT)


def _check_libraries(plan: Sequence[Stack], store: Path) -> None:
    """Refuse a plan that lacks a library for what of it is not in the store yet."""
    from nescio.benchmark.run import missing_stacks
    from nescio.benchmark.stack import check_stacks
    from nescio.benchmark.store import Store

    missing = list(plan)
    if store.exists() and store.stat().st_size:  # an empty file becomes a store
        with Store(store) as records:
            missing = missing_stacks(plan, records)
    check_stacks(missing)


def _account(summary: Summary, failures: Sequence[Failure]) -> str:
    minutes, seconds = divmod(round(summary.seconds), 60)
    lines = [
        f"{summary.measured} trials measured in {minutes} min {seconds} s; {summary.there} were there before; "
        f"{summary.failed} failed."
    ]
    if summary.shares:
        shares = ", ".join(f"{method} {100.0 * share:.1f} %" for method, share in summary.shares.items())
        lines.append(f"Share of the workers' time: {shares}.")
    reasons = sorted(summary.apart.items(), key=lambda each: -each[1])
    lines += [f"{counted(count, 'stack')} run part by part, since as a whole: {why}" for why, count in reasons[:10]]
    if len(reasons) > 10:
        lines.append(f"... and {counted(len(reasons) - 10, 'more reason')}.")
    lines += [f"Failed: {' '.join(map(str, failure.task))}: {failure.error}" for failure in failures[:10]]
    if len(failures) > 10:
        lines.append(f"... and {len(failures) - 10} more failures; the store has them all.")
    return "\n".join(lines)
