"""The calibration of intervals as arrays and a plain description, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from nescio._fields import Fields, Tensors
from nescio._validation import InputError
from nescio.calibration import Conformal

__all__ = ["conformal_from_state", "conformal_to_state"]

GROUPS = ("inside", "edge")


def conformal_to_state(conformal: Conformal | None) -> tuple[dict[str, np.ndarray], dict[str, Any] | None]:
    """Arrays and description; nothing where intervals were not calibrated."""
    if conformal is None:
        return {}, None
    groups = {name: getattr(conformal, name) for name in GROUPS}
    return {f"conformal_{name}": each for name, each in groups.items()}, {name: len(groups[name]) for name in groups}


def conformal_from_state(entry: Fields | None, tensors: Tensors, outputs: int) -> Conformal | None:
    """The calibration that a file describes."""
    if entry is None:
        return None
    groups = {}
    for name in GROUPS:
        scores = tensors.take(f"conformal_{name}", (entry.whole(name, least=0), outputs), np.float64)
        if (np.diff(scores, axis=0) < 0).any() or not ((scores >= 0) & (scores <= 1)).all():
            raise InputError(f"the tensor 'conformal_{name}' must hold ascending probabilities; the file is damaged.")
        groups[name] = scores
    entry.done()
    return Conformal(**groups)
