"""Parts of NGBoost without what takes most of its time: frozen distributions, checks of small arrays, copies of tables.

Each gives what the library's own gives, to the last bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeRegressor

try:
    from ngboost import NGBRegressor
    from ngboost.distns import Normal
except ImportError:  # an extra, and whoever asks for boosting without it is told so before this is used
    NGBRegressor = Normal = object

__all__ = ["PlainBooster", "PlainNormal", "PlainTree"]

_LOG_ROOT = math.log(math.sqrt(2.0 * math.pi))


class PlainBooster(NGBRegressor):
    """The same stages; their trees look at the table itself, and not at copies with all columns chosen."""

    def sample(
        self, X: np.ndarray, Y: np.ndarray, sample_weight: np.ndarray | None, params: np.ndarray
    ) -> tuple[Any, ...]:
        """Rows, columns, and the table, targets, weights and parameters there."""
        rows = np.arange(len(Y))
        if self.minibatch_frac != 1.0:
            rows = self.random_state.choice(rows, int(self.minibatch_frac * len(Y)), replace=False)
        weights = None if sample_weight is None else sample_weight[rows]
        return rows, slice(None), X[rows], Y[rows], weights, params[rows]


class PlainTree(DecisionTreeRegressor):
    """The same tree for float32 inputs and float64 targets that are known to be finite."""

    def __sklearn_clone__(self) -> PlainTree:
        copy = type(self)()
        copy.__dict__.update(self.__dict__)
        return copy

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> PlainTree:
        """Grow it."""
        return super().fit(X, y, sample_weight=sample_weight, check_input=False)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The values of the leaves, ``(N,)``."""
        values: np.ndarray = self.tree_.predict(X)[:, 0]
        return values


class PlainNormal(Normal):
    """The same distribution, with the same scores and their gradients."""

    def __init__(self, params: np.ndarray) -> None:
        super(Normal, self).__init__(params)  # not Normal's own, which freezes a distribution at each step
        self.loc = params[0]
        self.scale = np.exp(params[1])
        self.var = self.scale**2
        self.dist = self

    def logpdf(self, y: np.ndarray) -> np.ndarray:
        """Log-density, as the scores of NGBoost ask for it."""
        z = (y - self.loc) / self.scale
        value: np.ndarray = -(z**2) / 2.0 - _LOG_ROOT - np.log(self.scale)
        return value

    def mean(self) -> np.ndarray:
        """What NGBoost predicts."""
        mean: np.ndarray = self.loc
        return mean
