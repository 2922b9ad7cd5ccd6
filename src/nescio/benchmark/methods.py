"""Every method of the comparison by its name: one line each, imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from nescio._validation import InputError, join_names
from nescio.estimators.base import DistributionRegressor
from nescio.training import can_compile

__all__ = ["make_method"]

EAGER = ("mc-dropout",)  # its steps are products of large matrices, and gain nothing


def _estimator(module: str, name: str, **parameters: Any) -> Callable[[int], Any]:
    """A function from a seed to the estimator."""

    def make(seed: int) -> Any:
        return getattr(import_module(f"nescio.estimators.{module}"), name)(**parameters, random_state=seed)

    return make


_METHODS: dict[str, Callable[[int], Any]] = {
    "d-vv": _estimator("dissipative", "DissipativeRegressor"),
    "d-vv-one-prior": _estimator(
        "dissipative", "DissipativeRegressor", outside_prior="inside", anchor=False, distance_input=False
    ),
    "vv": _estimator("variational_variance", "VariationalVarianceRegressor"),
    "vv-no-prior": _estimator("variational_variance", "VariationalVarianceRegressor", prior=None),
    "vv-vbem": _estimator("vbem", "VBEMRegressor"),
    "mean-variance": _estimator("mean_variance", "MeanVarianceRegressor"),
    "beta-nll": _estimator("mean_variance", "MeanVarianceRegressor", beta=0.5),  # the value its paper recommends
    "deep-ensemble": _estimator("ensemble", "DeepEnsembleRegressor"),
    "d-vv-ensemble": _estimator("dissipative", "DissipativeRegressor", n_members=5),  # as many as deep-ensemble
    "mc-dropout": _estimator("dropout", "MCDropoutRegressor"),
    "skafte": _estimator("reliable", "ReliableVarianceRegressor"),
    "ncp": _estimator("noise_contrastive", "NoiseContrastiveRegressor"),
    "bbb": _estimator("bayes_by_backprop", "BayesByBackpropRegressor"),
    "gp": _estimator("gaussian_process", "GaussianProcessRegressor"),
    "evidential": _estimator("evidential", "EvidentialRegressor"),
    "faithful": _estimator("faithful", "FaithfulRegressor"),
    "pseudo-count": _estimator("pseudo_count", "PseudoCountRegressor"),
    "ngboost": _estimator("natural_boosting", "NaturalBoostingRegressor"),
}


def make_method(name: str, *, seed: int, compiled: bool = False) -> DistributionRegressor:
    """An estimator that has not been fitted, with the settings of protocol sound.

    Where it can, a ``compiled`` one compiles its training steps once for all fits of the process.
    """
    if name not in _METHODS:
        raise InputError(f"name must be one of {join_names(_METHODS, 20)}; got '{name}'.")
    try:
        model: DistributionRegressor = _METHODS[name](seed)
    except ModuleNotFoundError as error:
        raise InputError(
            f"the method '{name}' needs {error.name}, which is not installed; add the extra that has it "
            "(pip install 'nescio[peers]') or leave the method out."
        ) from error
    if compiled and name not in EAGER and can_compile() and "compile" in model.get_params(deep=False):
        model.set_params(compile=True)
    return model
