"""From an estimator's settings to the schedule of its training, checked first."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

from torch import Tensor

from nescio._validation import check_fraction, check_integer, check_positive
from nescio.estimators.sizes import FEW_INPUTS, FEW_ROWS
from nescio.training import Schedule

__all__ = [
    "Shares",
    "checked_schedule",
    "mean_schedule",
    "phase",
    "posterior_share",
    "precision_schedule",
    "shares",
]

FEWEST = 20  # steps between two looks
TOLERANCE = 0.03  # of the logarithm of the validation error: a few hundred rows cannot tell less apart
WIDE_TOLERANCE = 0.1  # with few inputs: a network hardly overfits, and the noisiest rows decide which check is lowest
PATIENCE = 0.4  # of the means' steps: on a small table the best posterior is found within a few hundred steps
PATH = 300  # steps at the full rate in which a posterior finds its place, with few inputs: more steps can be smaller
MEAN_RATE = 2.0  # with more inputs: the means have farther to go, and a cosine ends all rates alike
SHORTEST, LONGEST = 0.3, 1.4  # of the means' steps: a posterior on a small table, and on the largest
DEPTH = 4.0  # nats of precision from which the noise has more to tell: residuals of a seventh of the spread
CHECKS = 40  # looks at the held-out rows per phase: often enough to stop well, seldom enough to cost little


def checked_schedule(model: Any) -> Schedule:
    """The schedule of ``max_steps``, ``batch_size`` and ``learning_rate``; bad values are refused."""
    check_fraction("validation_fraction", getattr(model, "validation_fraction", 0.5))
    steps = check_integer("max_steps", model.max_steps, least=1)
    rows = check_integer("batch_size", model.batch_size, least=1)
    rate = check_positive("learning_rate", model.learning_rate)
    return phase(Schedule(steps, rows, rate), 1.0)


def phase(schedule: Schedule, share: float, **changes: Any) -> Schedule:
    """A phase of this share of the steps."""
    steps = max(1, round(share * schedule.max_steps))
    return replace(schedule, max_steps=steps, check_every=min(steps, max(FEWEST, steps // CHECKS)), **changes)


def mean_schedule(schedule: Schedule, n_inputs: int) -> Schedule:
    """Of the mean networks: the later weights, as long as validation does not speak against them."""
    if n_inputs <= FEW_INPUTS:
        return replace(schedule, tolerance=WIDE_TOLERANCE)
    return replace(schedule, learning_rate=MEAN_RATE * schedule.learning_rate, tolerance=TOLERANCE)


class Shares(NamedTuple):
    """Lengths of what comes between the means and the posterior, in units of the means' steps."""

    pilot: float
    pseudo_batch: float
    """Pseudo-inputs that a step sees, in units of its rows."""


def shares(n_inputs: int) -> Shares:
    """Of the phases after the means; longer with few inputs, where the std can be seen to be rough."""
    return Shares(1 / 2, 1.0) if n_inputs <= FEW_INPUTS else Shares(1 / 3, 0.5)


def posterior_share(n_rows: int, n_inputs: int, variance: Tensor) -> float:
    """Most steps of a posterior that sees nothing but the rows, in units of the means' steps.

    More rows have more to say about the noise, and so have more precise ones, of small residual ``variance (P,)``. On a
    small table the best posterior is an early one, and a rate that falls sooner leaves it smoother.
    """
    if n_inputs <= FEW_INPUTS:
        return LONGEST
    depth = float(-variance.log().mean())
    return min(LONGEST, max(SHORTEST, SHORTEST * math.sqrt(n_rows / FEW_ROWS) * max(1.0, depth / DEPTH)))


def precision_schedule(schedule: Schedule, max_steps: int, n_inputs: int) -> Schedule:
    """Of the posterior: until it no longer improves.

    The best posterior is often an early one, still rough from large steps. With few inputs, where the std can be seen
    to be rough, the steps are as small as their number allows.
    """
    rate = schedule.learning_rate * (min(1.0, PATH / max_steps) if n_inputs <= FEW_INPUTS else 1.0)
    patience = max(1, round(PATIENCE * schedule.max_steps))
    return replace(schedule, max_steps=max_steps, learning_rate=rate, patience=patience)
