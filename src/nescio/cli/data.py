"""``nescio data``: which data sets there are, where they are, how to get them, and whether they are whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from nescio._validation import InputError, join_names

__all__ = ["data"]

FAULT = 1

data = typer.Typer(name="data", no_args_is_help=True, help="The data sets of the paper: list, get, verify.")


@data.command("list")
def list_sets() -> None:
    """List the sets: how large each is, where it is on this machine, and what it is about."""
    _show([("name", "rows", "inputs", "outputs", "where", "about"), *_regression_lines()])
    typer.echo("")
    _show([("name", "training", "test", "size", "where", "about"), *_image_lines()])


def _regression_lines() -> Iterator[tuple[str, ...]]:
    from nescio.datasets.sources import SOURCES
    from nescio.datasets.uci import find_uci, uci_names

    for name in sorted({*SOURCES, *uci_names()}):
        entry, source = find_uci(name), SOURCES.get(name)
        if entry is not None:
            shape = (entry["n"], len(entry["features"]), len(entry["targets"]))
        else:
            shape = source.shape if source else (0, 0, 0)
        about = source.about if source else "not one of the paper's twelve"
        yield name, *(f"{number:,}" for number in shape), _where(entry), about


def _image_lines() -> Iterator[tuple[str, ...]]:
    from nescio.datasets.image_sources import IMAGE_SOURCES
    from nescio.datasets.images import find_images, image_names

    for name in sorted({*IMAGE_SOURCES, *image_names()}):
        entry, source = find_images(name), IMAGE_SOURCES.get(name)
        if source is not None:
            train, test = source.train, source.test
        else:
            train, test = (tuple(entry["shapes"][f"{part}_images"]) for part in ("train", "test"))  # type: ignore[index]
        about = source.about if source else "found in the folder, not for download"
        yield name, f"{train[0]:,}", f"{test[0]:,}", " x ".join(map(str, test[1:])), _where(entry), about


def _where(entry: Mapping[str, Any] | None) -> str:
    return "not here" if entry is None else "cache" if "fetched" in entry else "NESCIO_DATA"


def _show(lines: Sequence[tuple[str, ...]]) -> None:
    """Lines of six cells in columns, the three numbers to the right."""
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    for name, *numbers, where, about in lines:
        cells = "  ".join(cell.rjust(width) for cell, width in zip(numbers, widths[1:4], strict=True))
        typer.echo(f"{name.ljust(widths[0])}  {cells}  {where.ljust(widths[4])}  {about}")


@data.command()
def get(
    names: Annotated[list[str], typer.Argument(help="One or more names of the list.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Download again what is here already.")] = False,
) -> None:
    """Download sets from their publishers into the cache, check them, and say how they were checked."""
    from nescio.datasets.fetch import fetch
    from nescio.datasets.image_sources import IMAGE_SOURCES
    from nescio.datasets.images import fetch_images, find_images
    from nescio.datasets.sources import SOURCES
    from nescio.datasets.uci import find_uci

    here = {name: None if force else find_uci(name) or find_images(name) for name in names}
    for name in names:
        if here[name] is None and name not in SOURCES and name not in IMAGE_SOURCES:
            known = (*SOURCES, *IMAGE_SOURCES)
            raise InputError(f"there is no data set '{name}' to get; the sets are {join_names(known, limit=20)}.")
    for name, entry in here.items():
        if entry is not None:
            typer.echo(f"{name}: already here, {entry['path']}", err=True)
        elif name in IMAGE_SOURCES:
            found = fetch_images(name, force=force)
            typer.echo(f"{name}: images, {found['path']}; the MD5 sums of its files are the published ones.", err=True)
        else:
            found = fetch(name, force=force)
            checked = (
                "its numbers are the known ones"
                if found["checked"] == "values"
                else "no checksum of it is known; this first download is recorded, and later ones are compared with it"
            )
            typer.echo(f"{name}: {found['n']:,} rows, {found['path']}; {checked}.", err=True)


@data.command()
def verify(
    name: Annotated[
        str | None, typer.Argument(help="One set; all that are here if left out.", show_default=False)
    ] = None,
) -> None:
    """Read sets again and compare them with all that is known of them; exit code 1 if one is not what it should be."""
    from nescio.datasets.images import image_names, verify_images
    from nescio.datasets.uci import uci_names, verify_uci

    here = dict.fromkeys(uci_names(), verify_uci) | dict.fromkeys(image_names(), verify_images)
    if not here:
        raise InputError("no data set is here; set NESCIO_DATA, or run: nescio data get NAME.")
    if name is not None and name not in here:
        raise InputError(f"the data set '{name}' is not here; here are {join_names(here, limit=20)}.")
    faults = 0
    for each in here if name is None else [name]:
        try:
            typer.echo(f"{each}: {here[each](each)}.")
        except InputError as error:
            faults += 1
            typer.echo(f"{each}: FAULT: {error}", err=True)
    if faults:
        raise typer.Exit(FAULT)
