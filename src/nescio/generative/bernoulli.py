"""Bernoulli variational autoencoders, told or not told to be undecided where there are no data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nescio._validation import check_integer, check_positive
from nescio.generative.base import ImageModel, Learned
from nescio.generative.core import Decoded
from nescio.generative.dissipative import POOL, PSEUDO_SHARE
from nescio.generative.phases import CHUNK, fit_entropy
from nescio.generative.placement import place_codes
from nescio.objectives.vae import reconstruction_entropy
from nescio.pseudo_inputs import CodeDescent, Placement

__all__ = ["BernoulliVAE"]


class BernoulliVAE(ImageModel):
    """A variational autoencoder whose pixels are Bernoulli; grey values are taken for shares of ones.

    With ``entropy`` the decoder is trained on, the encoder frozen, so that its image at pseudo-inputs becomes even:
    the entropy of the image, read as one distribution over its pixels, is raised there.

    Paper: eq:v3ae_entropy_loss.

    Parameters
    ----------
    entropy
        Whether there are pseudo-inputs.
    pseudo_weight
        Weight of the entropy at pseudo-inputs.
    placement, n_pseudo_inputs
        As in :class:`~nescio.DissipativeVAE`.
    epochs, precision_epochs
        Passes over the images; the second is the length of the training with pseudo-inputs.
    n_latents, annealed, encoder, decoder, shared_trunk, batch_size
        As in :class:`~nescio.GaussianVAE`.
    learning_rate, n_samples, validation_fraction, device, compile, verbose, random_state
        As there.
    """

    def __init__(
        self,
        *,
        n_latents: int = 10,
        entropy: bool = False,
        pseudo_weight: float = 1.0,
        placement: Placement | CodeDescent | None = None,
        n_pseudo_inputs: int | str = "auto",
        annealed: bool = False,
        encoder: str | Callable[..., Any] = "auto",
        decoder: str | Callable[..., Any] = "auto",
        shared_trunk: bool = False,
        epochs: int = 50,
        precision_epochs: int = 50,
        batch_size: int = 512,
        learning_rate: float = 3e-3,
        n_samples: int = 1,
        validation_fraction: float = 0.1,
        device: str | torch.device = "auto",
        compile: bool | str = "auto",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_latents = n_latents
        self.entropy = entropy
        self.pseudo_weight = pseudo_weight
        self.placement = placement
        self.n_pseudo_inputs = n_pseudo_inputs
        self.annealed = annealed
        self.encoder = encoder
        self.decoder = decoder
        self.shared_trunk = shared_trunk
        self.epochs = epochs
        self.precision_epochs = precision_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.n_samples = n_samples
        self.validation_fraction = validation_fraction
        self.device = device
        self.compile = compile
        self.verbose = verbose
        self.random_state = random_state

    def _check(self) -> None:
        check_positive("pseudo_weight", self.pseudo_weight)
        check_integer("epochs", self.epochs, least=1)
        check_integer("precision_epochs", self.precision_epochs, least=1)
        if self.n_pseudo_inputs != "auto":
            check_integer("n_pseudo_inputs", self.n_pseudo_inputs, least=1)

    def _likelihood(self) -> str:
        return "bernoulli"

    def _epochs(self) -> tuple[int, int]:
        return int(self.epochs), int(self.precision_epochs) if self.entropy else 0

    def _second_phase(self, learned: Learned) -> Decoded:
        if self.entropy:
            count = POOL if self.n_pseudo_inputs == "auto" else int(self.n_pseudo_inputs)
            pool = place_codes(learned, self.placement, count)
            decoder = learned.model.decoder.requires_grad_(True)
            batch = max(2, round(PSEUDO_SHARE * learned.course.batch_size))
            fit_entropy(decoder, learned.images, learned.codes, learned.course, pool, float(self.pseudo_weight), batch)
        return Decoded()

    def _logits(self, z: Tensor) -> Tensor:
        found: Any = self.decode(z.numpy())
        return found.logits

    def entropy_map(self, z: Any) -> np.ndarray:
        """Entropy of the mean image at codes ``z (N, L)``, read as one distribution over its pixels, nats, ``(N,)``."""
        parts = torch.split(self._codes(z), 8 * CHUNK)
        return np.concatenate([reconstruction_entropy(self._logits(part)).numpy() for part in parts])
