"""A small run of the image comparison, for pages that have no record yet."""

from __future__ import annotations

import csv

from nescio._validation import InputError
from nescio.benchmark.image_exports import export_images
from nescio.benchmark.image_runs import image_plan, run_images
from nescio.benchmark.run import missing_stacks
from nescio.benchmark.store import Store
from nescio.benchmark.workshop import Unavailable, Workshop

__all__ = ["quick_image_rows"]

METHODS = ("vae", "v3ae", "d-v3ae")
SEEDS = 2


def quick_image_rows(workshop: Workshop) -> list[dict[str, str]]:
    """Lines like those of ``images.csv`` from small models on a small part of FashionMNIST; kept in a store."""
    workshop.keep.mkdir(parents=True, exist_ok=True)
    path = workshop.keep / "images-quick.csv"
    try:
        plan = image_plan("images", ["fashion_mnist"], METHODS, [10], SEEDS, preset="quick")
    except InputError as error:
        raise Unavailable(str(error)) from error
    with Store(workshop.keep / "images-quick.db", create=True) as store:
        for stack in missing_stacks(plan, store):
            outcome = run_images(stack)
            store.add(outcome.measurements, outcome.failures)
        export_images(store, path)
    workshop.note(path)
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
