"""The V3AE: a decoder with a Gamma posterior over the precision of each pixel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from nescio._random import child_seed
from nescio._validation import InputError, check_integer, check_one_of, check_positive
from nescio.distributions import Gamma, gamma_kl
from nescio.generative.base import ImageModel, Learned
from nescio.generative.core import Decoded, PrecisionDecoder, make_decoder
from nescio.generative.phases import CHUNK, fit_precision, padded
from nescio.generative.priors import PRIORS, CodePrior, inside_prior
from nescio.generative.residuals import residual_variance
from nescio.networks import Head
from nescio.networks.heads import ConcentrationRateHead, VarianceShapeHead

__all__ = ["PrecisionVAE", "VariationalVarianceVAE"]

REFERENCE = 10_000  # codes that centroids are taken from
AUTHORS_EXCESS = 1e-4  # of a shape over 1, in the authors' runs on images


class PrecisionVAE(ImageModel):
    """Wiring of the second phase, and the questions that only a posterior over the precision can answer."""

    def _check(self) -> None:
        check_one_of("likelihood", self.likelihood, ("gaussian", "bernoulli"))
        check_one_of("head", self.head, ("concentration_rate", "variance_shape"))
        if isinstance(self.prior, str):
            check_one_of("prior", self.prior, PRIORS)
        else:
            first, *numbers = self.prior
            if not isinstance(first, str):
                numbers = [first, *numbers]
            elif first not in ("distance", "distance_linear"):
                numbers = []
            if len(numbers) != 2 or min(numbers) <= 0:
                raise InputError(
                    "prior must be a name, two positive numbers (shape, rate), or these after 'distance'; "
                    f"got {self.prior!r}."
                )
        check_positive("shape", self.shape, above=1.0, why="for a finite predictive variance")
        check_positive("kl_weight", self.kl_weight)
        check_positive("smallest_rate", self.smallest_rate)
        if self.smallest_excess != "auto":
            check_positive("smallest_excess", self.smallest_excess)
        check_integer("epochs", self.epochs, least=1)
        check_integer("precision_epochs", self.precision_epochs, least=1)
        self._check_outside()

    @abstractmethod
    def _check_outside(self) -> None:
        """Refuse bad parameters of what happens outside the data."""

    @abstractmethod
    def _fit_posterior(self, learned: Learned, network: PrecisionDecoder, prior: CodePrior) -> Decoded:
        """Train the posterior and say how the decoder answers."""

    def _likelihood(self) -> str:
        return str(self.likelihood)

    def _epochs(self) -> tuple[int, int]:
        return int(self.epochs), int(self.precision_epochs)

    def _head(self) -> Head:
        if self.head == "concentration_rate":
            excess = AUTHORS_EXCESS if self.smallest_excess == "auto" else float(self.smallest_excess)
            return ConcentrationRateHead(float(self.smallest_rate), excess)
        head = VarianceShapeHead(smallest_rate=float(self.smallest_rate))
        return head if self.smallest_excess == "auto" else replace(head, smallest_excess=float(self.smallest_excess))

    def _second_phase(self, learned: Learned) -> Decoded:
        device, shape = learned.course.device, tuple(learned.images.shape[1:])
        left = residual_variance(learned)
        head = self._head()
        # A mean that is right to a thousandth of the range of a pixel needs no lower start.
        start = head.raw(left.mean().reshape(1).clamp_min(1e-6), torch.full((1,), float(self.shape), device=device))
        maps = make_decoder(
            self.decoder, int(self.n_latents), shape, 2,
            batch_norm=bool(self.batch_norm), shared_trunk=bool(self.shared_trunk),
        )  # fmt: skip
        network = PrecisionDecoder(maps, head, torch.stack(start)).to(device)
        loc = learned.codes[0]
        prior = inside_prior(
            self.prior, float(self.shape), left, shape, loc[:REFERENCE], child_seed(learned.seed, "centroids")
        )
        self.residual_std_ = float(left.mean().sqrt())
        middle = prior(loc.new_zeros(1, loc.shape[1]))
        self.reference_prior_ = Gamma(middle.concentration.flatten().cpu(), middle.rate.flatten().cpu())
        return self._fit_posterior(learned, network, prior)

    @torch.no_grad()
    def posterior(self, z: Any) -> Gamma:
        """q(precision | z) at codes ``z (N, L)``, ``(N, P)``."""
        parts = []
        for chunk in torch.split(self._codes(z), CHUNK):
            q = self.decoded_.posterior(padded(chunk, self._device))
            parts.append((q.concentration[: len(chunk)].cpu(), q.rate[: len(chunk)].cpu()))
        return Gamma(torch.cat([a for a, _ in parts]), torch.cat([b for _, b in parts]))

    def epistemic_variance(self, z: Any) -> np.ndarray:
        """What not knowing the precision adds to the variance at codes ``z (N, L)``, averaged over pixels, ``(N,)``."""
        q = self.posterior(z)
        return np.asarray((q.rate / (q.concentration * (q.concentration - 1.0))).mean(1).numpy())

    def knowledge(self, z: Any) -> np.ndarray:
        """How far the posterior at codes ``z (N, L)`` has moved from the reference prior, nats per image, ``(N,)``.

        The reference is the outside prior; without one, the prior at the origin of codes.
        """
        reference = self.reference_prior_
        found = []
        for part in torch.split(self._codes(z), 8 * CHUNK):
            q = self.posterior(part.numpy())
            wide = q.rate.shape
            prior = Gamma(reference.concentration.double().expand(wide), reference.rate.double().expand(wide))
            found.append(gamma_kl(Gamma(q.concentration.double(), q.rate.double()), prior).sum(1).numpy())
        return np.concatenate(found)


class VariationalVarianceVAE(PrecisionVAE):
    """The V3AE: the variance of each pixel is learned as a posterior over its precision, with a prior.

    Paper: eq:v3ae_loss, without its outside term.

    Parameters
    ----------
    prior
        The prior at the data: ``"weak"``, Gamma(2, 1e-6), the authors' for likelihoods; ``"residual"``, ``"channel"``,
        ``"pixel"``, at the level of the mean's errors; ``"distance"`` and ``"distance_linear"``, which grows with the
        distance from K-means centroids; ``(shape, rate)``; or ``("distance", shape, rate)``, the rate being that at a
        centroid.
    shape
        Shape of the priors that are set by a level.
    kl_weight
        Weight of the divergence from the prior. The bound has 1; a smaller one lets the posterior be surer of its
        precision, so that tails are lighter: inside the data that gains likelihood and loses no samples.
    head
        ``"variance_shape"``, which keeps the variance finite, or ``"concentration_rate"``, the paper's.
    smallest_rate, smallest_excess
        Floors of the rate, and of the shape over 1; ``"auto"``: 0.25, and the authors' 1e-4 with their head.
    batch_norm
        Whether the networks of the posterior have batch normalisation, as the authors' have. Off by default: data and
        pseudo-inputs would share its statistics, and the level outside is then lost.
    n_latents, likelihood, annealed, encoder, decoder, shared_trunk, epochs, precision_epochs, batch_size
        As in :class:`~nescio.GaussianVAE`.
    learning_rate, n_samples, validation_fraction, device, compile, verbose, random_state
        As there.
    """

    def __init__(
        self,
        *,
        n_latents: int = 10,
        prior: str | tuple[Any, ...] = "weak",
        shape: float = 2.0,
        kl_weight: float = 0.2,
        head: str = "variance_shape",
        smallest_rate: float = 1e-7,
        smallest_excess: float | str = "auto",
        batch_norm: bool = False,
        likelihood: str = "gaussian",
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
        self.prior = prior
        self.shape = shape
        self.kl_weight = kl_weight
        self.head = head
        self.smallest_rate = smallest_rate
        self.smallest_excess = smallest_excess
        self.batch_norm = batch_norm
        self.likelihood = likelihood
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

    def _check_outside(self) -> None:
        pass

    def _fit_posterior(self, learned: Learned, network: PrecisionDecoder, prior: CodePrior) -> Decoded:
        fit_precision(
            network, learned.model, learned.images, learned.codes, learned.course, prior,
            kl_weight=float(self.kl_weight),
        )  # fmt: skip
        return Decoded(precision=network)
