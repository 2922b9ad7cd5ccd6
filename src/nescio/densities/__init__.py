"""Where the data are: densities of the inputs with their gradients, and the distance to the nearest rows."""

from __future__ import annotations

from nescio.densities.aggregate_posterior import AggregatePosterior
from nescio.densities.base import Density
from nescio.densities.gaussian_mixture import GaussianMixture, fit_gaussian_mixture
from nescio.densities.kde import GaussianKDE, fit_kde
from nescio.densities.neighbours import NeighbourDistance, distinct_rows, fit_neighbours, subsample_rows

__all__ = [
    "AggregatePosterior",
    "Density",
    "GaussianKDE",
    "GaussianMixture",
    "NeighbourDistance",
    "distinct_rows",
    "fit_gaussian_mixture",
    "fit_kde",
    "fit_neighbours",
    "subsample_rows",
]
