"""A kernel density estimate: one Gaussian of the same width on every row."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from nescio._validation import InputError, check_one_of, check_positive
from nescio.densities.neighbours import BLOCK, subsample_rows
from nescio.distributions.gaussian_gamma import LOG_2PI

__all__ = ["GaussianKDE", "fit_kde"]


class GaussianKDE(Distribution):
    r"""Equal Gaussians of standard deviation ``bandwidth`` on each of ``points (R, D)``.

    .. math:: p(x) = \tfrac1R \sum_{r=1}^R N(x; x_r, h^2 I)

    Shapes: ``x (*, D)`` gives ``log_prob (*)`` and ``score (*, D)`` in the dtype of ``x``. All in log space.

    Squared distances are expanded into a matrix product, in float64 about the mean of the points: their absolute error
    is about 1e-15 times the squared spread, so ``log_prob`` is good to 1e-9 for bandwidths above a thousandth of it.
    """

    arg_constraints: dict[str, constraints.Constraint] = {}  # noqa: RUF012  (torch declares it as a plain attribute)
    has_rsample = False

    def __init__(self, points: Tensor, bandwidth: float) -> None:
        if points.ndim != 2 or points.shape[0] < 1 or points.shape[1] < 1:
            raise InputError(f"points must be a table (R, D) with at least 1 row; got {tuple(points.shape)}.")
        self.points = points
        self.bandwidth = check_positive("bandwidth", bandwidth)
        rows = points.double()
        self._centre = rows.mean(dim=0)
        self._rows = (rows - self._centre) / self.bandwidth
        self._half_norms = 0.5 * self._rows.square().sum(dim=-1)
        self._log_peak = -math.log(len(rows)) - rows.shape[1] * (0.5 * LOG_2PI + math.log(self.bandwidth))
        super().__init__(event_shape=points.shape[1:], validate_args=False)

    @property
    def mean(self) -> Tensor:
        """The mean of the density, ``(D,)``: that of the points."""
        return self._centre.to(self.points.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """log p(x), ``(*)``."""
        return self._in_blocks(value, self._log_prob).reshape(value.shape[:-1])

    def score(self, x: Tensor) -> Tensor:
        r"""The gradient of log p(x), ``(*, D)``: (weighted mean of the points - x) / h^2, a mean-shift step."""
        return self._in_blocks(x, self._score).reshape(x.shape)

    def sample(self, sample_shape: Any = (), generator: torch.Generator | None = None) -> Tensor:
        """Independent draws ``(*sample_shape, D)``; the global generator is left alone when one is given."""
        shape = torch.Size(sample_shape)
        device = self.points.device if generator is None else generator.device
        size = (shape.numel(), self.points.shape[1])
        picked = torch.randint(len(self.points), size[:1], generator=generator, device=device).to(self.points.device)
        noise = torch.randn(size, generator=generator, device=device, dtype=torch.float64).to(self.points)
        return (self.points[picked] + self.bandwidth * noise).reshape(*shape, size[1])

    def _log_prob(self, x: Tensor) -> Tensor:
        exponents = torch.addmm(self._half_norms, x, self._rows.T, beta=-1.0)
        return exponents.logsumexp(dim=-1) - 0.5 * x.square().sum(dim=-1) + self._log_peak

    def _score(self, x: Tensor) -> Tensor:
        responsibilities = torch.addmm(self._half_norms, x, self._rows.T, beta=-1.0).softmax(dim=-1)
        return (responsibilities @ self._rows - x) / self.bandwidth

    def _in_blocks(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        count, features = self._rows.shape
        if x.ndim < 1 or x.shape[-1] != features:
            raise InputError(f"x must have {features} features on its last axis; got {tuple(x.shape)}.")
        flat = (x.reshape(-1, features).double() - self._centre) / self.bandwidth
        step = max(BLOCK // count, 1)
        starts = range(0, max(len(flat), 1), step)  # an empty x still passes through once, for its shape
        return torch.cat([function(flat[start : start + step]) for start in starts]).to(x.dtype)


def fit_kde(x: Tensor, bandwidth: float | str = "scott", max_rows: int = 10_000, seed: int = 0) -> GaussianKDE:
    """A kernel density on at most ``max_rows`` random rows of ``x (N, D)``.

    ``"scott"`` is R^(-1/(D+4)) and ``"silverman"`` (R (D+2)/4)^(-1/(D+4)), times the root mean square of the columns'
    standard deviations; a table without spread (one row, all rows alike) takes 1.0 for it.
    """
    rows = subsample_rows(x.detach(), max_rows, seed)
    if not isinstance(bandwidth, str):
        return GaussianKDE(rows, bandwidth)
    check_one_of("bandwidth", bandwidth, ["scott", "silverman"])
    count, features = rows.shape
    spread = float(rows.double().var(dim=0, correction=0).mean().sqrt())
    size = count if bandwidth == "scott" else count * (features + 2) / 4.0
    return GaussianKDE(rows, (spread if spread > 0 else 1.0) * size ** (-1.0 / (features + 4)))
