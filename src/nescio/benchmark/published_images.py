"""What the paper prints of its models of images, under our names, with a word on what is not what it seems."""

from __future__ import annotations

from nescio.benchmark.cells import Cell

__all__ = ["PRINTED_MEASURES", "PRINTED_MODELS", "PRINTED_SETS", "printed_measure"]

PRINTED_SETS = {"fashion_mnist": "10", "svhn": "128", "cifar10": "128"}
"""Each set with the length of its codes."""
PRINTED_MODELS = ("vae", "d-v3ae")
PRINTED_MEASURES = ("log_likelihood_truncated", "rmse_sample")

_VALUES = {
    ("log_likelihood_truncated", "vae"): {"fashion_mnist": (2215.54, 68.81), "svhn": (4304.90, 58.45),
                                          "cifar10": (2930.64, 14.82)},
    ("log_likelihood_truncated", "d-v3ae"): {"fashion_mnist": (2349.71, 11.80), "svhn": (4133.41, 64.28),
                                             "cifar10": (2668.85, 13.23)},
    ("rmse_sample", "vae"): {"fashion_mnist": (0.171, 0.003), "svhn": (0.097, 7e-4), "cifar10": (0.154, 5e-4)},
    ("rmse_sample", "d-v3ae"): {"fashion_mnist": (0.158, 0.003), "svhn": (0.087, 0.002), "cifar10": (0.129, 7e-4)},
}  # fmt: skip
_TWO_MODELS = (
    "From two models with different priors, one for each measure, and trained without pseudo-inputs, by the authors' "
    "configurations and logs."
)


def printed_measure(metric: str, method: str, dataset: str) -> Cell | None:
    """Mean and standard deviation over trials as printed, with its footnote; None where nothing is printed."""
    values = _VALUES.get((metric, method), {}).get(dataset)
    if values is None:
        return None
    return Cell(*values, notes=(_TWO_MODELS,) if method == "d-v3ae" and dataset != "fashion_mnist" else ())
