"""Where the data are not: placements, callables ``(points, count, generators) -> (M, count, D)``."""

from __future__ import annotations

from nescio.pseudo_inputs.base import Placement, draw_normal, draw_rows, draw_uniform, fit_placement
from nescio.pseudo_inputs.noise import FarNoise, GaussianNoise, MultiScale
from nescio.pseudo_inputs.rejection import Rejected

__all__ = [
    "FarNoise",
    "GaussianNoise",
    "MultiScale",
    "Placement",
    "Rejected",
    "draw_normal",
    "draw_rows",
    "draw_uniform",
    "fit_placement",
]
