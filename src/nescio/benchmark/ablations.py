"""What is left out, exchanged or turned up, one thing at a time: every ablation as data.

Paper: tab:boundary-samples, sec:appendix-boundary-samples, tab:n_steps_influence_on_pig,
tab:threshold_influence_on_pig, sec:appendix-sensitivity-hyperparameters, tab:pig-comparison,
sec:appendix-pig-influence, sec:appendix-number-pseudo-inputs, fig:gamma_prior (six of them; the others are ours).

The paper's ablations concern the authors' runs and so have their trainer, priors and seeds (protocol paper); ours have
the estimators of protocol sound. What is not named in a variant is as that protocol has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nescio._validation import InputError, join_names
from nescio.benchmark.names import FULL_DATASETS, METRICS, Metric
from nescio.pseudo_inputs import FarNoise, GaussianNoise, LevelSet, MixtureDescent, MultiScale, Rejected

__all__ = ["ABLATIONS", "ABLATION_METRICS", "Ablation", "find_variant"]

ABLATION_METRICS = METRICS | {
    "epistemic_share": Metric(0, "share of the variance"),
    "epistemic_std": Metric(0, "std of the training targets"),
}
"""Those of the benchmark, and two of the part of the variance that is not noise."""


@dataclass(frozen=True)
class Ablation:
    """Variants of one method on some data sets; ``metrics`` are the ones worth a table.

    Settings of a variant, protocol sound: parameters of the estimator; ``method`` (default d-vv) is the estimator, and
    ``rows`` the share of the training rows that it sees. Protocol paper: fields of its settings; ``placement`` (None:
    no pseudo-inputs, VV) stands in for the authors' generator, ``pool`` is the number of pseudo-inputs, and
    ``informativity`` a rate of the prior whose shape follows from it so that the prior's variance stays what it was.
    """

    title: str
    variants: Mapping[str, Mapping[str, Any]]
    datasets: tuple[str, ...]
    metrics: tuple[str, ...]
    protocol: str = "sound"
    kinds: tuple[str, ...] = ("gap",)
    trials: int = 2


_AS_RUN = MixtureDescent.as_run()
_LATER = replace(_AS_RUN, pool_multiplier=1)  # the authors' code when they made the two sweeps
_PAPER: Mapping[str, Any] = {"protocol": "paper", "kinds": ("standard",)}
_PUBLISHED = ("elbo", "expected_log_likelihood", "kl_ood_inside")
_FEW = ("concrete", "wine_red", "yacht")
_OUTSIDE = ("log_likelihood", "coverage_90", "auroc_near", "auroc_far", "auroc_push", "auroc_hole", "std_far")
_SHARES = (0.1, 0.3, 1.0)

ABLATIONS: dict[str, Ablation] = {
    "boundary-samples": Ablation(
        "Pseudo-inputs at the rim of the data, or far from it",
        {
            "boundary-samples=none": {"placement": None},
            "boundary-samples=boundary": {"placement": _AS_RUN},
            "boundary-samples=far": {"placement": FarNoise()},
        },
        ("ccpp", "wine_white"),
        ("kl_ood_inside", "elbo", "expected_log_likelihood"),
        **_PAPER,
    ),
    "n-steps": Ablation(
        "Number of steps of the pseudo-input generator",
        {f"n-steps={steps}": {"placement": replace(_LATER, steps=steps)} for steps in (0, 1, 5, 10)},
        ("carbon",),
        _PUBLISHED,
        **_PAPER,
    ),
    "threshold": Ablation(
        "Threshold of the pseudo-input generator",
        {f"threshold={gate:g}": {"placement": replace(_LATER, gate=gate)} for gate in (0.1, 0.01, 0.001)},
        ("carbon",),
        _PUBLISHED,
        **_PAPER,
    ),
    "pig-comparison": Ablation(
        "Pseudo-input generators, all under the same prior; and again under the one that the printed noise had",
        {
            "generator=descent": {"placement": _AS_RUN},
            "generator=0-steps": {"placement": replace(_AS_RUN, steps=0)},
            "generator=gaussian-noise": {"placement": GaussianNoise()},
            "generator=descent+rate=0.5": {"placement": _AS_RUN, "prior_rate": 0.5},
            "generator=gaussian-noise+rate=0.5": {"placement": GaussianNoise(), "prior_rate": 0.5},
        },
        FULL_DATASETS,
        _PUBLISHED,
        trials=3,
        **_PAPER,
    ),
    "n-pseudo-inputs": Ablation(
        "Number of pseudo-inputs",
        {f"n-pseudo-inputs={size}": {"placement": _AS_RUN, "pool": size} for size in (64, 512, 4096, 32768)},
        ("boston", "concrete", "yacht"),
        _PUBLISHED,
        trials=3,
        **_PAPER,
    ),
    "prior-informativity": Ablation(
        "Informativity of the prior: its rate, at the same variance",
        {f"prior-rate={rate:g}": {"informativity": rate} for rate in (0.001, 0.01, 0.1, 1.0, 10.0)},
        ("boston", "concrete", "yacht"),
        ("log_likelihood", "elbo", "expected_log_likelihood", "rmse", "kl_ood_inside"),
        trials=3,
        **_PAPER,
    ),
    "priors": Ablation(
        "One prior, two, or one that rises with the distance",
        {
            "prior=one": {"outside_prior": "inside"},
            "prior=two": {"outside_prior": "constant"},
            "prior=graded": {"outside_prior": "graded"},
        },
        _FEW,
        _OUTSIDE,
    ),
    "anchor": Ablation(
        "The outside prior by construction, or as trained",
        {"anchor=on": {"anchor": True}, "anchor=off": {"anchor": False}},
        _FEW,
        (*_OUTSIDE, "std_push"),
    ),
    "distance-input": Ablation(
        "The distance from the data as an input of the precision networks",
        {
            "distance-input=on": {"distance_input": True},
            "distance-input=off": {"distance_input": False},
            "distance-input=every-other": {},
        },
        (*_FEW, "boston", "ccpp", "naval", "protein"),
        _OUTSIDE,
        trials=10,
    ),
    "precision-steps": Ablation(
        "How long the posterior may train, with pseudo-inputs and without",
        {
            f"{method}+precision-steps={steps:g}": {"method": method, "precision_steps": steps}
            for method in ("d-vv", "vv")
            for steps in (0.3, 0.6, 1.4, 2.8)
        },
        ("carbon", "concrete", "naval"),
        ("log_likelihood", "crps", "coverage_90"),
        kinds=("standard",),
        trials=3,
    ),
    "folds-and-blocks": Ablation(
        "Folds of the residuals, and blocks that teach how the error grows",
        {
            **{f"folds={folds}": {"n_folds": folds} for folds in (2, 20)},
            **{f"blocks={blocks}": {"n_blocks": blocks} for blocks in (2, 8, 16)},
        },
        _FEW,
        ("log_likelihood", "crps", "coverage_90", "calibration_error", "auroc_hole"),
    ),
    "placements": Ablation(
        "Where the pseudo-inputs are",
        {
            "placement=multi-scale-one-input": {"placement": Rejected(MultiScale(one_input=0.25))},
            "placement=multi-scale": {"placement": Rejected(MultiScale())},
            "placement=multi-scale-unrejected": {"placement": MultiScale()},
            "placement=gaussian-noise": {"placement": GaussianNoise()},
            "placement=gaussian-noise-rejected": {"placement": Rejected(GaussianNoise())},
            "placement=far-noise": {"placement": FarNoise()},
            "placement=level-set": {"placement": LevelSet()},
            "placement=level-set-neighbours": {"placement": LevelSet(density="neighbours")},
            "placement=descent": {"placement": MixtureDescent()},
            "placement=descent-as-run": {"placement": _AS_RUN},
        },
        (*_FEW, "protein"),
        _OUTSIDE,
    ),
    "pseudo-weight": Ablation(
        "Weight of the pseudo-inputs",
        {f"pseudo-weight={weight}": {"pseudo_weight": weight} for weight in ("auto", 0.01, 0.1, 1.0, 10.0)},
        _FEW,
        _OUTSIDE,
    ),
    "epistemic-share": Ablation(
        "The part of the variance that is not noise, against the number of rows",
        {
            f"{method}+rows={share:.0%}": {"method": method, "rows": share}
            for method in ("d-vv", "d-vv-ensemble", "pseudo-count")
            for share in _SHARES
        },
        ("concrete", "wine_red"),
        ("epistemic_share", "epistemic_std", "log_likelihood", "rmse"),
        kinds=("standard",),
    ),
}

_PLACES = {variant: name for name, ablation in ABLATIONS.items() for variant in ablation.variants}


def find_variant(variant: str) -> tuple[str, Ablation]:
    """The ablation that has this variant, and its name."""
    if variant not in _PLACES:
        raise InputError(f"'{variant}' is no variant of the ablations {join_names(ABLATIONS, 20)}.")
    return _PLACES[variant], ABLATIONS[_PLACES[variant]]
