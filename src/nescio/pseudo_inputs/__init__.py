"""Where the data are not: placements, callables ``(points, count, generators) -> (M, count, D)``."""

from __future__ import annotations

from nescio.pseudo_inputs.base import Placement, draw_normal, draw_rows, draw_uniform, fit_placement
from nescio.pseudo_inputs.codes import CodeDescent
from nescio.pseudo_inputs.descent import MixtureDescent
from nescio.pseudo_inputs.level_set import LevelSet
from nescio.pseudo_inputs.noise import FarNoise, GaussianNoise, MultiScale
from nescio.pseudo_inputs.rejection import Rejected
from nescio.pseudo_inputs.toy import BruteForce, UniformIntervals

__all__ = [
    "BruteForce",
    "CodeDescent",
    "FarNoise",
    "GaussianNoise",
    "LevelSet",
    "MixtureDescent",
    "MultiScale",
    "Placement",
    "Rejected",
    "UniformIntervals",
    "draw_normal",
    "draw_rows",
    "draw_uniform",
    "fit_placement",
]
