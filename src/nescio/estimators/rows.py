"""Rows to predict: as they were given, as numbers, and in the units that a model works in."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

__all__ = ["Rows"]


class Rows(NamedTuple):
    """N rows that were read and checked, in the three forms that parts of a model ask for."""

    given: Any
    """As the user gave them; None for points that were made up in the space of ``encoded``."""
    encoded: np.ndarray
    """What the column encoder makes of them, float64 ``(N, D)``; for an array the same numbers."""
    standardised: np.ndarray
    """``(encoded - x_shift_) / x_scale_``, clipped, float64 ``(N, D)``."""
    reasons: list[str | None] | None = None
    """Why a row counts as outside whatever its numbers are, per row; None where there is no such row."""
    p: np.ndarray | None = None
    """The support of each row, ``(N,)``, where it is known already: it takes longer than all the rest."""

    @property
    def x(self) -> Tensor:
        """The standardised rows as the networks take them, float32 ``(N, D)``."""
        return torch.as_tensor(self.standardised, dtype=torch.float32)

    @property
    def strange(self) -> np.ndarray | None:
        """Whether a row counts as outside whatever its numbers are, ``(N,)``; None where there is no such row."""
        return None if self.reasons is None else np.array([reason is not None for reason in self.reasons])
