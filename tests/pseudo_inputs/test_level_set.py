"""Level sets: the density reached is the one asked for, on known shapes."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from nescio._random import generators
from nescio._validation import InputError
from nescio.densities import GaussianKDE, GaussianMixture, NeighbourDistance
from nescio.pseudo_inputs import LevelSet


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_rim_of_one_gaussian_is_a_sphere():
    centre = torch.tensor([[2.0, -1.0, 0.5]], dtype=torch.float64)
    density = GaussianMixture(torch.ones(1).double(), centre, torch.full((1,), 0.5).double(), "spherical")
    radius = 3.0
    level = float(density.log_prob(centre + torch.tensor([0.0, radius, 0.0])))
    placed = LevelSet(density=density, level=level)(centre, 50, generators(0, "p", 2))
    assert_close(
        torch.linalg.vector_norm(placed - centre, dim=-1), torch.full((2, 50), radius).double(), rtol=1e-6, atol=0
    )
    mean = (placed - centre).mean(dim=(0, 1))
    assert (mean.abs() < 5 * radius / 3**0.5 / 10).all()  # directions are uniform, so they cancel


@pytest.mark.parametrize("quantile", [0.01, 0.1, 0.5])
def test_points_lie_just_below_the_quantile_of_the_training_density(quantile):
    points = normal(200, 3) * torch.tensor([1.0, 0.3, 2.0], dtype=torch.float64)
    density = GaussianKDE(points, 0.4)
    placed = LevelSet(density=density, quantile=quantile)(points, 100, generators(0, "p", 1))
    level = torch.quantile(density.log_prob(points), quantile)
    reached = density.log_prob(placed)
    assert (reached < level).all()
    assert_close(reached, level.expand(1, 100), rtol=0, atol=1e-4)


def test_a_margin_lowers_the_level_by_so_many_nats():
    points = normal(100, 2)
    density = GaussianKDE(points, 0.5)
    plain, lower = (LevelSet(density=density, margin=m)(points, 60, generators(0, "p", 1)) for m in (0.0, 3.0))
    assert_close(density.log_prob(lower).mean(), density.log_prob(plain).mean() - 3.0, rtol=0, atol=1e-3)


def test_the_rim_by_neighbours_keeps_the_distance_of_the_loneliest_rows():
    points = normal(150, 4)
    placed = LevelSet(density="neighbours", quantile=0.05)(points, 80, generators(0, "p", 1))
    neighbours = NeighbourDistance(points)
    # A low quantile of the density is a high one of the distance, taken in the logarithm.
    threshold = torch.quantile(-4 * neighbours.leave_one_out().log(), 0.05).div(-4).exp()
    assert_close(neighbours.distance(placed), threshold.expand(1, 80), rtol=1e-5, atol=0)
    assert (neighbours.distance(placed) >= threshold).all()


def test_a_single_row_has_a_rim_at_distance_one_by_neighbours():
    row = torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    placed = LevelSet(density="neighbours")(row.repeat(5, 1), 20, generators(0, "p", 1))
    assert_close(torch.linalg.vector_norm(placed - row, dim=-1), torch.ones(1, 20).double(), rtol=1e-6, atol=0)


def test_the_walk_does_not_depend_on_the_first_stride_where_the_density_only_falls():
    centre = torch.zeros(1, 2, dtype=torch.float64)
    density = GaussianMixture(torch.ones(1).double(), centre, torch.ones(1).double(), "spherical")
    short, long = (
        LevelSet(density=density, level=-9.0, first_stride=s, bisections=40)(centre, 10, generators(0, "p", 1))
        for s in (1e-3, 50.0)
    )
    assert_close(short, long, rtol=1e-9, atol=1e-9)


def test_bad_arguments_are_named():
    with pytest.raises(InputError, match="density must be 'mixture', 'neighbours' or a fitted density; got 'kde'"):
        LevelSet(density="kde")
    with pytest.raises(InputError, match="quantile must lie strictly between 0 and 1"):
        LevelSet(quantile=0.0)
    with pytest.raises(InputError, match="margin must be"):
        LevelSet(margin=-1.0)
