"""Pseudo-counts: how much data there is at x decides between a prior and the local residuals, by the conjugate rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nescio._random import child_seed
from nescio._validation import check_positive
from nescio.densities import GaussianKDE, subsample_rows
from nescio.densities.neighbours import BLOCK
from nescio.distributions import Gamma, StudentT
from nescio.estimators.core import CoreModel, padded_chunks
from nescio.estimators.levels import outside_level
from nescio.estimators.means import MeanPhase
from nescio.estimators.precision_regressor import PrecisionRegressor
from nescio.estimators.problem import Fitted, Problem
from nescio.estimators.variational_variance import VariationalVarianceRegressor
from nescio.objectives import prior_from_level, prior_from_residuals

__all__ = ["PseudoCountRegressor", "leave_one_out", "pseudo_count_posterior", "squared_distances"]

BANDWIDTHS = tuple(2.0 ** (k / 2) for k in range(-6, 5))  # times the typical distance between neighbours
RATES = tuple(10.0 ** (k / 2) for k in range(-6, 7))  # pseudo-counts per row of the table
REFERENCE = 0.1  # quantile of the rows' densities from which on the data count in full
MOST_ROWS = 10_000  # of the density, so that the cost stays linear in the number of rows
JUDGED = 1_000  # rows that bandwidth and rate are chosen on


def pseudo_count_posterior(prior: Gamma, count: Tensor, variance: Tensor) -> Gamma:
    r"""Gamma posterior of the precision after ``count`` residuals of mean square ``variance``.

    .. math:: \alpha = a_0 + n/2, \qquad \beta = b_0 + n s^2 / 2

    Its predictive variance :math:`\beta/(\alpha - 1)` is a weighted mean of the prior's and the local one, with
    weights :math:`a_0 - 1` and :math:`n/2`. Shapes: ``variance`` ``(..., P)``; ``prior`` and ``count`` broadcast to it.
    """
    half = 0.5 * count.expand_as(variance)
    return Gamma(prior.concentration + half, prior.rate + half * variance)


def squared_distances(x: Tensor, places: Tensor) -> Tensor:
    """From the rows ``x[places]`` to all rows of ``x (R, D)``, ``(Q, R)``; infinite from a row to itself."""
    apart = torch.cdist(x[places], x).square()
    apart[torch.arange(len(places)), places] = torch.inf
    return apart


def leave_one_out(apart: Tensor, width: int, bandwidth: float) -> Tensor:
    """Log-density of rows under a kernel density of all others, ``(Q,)``.

    ``apart (Q, R)`` holds the squared distances, and ``width`` is the number of columns.
    """
    others = math.log(apart.shape[1] - 1)
    blocks = apart.split(max(1, BLOCK // apart.shape[1]))
    sums = torch.cat([(block * (-0.5 / bandwidth**2)).logsumexp(1) for block in blocks])
    return sums - others - width * (0.5 * math.log(2 * math.pi) + math.log(bandwidth))


@dataclass(frozen=True)
class PseudoCountCore:
    """A mean and a local variance, a density that counts, and the prior ``(P,)`` that rules where it counts nothing."""

    local: CoreModel
    density: GaussianKDE
    log_reference: float
    largest_count: float
    prior: Gamma

    def counts(self, x: Tensor) -> Tensor:
        """Pseudo-counts at ``x (N, D)``, ``(N,)``."""
        parts = [self.density.log_prob(chunk.double()) for chunk in padded_chunks(x, torch.device("cpu"))]
        excess = torch.cat(parts)[: len(x)] - self.log_reference
        return self.largest_count * excess.clamp(max=0.0).exp()

    def locations(self, x: Tensor) -> Tensor:
        """Means of the members at ``x (N, D)``, ``(M, N, P)``."""
        return self.local.locations(x)

    def posterior(self, x: Tensor) -> tuple[Tensor, Gamma]:
        """Means and posteriors of the members at ``x (N, D)``, each ``(M, N, P)``, in double precision."""
        loc, q = self.local.posterior(x)
        variance = q.rate.double() / (q.concentration.double() - 1.0)
        return loc, pseudo_count_posterior(self.prior, self.counts(x).unsqueeze(-1), variance)

    def predictive(self, x: Tensor) -> StudentT:
        """Predictive distributions of the members at ``x (N, D)``, ``(M, N, P)``."""
        loc, q = self.posterior(x)
        return StudentT.from_gamma(loc.double(), q)


class PseudoCountRegressor(PrecisionRegressor):
    """Student-t regression whose posterior is the conjugate one after as many residuals as a density says there were.

    Mean and local variance s²(x) are those of :class:`~nescio.VariationalVarianceRegressor`. The pseudo-count is
    n(x) = c N min(1, p(x)/p_ref) with a kernel density p, the 10 % quantile p_ref of the rows' own densities (each
    taken as if the row were not there) and N rows; width of the kernel and c are chosen by likelihood, of the inputs
    and of out-of-fold residuals. Far from the data n is zero and the prior alone is left; n grows with N.

    Source: charpentier2022 (the idea; there the density is a flow in a latent space and does not grow with N).

    Parameters
    ----------
    outside
        The standard deviation far from the data, in units of y: a number, one number per target, or a word, as in
        :class:`~nescio.DissipativeRegressor`.
    prior_shape
        Shape of the prior; above 1 for a finite variance. Small, since data must outweigh it.
    count_rate
        c, the largest pseudo-count per row of the table; ``"auto"`` chooses it.
    bandwidth
        Standard deviation of the kernel, in standard deviations of the columns; ``"auto"`` chooses it.
    hidden
        Hidden layers of the local variance; fewer than elsewhere, since it need not rise at the rim.
    mean_hidden, n_members, max_steps, batch_size, learning_rate, validation_fraction
        As in :class:`~nescio.VariationalVarianceRegressor`; fitted as a family with it, the first phases are shared.
    device, compile, random_state
        As there.
    """

    def __init__(
        self,
        *,
        outside: float | str | Sequence[float] = "auto",
        prior_shape: float = 1.5,
        count_rate: float | str = "auto",
        bandwidth: float | str = "auto",
        hidden: Sequence[int] = (50,),
        mean_hidden: Sequence[int] = (50, 50),
        n_members: int | str = "auto",
        max_steps: int = 1500,
        batch_size: int = 256,
        learning_rate: float = 1e-2,
        validation_fraction: float = 0.1,
        device: str | torch.device = "auto",
        compile: bool | str = "auto",
        random_state: Any = None,
    ) -> None:
        self.outside = outside
        self.prior_shape = prior_shape
        self.count_rate = count_rate
        self.bandwidth = bandwidth
        self.hidden = hidden
        self.mean_hidden = mean_hidden
        self.n_members = n_members
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.device = device
        self.compile = compile
        self.random_state = random_state

    @property
    def inside_prior_(self) -> Gamma | None:
        """The one prior there is, ``(P,)``, in standardised units."""
        return self.core_.prior

    @property
    def outside_prior_(self) -> Gamma | None:
        """The one prior there is, ``(P,)``, in standardised units."""
        return self.core_.prior

    def _fit_cores(self, problems: Sequence[Problem]) -> list[Fitted]:
        check_positive("prior_shape", self.prior_shape, above=1.0, why="for a finite predictive variance")
        for name in ("count_rate", "bandwidth"):
            if getattr(self, name) != "auto":
                check_positive(name, getattr(self, name))
        for problem in problems:
            outside_level(self.outside, problem.y_scale)
        own = ("outside", "prior_shape", "count_rate", "bandwidth", "random_state")
        shared = {name: value for name, value in self.get_params(deep=False).items() if name not in own}
        local = VariationalVarianceRegressor(**shared)
        fitted = local._fit_cores(problems)
        results = []
        for problem, each in zip(problems, fitted, strict=True):
            means, _ = problem.memo["means", *local._first_phase(*problem.x.shape)]
            results.append(self._count(problem, each.core, means))
        return results

    def _count(self, problem: Problem, local: Any, means: MeanPhase) -> Fitted:
        """Choose the density and the rate of its counts."""
        x = torch.as_tensor(problem.x, dtype=torch.float64)
        seed = child_seed(problem.seed, "pseudo-counts")
        rows = subsample_rows(x, MOST_ROWS, seed)
        places = torch.as_tensor(np.sort(np.random.default_rng(seed).permutation(len(rows))[:JUDGED]))
        apart = squared_distances(rows, places)
        bandwidth = self._width(apart, x.shape[1])
        own = leave_one_out(apart, x.shape[1], bandwidth)
        weights = None if problem.weights is None else torch.as_tensor(problem.weights, dtype=torch.float32)
        residual_variance = prior_from_residuals(means.residuals, 2.0, weights, floor=0.0).rate.double().numpy()
        level = torch.as_tensor(outside_level(self.outside, problem.y_scale, residual_variance))
        core = PseudoCountCore(
            local,
            GaussianKDE(rows, bandwidth),
            float(own.quantile(REFERENCE)),
            1.0,
            prior_from_level(level, float(self.prior_shape)),
        )
        kept = subsample_rows(torch.arange(len(x)).unsqueeze(1), MOST_ROWS, seed)[places, 0]  # the same draw
        rate = self._rate(problem, core, own, means.residuals[kept].double(), kept)
        chosen = PseudoCountCore(local, core.density, core.log_reference, rate * len(x), core.prior)
        return Fitted(chosen, {"bandwidth_": bandwidth, "count_rate_": rate})

    def _width(self, apart: Tensor, columns: int) -> float:
        """The kernel's width, by the likelihood of rows that are left out, ``apart (Q, R)`` squared."""
        if self.bandwidth != "auto":
            return float(self.bandwidth)
        nearest = apart.amin(1).sqrt()
        near = nearest[nearest > 0]
        typical = float(near.median()) if len(near) else 1.0  # copies of one row have no distance
        widths = [typical * factor for factor in BANDWIDTHS]
        return max(widths, key=lambda width: float(leave_one_out(apart, columns, width).clamp_min(-1e3).mean()))

    def _rate(self, problem: Problem, core: PseudoCountCore, own: Tensor, residuals: Tensor, kept: Tensor) -> float:
        """Pseudo-counts per row, by the likelihood of out-of-fold residuals at the rows ``kept``."""
        if self.count_rate != "auto":
            return float(self.count_rate)
        _, q = core.local.posterior(torch.as_tensor(problem.x, dtype=torch.float32)[kept])
        variance = (q.rate.double() / (q.concentration.double() - 1.0)).mean(0)
        heft = torch.ones(len(kept)) if problem.weights is None else torch.as_tensor(problem.weights)[kept]
        share = (own - core.log_reference).clamp(max=0.0).exp().unsqueeze(-1)

        def likelihood(rate: float) -> float:
            posterior = pseudo_count_posterior(core.prior, rate * len(problem.x) * share, variance)
            each = StudentT.from_gamma(torch.zeros_like(residuals), posterior).log_prob(residuals).sum(-1)
            return float((each * heft).sum())

        return max(RATES, key=likelihood)
