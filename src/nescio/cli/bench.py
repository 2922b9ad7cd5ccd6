"""``nescio bench``: the paper's comparison on the UCI sets and its ablations, run, resumed, and shown as tables."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from nescio._files import check_destination
from nescio._validation import InputError
from nescio.cli.bench_run import check_run, run, without_absent, without_uninstalled

__all__ = ["NAMES", "bench", "split_names"]

bench = typer.Typer(
    name="bench",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Benchmarks: run them, resume them, show their tables.",
)

NAMES = "NAME[,NAME]"


class Protocol(StrEnum):
    """What to run: what the authors ran, or what we stand behind."""

    paper = "paper"
    sound = "sound"


class Shown(StrEnum):
    """Whose tables to show."""

    paper = "paper"
    sound = "sound"
    ablation = "ablation"


class EngineName(StrEnum):
    """Where to run it."""

    local = "local"
    dask = "dask"
    ray = "ray"


class Format(StrEnum):
    """How to show tables."""

    text = "text"
    md = "md"
    csv = "csv"
    json = "json"
    html = "html"


@bench.command()
def uci(
    protocol: Annotated[Protocol, typer.Option(help="What the authors ran, or what we stand behind.")],
    store: Annotated[Path, typer.Option(help="File of the records; what is in it is not run again.")],
    datasets: Annotated[list[str] | None, typer.Option(metavar=NAMES, help="Default: all that are here.")] = None,
    methods: Annotated[list[str] | None, typer.Option(metavar=NAMES, help="Default: all that are installed.")] = None,
    split: Annotated[list[str] | None, typer.Option(metavar=NAMES, help="standard, gap, tail. Default: all.")] = None,
    trials: Annotated[int | None, typer.Option(help="Of each kind of split, at most.", show_default=False)] = None,
    jobs: Annotated[int, typer.Option(help="Workers on this machine, of one thread each.")] = 2,
    engine: Annotated[EngineName, typer.Option(help="This machine, or a cluster.")] = EngineName.local,
    address: Annotated[str | None, typer.Option(help="Of the cluster's scheduler; default: one here.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Also write all records of the protocol to this file.")] = None,
    times: Annotated[Path | None, typer.Option(help="Also write where the time of this run went.")] = None,
    energy: Annotated[bool, typer.Option("--energy", help="Also tell energy and CO2 (extra: energy).")] = False,
    compiled: Annotated[bool, typer.Option("--compile", help="Compile the training: pays in a long run.")] = False,
) -> None:
    """Run the UCI benchmark, or what of it the store does not hold yet."""
    from nescio.benchmark.exports import export_records
    from nescio.benchmark.plan import check_request, make_plan
    from nescio.benchmark.stack import describe
    from nescio.training import can_compile

    names = split_names(datasets), split_names(methods), split_names(split)
    request = check_request(protocol.value, *names, trials, compiled)
    check_run(store, csv, jobs, times)
    if address is not None and engine is EngineName.local:
        raise InputError("--address is that of a cluster; add --engine dask or --engine ray.")
    if address is not None and energy:
        raise InputError("--energy measures this machine and not a cluster; leave out --energy or --address.")
    if compiled and (request.protocol == "paper" or not can_compile()):
        raise InputError("--compile is for protocol sound, and needs a C++ compiler (g++ or clang++) on the path.")
    if not names[0]:
        (request,) = without_absent({"uci": request}).values()
    if not names[1] and address is None:
        request = without_uninstalled(request)
    plan = make_plan(request, describe(request))
    export = partial(export_records, protocol=protocol.value)
    run(plan, store, csv, export, times=times, energy=energy, engine=engine.value, jobs=jobs, address=address)


@bench.command()
def ablation(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Which one, or several, or all.")],
    store: Annotated[Path, typer.Option(help="File of the records; what is in it is not run again.")] = Path(
        "ablations.db"
    ),
    datasets: Annotated[list[str] | None, typer.Option(metavar=NAMES, help="Default: those of each ablation.")] = None,
    trials: Annotated[int | None, typer.Option(help="Of each kind of split, at most.", show_default=False)] = None,
    jobs: Annotated[int, typer.Option(help="Workers on this machine, of one thread each.")] = 2,
    csv: Annotated[Path | None, typer.Option(help="Also write all records of ablations to this file.")] = None,
    energy: Annotated[bool, typer.Option("--energy", help="Also tell energy and CO2 (extra: energy).")] = False,
) -> None:
    """Leave out, exchange or turn up one thing at a time: the paper's ablations and ours."""
    from nescio.benchmark.ablation_runs import ablation_requests, make_ablation_plan
    from nescio.benchmark.exports import export_records
    from nescio.benchmark.stack import describe

    requests = ablation_requests(split_names(names), split_names(datasets), trials)
    check_run(store, csv, jobs)
    if not split_names(datasets):
        requests = without_absent(requests)
    plan = make_ablation_plan(requests, {name: describe(request) for name, request in requests.items()})
    run(plan, store, csv, partial(export_records, protocol="ablation"), energy=energy, jobs=jobs)


def split_names(options: Sequence[str] | None) -> list[str]:
    """Names from options with commas between them."""
    return [name.strip() for option in options or [] for name in option.split(",") if name.strip()]


@bench.command()
def table(
    store: Annotated[Path | None, typer.Option(help="Store to read.", show_default=False)] = None,
    csv: Annotated[Path | None, typer.Option(help="Exported records to read.", show_default=False)] = None,
    protocol: Annotated[Shown | None, typer.Option(help="Which one; default: all there are.")] = None,
    format: Annotated[Format, typer.Option(help="How to show them.")] = Format.text,
    metrics: Annotated[
        list[str] | None, typer.Option(metavar=NAMES, help="Of protocol sound and ablations. Default: the main ones.")
    ] = None,
    against: Annotated[str, typer.Option(help="Method that all others are compared with.")] = "d-vv",
    out: Annotated[Path | None, typer.Option(help="File to write; default: the screen.")] = None,
) -> None:
    """Show records as tables: the paper's beside the published numbers, and the comparison of protocol sound."""
    from nescio._files import written_beside
    from nescio.benchmark.store import Store

    if (store is None) == (csv is None):
        raise InputError("give the records by --store or by --csv, one of them.")
    wanted = None if protocol is None else protocol.value
    if out is not None:
        check_destination(out)
    report = _report()
    from nescio.benchmark.tables import tables_of_files, tables_of_store

    chosen: dict[str, Any] = {"metrics": split_names(metrics), "reference": against}
    if csv is not None:
        tables = tables_of_files([csv], wanted, **chosen)
    else:
        with Store(store) as records:  # type: ignore[arg-type]
            tables = tables_of_store(records, wanted, **chosen)
    if not tables:
        raise InputError(f"'{csv or store}' has no records{f' of protocol {wanted}' if wanted else ''} to show.")
    text = report.render(tables, format.value)
    if out is None:
        typer.echo(text)
        return
    with written_beside(out) as handle:
        handle.write(text.encode())


@bench.command()
def page(
    path: Annotated[Path, typer.Argument(help="Markdown with places for tables: <!-- table:NAME -->.")],
    csv: Annotated[list[Path], typer.Option(help="Exported records to read; may be given several times.")],
) -> None:
    """Write the tables of a page anew from exported records."""
    from nescio._files import written_beside

    check_destination(path)
    _report()
    from nescio.benchmark.tables import tables_of_files
    from nescio.report.page_tables import fill_tables

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise InputError(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    filled = fill_tables(text, tables_of_files(csv))
    with written_beside(path) as handle:
        handle.write(filled.encode())


def _report() -> Any:
    try:
        from nescio.report import tables
    except ModuleNotFoundError as error:
        raise InputError(f"tables need {error.name}: pip install 'nescio[cli]'.") from error
    return tables
