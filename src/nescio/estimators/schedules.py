"""From an estimator's settings to the schedule of its training, checked first."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from torch import Tensor

from nescio._validation import check_fraction, check_integer, check_positive
from nescio.estimators.sizes import FEW_INPUTS, is_small
from nescio.training import Schedule

__all__ = [
    "checked_schedule",
    "mean_schedule",
    "phase",
    "pilot_share",
    "posterior_share",
    "precision_schedule",
    "pseudo_batch",
    "warm_up_schedule",
]

FEWEST = 20  # steps between two looks
TOLERANCE = 0.03  # of the logarithm of the validation error: a few hundred rows cannot tell less apart
WIDE_TOLERANCE = 0.1  # with few inputs: a network hardly overfits, and the noisiest rows decide which check is lowest
PATIENCE, SMALL_PATIENCE = 0.4, 0.2  # of the means' steps; on a small table the best posterior is an early one
PATH = 300  # steps at the full rate in which a posterior finds its place, with few inputs: more steps can be smaller
MEAN_RATE = 2.0  # with more inputs: the means have farther to go, and a cosine ends all rates alike
SHORTEST, LONGEST = 0.3, 1.4  # of the means' steps: a posterior on a small table, and on the largest
SMALL_TABLE = 2_000  # rows up to which the shortest will do
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


def pilot_share(n_inputs: int) -> float:
    """Steps of the pilot, in units of the means' steps; more with few inputs, where the std can be seen to be rough."""
    return 1 / 2 if n_inputs <= FEW_INPUTS else 1 / 3


def pseudo_batch(n_inputs: int, batch_size: int) -> int:
    """How many pseudo-inputs a step sees: as many as rows, with more than a few inputs half of that."""
    return batch_size if n_inputs <= FEW_INPUTS else max(1, batch_size // 2)


def posterior_share(n_rows: int, n_inputs: int, variance: Tensor) -> float:
    """Most steps of a posterior that sees nothing but the rows, in units of the means' steps.

    More rows have more to say about the noise, and so have more precise ones, of small residual ``variance (P,)``. On a
    small table the best posterior is an early one, and a rate that falls sooner leaves it smoother.
    """
    if n_inputs <= FEW_INPUTS:
        return LONGEST
    depth = float(-variance.log().mean())
    return min(LONGEST, max(SHORTEST, SHORTEST * math.sqrt(n_rows / SMALL_TABLE) * max(1.0, depth / DEPTH)))


def precision_schedule(schedule: Schedule, max_steps: int, n_rows: int, n_inputs: int) -> Schedule:
    """Of the posterior: until it no longer improves.

    The best posterior is often an early one, still rough from large steps. With few inputs, where the std can be seen
    to be rough, the steps are as small as their number allows.
    """
    rate = schedule.learning_rate * (min(1.0, PATH / max_steps) if n_inputs <= FEW_INPUTS else 1.0)
    share = SMALL_PATIENCE if is_small(n_rows, n_inputs) else PATIENCE
    patience = max(1, round(share * schedule.max_steps))
    return replace(schedule, max_steps=max_steps, learning_rate=rate, patience=patience)


def warm_up_schedule(schedule: Schedule, max_steps: int, n_inputs: int) -> Schedule:
    """Of the posterior's way to the priors: no more rows than pseudo-inputs, since theirs are all alike."""
    rows = pseudo_batch(n_inputs, schedule.batch_size)
    return replace(schedule, max_steps=max_steps, check_every=min(50, max_steps), batch_size=rows)
