"""Walk downhill on the density of the data: the paper's pseudo-input generator, as printed and as it was run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from nescio._validation import InputError, check_integer, check_one_of, check_positive
from nescio.densities import Density, GaussianKDE, GaussianMixture, fit_gaussian_mixture
from nescio.pseudo_inputs.base import check_request, draw_rows

__all__ = ["MixtureDescent"]

# Longest single step, in standardised units: on a component of tiny variance the density, and with it a printed step of
# delta * grad p, can exceed all floating-point numbers.
_LONGEST_STEP = 100.0
# Rows of one of the paper's batches.
_BATCH = 1024


@dataclass(frozen=True)
class MixtureDescent:
    r"""Points that start on the data and take a few steps down the fitted density.

    .. math:: \hat x \leftarrow \hat x - \delta\, g(\hat x), \quad g = \nabla p \text{ or } \nabla \log p

    Paper: alg:pig. Paper: tab:regression_pig_parameters (its numbers, on a Bayesian mixture of diagonal Gaussians).
    The defaults are the algorithm as printed; ``as_run`` gives what the published numbers come from. The stop test is
    per model, over that model's ``count`` points.

    ``gradient``: ``"density"`` steps by grad p, ``"log_density"`` by grad log p. ``normalise``: every step has length
    ``step_size``. ``gate``: a point moves only while its gradient's norm divided by the size of the pool is below it.
    ``tolerance``: a model stops after the step whose longest move is no longer than this. ``start``: rows of the
    ``"data"`` or samples of the ``"mixture"``. ``pool_multiplier``: the pool is this times the least multiple of the
    number of components above 1,024, as in the runs; its points do not see each other except through this number, so
    only the ``count`` that are wanted are made. ``n_components=None``: one per row up to 1,024. ``max_rows``: rows the
    mixture is fitted to; the paper fits one to each batch of 1,024. ``density``: a fitted one, used instead.

    Deviation: a step is cut at length 100. As printed it is proportional to p, which on a narrow component is
    astronomically large, and in many dimensions so small that nothing moves.
    """

    steps: int = 5
    step_size: float = 0.4
    gradient: str = "density"
    normalise: bool = False
    gate: float | None = None
    tolerance: float = 0.005
    start: str = "data"
    pool_multiplier: int = 1
    n_components: int | None = None
    covariance_type: str = "diag"
    bayesian: bool = True
    max_rows: int = _BATCH
    seed: int = 0
    density: Density | None = None

    def __post_init__(self) -> None:
        check_integer("steps", self.steps, least=0)
        check_positive("step_size", self.step_size)
        check_one_of("gradient", self.gradient, ["density", "log_density"])
        check_one_of("start", self.start, ["data", "mixture"])
        check_integer("pool_multiplier", self.pool_multiplier, least=1)
        if self.gate is not None:
            check_positive("gate", self.gate)
        if not (math.isfinite(self.tolerance) and self.tolerance >= 0):
            raise InputError(f"tolerance must be a finite number of at least 0; got {self.tolerance!r}.")

    @classmethod
    def as_run(cls, density: Density | None = None) -> MixtureDescent:
        """The generator behind the published numbers: 5 unit-norm steps of 0.4 down log p from samples of the mixture.

        Deviation: the paper prints steps of delta grad p with a stop at the tolerance. The runs took unit-norm steps
        down log p on spherical components, used the 0.005 as a gate of the opposite sense (a point moves while its
        gradient, divided by the pool of four times the points, is below it) and had no stop.
        """
        return cls(
            gradient="log_density",
            normalise=True,
            gate=0.005,
            tolerance=0.0,
            start="mixture",
            pool_multiplier=4,
            covariance_type="spherical",
            density=density,
        )

    def fitted(self, points: Tensor) -> MixtureDescent:
        """The same placement with its mixture fitted to ``points``, for many calls on the same data."""
        return self if self.density is not None else replace(self, density=self._fit(points))

    def __call__(self, points: Tensor, count: int, generators: Sequence[torch.Generator]) -> Tensor:
        check_request(points, count, generators)
        density = self.density if self.density is not None else self._fit(points)
        if self.start == "data":
            start = draw_rows(points, count, generators)
        elif isinstance(density, (GaussianMixture, GaussianKDE)):
            start = torch.stack([density.sample((count,), generator=own) for own in generators])
        else:
            raise InputError(f"start='mixture' needs a density to sample from; got {type(density).__name__}.")
        return self.descend(density, start.double()).to(points)

    def descend(self, density: Density, x: Tensor) -> Tensor:
        """Walk ``x (M, count, D)`` down ``density``; the starting points are given, so nothing here is random."""
        active = torch.ones(len(x), dtype=torch.bool, device=x.device)
        components = len(density.means) if isinstance(density, GaussianMixture) else 1
        pool = self.pool_multiplier * components * (_BATCH // components + 1)
        # while (iterations < max_iterations) & (epsilon > tolerance)
        for _ in range(self.steps):
            if not bool(active.any()):
                break
            # compute, for all k, grad p(x_k)
            step = self._step(density, x[active], pool)
            # epsilon = max_k ||delta grad p(x_k)||
            epsilon = torch.linalg.vector_norm(step, dim=-1).amax(dim=-1)
            # x_k = x_k - delta grad p(x_k)
            x = x.index_put((active,), x[active] - step)
            active = active.index_put((active,), epsilon > self.tolerance)
        return x

    def _step(self, density: Density, x: Tensor, pool: int) -> Tensor:
        score = density.score(x)
        score_norm = torch.linalg.vector_norm(score, dim=-1, keepdim=True)
        direction = torch.where(score_norm > 0, score / score_norm, 0.0)
        log_norm = score_norm.log()
        if self.gradient == "density":  # grad p = p grad log p, kept in logarithms: p itself can overflow
            log_norm = log_norm + density.log_prob(x).unsqueeze(-1)
        length = torch.full_like(log_norm, self.step_size) if self.normalise else self.step_size * log_norm.exp()
        if self.gate is not None:
            length = torch.where(log_norm < math.log(self.gate * pool), length, 0.0)
        return length.nan_to_num(nan=0.0).clamp(max=_LONGEST_STEP) * direction

    def _fit(self, points: Tensor) -> GaussianMixture:
        return fit_gaussian_mixture(
            points,
            n_components=self.n_components,
            covariance_type=self.covariance_type,
            bayesian=self.bayesian,
            seed=self.seed,
            max_rows=self.max_rows,
        )
