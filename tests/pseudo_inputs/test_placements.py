"""Laws that every placement obeys, our own and a user's."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from nescio._random import generators
from nescio._validation import InputError
from nescio.densities import fit_neighbours
from nescio.pseudo_inputs import (
    FarNoise,
    GaussianNoise,
    LevelSet,
    MixtureDescent,
    MultiScale,
    Rejected,
    UniformIntervals,
    draw_rows,
    fit_placement,
)


def half_way(points, count, generators):
    """A user's own placement: the middle between two random rows."""
    return 0.5 * (draw_rows(points, count, generators) + draw_rows(points, count, generators))


PLACEMENTS = {
    "noise": GaussianNoise(0.7),
    "far": FarNoise(),
    "multi-scale": MultiScale(),
    "descent": MixtureDescent(n_components=6),
    "descent as run": MixtureDescent.as_run(),
    "level set": LevelSet(n_components=6),
    "level set of distances": LevelSet(density="neighbours", k=2),
    "intervals": UniformIntervals(),
    "user": half_way,
    "rejected noise": Rejected(GaussianNoise(0.7), max_rounds=2),
    "rejected descent": Rejected(MixtureDescent.as_run()),
    "rejected level set": Rejected(LevelSet(n_components=6), max_rounds=3),
    "rejected user": Rejected(half_way, max_rounds=3),
}
each_placement = pytest.mark.parametrize("placement", PLACEMENTS.values(), ids=PLACEMENTS.keys())


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


POINTS = normal(80, 3) * torch.tensor([1.0, 0.4, 2.0], dtype=torch.float64) + 0.3


@each_placement
def test_shape_dtype_and_finiteness(placement):
    for dtype in (torch.float32, torch.float64):
        placed = placement(POINTS.to(dtype), 37, generators(0, "p", 2))
        assert placed.shape == (2, 37, 3)
        assert placed.dtype == dtype
        assert torch.isfinite(placed).all()


@each_placement
def test_the_same_seed_gives_the_same_points_and_the_global_generator_is_left_alone(placement):
    state = torch.get_rng_state()
    first = placement(POINTS, 30, generators(5, "p", 2))
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(first, placement(POINTS, 30, generators(5, "p", 2)))
    assert not torch.equal(first, placement(POINTS, 30, generators(6, "p", 2)))
    assert not torch.equal(first[0], first[1])


@each_placement
def test_a_model_does_not_depend_on_its_stack_mates(placement):
    together = placement(POINTS, 50, generators(1, "p", 4))
    for model in range(4):
        assert_close(placement(POINTS, 50, generators(1, "p", [model]))[0], together[model], rtol=1e-12, atol=1e-12)
    assert_close(placement(POINTS, 50, generators(1, "p", [3, 0])), together[[3, 0]], rtol=1e-12, atol=1e-12)


@each_placement
def test_a_fitted_placement_gives_the_same_points(placement):
    fitted = fit_placement(placement, POINTS)
    assert_close(fitted(POINTS, 20, generators(2, "p", 2)), placement(POINTS, 20, generators(2, "p", 2)))


@each_placement
def test_degenerate_tables_are_legal(placement):
    row = normal(1, 3, seed=4)
    constant = POINTS.clone()
    constant[:, 1] = 0.1
    for table in (row, row.repeat(9, 1), constant, POINTS[:2].repeat(6, 1), normal(25, 81), normal(30, 1)):
        placed = placement(table, 11, generators(0, "p", 2))
        assert placed.shape == (2, 11, table.shape[1])
        assert torch.isfinite(placed).all()


@each_placement
def test_the_points_are_left_as_they_were(placement):
    before = POINTS.clone()
    placement(POINTS, 20, generators(0, "p", 1))
    assert torch.equal(before, POINTS)


@pytest.mark.parametrize(
    "placement", [GaussianNoise(0.7), MultiScale(), MixtureDescent(n_components=5), MixtureDescent.as_run(), LevelSet()]
)
def test_translation_moves_the_pseudo_inputs_with_the_data(placement):
    shift = torch.tensor([3.0, -1.5, 20.0], dtype=torch.float64)
    plain = placement(POINTS, 40, generators(0, "p", 2))
    moved = placement(POINTS + shift, 40, generators(0, "p", 2))
    assert_close(moved, plain + shift, rtol=0, atol=1e-4 if isinstance(placement, LevelSet) else 1e-6)


@pytest.mark.parametrize(
    "placement", [GaussianNoise(1.0), MultiScale(), LevelSet(density="neighbours"), Rejected(MultiScale())]
)
def test_rotation_does_not_change_how_far_from_the_data_points_fall(placement):
    rotation = torch.linalg.qr(normal(3, 3, seed=7)).Q
    turned = POINTS @ rotation.T
    plain = fit_neighbours(POINTS).distance(placement(POINTS, 4000, generators(0, "p", 1)))[0]
    other = fit_neighbours(turned).distance(placement(turned, 4000, generators(1, "p", 1)))[0]
    spread = (plain.var() / 4000 + other.var() / 4000).sqrt()
    assert (plain.mean() - other.mean()).abs() < 5 * spread + 1e-6


@pytest.mark.parametrize("placement", [p for p in PLACEMENTS.values() if p is not half_way])
def test_bad_requests_are_named(placement):
    with pytest.raises(InputError, match="points must be a floating-point table"):
        placement(torch.zeros(3), 2, generators(0, "p", 1))
    with pytest.raises(InputError, match="points must be a floating-point table"):
        placement(torch.zeros(0, 3), 2, generators(0, "p", 1))
    with pytest.raises(InputError, match="count must be a whole number of at least 1"):
        placement(POINTS, 0, generators(0, "p", 1))
    with pytest.raises(InputError, match="one generator per model"):
        placement(POINTS, 5, [])


def test_rows_are_drawn_evenly():
    rows = torch.arange(7.0)[:, None]
    drawn = draw_rows(rows, 24, generators(0, "p", 3))
    assert drawn.shape == (3, 24, 1)
    for model in drawn:
        times = torch.bincount(model[:, 0].long(), minlength=7)
        assert times.min() == 3
        assert times.max() == 4
    few = draw_rows(rows, 5, generators(0, "p", 1))[0, :, 0]
    assert len(few.unique()) == 5
