"""The comparisons on images: what to run, and one seed of it in one worker.

In the store ``bench images`` has the protocol ``images`` and ``bench detect`` the protocol ``detection``, with
``-paper`` behind it for what the authors ran, ``-tf32`` for coarser products, ``-quick`` for the small preset and
``-times`` for training alone; the split is the length of a code, ``latent-10``, and the trial is the seed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial

import numpy as np
import torch

from nescio._validation import InputError, check_integer, join_names
from nescio.benchmark.image_methods import IMAGE_METHODS, PAPER_IMAGE_METHODS, QUICK_IMAGES, make_image_method
from nescio.benchmark.plan import Stack, Task
from nescio.benchmark.records import provenance
from nescio.benchmark.stack import Outcome, error_words
from nescio.benchmark.store import Failure, Measurement
from nescio.datasets.foreign import FOREIGN_TRANSFORMS, foreign_images
from nescio.datasets.images import ImageData, image_names, load_images
from nescio.generative import NoveltyDetector
from nescio.generative.base import ImageModel
from nescio.generative.detection import REFITS, detection_metrics, refit_scores
from nescio.generative.measures import image_measures, ray_variances

__all__ = ["FOREIGN", "PRESETS", "check_refits", "image_plan", "run_detection", "run_images"]

FOREIGN = ("mnist", "kmnist_2018", "notmnist", "omniglot_small", *FOREIGN_TRANSFORMS)
"""What is held against FashionMNIST, as far as it is at hand."""
PRESETS = ("paper", "tf32", "quick", "times", "times-tf32")
TWICE = 2.0  # radii of the data: where the promise of the level is looked at
WARM_UP = 1_024  # images of a first fit that is not timed: a device takes seconds to wake
REFITTED = 500  # images of each kind whose codes are fitted anew: it costs a hundred passes
IMPORTANCE = 100  # codes for the likelihood of a test image
Values = list[tuple[str, str, float]]


def image_plan(
    protocol: str,
    datasets: Sequence[str],
    methods: Sequence[str],
    latents: Sequence[int],
    seeds: int,
    *,
    first_seed: int = 0,
    preset: str = "",
) -> list[Stack]:
    """One stack for each data set, length of a code and seed: all methods together, so that they can be compared.

    ``preset`` is one of ``PRESETS`` or empty.
    """
    check_integer("seeds", seeds, least=1)
    known = PAPER_IMAGE_METHODS if preset == "paper" else IMAGE_METHODS
    for name in methods:
        if name not in known:
            raise InputError(f"methods must be among {join_names(known, 10)}; got '{name}'.")
    for name in datasets:
        if name not in image_names():
            load_images(name)  # says what is missing
    protocol = f"{protocol}-{preset}" if preset else protocol
    return [
        Stack(tuple(Task(protocol, dataset, f"latent-{latent}", method, seed) for method in methods))
        for dataset in datasets
        for latent in latents
        for seed in range(first_seed, first_seed + seeds)
    ]


@lru_cache(maxsize=2)
def _data(name: str, quick: bool) -> ImageData:
    data = load_images(name)
    if not quick:
        return data
    train, test = QUICK_IMAGES, QUICK_IMAGES // 5
    return ImageData(name, data.train[:train], data.train_labels[:train], data.test[:test], data.test_labels[:test])


@lru_cache(maxsize=1)
def _wake() -> None:
    """Have the device make its first kernels before anything is timed."""
    if torch.cuda.is_available():
        images = np.random.default_rng(0).integers(0, 256, (WARM_UP, 8, 8), dtype=np.uint8)
        for method in ("d-v3ae", "vae"):
            make_image_method(method, n_latents=2, seed=0, quick=True).fit(images)


@contextmanager
def _products(coarse: bool) -> Iterator[None]:
    """Matrix products with ten bits of mantissa (TF32) where the device has them, and as before afterwards."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if coarse else before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _fitted(task: Task) -> tuple[ImageModel, ImageData, float]:
    """The model of a task, the data it was fitted to, and the seconds that took."""
    quick = task.protocol.endswith("-quick")
    data = _data(task.dataset, quick)
    model = make_image_method(
        task.method,
        n_latents=int(task.kind.removeprefix("latent-")),
        seed=task.trial,
        protocol="paper" if task.protocol.endswith("-paper") else "sound",
        detection=task.protocol.startswith("detection"),
        quick=quick,
    )
    with _products(task.protocol.endswith("-tf32")):
        _wake()
        began = time.perf_counter()
        model.fit(data.train)
        return model, data, time.perf_counter() - began


def _each(stack: Stack, run: Callable[[Task, dict[str, dict[str, float]]], Values]) -> Outcome:
    """Run the tasks one after the other; what was found of one of them may be of use to the next."""
    outcome = Outcome([], [], made=provenance())
    took: dict[str, dict[str, float]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task in stack.tasks:
            began = time.perf_counter()
            try:
                values = run(task, took)
            except Exception as error:
                outcome.failures.append(Failure(task, error_words(error)))
                continue
            outcome.measurements.append(Measurement(task, values, time.perf_counter() - began))
    return outcome


def run_images(stack: Stack, *, timed: bool = True) -> Outcome:
    """Fit and measure each model of a stack on the test images; not ``timed`` where others share the device."""
    return _each(stack, partial(_measure, timed=timed))


def _measure(task: Task, before: dict[str, dict[str, float]], *, timed: bool) -> Values:
    model, data, seconds = _fitted(task)
    values = {"seconds_train": seconds} if timed else {}
    if "-times" not in task.protocol:
        values |= _quality(model, data, task)
    before[task.method] = dict(values)
    if task.method == "d-v3ae" and "v3ae" in before:
        plain = before["v3ae"]
        if timed:
            values["overhead_pseudo_inputs"] = seconds / plain["seconds_train"] - 1.0
        if "log_likelihood_truncated" in values:
            lost = plain["log_likelihood_truncated"] - values["log_likelihood_truncated"]
            values["cost_per_pixel"] = lost / data.test[0].size
    return [("test", name, float(value)) for name, value in values.items()]


def _quality(model: ImageModel, data: ImageData, task: Task) -> dict[str, float]:
    quick = task.protocol.endswith("-quick")
    values = image_measures(model, data.test, n_importance=5 if quick else IMPORTANCE, seed=task.trial)
    rays = ray_variances(model, [TWICE], seed=task.trial)
    values |= {"ray_variance_mean": float(rays.mean()), "ray_variance_lowest": float(rays.min())}
    values["ray_variance_highest"] = float(rays.max())
    if hasattr(model, "outside_std_"):
        values["outside_variance"] = float(model.outside_std_) ** 2
    return values


def run_detection(stack: Stack, outside: Sequence[str] = FOREIGN, refits: Sequence[str] = ("none",)) -> Outcome:
    """Fit each model of a stack and tell test images from foreign ones by every score that it has."""
    return _each(stack, lambda task, _: list(_detect(task, outside, refits)))


def _detect(task: Task, outside: Sequence[str], refits: Sequence[str]) -> Iterator[tuple[str, str, float]]:
    model, data, _ = _fitted(task)
    held_out = data.train[model.held_out_]
    rest = np.delete(data.train, model.held_out_, axis=0)
    detector = NoveltyDetector(seed=task.trial, n_samples=10).fit(model, held_out, reference=rest)
    names = detector.names_
    ordinary = detector.scores(data.test, names)
    for name in outside:
        foreign = foreign_images(name, data, seed=task.trial)[: len(data.test)]
        found = detector.scores(foreign, names)
        for score in names:
            for metric, value in detection_metrics(ordinary[score], found[score]).items():
                yield name, f"{score}/none/{metric}", value
        for refit in refits:
            if refit != "none":
                pair = refit_scores(model, data.test[:REFITTED], foreign[:REFITTED], refit=refit, seed=task.trial)
                for metric, value in detection_metrics(*pair).items():
                    yield name, f"elbo/{refit}/{metric}", value


def check_refits(refits: Sequence[str]) -> list[str]:
    """Names of refit protocols, checked."""
    for name in refits:
        if name not in REFITS:
            raise InputError(f"refit must be among {join_names(REFITS)}; got '{name}'.")
    return list(refits)
