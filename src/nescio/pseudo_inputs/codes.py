"""The paper's pseudo-inputs in a space of codes: a walk down the density of all posteriors of an encoder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from nescio._validation import InputError, check_integer, check_positive
from nescio.densities import AggregatePosterior
from nescio.pseudo_inputs.descent import MixtureDescent

__all__ = ["CodeDescent"]

# What a descent without components takes for the size of its pool.
_POOL = 1_025


@dataclass(frozen=True)
class CodeDescent:
    r"""Points that start around the codes of the data and walk down the aggregate posterior.

    .. math:: \hat z_0 \sim N(\mu_n, s^2 I), \qquad \hat z \leftarrow \hat z - \delta\, g(\hat z), \quad
              g = \nabla \log q \,/\, \|\nabla \log q\|

    Paper: tab:vae_pig_parameters (ten steps of 0.4, tolerance 0.007).  Codes are taken ``batch`` at a time, in random
    order, each batch with the mixture of its own posteriors as density. ``gradient``, ``normalise``, ``gate`` and
    ``tolerance`` are those of :class:`MixtureDescent`; a point moves while its gradient is below ``gate`` times
    ``batch``.

    Deviation: as with :meth:`MixtureDescent.as_run`, this is what was run. The paper prints steps of delta grad q from
    samples of q, in batches of 128, and a stop at the tolerance: ``CodeDescent(gradient="density", normalise=False,
    gate=None, tolerance=0.007, start_scale=None, batch=128)``.
    """

    steps: int = 10
    step_size: float = 0.4
    gradient: str = "log_density"
    normalise: bool = True
    gate: float | None = 0.007
    tolerance: float = 0.0
    start_scale: float | None = 2.0
    batch: int = 1_280

    def __post_init__(self) -> None:
        check_integer("batch", self.batch, least=1)
        if self.start_scale is not None:
            check_positive("start_scale", self.start_scale)
        self._descent()  # refuses the rest

    def around(self, loc: Tensor, scale: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """``count`` points ``(count, L)`` for codes of location and scale ``(N, L)``, on their device."""
        check_integer("count", count, least=1)
        if loc.ndim != 2 or not len(loc):
            raise InputError(f"loc must be codes of shape (N, L); got {tuple(loc.shape)}.")
        descent, found = self._descent(), loc.new_empty(0, loc.shape[1])
        batches: Iterator[Tensor] = iter(())
        while len(found) < count:
            rows = next(batches, None)
            if rows is None:
                batches = iter(torch.split(torch.randperm(len(loc), generator=generator), int(self.batch)))
                continue
            own = rows.to(loc.device)
            wide = scale[own] if self.start_scale is None else torch.full_like(scale[own], self.start_scale)
            noise = torch.randn(len(rows), loc.shape[1], generator=generator).to(loc)
            start = (loc[own] + wide * noise).double().unsqueeze(0)
            placed = descent.descend(AggregatePosterior(loc[own], scale[own]), start)[0]
            found = torch.cat([found, placed.to(loc)])
        return found[:count]

    def _descent(self) -> MixtureDescent:
        gate = None if self.gate is None else float(self.gate) * int(self.batch) / _POOL
        return MixtureDescent(
            steps=self.steps,
            step_size=self.step_size,
            gradient=self.gradient,
            normalise=self.normalise,
            gate=gate,
            tolerance=self.tolerance,
        )
