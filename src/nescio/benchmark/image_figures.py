"""What the figures of the image models show, as arrays: maps, samples, refitted codes, scores, entropies."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from nescio._validation import InputError
from nescio.benchmark.image_methods import make_image_method
from nescio.benchmark.workshop import Arrays, Unavailable
from nescio.datasets.images import ImageData, load_images
from nescio.generative import BernoulliVAE, NoveltyDetector
from nescio.generative.base import ImageModel
from nescio.generative.detection import refit_scores

__all__ = ["FIGURE_MODELS", "detection_scores", "drawn_samples", "entropy_maps", "latent_maps", "refit_paths"]

FIGURE_MODELS = ("vae", "d-v3ae")  # the two that the paper's figures compare
QUICK = {"epochs": 10, "precision_epochs": 10, "batch_size": 128}
QUICK_TRAIN, QUICK_TEST = 5_000, 1_000
SIDE = 61  # points of a map along each code
REACH = 2.5  # radii of the data
SHOWN = 2_000  # codes of test images in a map
REFITTED = 1_000  # foreign images that the encoder is fitted to
FOLLOWED = 8  # of them, whose codes are drawn
STATIONS = 6
ENTROPY_WEIGHT = 20.0  # an entropy of six nats beside a likelihood of a hundred


@lru_cache(maxsize=4)
def images(name: str, quick: bool) -> ImageData:
    """A set, or a small part of it; Unavailable where it is not at hand."""
    try:
        data = load_images(name)
    except InputError as error:
        raise Unavailable(str(error)) from error
    if not quick:
        return data
    train, test = QUICK_TRAIN, QUICK_TEST
    return ImageData(name, data.train[:train], data.train_labels[:train], data.test[:test], data.test_labels[:test])


@lru_cache(maxsize=8)
def fitted(method: str, dataset: str, n_latents: int, quick: bool) -> ImageModel:
    """A model of the figures, trained once per process."""
    model = make_image_method(method, n_latents=n_latents, seed=0)
    return model.set_params(**(QUICK if quick else {})).fit(images(dataset, quick).train)


def latent_maps(quick: bool) -> Arrays:
    """Per model: codes of test images, and over a plane of codes the decoder's variance, summed over pixels.

    Paper: fig:vae_variance_plots.
    """
    data = images("fashion_mnist", quick)
    found: Arrays = {"labels": data.test_labels[:SHOWN]}
    for method in FIGURE_MODELS:
        model = fitted(method, "fashion_mnist", 2, quick)
        axis, grid = _plane(model)
        pixels = int(np.prod(model.image_shape_))
        found[f"axis/{method}"] = axis.astype(np.float32)
        found[f"codes/{method}"] = model.transform(data.test[:SHOWN]).astype(np.float32)
        found[f"variance/{method}"] = (pixels * model.variance_map(grid)).reshape(SIDE, SIDE).astype(np.float32)
        lattice = _lattice(model, 1.5)
        found[f"lattice/{method}"] = _bytes(_sampled(model, lattice, seed=0))
    return found


def drawn_samples(quick: bool, n_latents: int = 10, count: int = 36) -> Arrays:
    """Test images, and images drawn from each model with codes from the prior.

    Paper: fig:show_vae_samples.
    """
    data = images("fashion_mnist", quick)
    found: Arrays = {"data": data.test[:count]}
    for method in FIGURE_MODELS:
        model = fitted(method, "fashion_mnist", n_latents, quick)
        found[f"samples/{method}"] = _bytes(model.sample(count, seed=1))
        shown = data.test[:count]
        found[f"again/{method}"] = _bytes(_sampled(model, model.transform(shown), seed=2))
    return found


def refit_paths(quick: bool) -> Arrays:
    """Foreign images, what each model makes of them before and after its encoder is fitted to them, and the codes.

    Paper: fig:re-encoding.
    """
    foreign = images("mnist", quick).test[:REFITTED]
    inside = images("fashion_mnist", quick).test[:SHOWN]
    found: Arrays = {"foreign": foreign[:FOLLOWED]}
    epochs = 2 if quick else 4
    for method in FIGURE_MODELS:
        model = fitted(method, "fashion_mnist", 2, quick)
        axis, grid = _plane(model)
        found[f"axis/{method}"] = axis.astype(np.float32)
        found[f"variance/{method}"] = model.variance_map(grid).reshape(SIDE, SIDE).astype(np.float32)
        found[f"codes/{method}"] = model.transform(inside).astype(np.float32)
        stations, now = [model.transform(foreign)], model
        for station in range(STATIONS):
            now = now.refit_encoder(foreign, epochs=epochs, seed=station)
            stations.append(now.transform(foreign))
        path = np.stack(stations).astype(np.float32)  # (T, K, 2)
        found[f"path/{method}"] = path[:, :FOLLOWED]
        found[f"before/{method}"] = _bytes(_sampled(model, path[0, :FOLLOWED], seed=3))
        found[f"after/{method}"] = _bytes(_sampled(now, path[-1, :FOLLOWED], seed=3))
        away = np.linalg.norm(path, axis=-1) / model.radius_
        found[f"outside/{method}"] = np.mean(away > 1.0, axis=1)  # share beyond the data's radius, by station
        found[f"foreign_variance/{method}"] = np.array([model.variance_map(codes).mean() for codes in path])
    return found


def detection_scores(name: str, quick: bool) -> Arrays:
    """Scores of test images and of foreign ones, larger for a more foreign image: the bound under each rule.

    Paper: fig:re_encoding_ood_detection_plots.
    """
    data = images("fashion_mnist", quick)
    foreign = images(name, quick).test
    count = min(500 if quick else 2_000, len(foreign), len(data.test))
    inside, outside = data.test[:count], foreign[:count]
    found: Arrays = {}
    for method in FIGURE_MODELS:
        model = fitted(method, "fashion_mnist", 2, quick)
        for refit in ("none", "transductive", "per-image"):
            some = slice(0, 200) if refit == "per-image" else slice(None)
            pair = refit_scores(model, inside[some], outside[some], refit=refit, seed=0)
            for where, values in zip(("inside", "outside"), pair, strict=True):
                found[f"{refit}/{method}/{where}"] = np.asarray(values, dtype=np.float32)
        held_out, rest = data.train[model.held_out_], np.delete(data.train, model.held_out_, axis=0)
        detector = NoveltyDetector(max_reference=5_000).fit(model, held_out, reference=rest)
        for where, shown in (("inside", inside), ("outside", outside)):
            found[f"novelty/{method}/{where}"] = detector.score(shown).astype(np.float32)
    return found


def entropy_maps(quick: bool) -> Arrays:
    """Entropy of the image over a plane of codes, and images there, of Bernoulli models without and with pseudo-inputs.

    Paper: fig:entropy_pigs.
    """
    data = images("mnist", quick)
    rows = np.isin(data.train_labels, (0, 1, 4))  # a subset of the digits, as in the paper
    found: Arrays = {}
    for name, entropy in (("bernoulli", False), ("bernoulli-entropy", True)):
        settings: dict[str, Any] = QUICK | {"precision_epochs": 20} if quick else {}
        model = BernoulliVAE(n_latents=2, entropy=entropy, pseudo_weight=ENTROPY_WEIGHT, random_state=0, **settings)
        model.fit(data.train[rows])
        axis, grid = _plane(model)
        found[f"axis/{name}"] = axis.astype(np.float32)
        found[f"entropy/{name}"] = model.entropy_map(grid).reshape(SIDE, SIDE).astype(np.float32)
        shown = np.isin(data.test_labels, (0, 1, 4))
        found[f"codes/{name}"] = model.transform(data.test[shown][:SHOWN]).astype(np.float32)
        found["labels"] = data.test_labels[shown][:SHOWN]
        lattice = _lattice(model, 2.0)
        found[f"lattice/{name}"] = _bytes(model.decode(lattice).mean.numpy().reshape(-1, *data.test.shape[1:]))
        away = np.linalg.norm(grid, axis=1) / model.radius_
        flat = found[f"entropy/{name}"].reshape(-1)
        found[f"inside/{name}"] = np.array(model.entropy_map(found[f"codes/{name}"]).mean())
        found[f"outside/{name}"] = np.array(flat[away > 1.5].mean())
    return found


def _plane(model: ImageModel) -> tuple[np.ndarray, np.ndarray]:
    """Places along an axis of the plane of codes, and all points of the plane, ``(SIDE * SIDE, 2)``."""
    axis = np.linspace(-REACH, REACH, SIDE) * model.radius_
    return axis, np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def _lattice(model: ImageModel, reach: float) -> np.ndarray:
    """Nine by nine codes out to so many radii of the data, the top row first, ``(81, 2)``."""
    corner = np.linspace(-reach, reach, 9) * model.radius_
    return np.stack(np.meshgrid(corner, corner[::-1]), axis=-1).reshape(-1, 2)


def _sampled(model: ImageModel, codes: np.ndarray, seed: int) -> np.ndarray:
    """One image drawn from the decoder at each code, noise included, ``(K, H, W)``."""
    import torch

    from nescio._random import seeded_scope

    with seeded_scope(seed, torch.device("cpu")):
        drawn = model.decode(codes).sample()
    return drawn.numpy().reshape(-1, *model.image_shape_[1:])


def _bytes(values: np.ndarray) -> np.ndarray:
    return np.round(255.0 * np.clip(values, 0.0, 1.0)).astype(np.uint8)
