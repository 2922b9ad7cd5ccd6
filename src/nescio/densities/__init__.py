"""Where the data are: densities of the inputs with their gradients, and the distance to the nearest rows."""

from __future__ import annotations

from nescio.densities.neighbours import NeighbourDistance, fit_neighbours

__all__ = ["NeighbourDistance", "fit_neighbours"]
