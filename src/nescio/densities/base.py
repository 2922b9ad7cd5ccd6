"""What a density must offer to the placements that walk on it."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

__all__ = ["Density"]


class Density(Protocol):
    """A log-density over ``(*, D)`` with its gradient; it need not be normalised, so a user's own fits in too."""

    def log_prob(self, value: Tensor, /) -> Tensor:
        """log p(x) up to a constant, ``(*)``."""
        ...

    def score(self, x: Tensor, /) -> Tensor:
        """The gradient of ``log_prob``, ``(*, D)``."""
        ...
