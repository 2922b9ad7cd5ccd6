"""Gaussian variational autoencoders: a learned variance per pixel, one shared variance, or a fixed one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from nescio._validation import check_integer, check_one_of, check_positive
from nescio.generative.base import ImageModel, Learned
from nescio.generative.core import Decoded, make_decoder
from nescio.generative.phases import fit_scale
from nescio.generative.residuals import residual_variance

__all__ = ["GaussianVAE"]


class GaussianVAE(ImageModel):
    """A variational autoencoder whose pixels are Gaussian.

    Encoder and mean are trained first; a learned variance is trained after that, with both frozen.

    Paper: sec:generative_models.

    Parameters
    ----------
    n_latents
        Length L of a code.
    variance
        ``"learned"``: a network of its own gives each pixel's standard deviation, the paper's baseline; ``"shared"``:
        one number for all, the mean squared residual; or a number, the variance itself.
    likelihood
        What the mean is trained with: ``"gaussian"``, with the best shared variance of each batch, or ``"bernoulli"``.
    annealed
        Whether the weight of the code's divergence rises from 0 to 1 during the first phase.
    smallest_scale
        Least standard deviation of a pixel; a learned one would go to zero where pixels are always black.
    batch_norm
        Whether the network of the variance has batch normalisation; encoder and mean have it.
    encoder, decoder
        ``"dense"``, ``"convolutional"``, ``"auto"`` (dense up to 28 x 28 grey pixels), or functions of yours,
        ``(image_shape, width) -> nn.Module`` and ``(n_latents, image_shape) -> nn.Module``, called once for each map.
    shared_trunk
        Whether the two maps of the encoder have all layers but the last in common.
    epochs, precision_epochs
        Passes over the images in the first phase and in the second.
    batch_size, learning_rate
        Of both phases.
    n_samples
        Codes drawn for each image at each step.
    validation_fraction
        Share of the images that is held out.
    device
        ``"auto"``, ``"cpu"`` or a CUDA device.
    compile
        On CUDA: False takes every step by itself instead of replaying a captured one.
    verbose
        A progress bar, where there is a terminal.
    random_state
        Same seed, same model.
    """

    def __init__(
        self,
        *,
        n_latents: int = 10,
        variance: str | float = "learned",
        likelihood: str = "gaussian",
        annealed: bool = False,
        smallest_scale: float = 1e-3,
        batch_norm: bool = True,
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
        self.variance = variance
        self.likelihood = likelihood
        self.annealed = annealed
        self.smallest_scale = smallest_scale
        self.batch_norm = batch_norm
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
        check_one_of("likelihood", self.likelihood, ("gaussian", "bernoulli"))
        if isinstance(self.variance, str):
            check_one_of("variance", self.variance, ("learned", "shared"))
        else:
            check_positive("variance", self.variance)
        check_positive("smallest_scale", self.smallest_scale)
        check_integer("epochs", self.epochs, least=1)
        check_integer("precision_epochs", self.precision_epochs, least=1)

    def _likelihood(self) -> str:
        return str(self.likelihood)

    def _epochs(self) -> tuple[int, int]:
        return int(self.epochs), int(self.precision_epochs) if self.variance == "learned" else 0

    def _second_phase(self, learned: Learned) -> Decoded:
        device = learned.course.device
        if not isinstance(self.variance, str):
            return Decoded(variance=torch.tensor([float(self.variance)], device=device))
        if self.variance == "shared":
            return Decoded(variance=residual_variance(learned).mean().reshape(1))
        shape = tuple(learned.images.shape[1:])
        network = make_decoder(self.decoder, int(self.n_latents), shape, 1, batch_norm=bool(self.batch_norm)).to(device)
        smallest = float(self.smallest_scale)
        fit_scale(network, learned.model, learned.images, learned.codes, learned.course, smallest)
        return Decoded(scale=network, smallest_scale=smallest)
