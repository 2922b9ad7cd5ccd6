"""NGBoost's Gaussian without SciPy's frozen distributions, which take a good part of a fit's time to make."""

from __future__ import annotations

import math

import numpy as np

try:
    from ngboost.distns import Normal
except ImportError:  # an extra, and whoever asks for boosting without it is told so before this is used
    Normal = object

__all__ = ["PlainNormal"]

_LOG_ROOT = math.log(math.sqrt(2.0 * math.pi))


class PlainNormal(Normal):
    """The same distribution, to the last bit, with the same scores and their gradients."""

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
