"""Rejection: every point keeps its distance, by redrawing where that helps and by a push where it does not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from nescio._random import generators
from nescio._validation import InputError
from nescio.densities import fit_neighbours
from nescio.pseudo_inputs import BruteForce, GaussianNoise, MultiScale, Rejected, draw_rows


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def nearest(points: torch.Tensor, placed: torch.Tensor) -> np.ndarray:
    """Distance to the nearest of all points, from differences."""
    flat = placed.reshape(-1, points.shape[1]).double().numpy()
    return np.linalg.norm(flat[:, None] - points.double().numpy()[None], axis=-1).min(axis=1)


@given(
    st.integers(1, 30),
    st.integers(1, 5),
    st.floats(1e-3, 5.0),
    st.integers(0, 4),
    st.integers(0, 10**6),
    st.sampled_from([torch.float32, torch.float64]),
)
@settings(max_examples=60, deadline=None)
def test_every_point_keeps_its_distance(rows, features, scale, rounds, seed, dtype):
    points = normal(rows, features, seed=seed).to(dtype)
    placed = Rejected(GaussianNoise(scale), threshold=0.8, max_rounds=rounds)(points, 20, generators(seed, "p", 2))
    assert torch.isfinite(placed).all()
    assert nearest(points, placed).min() >= 0.8 * (1 - 1e-6)


def test_without_rejection_some_would_be_too_near():
    points = normal(50, 3)
    assert nearest(points, GaussianNoise(0.5)(points, 200, generators(0, "p", 1))).min() < 0.8


def test_the_automatic_threshold_is_a_multiple_of_the_distance_between_rows():
    points = normal(60, 3) * 2
    table = np.linalg.norm(points.numpy()[:, None] - points.numpy()[None], axis=-1)
    np.fill_diagonal(table, np.inf)
    fitted = Rejected(MultiScale(), factor=1.7, quantile=0.9).fitted(torch.cat([points, points]))
    assert fitted.threshold == pytest.approx(1.7 * np.quantile(table.min(axis=1), 0.9), rel=1e-9)


@pytest.mark.parametrize("table", [torch.full((1, 2), 3.0), torch.full((8, 2), 3.0)])
def test_a_single_distinct_row_has_the_factor_for_a_threshold(table):
    rejected = Rejected(GaussianNoise(0.01), factor=1.5, max_rounds=2)
    assert rejected.fitted(table).threshold == 1.5
    assert nearest(table, rejected(table, 12, generators(0, "p", 2))).min() >= 1.5 - 1e-6


def test_points_that_sit_on_the_rows_are_pushed_off_in_different_directions():
    points = normal(10, 3)
    placed = Rejected(draw_rows, threshold=0.6, max_rounds=1)(points, 30, generators(0, "p", 1))
    assert nearest(points, placed).min() >= 0.6
    assert len(torch.unique(placed[0], dim=0)) == 30


def test_a_push_goes_no_farther_than_it_must():
    row = torch.zeros(1, 4, dtype=torch.float64)
    placed = Rejected(GaussianNoise(0.01), threshold=2.0, max_rounds=0)(row, 50, generators(0, "p", 1))
    length = torch.linalg.vector_norm(placed, dim=-1)
    assert_close(length, torch.full_like(length, 2.5))
    before = GaussianNoise(0.01)(row, 50, generators(0, "p", 1))
    assert_close(placed / length[..., None], before / torch.linalg.vector_norm(before, dim=-1, keepdim=True))


def test_a_ring_of_rows_is_crossed():
    angle = torch.linspace(0, 2 * torch.pi, 101, dtype=torch.float64)[:-1]
    ring = torch.stack([angle.cos(), angle.sin()], dim=1)
    centre_and_ring = torch.cat([torch.zeros(1, 2, dtype=torch.float64), ring])
    placed = Rejected(GaussianNoise(0.01), threshold=0.7, max_rounds=0)(centre_and_ring, 40, generators(0, "p", 1))
    assert nearest(centre_and_ring, placed).min() >= 0.7
    assert torch.linalg.vector_norm(placed, dim=-1).min() > 1.69  # inside the ring there is no such place


def test_accepted_points_are_those_of_the_inner_placement():
    points = normal(40, 3)
    plain = MultiScale()(points, 300, generators(0, "p", 2))
    rejected = Rejected(MultiScale(), threshold=1.0)
    kept = fit_neighbours(points).distance(plain) >= 1.0
    assert 0 < kept.sum() < kept.numel()
    assert torch.equal(rejected(points, 300, generators(0, "p", 2))[kept], plain[kept])


def test_redrawn_points_follow_the_law_of_the_placement_beyond_the_threshold():
    row = torch.zeros(1, 1, dtype=torch.float64)
    placed = Rejected(GaussianNoise(1.0), threshold=0.5, max_rounds=50)(row, 20_000, generators(0, "p", 1))[0, :, 0]
    beyond = torch.distributions.Normal(0.0, 1.0).cdf(torch.tensor(-0.5)).item()
    expected = float(np.exp(-0.125) / np.sqrt(2 * np.pi) / beyond)  # E|x| of a normal beyond 0.5
    assert abs(placed.abs().mean().item() - expected) < 5 * placed.abs().std().item() / 20_000**0.5
    assert abs(placed.mean().item()) < 5 * placed.std().item() / 20_000**0.5


def test_more_neighbours_and_a_subsample_are_respected():
    points = normal(300, 2)
    rejected = Rejected(MultiScale(), k=4, max_rows=100).fitted(points)
    assert rejected.neighbours is not None
    assert rejected.neighbours.reference.shape == (100, 2)
    placed = rejected(points, 200, generators(0, "p", 1))
    assert rejected.neighbours.distance(placed).min().item() >= rejected.threshold


def test_a_placement_that_returns_another_shape_is_told():
    with pytest.raises(InputError, match=r"must return the shape \(models, count, features\) = \(1, 9, 1\)"):
        Rejected(BruteForce())(torch.zeros(3, 1), 9, generators(0, "p", 1))


def test_bad_arguments_are_named():
    with pytest.raises(InputError, match="threshold must be 'auto' or a positive number; got 'far'"):
        Rejected(MultiScale(), threshold="far")
    with pytest.raises(InputError, match="threshold must be a finite number that exceeds 0"):
        Rejected(MultiScale(), threshold=0.0)
    with pytest.raises(InputError, match="quantile must lie"):
        Rejected(MultiScale(), quantile=1.0)
