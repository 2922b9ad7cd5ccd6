"""Every model of images in the comparison by its name, with the settings that all of its runs have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nescio._validation import check_one_of
from nescio.generative import BernoulliVAE, DissipativeVAE, GaussianVAE, VariationalVarianceVAE
from nescio.generative.base import ImageModel
from nescio.pseudo_inputs import CodeDescent

__all__ = ["IMAGE_METHODS", "PAPER_IMAGE_METHODS", "QUICK_IMAGES", "make_image_method"]

Methods = Mapping[str, tuple[type[Any], dict[str, Any]]]

_BERNOULLI: dict[str, Any] = {"likelihood": "bernoulli", "annealed": True, "learning_rate": 1e-3}
_SOUND: Methods = {
    # Trained with Bernoulli pixels first it is by far the stronger rival; the other way stands beside it.
    "vae": (GaussianVAE, _BERNOULLI),
    "vae-gaussian": (GaussianVAE, {}),
    "sigma-vae": (GaussianVAE, {"variance": "shared"}),
    "v3ae": (VariationalVarianceVAE, {}),
    "d-v3ae": (DissipativeVAE, {}),
    "bernoulli": (BernoulliVAE, {}),
    "bernoulli-entropy": (BernoulliVAE, {"entropy": True}),
}
IMAGE_METHODS = tuple(_SOUND)

_AUTHORS: dict[str, Any] = _BERNOULLI | {"batch_size": 128}
_AUTHORS_PRECISION: dict[str, Any] = _AUTHORS | {
    "head": "concentration_rate",
    "kl_weight": 1.0,
    "batch_norm": True,
    "n_samples": 3,
}
_AUTHORS_OUTSIDE: dict[str, Any] = {
    "outside_prior": "inside",
    "anchor": False,
    "placement": CodeDescent(),
    "n_pseudo_inputs": 54_000,  # as many as the images of the MNIST family that are not held out
    "pseudo_weight": 1.0,
}
_PAPER: Methods = {
    "vae": (GaussianVAE, _AUTHORS),
    "v3ae": (VariationalVarianceVAE, _AUTHORS_PRECISION),
    "d-v3ae": (DissipativeVAE, _AUTHORS_PRECISION | _AUTHORS_OUTSIDE),
}
"""What the authors ran, apart from a learning rate that falls."""
_AUTHORS_DETECTION: dict[str, Any] = {"prior": ("distance", 11.0, 1e-3), "smallest_rate": 1e-4}
PAPER_IMAGE_METHODS = tuple(_PAPER)

QUICK: Mapping[str, Any] = {"epochs": 3, "precision_epochs": 2, "batch_size": 128}
QUICK_IMAGES = 1_500  # of the training part, and a fifth as many of the test part


def make_image_method(
    name: str, *, n_latents: int, seed: int, protocol: str = "sound", detection: bool = False, quick: bool = False
) -> ImageModel:
    """A model that has not been fitted.

    ``protocol`` is ``"sound"`` or ``"paper"``, which has another prior for ``detection``; ``quick`` is the small preset
    that a laptop finishes in seconds.
    """
    methods = _PAPER if check_one_of("protocol", protocol, ("sound", "paper")) == "paper" else _SOUND
    check_one_of("methods", name, methods)
    kind, settings = methods[name]
    if protocol == "paper" and detection and name != "vae":
        settings = settings | _AUTHORS_DETECTION
    model: ImageModel = kind(n_latents=n_latents, random_state=seed, **(settings | (dict(QUICK) if quick else {})))
    return model
