"""What a method is given and what it gives back, in standardised units."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from torch import Tensor

from nescio.calibration import Support, fit_support
from nescio.distributions import StudentT

__all__ = ["SUPPORT", "Core", "Fitted", "Original", "Problem"]

SUPPORT = "support"  # its key in a memo: it depends on the inputs and the seed, not on the method
LARGEST = 64  # ensemble that a smaller one is looked for in


class Core(Protocol):
    """A fitted model in standardised units. Its members are the parts of an even mixture."""

    def locations(self, x: Tensor) -> Tensor:
        """Means of the members at ``x (N, D)``, ``(M, N, P)``."""
        ...

    def predictive(self, x: Tensor) -> StudentT:
        """Predictive distributions of the members at ``x (N, D)``, ``(M, N, P)``; ``df = inf`` is the Gaussian."""
        ...


class Original(NamedTuple):
    """A table as it came, for a mean that is not ours."""

    given: Any
    """Rows as the user gave them."""
    encoded: np.ndarray
    """As numbers, ``(N, D)``."""
    y: np.ndarray
    """Targets, ``(N, P)``."""
    weights: np.ndarray | None
    """Of the rows, ``(N,)``, not scaled."""
    x_shift: np.ndarray
    """What was taken from the encoded rows, ``(D,)``."""
    x_scale: np.ndarray
    """And by what they were divided, ``(D,)``."""


@dataclass(frozen=True)
class Problem:
    """One standardised table to learn from, and what has been learned from it already."""

    x: np.ndarray
    """Inputs, ``(N, D)``."""
    y: np.ndarray
    """Targets, ``(N, P)``."""
    weights: np.ndarray | None
    """Of the rows, ``(N,)``."""
    y_scale: np.ndarray
    """How many units of y one standardised unit is, ``(P,)``."""
    seed: int
    original: Original
    blocks: int = 0
    """How many held-out blocks the most demanding of the methods that share this table wants."""
    memo: dict[Hashable, tuple[Any, float]] = field(default_factory=dict, compare=False, repr=False)
    saved: list[float] = field(default_factory=list, compare=False, repr=False)
    """Seconds of the phases that were already there."""

    def support(self) -> Support:
        """The support of the inputs, found once."""
        found: Support = self.once(SUPPORT, lambda: fit_support(self.x, seed=self.seed))
        return found

    def without(self, rows: np.ndarray) -> Problem:
        """The table without these rows; nothing has been learned from it yet."""
        rest = np.setdiff1d(np.arange(len(self.x)), rows)
        weights = None if self.weights is None else self.weights[rest]
        return replace(self, x=self.x[rest], y=self.y[rest], weights=weights, memo={}, saved=[])

    def once(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """What ``compute`` returns; for one key it is called once, by whichever method comes first."""
        if key in self.memo:
            self.saved.append(self.memo[key][1])
        else:
            began = time.perf_counter()
            value = compute()
            self.memo[key] = value, time.perf_counter() - began
        return self.memo[key][0]

    def most(self, key: Hashable, count: int, compute: Callable[[], Any]) -> Any:
        """Like :meth:`once`, for ``count`` members that train together: what has as many or more of them will do."""
        for have in range(count, LARGEST + 1):
            if ("members", key, have) in self.memo:
                value, seconds = self.memo["members", key, have]
                self.saved.append(seconds * count / have)
                return value
        return self.once(("members", key, count), compute)


class Fitted(NamedTuple):
    """What training leaves: the model, and learned attributes of the estimator by their names (ending in ``_``)."""

    core: Core
    learned: dict[str, Any]
