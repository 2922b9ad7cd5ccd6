"""``nescio bench images`` and ``nescio bench detect``: models of images, measured and resumed like the rest."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from nescio.cli.bench import NAMES, bench, check_run, run, split_names

__all__ = ["detect", "images"]

Quick = Annotated[bool, typer.Option("--quick", help="A small preset: part of the images, a few epochs.")]
Seeds = Annotated[int, typer.Option(help="How many models of each kind.")]
Latent = Annotated[list[int] | None, typer.Option(help="Length of a code; may be given several times. Default: 10.")]
Stored = Annotated[Path, typer.Option(help="File of the records; what is in it is not run again.")]
Jobs = Annotated[int, typer.Option(help="Workers on this machine; one where there is one graphics card.")]
Energy = Annotated[bool, typer.Option("--energy", help="Also tell energy and CO2 (extra: energy).")]


@bench.command()
def images(
    data: Annotated[list[str], typer.Option(metavar=NAMES, help="Sets of images.")],
    store: Stored,
    methods: Annotated[list[str] | None, typer.Option(metavar=NAMES, help="Default: all.")] = None,
    latent: Latent = None,
    seeds: Seeds = 5,
    quick: Quick = False,
    jobs: Jobs = 1,
    csv: Annotated[Path | None, typer.Option(help="Also write all records of images to this file.")] = None,
    energy: Energy = False,
) -> None:
    """Fit models of images and measure likelihoods, samples and the variance away from the data."""
    from nescio.benchmark.image_exports import export_images
    from nescio.benchmark.image_methods import IMAGE_METHODS
    from nescio.benchmark.image_runs import image_plan, run_images

    check_run(store, csv, jobs)
    plan = image_plan(
        "images", split_names(data), split_names(methods) or IMAGE_METHODS, latent or [10], seeds, quick=quick
    )
    run(plan, store, csv, export_images, energy=energy, jobs=jobs, execute=run_images)


@bench.command()
def detect(
    inside: Annotated[list[str], typer.Option("--in", metavar=NAMES, help="Sets that models are fitted to.")],
    store: Stored,
    outside: Annotated[
        list[str] | None, typer.Option("--out", metavar=NAMES, help="Foreign sets. Default: those of FashionMNIST.")
    ] = None,
    methods: Annotated[list[str] | None, typer.Option(metavar=NAMES, help="Default: d-v3ae.")] = None,
    latent: Latent = None,
    seeds: Seeds = 3,
    refit: Annotated[
        list[str] | None, typer.Option(metavar=NAMES, help="none, per-image, transductive. Default: none.")
    ] = None,
    quick: Quick = False,
    jobs: Jobs = 1,
    csv: Annotated[Path | None, typer.Option(help="Also write all records of detection to this file.")] = None,
    energy: Energy = False,
) -> None:
    """Fit models of images and tell foreign images from their own by every score there is."""
    from nescio.benchmark.image_exports import export_detection
    from nescio.benchmark.image_runs import FOREIGN, check_refits, image_plan, run_detection

    check_run(store, csv, jobs)
    execute = partial(
        run_detection, outside=split_names(outside) or FOREIGN, refits=check_refits(split_names(refit) or ["none"])
    )
    plan = image_plan(
        "detection", split_names(inside), split_names(methods) or ["d-v3ae"], latent or [10], seeds, quick=quick
    )
    run(plan, store, csv, export_detection, energy=energy, jobs=jobs, execute=execute)
