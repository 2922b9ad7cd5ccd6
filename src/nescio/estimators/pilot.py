"""Before phase two, a small network tells how much of the prior to believe, and how noisy it is where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nescio._random import child_seed, generators
from nescio.estimators.means import hold_out
from nescio.estimators.precision import fit_precision, stacked_prior
from nescio.networks import Head, Network
from nescio.training import Schedule

__all__ = ["CANDIDATES", "Pilot", "fit_pilot", "prior_for"]

TAILS = (2.2, 3.5, 8.0)  # shapes of the posterior, from heavy tails to light ones
SHRINKAGES = (0.01, 0.2, 0.75)  # parts of the posterior's variance that are the prior's


def prior_for(tail: float, shrinkage: float) -> tuple[float, float]:
    r"""Shape a of the inside prior and KL weight w that give a posterior these tails and this much of the prior.

    At the optimum of the loss, whatever the number of rows, the posterior has the shape :math:`a + 1/(2w)` and the
    variance :math:`f s^2 + (1 - f) r^2` between the prior's and the squared residual's, with
    :math:`f = (a - 1) w / ((a - 1) w + 1/2)`. Solved for a and w:

    .. math:: a = 1 + f (\alpha - 1), \qquad w = \frac{1}{2 (1 - f)(\alpha - 1)}
    """
    return 1.0 + shrinkage * (tail - 1.0), 0.5 / ((1.0 - shrinkage) * (tail - 1.0))


CANDIDATES = tuple(prior_for(tail, shrinkage) for tail in TAILS for shrinkage in SHRINKAGES)
"""Shapes of the inside prior and KL weights to choose from."""

TOLERANCE = 0.02  # nat: a difference that a validation set of some hundred rows does not establish


class Pilot(NamedTuple):
    """What a small network learns first: how to weigh the prior, and how noisy it is where."""

    shape: float
    kl_weight: float
    variance: Tensor
    """At the rows, ``(N, P)``."""


def fit_pilot(
    x: Tensor,
    residuals: Tensor,
    groups: np.ndarray,
    weights: Tensor | None,
    network: Network,
    head: Head,
    schedule: Schedule,
    candidates: Sequence[tuple[float, float]],
    *,
    variance: Tensor,
    seed: int,
    repeats: int,
    validation_fraction: float,
    device: torch.device,
    compile: bool | str,
    progress: Callable[[int], object] | None,
) -> Pilot:
    """Choose the shape of the inside prior and the KL weight by validation marginal likelihood.

    Of the candidates within ``TOLERANCE`` nat of the best, those with the strongest prior are kept, and of these the
    best is taken: where the likelihood cannot tell, the simpler noise is believed. All candidates train in one stack,
    without pseudo-inputs, since the choice concerns the inside; each on the same ``repeats`` divisions of the rows,
    from the same starting weights.

    Deviation: the paper's shape and weight are fixed (1.5, and 0.5 in what was run).
    """
    rows = np.arange(len(x))
    divisions = [hold_out(rows, groups, validation_fraction, child_seed(seed, "choice", r)) for r in range(repeats)]
    settings = [setting for setting in candidates for _ in range(repeats)]
    prior, kl_weight, offset = stacked_prior(variance, settings, head)
    parameters, reached = fit_precision(
        x,
        residuals,
        weights,
        [division[0] for _ in candidates for division in divisions],
        [division[1] for _ in candidates for division in divisions],
        network,
        head,
        schedule,
        inside_prior=prior,
        kl_weight=kl_weight,
        offset=offset,
        pseudo=None,
        streams=[stream for _ in candidates for stream in generators(seed, "choice", repeats)],
        device=device,
        compile=compile,
        progress=progress,
    )
    value = reached.view(len(candidates), repeats).mean(1).tolist()
    strength = [round((shape - 1.0) * weight, 6) for shape, weight in candidates]
    good = [place for place in range(len(candidates)) if value[place] <= min(value) + TOLERANCE]
    best = min(good, key=lambda place: (-strength[place], value[place]))
    mine = slice(best * repeats, (best + 1) * repeats)
    chosen = {name: tensor[mine] for name, tensor in parameters.items()}
    variances = []
    with torch.no_grad():
        for part in x.split(65_536):
            q = head(network(chosen, part.expand(repeats, *part.shape)) + offset[mine])
            variances.append((q.rate / (q.concentration - 1.0)).mean(0))
    return Pilot(*candidates[best], torch.cat(variances))
