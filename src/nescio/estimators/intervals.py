"""Intervals that cover, from a distribution and its calibration."""

from __future__ import annotations

import warnings

import numpy as np
import torch

from nescio.calibration import EDGE, INSIDE, OUTSIDE, UNKNOWN, Conformal
from nescio.estimators.prediction import Prediction

__all__ = ["calibrated_interval", "interval_kinds"]

FITTED, BEYOND = "fitted", "outside level"


def calibrated_interval(
    prediction: Prediction, conformal: Conformal, words: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends for rows with the verdicts ``words (N,)``; a warning where a level has too few rows.

    The interval is then the distribution's own or as wide as the widest that was needed, whichever is wider.
    """
    if not conformal.enough(INSIDE, level):
        warnings.warn(
            f"{len(conformal.inside)} rows to calibrate with are too few for a level of {level}: intervals are the "
            "distribution's own, or as wide as the widest that was needed.",
            UserWarning,
            stacklevel=3,
        )
    return prediction.between(0.5 * torch.as_tensor(conformal.tails(words, level)))


def interval_kinds(conformal: Conformal | None, words: np.ndarray, level: float) -> np.ndarray:
    """What the intervals of rows with the verdicts ``words (N,)`` rest on, ``(N,)``."""
    if conformal is None:
        return np.full(len(words), FITTED)
    inside, edge = (INSIDE, EDGE) if conformal.enough(INSIDE, level) else (FITTED, FITTED)
    kinds = {INSIDE: inside, EDGE: edge, OUTSIDE: BEYOND, UNKNOWN: FITTED}
    return np.array([kinds[word] for word in words.tolist()], dtype=str)
