"""Gaussian mixtures over the inputs, fitted by scikit-learn, with a closed-form gradient."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture
from sklearn.mixture import GaussianMixture as PlainGaussianMixture
from torch import Tensor
from torch.distributions import Distribution, constraints

from nescio._validation import InputError, check_integer, check_one_of
from nescio.densities.neighbours import distinct_rows, subsample_rows
from nescio.distributions.gaussian_gamma import LOG_2PI

__all__ = ["COVARIANCE_TYPES", "GaussianMixture", "fit_gaussian_mixture"]

COVARIANCE_TYPES = ("spherical", "diag", "full")

# Entries of one block of squared distances, points x components x features for full covariances.
_BLOCK = 1_048_576


class GaussianMixture(Distribution):
    r"""A mixture of K Gaussians over vectors of D features, parametrised as scikit-learn has it.

    .. math:: p(x) = \sum_{k=1}^K w_k N(x; m_k, \Lambda_k^{-1}), \quad \Lambda_k = L_k L_k^\top

    Shapes: ``weights (K,)``, ``means (K, D)``, ``precisions_cholesky`` ``(K,)`` (spherical), ``(K, D)`` (diag) or
    ``(K, D, D)``, upper triangular (full); ``x (*, D)`` gives ``log_prob (*)`` and ``score (*, D)`` in the dtype of
    ``x``.

    Everything is done in log space: at D = 81 densities of 1e-600 are common; their logarithms are finite.
    Squared distances come from differences, not from the expansion of the square, which would cancel for the narrow
    components that a mixture with as many of them as rows has.
    """

    arg_constraints: dict[str, constraints.Constraint] = {}  # noqa: RUF012  (torch declares it as a plain attribute)
    has_rsample = False

    def __init__(
        self, weights: Tensor, means: Tensor, precisions_cholesky: Tensor, covariance_type: str = "diag"
    ) -> None:
        check_one_of("covariance_type", covariance_type, COVARIANCE_TYPES)
        if means.ndim != 2 or len(means) < 1:
            raise InputError(f"means must be a table (K, D) with at least 1 component; got {tuple(means.shape)}.")
        components, features = means.shape
        shapes = {"spherical": (components,), "diag": (components, features), "full": (components, features, features)}
        if tuple(precisions_cholesky.shape) != shapes[covariance_type]:
            raise InputError(
                f"precisions_cholesky must have shape {shapes[covariance_type]} for {covariance_type} covariances; "
                f"got {tuple(precisions_cholesky.shape)}."
            )
        if tuple(weights.shape) != (components,) or not bool((weights >= 0).all()) or not bool(weights.sum() > 0):
            raise InputError(f"weights must be {components} numbers, none negative and not all zero.")
        self.weights = weights / weights.sum()
        self.means = means
        self.precisions_cholesky = precisions_cholesky
        self.covariance_type = covariance_type
        if covariance_type == "spherical":
            log_determinant = features * precisions_cholesky.log()
        elif covariance_type == "diag":
            log_determinant = precisions_cholesky.log().sum(dim=-1)
        else:
            log_determinant = precisions_cholesky.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
        self._log_peaks = self.weights.log() + log_determinant - 0.5 * features * LOG_2PI
        super().__init__(event_shape=means.shape[1:], validate_args=False)

    @property
    def mean(self) -> Tensor:
        """The mean of the mixture, ``(D,)``."""
        return self.weights @ self.means

    def log_prob(self, value: Tensor) -> Tensor:
        """log p(x), ``(*)``."""
        return self._in_blocks(value, lambda x: self._log_terms(x)[0].logsumexp(dim=-1)).reshape(value.shape[:-1])

    def score(self, x: Tensor) -> Tensor:
        r"""The gradient of log p(x), ``(*, D)``: each component's :math:`\Lambda_k (m_k - x)`, by responsibility."""
        return self._in_blocks(x, self._score).reshape(x.shape)

    def sample(self, sample_shape: Any = (), generator: torch.Generator | None = None) -> Tensor:
        """Independent draws ``(*sample_shape, D)``; the global generator is left alone when one is given."""
        shape = torch.Size(sample_shape)
        device = self.means.device if generator is None else generator.device
        picked = torch.multinomial(
            self.weights.double().to(device), shape.numel(), replacement=True, generator=generator
        )
        noise = torch.randn(shape.numel(), self.means.shape[1], generator=generator, device=device, dtype=torch.float64)
        return self.from_noise(picked.to(self.means.device), noise.to(self.means)).reshape(*shape, -1)

    def from_noise(self, picked: Tensor, noise: Tensor) -> Tensor:
        """Samples ``(*, D)`` of the components ``picked (*)`` from standard normal ``noise (*, D)``: m + L^-T noise."""
        factors = self.precisions_cholesky[picked]
        if self.covariance_type == "spherical":
            return self.means[picked] + noise / factors[..., None]
        if self.covariance_type == "diag":
            return self.means[picked] + noise / factors
        solved: Tensor = torch.linalg.solve_triangular(factors.mT, noise[..., None], upper=False)
        return self.means[picked] + solved[..., 0]

    def _log_terms(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Per component log w N(x), ``(B, K)``, and the whitened differences ``(B, K, D)``."""
        difference = x[:, None, :] - self.means
        if self.covariance_type == "spherical":
            whitened = difference * self.precisions_cholesky[:, None]
        elif self.covariance_type == "diag":
            whitened = difference * self.precisions_cholesky
        else:
            whitened = torch.einsum("bkd,kde->bke", difference, self.precisions_cholesky)
        return self._log_peaks - 0.5 * whitened.square().sum(dim=-1), whitened

    def _score(self, x: Tensor) -> Tensor:
        log_terms, whitened = self._log_terms(x)
        responsibilities = log_terms.softmax(dim=-1)
        if self.covariance_type == "spherical":
            return -torch.einsum("bk,k,bkd->bd", responsibilities, self.precisions_cholesky, whitened)
        if self.covariance_type == "diag":
            return -torch.einsum("bk,kd,bkd->bd", responsibilities, self.precisions_cholesky, whitened)
        return -torch.einsum("bk,kde,bke->bd", responsibilities, self.precisions_cholesky, whitened)

    def _in_blocks(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        components, features = self.means.shape
        if x.ndim < 1 or x.shape[-1] != features:
            raise InputError(f"x must have {features} features on its last axis; got {tuple(x.shape)}.")
        flat = x.reshape(-1, features).to(self.means.dtype)
        step = max(_BLOCK // (components * features), 1)
        starts = range(0, max(len(flat), 1), step)  # an empty x still passes through once, for its shape
        return torch.cat([function(flat[start : start + step]) for start in starts]).to(x.dtype)


def fit_gaussian_mixture(
    x: Tensor,
    n_components: int | None = None,
    covariance_type: str = "diag",
    bayesian: bool = True,
    seed: int = 0,
    min_weight: float = 1e-5,
    max_rows: int = 10_000,
) -> GaussianMixture:
    """Fit a mixture to the rows of ``x (N, D)`` with scikit-learn, Bayesian (Dirichlet process) or by plain EM.

    ``n_components`` is at most the number of distinct rows; None asks for 1,024, the paper's one per input of a batch.
    Components of weight below ``min_weight`` are dropped. At most ``max_rows`` random rows are used. The parameters are
    kept in float64. Paper: tab:regression_pig_parameters.

    One row, repeated rows and constant columns are legal: scikit-learn's own addition of 1e-6 to each variance gives
    them a small spread.
    """
    check_one_of("covariance_type", covariance_type, COVARIANCE_TYPES)
    rows = subsample_rows(x.detach(), max_rows, seed).double()
    most = len(distinct_rows(rows))
    wanted = min(1024 if n_components is None else check_integer("n_components", n_components, least=1), most)
    if len(rows) == 1:
        rows = rows.expand(2, -1)  # scikit-learn refuses a single sample
    family = BayesianGaussianMixture if bayesian else PlainGaussianMixture
    model = family(n_components=wanted, covariance_type=covariance_type, random_state=seed % 2**32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(np.asarray(rows.cpu()))
    kept = model.weights_ >= min(min_weight, model.weights_.max())
    parameters = (model.weights_[kept], model.means_[kept], model.precisions_cholesky_[kept])
    weights, means, precisions = (torch.as_tensor(p, dtype=torch.float64, device=x.device) for p in parameters)
    return GaussianMixture(weights, means, precisions, covariance_type)
