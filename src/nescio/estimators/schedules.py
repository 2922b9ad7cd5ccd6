"""From an estimator's settings to the schedule of its training, checked first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nescio._validation import check_fraction, check_integer, check_positive
from nescio.training import Schedule

__all__ = ["checked_schedule", "phase"]

FEWEST = 20  # steps between two looks
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
