"""``nescio data``: which data sets there are, where they are, how to get them, and whether they are whole."""

from __future__ import annotations

from typing import Annotated

import typer

from nescio._validation import InputError, join_names

__all__ = ["data"]

FAULT = 1

data = typer.Typer(name="data", no_args_is_help=True, help="The regression sets of the paper: list, get, verify.")


@data.command("list")
def list_sets() -> None:
    """List the sets: rows, inputs, outputs, where each is on this machine, and what it is about."""
    from nescio.datasets.sources import SOURCES
    from nescio.datasets.uci import find_uci, uci_names

    lines = [("name", "rows", "inputs", "outputs", "where", "about")]
    for name in sorted({*SOURCES, *uci_names()}):
        entry, source = find_uci(name), SOURCES.get(name)
        if entry is not None:
            shape = (entry["n"], len(entry["features"]), len(entry["targets"]))
            where = "cache" if "fetched" in entry else "NESCIO_DATA"
        else:
            shape, where = source.shape if source else (0, 0, 0), "not here"
        about = source.about if source else "not one of the paper's twelve"
        rows, inputs, outputs = (f"{number:,}" for number in shape)
        lines.append((name, rows, inputs, outputs, where, about))
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    for name, rows, inputs, outputs, where, about in lines:
        numbers = "  ".join(cell.rjust(width) for cell, width in zip((rows, inputs, outputs), widths[1:4], strict=True))
        typer.echo(f"{name.ljust(widths[0])}  {numbers}  {where.ljust(widths[4])}  {about}")


@data.command()
def get(
    names: Annotated[list[str], typer.Argument(help="One or more names of the list.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Download again what is here already.")] = False,
) -> None:
    """Download sets from their publishers into the cache, check them, and say how they were checked."""
    from nescio.datasets.fetch import fetch
    from nescio.datasets.sources import SOURCES
    from nescio.datasets.uci import find_uci

    for name in names:
        here = None if force else find_uci(name)
        if here is None and name not in SOURCES:
            raise InputError(f"there is no data set '{name}' to get; the sets are {join_names(SOURCES, limit=20)}.")
    for name in names:
        here = None if force else find_uci(name)
        if here is not None:
            typer.echo(f"{name}: already here, {here['path']}", err=True)
            continue
        entry = fetch(name, force=force)
        checked = (
            "its numbers are the known ones"
            if entry["checked"] == "values"
            else "no checksum of it is known, so this first download is recorded and later ones are compared with it"
        )
        typer.echo(f"{name}: {entry['n']:,} rows, {entry['path']}; {checked}.", err=True)


@data.command()
def verify(
    name: Annotated[
        str | None, typer.Argument(help="One set; all that are here if left out.", show_default=False)
    ] = None,
) -> None:
    """Read sets again and compare them with all that is known of them; exit code 1 if one is not what it should be."""
    from nescio.datasets.uci import uci_names, verify_uci

    here = uci_names()
    if not here:
        raise InputError("no data set is here; set NESCIO_DATA, or run: nescio data get NAME.")
    if name is not None and name not in here:
        raise InputError(f"the data set '{name}' is not here; here are {join_names(here, limit=20)}.")
    faults = 0
    for each in here if name is None else [name]:
        try:
            typer.echo(f"{each}: {verify_uci(each)}.")
        except InputError as error:
            faults += 1
            typer.echo(f"{each}: FAULT: {error}", err=True)
    if faults:
        raise typer.Exit(FAULT)
