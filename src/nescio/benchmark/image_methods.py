"""Every model of images in the comparison by its name, with the settings that all of its runs have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nescio._validation import check_one_of
from nescio.generative import BernoulliVAE, DissipativeVAE, GaussianVAE, VariationalVarianceVAE
from nescio.generative.base import ImageModel

__all__ = ["IMAGE_METHODS", "QUICK_IMAGES", "make_image_method"]

_METHODS: Mapping[str, tuple[type[Any], dict[str, Any]]] = {
    "vae": (GaussianVAE, {}),
    "sigma-vae": (GaussianVAE, {"variance": "shared"}),
    "v3ae": (VariationalVarianceVAE, {}),
    "d-v3ae": (DissipativeVAE, {}),
    "bernoulli": (BernoulliVAE, {}),
    "bernoulli-entropy": (BernoulliVAE, {"entropy": True}),
}
IMAGE_METHODS = tuple(_METHODS)
QUICK: Mapping[str, Any] = {"epochs": 3, "precision_epochs": 2, "batch_size": 128}
QUICK_IMAGES = 1_500  # of the training part, and a fifth as many of the test part


def make_image_method(name: str, *, n_latents: int, seed: int, quick: bool = False) -> ImageModel:
    """A model that has not been fitted; ``quick`` is the small preset that a laptop finishes in seconds."""
    check_one_of("methods", name, IMAGE_METHODS)
    kind, settings = _METHODS[name]
    model: ImageModel = kind(n_latents=n_latents, random_state=seed, **settings, **(QUICK if quick else {}))
    return model
