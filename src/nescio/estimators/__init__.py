"""Regressors with the face of scikit-learn's."""

from nescio.estimators.dissipative import DissipativeRegressor
from nescio.estimators.prediction import Prediction
from nescio.estimators.variational_variance import VariationalVarianceRegressor

__all__ = ["DissipativeRegressor", "Prediction", "VariationalVarianceRegressor"]
