"""From an estimator's settings to the schedule of its training, checked first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nescio._validation import check_fraction, check_integer, check_positive
from nescio.training import Schedule

__all__ = ["FEW_INPUTS", "checked_schedule", "mean_schedule", "phase", "precision_schedule"]

FEWEST = 20  # steps between two looks
FEW_INPUTS = 3  # up to here some hundred rows and 20,000 pseudo-inputs cover the data and their rim well
TOLERANCE = 0.03  # of the logarithm of the validation error: a few hundred rows cannot tell less apart
WIDE_TOLERANCE = 0.1  # with few inputs: a network hardly overfits, and the noisiest rows decide which check is lowest
PATIENCE = 0.4  # of the means' steps: on a small table the best posterior is found within a few hundred steps
PATH = 300  # steps at the full rate in which a posterior finds its place, with few inputs: more steps can be smaller
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
    return replace(schedule, tolerance=WIDE_TOLERANCE if n_inputs <= FEW_INPUTS else TOLERANCE)


def precision_schedule(schedule: Schedule, max_steps: int, n_inputs: int) -> Schedule:
    """Of the posterior: until it no longer improves.

    The best posterior is often an early one, still rough from large steps. With few inputs, where the std can be seen
    to be rough, the steps are as small as their number allows.
    """
    rate = schedule.learning_rate * (min(1.0, PATH / max_steps) if n_inputs <= FEW_INPUTS else 1.0)
    patience = max(1, round(PATIENCE * schedule.max_steps))
    return replace(schedule, max_steps=max_steps, learning_rate=rate, patience=patience)
