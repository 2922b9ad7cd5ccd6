"""nescio: regression and generative models that know what they do not know."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nescio.estimators import (
        BayesByBackpropRegressor,
        DeepEnsembleRegressor,
        DissipativeRegressor,
        EvidentialRegressor,
        Explanation,
        FaithfulRegressor,
        GaussianProcessRegressor,
        MCDropoutRegressor,
        MeanVarianceRegressor,
        NaturalBoostingRegressor,
        NoiseContrastiveRegressor,
        Prediction,
        PseudoCountRegressor,
        ReliableVarianceRegressor,
        VariationalVarianceRegressor,
        VBEMRegressor,
        Watch,
    )
    from nescio.generative import (
        BernoulliVAE,
        DissipativeVAE,
        GaussianVAE,
        NoveltyDetector,
        VariationalVarianceVAE,
    )
    from nescio.persistence import load, save

__version__ = "0.1.0"

__all__ = [
    "BayesByBackpropRegressor",
    "BernoulliVAE",
    "DeepEnsembleRegressor",
    "DissipativeRegressor",
    "DissipativeVAE",
    "EvidentialRegressor",
    "Explanation",
    "FaithfulRegressor",
    "GaussianProcessRegressor",
    "GaussianVAE",
    "MCDropoutRegressor",
    "MeanVarianceRegressor",
    "NaturalBoostingRegressor",
    "NoiseContrastiveRegressor",
    "NoveltyDetector",
    "Prediction",
    "PseudoCountRegressor",
    "ReliableVarianceRegressor",
    "VBEMRegressor",
    "VariationalVarianceRegressor",
    "VariationalVarianceVAE",
    "Watch",
    "__version__",
    "load",
    "save",
]

_HOMES = {name: "nescio.estimators" for name in __all__ if name[0].isupper()}
_HOMES |= dict.fromkeys((*(name for name in __all__ if name.endswith("VAE")), "NoveltyDetector"), "nescio.generative")
_HOMES |= {"load": "nescio.persistence", "save": "nescio.persistence"}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: the command line's help need not wait for torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'nescio' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
