"""nescio: regression and generative models that know what they do not know."""

from __future__ import annotations

__version__ = "0.1.0"
