"""``nescio bench images`` and ``nescio bench detect``: models of images, measured and resumed like the rest."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from nescio._validation import InputError
from nescio.cli.bench import NAMES, Protocol, bench, split_names
from nescio.cli.bench_run import check_run, run

__all__ = ["detect", "images"]

Kind = Annotated[Protocol, typer.Option(help="What the authors ran, or what we stand behind.")]
Quick = Annotated[bool, typer.Option("--quick", help="A small preset: part of the images, a few epochs.")]
Seeds = Annotated[int, typer.Option(help="How many models of each kind.")]
First = Annotated[int, typer.Option(help="The first of them.", min=0)]
Latent = Annotated[list[int] | None, typer.Option(help="Length of a code; may be given several times. Default: 10.")]
Stored = Annotated[Path, typer.Option(help="File of the records; what is in it is not run again.")]
Jobs = Annotated[int, typer.Option(help="Workers on this machine; one where there is one graphics card.")]
Energy = Annotated[bool, typer.Option("--energy", help="Also tell energy and CO2 (extra: energy).")]


class Times(StrEnum):
    """Whether seconds are measured."""

    along = "along"
    only = "only"
    off = "off"


def _preset(protocol: Protocol, quick: bool, tf32: bool, times: Times = Times.along) -> str:
    from nescio.benchmark.image_runs import PRESETS

    flags = (("paper", protocol is Protocol.paper), ("times", times is Times.only), ("tf32", tf32), ("quick", quick))
    chosen = "-".join(name for name, on in flags if on)
    if chosen and chosen not in PRESETS:
        raise InputError(f"--protocol paper, --times only, --tf32 and --quick do not go together; got {chosen}.")
    return chosen


@bench.command()
def images(
    data: Annotated[list[str], typer.Option(metavar=NAMES, help="Sets of images.")],
    store: Stored,
    protocol: Kind = Protocol.sound,
    methods: Annotated[list[str] | None, typer.Option(metavar=NAMES, help="Default: all.")] = None,
    latent: Latent = None,
    seeds: Seeds = 5,
    first_seed: First = 0,
    tf32: Annotated[bool, typer.Option("--tf32", help="Matrix products with fewer bits, on devices that can.")] = False,
    times: Annotated[
        Times, typer.Option(help="Seconds: along with the rest, nothing else, or off, where others share the device.")
    ] = Times.along,
    quick: Quick = False,
    jobs: Jobs = 1,
    csv: Annotated[Path | None, typer.Option(help="Also write all records of images to this file.")] = None,
    energy: Energy = False,
) -> None:
    """Fit models of images and measure likelihoods, samples and the variance away from the data."""
    from nescio.benchmark.image_exports import export_images
    from nescio.benchmark.image_methods import IMAGE_METHODS, PAPER_IMAGE_METHODS
    from nescio.benchmark.image_runs import image_plan, run_images

    check_run(store, csv, jobs)
    preset = _preset(protocol, quick, tf32, times)
    chosen = split_names(methods) or (PAPER_IMAGE_METHODS if preset == "paper" else IMAGE_METHODS)
    plan = image_plan("images", split_names(data), chosen, latent or [10], seeds, first_seed=first_seed, preset=preset)
    run(
        plan,
        store,
        csv,
        export_images,
        energy=energy,
        jobs=jobs,
        execute=partial(run_images, timed=times is not Times.off),
    )


@bench.command()
def detect(
    inside: Annotated[list[str], typer.Option("--in", metavar=NAMES, help="Sets that models are fitted to.")],
    store: Stored,
    outside: Annotated[
        list[str] | None, typer.Option("--out", metavar=NAMES, help="Foreign sets. Default: those of FashionMNIST.")
    ] = None,
    protocol: Kind = Protocol.sound,
    methods: Annotated[list[str] | None, typer.Option(metavar=NAMES, help="Default: d-v3ae.")] = None,
    latent: Latent = None,
    seeds: Seeds = 3,
    first_seed: First = 0,
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
        "detection", split_names(inside), split_names(methods) or ["d-v3ae"], latent or [10], seeds,
        first_seed=first_seed, preset=_preset(protocol, quick, False),
    )  # fmt: skip
    run(plan, store, csv, export_detection, energy=energy, jobs=jobs, execute=execute)
