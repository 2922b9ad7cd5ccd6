"""``nescio reproduce``: the paper's figures and tables made again, as a site with a verdict on each."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from nescio._files import make_folder
from nescio._validation import InputError

__all__ = ["reproduce"]

FAULT = 1


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME ...|all]", help="Labels; default: all.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the site.")] = Path("site"),
    quick: Annotated[bool, typer.Option("--quick", help="Train small where there is no record: minutes.")] = False,
    results: Annotated[Path | None, typer.Option(help="Folder of records.", show_default="results")] = None,
    keep: Annotated[Path | None, typer.Option(help="Where computed arrays are kept.", show_default="OUT/data")] = None,
) -> None:
    """Make the paper again: every figure and table with what it claims, what we find and a verdict.

    What records have is not computed again. What cannot be made here leaves a card that says why, and exit code 1.
    """
    try:
        from nescio.report.reproduction import items, site
    except ModuleNotFoundError as error:
        raise InputError(f"reproduce needs {error.name}: pip install 'nescio[bench]'.") from error
    from nescio import __version__
    from nescio.benchmark.workshop import Workshop, default_results

    chosen = items.find_items(list(names or []))
    if results is not None and not results.is_dir():
        raise InputError(f"--results '{results}' is not a folder of records.")
    make_folder(out, "index.html")
    workshop = Workshop(results or default_results(), keep or out / "data", quick)
    began = time.perf_counter()
    done = site.build_site(chosen, workshop, out, __version__, lambda text: typer.echo(text, err=True))
    missing = [(item, outcome) for item, outcome in zip(chosen, done, strict=True) if not outcome.made]
    minutes, seconds = divmod(round(time.perf_counter() - began), 60)
    typer.echo(
        f"{len(done) - len(missing)} of {len(done)} pages in {minutes} min {seconds} s; open {out / 'index.html'}."
    )
    for item, outcome in missing:
        typer.echo(f"Not made: {item.label}: {outcome.reason}", err=True)
    if missing:
        raise typer.Exit(FAULT)
