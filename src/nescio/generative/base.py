"""The face that all models of images share: images in, codes, images, likelihoods and variances out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.distributions import Distribution
from tqdm.auto import tqdm

from nescio._random import child_seed, seed_from, seeded_scope
from nescio._validation import (
    InputError,
    check_fraction,
    check_integer,
    check_one_of,
    check_positive,
    check_random_state,
)
from nescio.densities import AggregatePosterior
from nescio.distributions import StudentT
from nescio.generative.arrays import as_pixels, image_tensor
from nescio.generative.core import Autoencoder, Decoded, make_decoder, make_encoder
from nescio.generative.phases import CHUNK, Course, encode_all, fit_autoencoder, padded
from nescio.generative.refit import refit_codes, refit_encoder
from nescio.objectives.vae import latent_kl
from nescio.training.devices import resolve_device

__all__ = ["ImageModel", "Learned"]

LEAST_IMAGES = 20  # the tenth that is held out is then more than one
MOST_CODES = 10_000  # kept with the model: the density of codes, and the reference for neighbours


class Learned(NamedTuple):
    """What the first phase leaves for the second."""

    model: Autoencoder
    images: Tensor
    """The training images on the device, ``(N, C, H, W)``."""
    codes: tuple[Tensor, Tensor]
    """Location and scale of their codes, ``(N, L)`` each."""
    course: Course
    seed: int


class ImageModel(TransformerMixin, BaseEstimator, ABC):
    """A variational autoencoder with the face of scikit-learn; what the decoder says of its noise is the subclass's.

    Images are arrays ``(N, H, W)`` or ``(N, H, W, C)`` of bytes or of floats between 0 and 1, tensors ``(N, C, H, W)``,
    or a ``torch.utils.data.Dataset`` of them. Answers are NumPy arrays; a distribution over pixels is a torch one.
    """

    @abstractmethod
    def _check(self) -> None:
        """Refuse bad parameters of the subclass's own, before anything is trained."""

    @abstractmethod
    def _likelihood(self) -> str:
        """What the mean is trained with: ``"gaussian"`` or ``"bernoulli"``."""

    @abstractmethod
    def _epochs(self) -> tuple[int, int]:
        """Length of the first phase and of the second."""

    @abstractmethod
    def _second_phase(self, learned: Learned) -> Decoded:
        """Train what is left to train, with encoder and mean frozen."""

    def fit(self, images: Any, y: Any = None) -> ImageModel:
        """Learn from images; ``y`` is not looked at. A tenth of them (``validation_fraction``) is held out.

        Nothing of an earlier fit is lost until this one has succeeded.
        """
        before = dict(self.__dict__)
        try:
            return self._fit(images)
        except BaseException:  # an interrupt included
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, images: Any) -> ImageModel:
        self._check_common()
        self._check()
        table = image_tensor(images)
        if len(table) < LEAST_IMAGES:
            raise InputError(f"images must be at least {LEAST_IMAGES} to learn from; got {len(table)}.")
        seed, device = seed_from(self.random_state), resolve_device(self.device)
        shape = tuple(int(size) for size in table.shape[1:])
        order = torch.randperm(len(table), generator=torch.Generator().manual_seed(child_seed(seed, "held out")))
        held = min(max(1, round(float(self.validation_fraction) * len(table))), len(table) - 2)
        train = table[order[held:]].to(device)
        with seeded_scope(child_seed(seed, "weights"), device):
            model = Autoencoder(
                make_encoder(self.encoder, shape, int(self.n_latents), shared_trunk=bool(self.shared_trunk)),
                make_decoder(self.decoder, int(self.n_latents), shape, 1, batch_norm=True),
            ).to(device)
            first, second = self._epochs()
            steps = -(-len(train) // int(self.batch_size))
            with tqdm(total=steps * (first + second), desc="mean", disable=None if self.verbose else True) as bar:
                course = Course(
                    first,
                    min(int(self.batch_size), len(train)),
                    float(self.learning_rate),
                    int(self.n_samples),
                    int(self.n_latents),
                    child_seed(seed, "mean"),
                    device,
                    self.compile,
                    bar.update,
                )
                fit_autoencoder(model, train, course, likelihood=self._likelihood(), annealed=bool(self.annealed))
                codes = encode_all(model, train, device)
                bar.set_description("precision")
                course = course.reseeded(child_seed(seed, "precision"), second)
                decoded = self._second_phase(Learned(model, train, codes, course, seed))
        self.image_shape_, self.autoencoder_, self.decoded_ = shape, model, decoded
        self.n_images_ = len(train)
        kept = [part[:MOST_CODES].cpu() for part in codes]
        self.codes_ = AggregatePosterior(*kept)
        self.radius_ = float(np.quantile(codes[0].norm(dim=1).cpu().numpy(), 0.99))
        self.held_out_ = order[:held].numpy()
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "decoded_")

    @property
    def _device(self) -> torch.device:
        return next(self.autoencoder_.parameters()).device

    def _images(self, images: Any) -> Tensor:
        check_is_fitted(self)
        return image_tensor(images, self.image_shape_)

    def pixels(self, images: Any) -> Tensor:
        """Checked images as numbers between 0 and 1, ``(N, P)``."""
        return as_pixels(self._images(images)).flatten(1)

    def encode(self, images: Any) -> tuple[np.ndarray, np.ndarray]:
        """Location and scale of the codes, ``(N, L)`` each."""
        loc, scale = encode_all(self.autoencoder_, self._images(images), self._device)
        return loc.cpu().numpy(), scale.cpu().numpy()

    def transform(self, images: Any) -> np.ndarray:
        """The codes' locations, ``(N, L)``."""
        return self.encode(images)[0]

    @torch.no_grad()
    def decode(self, z: Any) -> Distribution:
        """The distribution of the pixels ``(N, P)`` at codes ``z (N, L)``."""
        rows = self._codes(z)
        parts = []
        for chunk in torch.split(rows, CHUNK):
            full = padded(chunk, self._device)
            found = self.decoded_(self.autoencoder_.logits(full), full)
            names = ("df", "loc", "scale") if isinstance(found, StudentT) else ("logits",)
            parts.append([getattr(found, name)[: len(chunk)].cpu() for name in names])
        joined = [torch.cat(values) for values in zip(*parts, strict=True)]
        if len(joined) == 1:
            return torch.distributions.Bernoulli(logits=joined[0], validate_args=False)
        df, loc, scale = joined
        return StudentT(df, loc, scale)

    def _codes(self, z: Any) -> Tensor:
        check_is_fitted(self)
        rows = torch.as_tensor(np.asarray(z, dtype=np.float32))
        if rows.ndim != 2 or len(rows) == 0 or rows.shape[1] != int(self.n_latents):
            raise InputError(f"z must be codes of shape (N, {self.n_latents}); got {tuple(rows.shape)}.")
        if not bool(torch.isfinite(rows).all()):
            raise InputError("z must not hold NaN or infinite numbers.")
        return rows

    def reconstruct(self, images: Any) -> np.ndarray:
        """The mean image at each image's code, ``(N, H, W)`` or ``(N, H, W, C)``, between 0 and 1."""
        return self._as_images(self.decode(self.transform(images)).mean)

    def sample(self, n: int = 1, seed: int = 0) -> np.ndarray:
        """Images drawn from the model, noise included, ``(N, H, W)`` or ``(N, H, W, C)``; they may leave [0, 1]."""
        check_integer("n", n, least=1)
        noise = torch.randn(n, int(self.n_latents), generator=torch.Generator().manual_seed(child_seed(seed, "codes")))
        found = self.decode(noise.numpy())
        with seeded_scope(child_seed(seed, "pixels"), torch.device("cpu")):
            return self._as_images(found.sample())

    def _as_images(self, flat: Tensor) -> np.ndarray:
        images = flat.reshape(-1, *self.image_shape_)
        return (images[:, 0] if self.image_shape_[0] == 1 else images.movedim(1, -1)).numpy()

    def elbo(self, images: Any, *, n_samples: int = 1, seed: int = 0) -> np.ndarray:
        """The bound on log p(x), in nats, ``(N,)``: the mean over ``n_samples`` codes, less the code's divergence."""
        terms, divergence, _ = self._terms(images, n_samples, seed)
        return np.asarray((terms.mean(0) - divergence).numpy())

    def score_samples(self, images: Any, *, n_samples: int = 100, seed: int = 0) -> np.ndarray:
        r"""Importance-weighted log p(x), in nats, ``(N,)``: :math:`\log \frac1S \sum_s p(x|z_s) p(z_s) / q(z_s|x)`."""
        terms, _, ratios = self._terms(images, n_samples, seed)
        return np.asarray(((terms + ratios).logsumexp(0) - math.log(n_samples)).numpy())

    def _terms(self, images: Any, n_samples: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
        """log p(x|z) of codes drawn for each image ``(S, N)``, divergences ``(N,)`` and log p(z)/q(z|x) ``(S, N)``."""
        x = self.pixels(images)
        loc, scale = (torch.as_tensor(part) for part in self.encode(images))
        noise = torch.Generator().manual_seed(child_seed(seed, "codes of images"))
        terms, ratios = [], []
        for _ in range(check_integer("n_samples", n_samples, least=1)):
            drawn = torch.randn(loc.shape, generator=noise)
            z = loc + scale * drawn
            ratios.append((scale.double().log() + 0.5 * (drawn.double().square() - z.double().square())).sum(1))
            terms.append(self._log_prob(x, z))
        return torch.stack(terms), latent_kl(loc.double(), scale.double()), torch.stack(ratios)

    @torch.no_grad()
    def _log_prob(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x|z) of images ``(N, P)`` at codes ``(N, L)``, summed over pixels on the device, ``(N,)``."""
        found = []
        for pixels, codes in zip(torch.split(x, CHUNK), torch.split(z, CHUNK), strict=True):
            full = padded(codes, self._device)
            log_prob = self.decoded_(self.autoencoder_.logits(full), full).log_prob(padded(pixels, self._device))
            found.append(log_prob.double().sum(1)[: len(codes)].cpu())
        return torch.cat(found)

    def variance_map(self, z: Any) -> np.ndarray:
        """The decoder's variance at codes ``z (N, L)``, averaged over pixels, ``(N,)``."""
        parts = torch.split(self._codes(z), 8 * CHUNK)
        return np.concatenate([self.decode(part.numpy()).variance.mean(1).numpy() for part in parts])

    def refit_encoder(self, images: Any, *, epochs: int = 20, seed: int = 0) -> ImageModel:
        """A copy whose encoder was trained on these images, all together, with the decoder as it is.

        Paper: sec:generative_models (re-encoding).  Transductive: what it says of one image depends on the others.
        """
        table = self._images(images).to(self._device)
        other = deepcopy(self)
        refit_encoder(
            other.autoencoder_,
            other.decoded_,
            table,
            epochs,
            int(self.batch_size),
            float(self.learning_rate),
            seed,
            self.compile,
        )
        return other

    def refit_each(self, images: Any, *, steps: int = 100, learning_rate: float = 0.05, seed: int = 0) -> np.ndarray:
        """The bound ``(N,)`` after each image's own code was fitted to it, blind to all other images."""
        loc, scale = self.encode(images)
        return refit_codes(
            self.autoencoder_, self.decoded_, self.pixels(images), loc, scale, steps, learning_rate, seed, self._device
        )

    def _check_common(self) -> None:
        for name, least in (("n_latents", 1), ("batch_size", 2), ("n_samples", 1)):
            check_integer(name, getattr(self, name), least=least)
        check_positive("learning_rate", self.learning_rate)
        check_fraction("validation_fraction", self.validation_fraction)
        for name in ("encoder", "decoder"):
            if not callable(getattr(self, name)):
                check_one_of(name, getattr(self, name), ("auto", "dense", "convolutional"))
        check_random_state(self.random_state)
