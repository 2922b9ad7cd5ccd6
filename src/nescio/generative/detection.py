"""Which images are foreign to a model: scores, larger for a more foreign image, with or without fitting it again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from nescio._validation import InputError, check_integer, check_one_of, join_names
from nescio.densities import NeighbourDistance, subsample_rows
from nescio.generative.arrays import image_tensor
from nescio.generative.combination import COMBINATIONS, Copod, Mahalanobis, make_combination
from nescio.generative.statistics import LatentModel, PrecisionModel, compressed_bits, image_statistics
from nescio.metrics import aupr, auroc, fpr95

__all__ = ["NOVELTY", "REFITS", "SCORES", "NoveltyDetector", "detection_metrics", "refit_scores"]

SEVEN = ("residual", "spread", "code_norm", "code_spread", "surprise", "log_spread", "total_variation")
"""The statistics that ``mahalanobis`` and ``copod`` are made of."""

NOVELTY = (*SEVEN, "mean_variation", "residual_variation", "knn_latents", "knn_pixels")
"""What ``novelty`` is made of, as far as a model has it; a further statistic is one more word."""

DIRECTIONS = {"residual": 1, "knn_latents": 1, "knn_pixels": 1}
"""Columns of which it is known which end is foreign, for ``combine="directed"``: 1 for large values, -1 for small."""

REFITS = ("none", "per-image", "transductive")


class RefittingModel(LatentModel, Protocol):
    """A model that can be fitted again to images on which it was not trained."""

    def refit_encoder(self, images: Any, *, seed: int = 0) -> LatentModel:
        """A copy whose encoder was trained on ``images``, on all of them together."""
        ...

    def refit_each(self, images: Any, *, seed: int = 0) -> np.ndarray:
        """The bound after each image's own code was optimised, ``(N,)``."""
        ...


class NoveltyDetector:
    """Scores of foreignness, one number per image and larger for a more foreign one.

    ``fit`` takes a fitted model and images on which it was *not* trained but that are of the same kind: they say what
    is ordinary. ``score`` is cheap: one pass through encoder and decoder and a search for neighbours, no samples.

    Parameters
    ----------
    combine
        How ``novelty`` is made of its columns: ``"mahalanobis"`` of the columns as they are, ``"normal"`` or ``"kde"``
        of their normal scores, ``"copod"``, or ``"directed"``, where columns of known direction and the Mahalanobis
        distance are joined by a soft maximum.
    columns
        Statistics to make it of, ``"knn_latents"`` and ``"knn_pixels"`` among them; None takes those of ``NOVELTY``
        that there are.
    k, max_reference
        Neighbours, and the largest number of training images kept to be neighbours on pixels.
    n_samples
        Of the importance-weighted log-likelihood, for ``log_likelihood`` and ``complexity``.
    seed
        Of these samples, of those of the bound, and of the choice of the reference.
    """

    def __init__(
        self,
        *,
        combine: str = "mahalanobis",
        columns: Iterable[str] | None = None,
        k: int = 5,
        max_reference: int = 10_000,
        n_samples: int = 100,
        seed: int = 0,
    ) -> None:
        self.combine, self.columns, self.k = combine, columns, k
        self.max_reference, self.n_samples, self.seed = max_reference, n_samples, seed

    def fit(self, model: LatentModel, images: Any, *, reference: Any = None) -> NoveltyDetector:
        """Learn what is ordinary from held-out ``images``; ``reference`` are training images, for ``knn_pixels``.

        The reference is kept in 256 grey values.
        """
        check_one_of("combine", self.combine, COMBINATIONS)
        held_out = image_tensor(images)
        if len(held_out) < 2:
            raise InputError(f"images must be at least 2 held-out images; got {len(held_out)}.")
        kept = None
        if reference is not None:
            rows = subsample_rows(model.pixels(image_tensor(reference)), self.max_reference, self.seed)
            kept = (255.0 * rows).round().to(torch.uint8)
        self._attach(model, kept)
        measured = _Measured(self, held_out)
        return self._learn(measured.table, float(measured.bound.mean()))

    def score(self, images: Any) -> np.ndarray:
        """The default score ``novelty`` of each image, ``(N,)``."""
        return self.scores(images, ["novelty"])["novelty"]

    def scores(self, images: Any, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """Scores by name, ``(N,)`` each; by default all that there are for this model."""
        available = self.names_
        wanted = available if names is None else list(names)
        for name in wanted:
            check_one_of("names", name, SCORES)
            if name not in available:
                raise InputError(f"the score '{name}' needs {NEEDS[name]}; leave it out of names.")
        measured = _Measured(self, image_tensor(images))
        return {name: SCORES[name](measured) for name in wanted}

    @property
    def names_(self) -> list[str]:
        """The scores that there are for this model."""
        if not hasattr(self, "model_"):
            raise InputError("this NoveltyDetector has not been fitted; call fit(model, images) first.")
        absent = set() if isinstance(self.model_, PrecisionModel) else {"knowledge", "epistemic_variance"}
        absent |= {"knn_pixels"} if self.pixel_neighbours_ is None else set()
        return [name for name in SCORES if name not in absent]

    def state(self) -> dict[str, np.ndarray]:
        """All that was learned, apart from the model, as arrays of numbers: nothing in it needs pickle."""
        self.names_  # noqa: B018  (refuses a detector that was not fitted)
        settings = {name: getattr(self, name) for name in ("combine", "k", "max_reference", "n_samples", "seed")}
        settings |= {"columns": self.columns_, "table": list(self.table_), "mean_bound": self.mean_bound_}
        state = {
            "settings": np.frombuffer(json.dumps(settings).encode(), dtype=np.uint8).copy(),
            "table": np.stack(list(self.table_.values()), axis=1),
        }
        return state if self.reference_ is None else state | {"reference": self.reference_.numpy()}

    @classmethod
    def from_state(cls, model: LatentModel, state: Mapping[str, np.ndarray]) -> NoveltyDetector:
        """The detector that ``state()`` came from, on the same ``model``."""
        try:
            settings = json.loads(np.asarray(state["settings"], dtype=np.uint8).tobytes())
            names, mean_bound = settings.pop("table"), float(settings.pop("mean_bound"))
            table = dict(zip(names, np.asarray(state["table"], dtype=np.float64).T, strict=True))
            detector = cls(**settings)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"state must be what NoveltyDetector.state() returned ({error}).") from None
        reference = state.get("reference")
        detector._attach(model, None if reference is None else torch.as_tensor(np.array(reference, dtype=np.uint8)))
        return detector._learn(table, mean_bound)

    def _attach(self, model: LatentModel, reference: Tensor | None) -> None:
        k = check_integer("k", self.k, least=1)
        self.model_, self.reference_ = model, reference
        self.latent_neighbours_ = NeighbourDistance(model.codes_.loc.detach().cpu(), k)
        self.pixel_neighbours_ = None if reference is None else NeighbourDistance(reference.float() / 255.0, k)

    def _learn(self, table: dict[str, np.ndarray], mean_bound: float) -> NoveltyDetector:
        columns = [name for name in NOVELTY if name in table] if self.columns is None else list(self.columns)
        if not columns or not set(columns) <= set(table):
            raise InputError(
                f"columns must be among {join_names(sorted(table), limit=len(table))}; got {join_names(columns)}."
            )
        self.table_, self.mean_bound_, self.columns_ = table, mean_bound, columns
        directions = [DIRECTIONS.get(name, 0) for name in columns]
        self.combined_ = make_combination(self.combine, _stacked(table, columns), directions)
        self.mahalanobis_, self.copod_ = Mahalanobis(_stacked(table, SEVEN)), Copod(_stacked(table, SEVEN))
        return self


class _Measured:
    """What was measured of some images, each quantity at its first use."""

    def __init__(self, detector: NoveltyDetector, images: Tensor) -> None:
        self.detector, self.model, self.images = detector, detector.model_, images

    @cached_property
    def table(self) -> dict[str, np.ndarray]:
        """Statistics and neighbour distances by name, ``(N,)`` each."""
        table = image_statistics(self.model, self.images) | {"knn_latents": self.latent_distance}
        return table if self.detector.pixel_neighbours_ is None else table | {"knn_pixels": self.pixel_distance}

    @cached_property
    def latent_distance(self) -> np.ndarray:
        codes = torch.as_tensor(self.model.encode(self.images)[0]).double()
        distance: np.ndarray = self.detector.latent_neighbours_.distance(codes).numpy()
        return distance

    @cached_property
    def pixel_distance(self) -> np.ndarray:
        if self.detector.pixel_neighbours_ is None:
            raise InputError(f"the score 'knn_pixels' needs {NEEDS['knn_pixels']}.")
        pixels = self.model.pixels(self.images).double()
        distance: np.ndarray = self.detector.pixel_neighbours_.distance(pixels).numpy()
        return distance

    @cached_property
    def bound(self) -> np.ndarray:
        return np.asarray(self.model.elbo(self.images, seed=self.detector.seed), dtype=np.float64)

    @cached_property
    def log_likelihood(self) -> np.ndarray:
        found = self.model.score_samples(self.images, n_samples=self.detector.n_samples, seed=self.detector.seed)
        return np.asarray(found, dtype=np.float64)


def _stacked(table: Mapping[str, np.ndarray], names: Iterable[str]) -> np.ndarray:
    return np.stack([table[name] for name in names], axis=1)


SCORES: dict[str, Callable[[_Measured], np.ndarray]] = {
    "novelty": lambda m: m.detector.combined_(_stacked(m.table, m.detector.columns_)),
    "mahalanobis": lambda m: m.detector.mahalanobis_(_stacked(m.table, SEVEN)),
    "copod": lambda m: m.detector.copod_(_stacked(m.table, SEVEN)),
    "reconstruction": lambda m: m.table["residual"],
    "total_variance": lambda m: m.table["total_variance"],
    "epistemic_variance": lambda m: m.table["epistemic_variance"],
    "knowledge": lambda m: -m.table["knowledge"],
    "latent_density": lambda m: -m.table["code_density"],
    "knn_latents": lambda m: m.latent_distance,
    "knn_pixels": lambda m: m.pixel_distance,
    "elbo": lambda m: -m.bound,
    "typicality": lambda m: np.abs(m.bound - m.detector.mean_bound_),
    "log_likelihood": lambda m: -m.log_likelihood,
    "complexity": lambda m: -m.log_likelihood / math.log(2.0) - compressed_bits(m.images),
}
"""Single scores by name. ``typicality`` is of sets of one image (Source: nalisnick2019); ``complexity`` is in bits, up
to a constant (Source: serra2020); ``mahalanobis`` and ``copod`` are of seven statistics (Source: huang2024).
"""

NEEDS = {
    "knowledge": "a model with a posterior over its precision",
    "epistemic_variance": "a model with a posterior over its precision",
    "knn_pixels": "training images, given to fit as reference",
}


def refit_scores(
    model: RefittingModel, inside: Any, outside: Any, *, refit: str = "none", n_samples: int = 1, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of inside and outside images, ``(N,)`` and ``(K,)``, under one of three rules about fitting again.

    ``"none"``: the negative bound. ``"per-image"``: how much the bound gains when the code of that image alone is
    optimised, which is blind to where the image comes from.  Source: xiao2020, Likelihood Regret.  ``"transductive"``:
    the negative bound, of the outside images under an encoder that was trained on all of them together, and of the
    inside images under the first one. This is what the paper did; it uses which images are the foreign ones, so that it
    is no detection and is here to be compared with.
    """
    check_one_of("refit", refit, REFITS)
    if refit == "per-image":
        gains = [
            np.asarray(model.refit_each(images, seed=seed) - model.elbo(images, n_samples=n_samples, seed=seed))
            for images in (inside, outside)
        ]
        return gains[0], gains[1]
    fitted = model.refit_encoder(outside, seed=seed) if refit == "transductive" else model
    return -model.elbo(inside, n_samples=n_samples, seed=seed), -fitted.elbo(outside, n_samples=n_samples, seed=seed)


def detection_metrics(inside_scores: np.ndarray, outside_scores: np.ndarray) -> dict[str, float]:
    """AUROC, AUPR (outside is positive) and FPR95 of scores ``(N,)`` and ``(K,)``, larger for a more foreign image."""
    measures = {"auroc": auroc, "aupr": aupr, "fpr95": fpr95}
    return {name: measure(inside_scores, outside_scores) for name, measure in measures.items()}
