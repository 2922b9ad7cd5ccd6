"""The graded outside prior, learned: how fast the level rises with the distance from the data."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nescio._random import child_seed
from nescio.calibration import error_growth
from nescio.densities import NeighbourDistance
from nescio.estimators.anchoring import MOST_REFERENCE_ROWS
from nescio.estimators.means import Growth
from nescio.estimators.problem import Problem
from nescio.estimators.sizes import FEW_INPUTS, is_small
from nescio.objectives import PriorFunction, graded_prior

__all__ = ["prior_from_blocks"]

NEIGHBOURHOOD = 0.25  # standard deviations, times sqrt(D)


def prior_from_blocks(
    x: Tensor, seen: Growth, variance: Tensor, level: Tensor, concentration: float, problem: Problem
) -> PriorFunction:
    """Noise at the nearest of the rows ``x (N, D)``, plus what a mean was wrong by at that distance in held-out blocks.

    The errors are taken to have the tails of the outside prior, of shape ``concentration``. Inputs count in a distance
    by ``seen.relevance``. On a small table quiet rows have the most to say, and the curve is the likeliest, told in
    units of the noise: a mean goes astray sooner where the targets are noisy, which held-out blocks find likelier.
    Elsewhere all rows count alike, and noisy ones keep the curve up where others are quiet.

    Shapes: ``variance`` ``(N, P)``, the noise at the rows; ``level`` ``(P,)`` or, for the points that are asked for,
    ``(..., P)``.
    """
    heft = None if problem.weights is None else problem.weights[seen.held_out]
    noise = np.maximum(variance.double().numpy()[seen.held_out] + seen.offset, 0.0)
    small, usual = is_small(*x.shape), variance.median(0).values
    unit = (variance / usual).double().numpy()[seen.held_out] if small else 1.0
    knots, growth = error_growth(
        seen.distance, seen.squared_error / unit, noise / unit, heft, df=2.0 * concentration, by_precision=small
    )
    rows = np.random.default_rng(child_seed(problem.seed, "reference")).permutation(len(x))[:MOST_REFERENCE_ROWS]
    reference, near = x[rows] * seen.relevance, variance[rows]
    neighbours = NeighbourDistance(reference)

    def surroundings(points: Tensor) -> tuple[Tensor, Tensor]:
        points = points * seen.relevance
        nearest = neighbours.nearest(points)
        distance = (points - reference[nearest]).norm(dim=-1)
        # A row with little noise vouches for its neighbourhood, and no farther.
        least = usual * (distance / (NEIGHBOURHOOD * x.shape[1] ** 0.5)).clamp_max(1.0).unsqueeze(-1)
        return distance, torch.maximum(near[nearest], least)

    return graded_prior(
        surroundings,
        torch.as_tensor(knots, dtype=torch.float32),
        torch.as_tensor(growth, dtype=torch.float32),
        level,
        concentration,
        # Between rows that surround it a guess is no farther off than the mean of the targets; among many inputs
        # hardly a point is surrounded.
        torch.ones(level.shape[-1]) if x.shape[1] <= FEW_INPUTS else None,
        usual if small else None,
    )
