"""The watch: are more of these rows strange than chance allows? No targets are needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import betabinom

from nescio.calibration import Support

__all__ = ["ALARM", "Watch", "watch_rows"]

ALARM = 0.01  # a p-value below it is said loudly


@dataclass(frozen=True)
class Watch:
    """How many rows are at the edge or outside, against what rows from inside would give."""

    n_rows: int
    n_edge: int
    """At the edge or outside."""
    n_outside: int
    edge: float
    """The rate of false alarms that was asked for."""
    outside: float
    p_value: float
    """Of so many strange rows, if they came from where the training rows did; NaN where there are too few of those."""

    @property
    def alarm(self) -> bool:
        """Whether chance is no explanation."""
        return bool(self.p_value < ALARM)

    def __str__(self) -> str:
        """One or two sentences."""
        if np.isnan(self.p_value):
            return "The training rows are too few to tell whether so many strange rows are unusual."
        share = f"{self.n_edge} of {self.n_rows} rows ({self.n_edge / self.n_rows:.1%}) are at the edge or outside"
        usual = f"rows like those in training would give about {self.edge:.1%}"
        if not self.alarm:
            return f"{share}; {usual}."
        return (
            f"WARNING: {share}, {self.n_outside} of them outside; {usual}, and so many by chance with a probability of "
            f"{max(self.p_value, 1e-300):.1g}. These rows are not like the training data: look at them before you use "
            "the predictions."
        )


def watch_rows(p: np.ndarray, support: Support, edge: float, outside: float) -> Watch:
    r"""Test the p-values ``(N,)`` of rows against those of rows from inside.

    Given n calibration scores, the rate at which rows from inside fall below a threshold is itself uncertain: it is
    Beta distributed with parameters a = rate (n + 1) and n + 1 - a, so their number in N rows is beta-binomial. The
    two thresholds are tested one-sidedly, and the smaller p-value is doubled. Where a threshold cannot be told, only
    rows with a cell that no training row has (p = 0) are counted, as in their verdicts.
    """
    count = len(support.scores) + 1
    found, tails = [], []
    for rate in (edge, outside):
        told = support.can_tell(rate)
        number = int((p <= (rate if told else 0.0)).sum())
        found.append(number)
        if told:
            tails.append(float(betabinom.sf(number - 1, len(p), rate * count, (1.0 - rate) * count)))
    p_value = min(1.0, len(tails) * min(tails)) if tails else float("nan")
    return Watch(len(p), found[0], found[1], edge, outside, p_value)
