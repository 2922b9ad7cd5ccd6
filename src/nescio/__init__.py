"""nescio: regression and generative models that know what they do not know."""

from __future__ import annotations

from nescio.estimators import DissipativeRegressor, Prediction, VariationalVarianceRegressor
from nescio.persistence import load, save

__version__ = "0.1.0"

__all__ = ["DissipativeRegressor", "Prediction", "VariationalVarianceRegressor", "__version__", "load", "save"]
