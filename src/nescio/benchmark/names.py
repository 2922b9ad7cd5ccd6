"""The words of the records: data sets, methods, splits, regions and metrics, and which way each metric is better."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "DATASETS",
    "FAMILY",
    "FULL_DATASETS",
    "KINDS",
    "METHODS",
    "METRICS",
    "ON_NOISE",
    "OUTSIDE",
    "PAPER_METHODS",
    "PROTOCOLS",
    "REGIONS",
    "Metric",
]

PROTOCOLS = ("paper", "sound")
KINDS = {"paper": ("standard", "gap"), "sound": ("standard", "gap", "tail")}
REGIONS = ("all", "inside", "hole", "tail")

DATASETS = (
    "boston", "carbon", "ccpp", "concrete", "energy", "kin8nm", "naval", "protein", "superconductivity",
    "superconductivity_partial", "wine_red", "wine_white", "yacht",
)  # fmt: skip
PARTIAL = ("superconductivity_partial",)
FULL_DATASETS = tuple(name for name in DATASETS if name not in PARTIAL)
"""The paper's twelve; what is a sample of one of them is never shown as it."""

FAMILY = ("d-vv", "d-vv-one-prior", "vv", "vv-no-prior", "d-vv-ensemble", "pseudo-count")
"""Methods of split training: they share the phases of the mean and of the pilot."""

METHODS = (
    *FAMILY, "vv-vbem", "mean-variance", "beta-nll", "deep-ensemble", "mc-dropout", "skafte", "ncp",
    "bbb", "gp", "evidential", "faithful", "ngboost",
)  # fmt: skip

PAPER_METHODS = {**dict.fromkeys(("d-vv", "vv", "vv-no-prior"), FULL_DATASETS), "d-vv-swapped": ("yacht",)}
"""Methods of protocol paper, each with the data sets that it is defined on."""
ON_NOISE = ("superconductivity",)
"""Where d-VV of protocol paper has Gaussian noise for pseudo-inputs: in 81 columns the authors' walk failed."""

OUTSIDE = ("near", "far", "box", "push", "hole", "tail")
"""Kinds of points off the data."""


class Metric(NamedTuple):
    """``better``: +1 larger, -1 smaller, 0 neither; ``target`` is a value to be near to, as for a coverage."""

    better: int
    unit: str
    target: float | None = None


def _metrics() -> dict[str, Metric]:
    spread = "std of the training targets"
    found = {
        "elbo": Metric(1, "nats"),
        "expected_log_likelihood": Metric(1, "nats"),
        "rmse": Metric(-1, spread),
        "rmse_variance": Metric(-1, f"squared {spread}"),
        "rmse_sample": Metric(-1, spread),
        "kl_ood_inside": Metric(-1, "nats"),
        "kl_ood_outside": Metric(-1, "nats"),
        "log_likelihood": Metric(1, "nats"),
        "log_likelihood_raw": Metric(1, "nats"),
        "crps": Metric(-1, spread),
    }
    for level in (50, 90, 95):
        found[f"coverage_{level}"] = Metric(-1, "share", target=level / 100)
    for level in (50, 90, 95):
        found[f"width_{level}"] = Metric(0, spread)
    found |= {
        "interval_score_90": Metric(-1, spread),
        "calibration_error": Metric(-1, "probability"),
        "ence": Metric(-1, "share"),
        "aurc": Metric(-1, f"squared {spread}"),
    }
    for name, better, unit in (
        ("auroc", 1, "probability"), ("auroc_support", 1, "probability"), ("fpr95", -1, "share"), ("std", 0, spread),
    ):  # fmt: skip
        found |= {f"{name}_{kind}": Metric(better, unit) for kind in OUTSIDE}
    return found | {"seconds": Metric(-1, "s")}


METRICS = _metrics()
