"""Models small enough to know everything about: probabilistic PCA, and the same with an uncertain precision."""

from __future__ import annotations

import copy

import numpy as np
import torch
from scipy.stats import multivariate_normal
from torch.distributions import Bernoulli

from nescio.densities import AggregatePosterior
from nescio.distributions import StudentT
from nescio.generative.arrays import as_pixels, image_tensor


class LinearModel:
    """A linear decoder with Gaussian noise; the encoder is its exact posterior, with independent coordinates."""

    def __init__(self, images, n_latents: int = 3, noise: float = 0.1) -> None:
        x = self.pixels(images).double().numpy()
        self.noise = noise
        self.mean = x.mean(axis=0)
        _, values, directions = np.linalg.svd(x - self.mean, full_matrices=False)
        spread = np.sqrt(np.maximum(values[:n_latents] ** 2 / len(x) - noise**2, 1e-2))
        self.weights = directions[:n_latents].T * spread
        self.calls: list[str] = []
        self.bonus = 0.0
        loc, scale = self.encode(images)
        self.codes_ = AggregatePosterior(torch.as_tensor(loc), torch.as_tensor(scale))
        self.calls.clear()

    def pixels(self, images):
        return as_pixels(image_tensor(images)).flatten(1)

    def encode(self, images):
        self.calls.append("encode")
        x = self.pixels(images).double().numpy()
        precision = np.square(self.weights).sum(axis=0) / self.noise**2 + 1.0
        loc = (x - self.mean) @ self.weights / self.noise**2 / precision
        return loc.astype(np.float32), np.broadcast_to(precision**-0.5, loc.shape).astype(np.float32)

    def decode(self, z):
        loc = torch.as_tensor(self.mean + z @ self.weights.T, dtype=torch.float32)
        factor = torch.linspace(0.5, 1.5, loc.shape[1])  # pixels differ, and far codes are noisier
        scale = self.noise * factor * (1.0 + 0.1 * torch.as_tensor(z).float().square().sum(1, keepdim=True)).sqrt()
        return StudentT(self.df(torch.as_tensor(z)), loc, scale)

    def df(self, z):
        return torch.full((len(z), 1), torch.inf)

    def log_prob(self, images):
        covariance = self.weights @ self.weights.T + self.noise**2 * np.eye(len(self.mean))
        return np.atleast_1d(multivariate_normal(self.mean, covariance).logpdf(self.pixels(images).double().numpy()))

    def elbo(self, images, *, n_samples=1, seed=0):
        self.calls.append(f"elbo {n_samples} {seed}")
        return self.log_prob(images) - 0.5 + self.bonus

    def score_samples(self, images, *, n_samples=100, seed=0):
        self.calls.append(f"score_samples {n_samples} {seed}")
        return self.log_prob(images)

    def refit_encoder(self, images, *, seed=0):
        self.calls.append(f"refit_encoder {len(images)} {seed}")
        other = copy.copy(self)
        other.bonus = 100.0
        return other

    def refit_each(self, images, *, seed=0):
        self.calls.append(f"refit_each {len(images)} {seed}")
        return self.log_prob(images) + np.arange(len(images))


class PrecisionModel(LinearModel):
    """The same with a Student-t of fewer degrees of freedom at codes far from the origin."""

    def df(self, z):
        return 2.0 * self._concentration(z)

    def _concentration(self, z):
        return 1.5 + 10.0 * torch.exp(-0.1 * z.float().square().sum(1, keepdim=True))

    def knowledge(self, z):
        return self._concentration(torch.as_tensor(z))[:, 0].numpy() - 1.5

    def epistemic_variance(self, z):
        return self.decode(z).epistemic_variance.mean(1).numpy()


class BernoulliModel(LinearModel):
    """The same mean, as a probability."""

    def decode(self, z):
        loc = torch.as_tensor(self.mean + z @ self.weights.T, dtype=torch.float32)
        return Bernoulli(probs=loc.clamp(0.0, 1.0), validate_args=False)


def smooth_images(count: int, seed: int, size: int = 6, channels: int = 0) -> np.ndarray:
    """Blurred stripes brighter on top and to the left, ``uint8``: a set that flips and noise do not belong to."""
    generator = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:size, 0:size] / (size - 1)
    parts = generator.uniform(0.2, 0.9, (count, 3, *[1] * (3 if channels else 2)))
    if channels:
        rows, columns = (np.repeat(axis[..., None], channels, -1) for axis in (rows, columns))
    pictures = parts[:, 0] * (1 - rows) * 0.8 + parts[:, 1] * (1 - columns) * 0.15 + 0.1 * parts[:, 2]
    noisy = pictures + 0.02 * generator.standard_normal(pictures.shape)
    return np.clip(np.round(255 * noisy), 0, 255).astype(np.uint8)
