"""Running times and emissions as the paper prints them, in seconds and kilograms of CO₂, on one RTX 3080."""

from __future__ import annotations

__all__ = ["GENERATIVE_TIMES", "REGRESSION_TIMES"]

REGRESSION_TIMES = {
    "boston": (0.000064, 15.969), "carbon": (0.000695, 138.548), "ccpp": (0.001464, 275.824),
    "concrete": (0.000102, 22.480), "energy": (0.000095, 21.140), "kin8nm": (0.000869, 168.273),
    "naval": (0.001427, 274.547), "protein": (0.009920, 1762.071), "superconductivity": (0.002010, 360.634),
    "wine_red": (0.000185, 36.186), "wine_white": (0.000482, 89.373), "yacht": (0.000046, 11.404),
}  # fmt: skip
"""The table without a label in "Running times and carbon emissions"."""

GENERATIVE_TIMES = {
    "d-v3ae": {"fashion_mnist": (0.003713, 504.190), "cifar10": (0.037554, 2573.566), "svhn": (0.036692, 2585.144)},
    "v3ae": {"fashion_mnist": (0.002750, 407.991), "cifar10": (0.025522, 2022.803), "svhn": (0.025130, 2023.293)},
}
"""With pseudo-inputs and without."""
