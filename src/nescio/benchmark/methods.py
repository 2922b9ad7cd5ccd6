"""Every method of the comparison by its name: one line each, imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from nescio._validation import InputError, join_names
from nescio.estimators.base import DistributionRegressor
from nescio.training import can_compile

__all__ = ["check_installed", "make_method", "without_library"]

EAGER = ("mc-dropout",)  # its steps are products of large matrices, and gain nothing
PEERS = ("ngboost",)  # methods that are a library of the same name


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
    model: DistributionRegressor = _METHODS[name](seed)
    if compiled and name not in EAGER and can_compile() and "compile" in model.get_params(deep=False):
        model.set_params(compile=True)
    return model


def without_library(methods: Iterable[str]) -> list[str]:
    """The methods that need a library that is not here."""
    return [name for name in methods if name in PEERS and find_spec(name) is None]


def check_installed(methods: Iterable[str]) -> None:
    """Refuse what needs a library that is not here, before anything is trained and not when it is first called for."""
    if find_spec("scoringrules") is None:
        raise InputError("the measures need scoringrules, which is not installed: pip install 'nescio[bench]'.")
    for name in without_library(methods):
        raise InputError(
            f"the method '{name}' needs the library of that name, which is not installed: pip install "
            "'nescio[peers]', or leave the method out."
        )
