"""Regressors with the face of scikit-learn's."""

from nescio.estimators.bayes_by_backprop import BayesByBackpropRegressor
from nescio.estimators.dissipative import DissipativeRegressor
from nescio.estimators.dropout import MCDropoutRegressor
from nescio.estimators.ensemble import DeepEnsembleRegressor
from nescio.estimators.evidential import EvidentialRegressor
from nescio.estimators.explanation import Explanation
from nescio.estimators.faithful import FaithfulRegressor
from nescio.estimators.gaussian_process import GaussianProcessRegressor
from nescio.estimators.mean_variance import MeanVarianceRegressor
from nescio.estimators.natural_boosting import NaturalBoostingRegressor
from nescio.estimators.noise_contrastive import NoiseContrastiveRegressor
from nescio.estimators.prediction import Prediction
from nescio.estimators.pseudo_count import PseudoCountRegressor
from nescio.estimators.reliable import ReliableVarianceRegressor
from nescio.estimators.variational_variance import VariationalVarianceRegressor
from nescio.estimators.vbem import VBEMRegressor
from nescio.estimators.watch import Watch

__all__ = [
    "BayesByBackpropRegressor",
    "DeepEnsembleRegressor",
    "DissipativeRegressor",
    "EvidentialRegressor",
    "Explanation",
    "FaithfulRegressor",
    "GaussianProcessRegressor",
    "MCDropoutRegressor",
    "MeanVarianceRegressor",
    "NaturalBoostingRegressor",
    "NoiseContrastiveRegressor",
    "Prediction",
    "PseudoCountRegressor",
    "ReliableVarianceRegressor",
    "VBEMRegressor",
    "VariationalVarianceRegressor",
    "Watch",
]
