"""A Gaussian process on at most some thousand rows: the baseline that knows the outside by construction."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.linalg import blas, lapack
from scipy.optimize import minimize
from sklearn import gaussian_process as process
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from torch import Tensor

from nescio._random import child_seed
from nescio._validation import check_integer, check_one_of, check_positive
from nescio.distributions import StudentT
from nescio.distributions.gaussian_gamma import LOG_2PI
from nescio.estimators.base import DistributionRegressor
from nescio.estimators.core import padded_chunks
from nescio.estimators.problem import Fitted, Problem

__all__ = ["GaussianProcessRegressor", "distinct", "negative_log_evidence"]

FEW_ROWS = 300  # enough to tell a good start from a bad one, at a thirtieth of the cost
LENGTHS = (1e-2, 1e4)  # in standardised units: from finer than any table to a column that does not matter
SIGNALS = (1e-2, 1e3)
LARGEST_NOISE = 4.0  # variance of standardised targets is 1
TOLERANCE = 1e-6  # of the evidence: a step that gains less does not move the likelihood of test rows by 0.001
SQRT5 = math.sqrt(5.0)


def negative_log_evidence(
    theta: np.ndarray, x: np.ndarray, y: np.ndarray, weights: np.ndarray, kernel: str
) -> tuple[float, np.ndarray]:
    r"""Minus the log marginal likelihood of ``y (N,)`` and its gradient in ``theta``.

    .. math:: \tfrac12 y^T C^{-1} y + \tfrac12 \log|C| + \tfrac N2 \log 2\pi, \qquad
              C_{ij} = s^2 k(r_{ij}) + \delta_{ij} \sigma^2 / w_i

    ``theta`` holds the logarithms of the D length scales, of the signal variance and of the noise variance. Source:
    rasmussen2006, Eqs. (5.8) and (5.9). The gradients of all length scales together are one product of matrices:
    with A symmetric, the sum of :math:`A_{ij} (z_i - z_j)^2` is :math:`2 (\sum_i z_i^2 \sum_j A_{ij} - z^T A z)`.
    A matrix that is not positive definite has an infinite value and no slope.
    """
    count, width = x.shape
    z = x * np.exp(-theta[:width])
    signal, noise = math.exp(theta[width]), math.exp(theta[width + 1])
    norms = np.square(z).sum(1)
    squared = np.maximum(norms[:, None] + norms - 2.0 * (z @ z.T), 0.0)
    if kernel == "rbf":
        value = np.exp(-0.5 * squared)
        slope = -0.5 * value  # in the squared distance
    else:
        distance = SQRT5 * np.sqrt(squared)
        decay = np.exp(-distance)
        slope = -5.0 / 6.0 * (1.0 + distance) * decay
        value = (1.0 + distance + distance * distance / 3.0) * decay
    covariance = signal * value
    covariance[np.diag_indices(count)] += noise / weights
    factor, failed = lapack.dpotrf(covariance.T, lower=True, overwrite_a=True)  # symmetric, and laid as LAPACK has it
    if failed:
        return math.inf, np.zeros_like(theta)
    log_determinant = 2.0 * np.log(np.diagonal(factor)).sum()
    inverse, _ = lapack.dpotri(factor, lower=True, overwrite_c=True)  # its lower half; the rest is zero
    dual = blas.dsymv(1.0, inverse, y, lower=1)
    evidence = 0.5 * float(y @ dual) + 0.5 * log_determinant + 0.5 * count * LOG_2PI
    # The slope of the evidence in C is (C^-1 - dual dual^T) / 2. Of C^-1 a half is at hand; the rest is never formed.
    diagonal = np.diagonal(inverse)
    half = inverse.T * slope
    of_inverse = half.sum(0) + half.sum(1) - diagonal * np.diagonal(slope)
    moved = np.column_stack([dual, dual[:, None] * z])
    of_dual = dual[:, None] * (slope @ moved)
    rows = 0.5 * (of_inverse - of_dual[:, 0])
    spread = 0.5 * (blas.dsymm(1.0, half.T, z, lower=1) - of_dual[:, 1:])
    gradient = np.empty_like(theta)
    gradient[:width] = -4.0 * signal * (np.square(z).T @ rows - (z * spread).sum(0))
    whole = 2.0 * float(np.vdot(inverse.T, value)) - float(diagonal @ np.diagonal(value))
    gradient[width] = 0.5 * signal * (whole - float(dual @ (value @ dual)))
    gradient[width + 1] = 0.5 * noise * float(((diagonal - np.square(dual)) / weights).sum())
    return evidence, gradient


def distinct(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, targets and weights without copies: rows that agree in all of it become one, with their joint weight.

    Copies agree to the last digit, which no noise does; the likelihood would rise without bound as the noise and the
    length scales go to zero, and the best process would know its own rows by heart and nothing else.
    """
    table = np.concatenate([problem.x, problem.y], axis=1)
    _, first, place = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return problem.x[first], problem.y[first], np.bincount(place.ravel(), weights=problem.weights).astype(np.float64)


@dataclass(frozen=True)
class ProcessCore:
    """One fitted process per output, with the variance of its noise ``(P,)``."""

    processes: list[process.GaussianProcessRegressor]
    noise: np.ndarray

    def locations(self, x: Tensor) -> Tensor:
        """Means at ``x (N, D)``, ``(1, N, P)``."""
        chunks = [chunk.numpy() for chunk in padded_chunks(x.double(), torch.device("cpu"))]
        columns = [np.concatenate([each.predict(chunk) for chunk in chunks]) for each in self.processes]
        return torch.as_tensor(np.stack(columns, axis=-1)[None, : len(x)])

    def predictive(self, x: Tensor) -> StudentT:
        """Gaussians at ``x (N, D)``, noise included, ``(1, N, P)``."""
        chunks = [chunk.numpy() for chunk in padded_chunks(x.double(), torch.device("cpu"))]
        means, variances = [], []
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Predicted variances smaller than 0")  # rounding; they are set to zero
            for each in self.processes:
                pairs = [each.predict(chunk, return_std=True) for chunk in chunks]
                means.append(np.concatenate([mean for mean, _ in pairs]))
                variances.append(np.concatenate([std for _, std in pairs]) ** 2)
        variance = np.stack(variances, axis=-1)[: len(x)] + self.noise
        loc = torch.as_tensor(np.stack(means, axis=-1)[None, : len(x)])
        return StudentT(torch.full_like(loc, torch.inf), loc, torch.as_tensor(np.sqrt(variance))[None])


class GaussianProcessRegressor(DistributionRegressor):
    """Exact Gaussian process with a length scale per column, noise included; one process per target.

    The mean is zero on standardised targets, the hyper-parameters maximise the marginal likelihood, and the posterior
    is scikit-learn's. Above ``max_rows`` rows it is fitted to a random subset, which is far weaker than the exact
    process on all of them.

    Source: rasmussen2006, Algorithm 2.1.

    Parameters
    ----------
    kernel
        ``"rbf"`` or ``"matern"`` (smoothness 5/2), with one length scale per column.
    max_rows
        Rows that the process is fitted to at most; the cost grows with the cube.
    n_starts
        Starting points of the hyper-parameters, tried on 300 rows; the best is refined on all.
    max_iterations
        Of the optimiser, on all rows.
    smallest_noise
        The least variance of the noise, where that of the targets is 1.
    random_state
        Same seed, same model.

    A weight of ``sample_weight`` divides the variance of that row's noise. Exact copies of a row count as one row with
    their joint weight.
    """

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        max_rows: int = 1_000,
        n_starts: int = 4,
        max_iterations: int = 60,
        smallest_noise: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.max_rows = max_rows
        self.n_starts = n_starts
        self.max_iterations = max_iterations
        self.smallest_noise = smallest_noise
        self.random_state = random_state

    def _fit_cores(self, problems: Sequence[Problem]) -> list[Fitted]:
        check_one_of("kernel", self.kernel, ("rbf", "matern"))
        check_integer("max_rows", self.max_rows, least=2)
        check_integer("n_starts", self.n_starts, least=1)
        check_integer("max_iterations", self.max_iterations, least=1)
        check_positive("smallest_noise", self.smallest_noise)
        return [self._fit_one(problem) for problem in problems]

    def _fit_one(self, problem: Problem) -> Fitted:
        rng = np.random.default_rng(child_seed(problem.seed, "gaussian process"))
        x, y, weights = distinct(problem)
        rows = rng.permutation(len(x))[: int(self.max_rows)]
        x, y, weights = x[rows], y[rows], weights[rows] / weights[rows].mean()
        processes, thetas = [], []
        for column in y.T:
            theta = self._maximise(x, column, weights, rng)
            lengths, (signal, noise) = np.exp(theta[:-2]), np.exp(theta[-2:])
            shape = RBF(lengths) if self.kernel == "rbf" else Matern(lengths, nu=2.5)
            fitted = process.GaussianProcessRegressor(
                ConstantKernel(signal) * shape, alpha=noise / weights, optimizer=None
            )
            processes.append(fitted.fit(x, column))
            thetas.append(np.exp(theta))
        learned = np.stack(thetas)
        core = ProcessCore(processes, learned[:, -1])
        return Fitted(
            core, {"length_scales_": learned[:, :-2], "signal_variance_": learned[:, -2], "noise_": learned[:, -1]}
        )

    def _maximise(self, x: np.ndarray, y: np.ndarray, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Logarithms of the best length scales, signal and noise; ``x`` comes in random order."""
        width = x.shape[1]
        bounds = np.log([LENGTHS] * width + [SIGNALS, (float(self.smallest_noise), LARGEST_NOISE)])
        starts = [np.log([math.sqrt(width)] * width + [1.0, 0.1])]
        while len(starts) < int(self.n_starts):
            lengths = 0.5 * math.log(width) + rng.uniform(-1.0, 1.5, width)
            starts.append(np.append(lengths, [rng.uniform(-1.0, 2.0), rng.uniform(-7.0, -1.0)]))

        def climb(start: np.ndarray, rows: int, iterations: int) -> Any:
            table = (x[:rows], y[:rows], weights[:rows], self.kernel)
            begin = np.clip(start, bounds[:, 0], bounds[:, 1])
            options = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": TOLERANCE}
            return minimize(negative_log_evidence, begin, table, "L-BFGS-B", jac=True, bounds=bounds, options=options)

        tried = [climb(start, FEW_ROWS, 50) for start in starts]
        best = min(tried, key=lambda result: result.fun if np.isfinite(result.fun) else math.inf)
        refined: np.ndarray = climb(best.x, len(x), int(self.max_iterations)).x
        return refined
