"""Neighbour distances against a naive loop, and the places where the quick formula would fail."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from nescio._validation import InputError
from nescio.densities import NeighbourDistance, fit_neighbours


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def naive(reference: torch.Tensor, x: torch.Tensor, k: int) -> np.ndarray:
    """Every distance from differences, the k smallest averaged."""
    table = np.linalg.norm(x.numpy()[:, None] - reference.numpy()[None], axis=-1)
    return np.sort(table, axis=1)[:, :k].mean(axis=1)


@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 12), st.integers(0, 10**6), st.floats(-1e3, 1e3))
@settings(max_examples=60, deadline=None)
def test_distances_agree_with_a_naive_loop(rows, features, k, seed, shift):
    reference, x = normal(rows, features, seed=seed) + shift, 2 * normal(9, features, seed=seed + 1) + shift
    found = NeighbourDistance(reference, k).distance(x)
    assert_close(found, torch.tensor(naive(reference, x, k)), rtol=1e-10, atol=1e-12)


@given(st.integers(2, 40), st.integers(1, 5), st.integers(1, 6), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_leaving_one_out_is_the_distance_to_all_the_others(rows, features, k, seed):
    reference = normal(rows, features, seed=seed) * 3 - 7
    found = NeighbourDistance(reference, k).leave_one_out()
    for i in range(rows):
        others = torch.cat([reference[:i], reference[i + 1 :]])
        assert found[i].item() == pytest.approx(naive(others, reference[i : i + 1], k)[0], rel=1e-10)


@pytest.mark.parametrize("gap", [1e-1, 1e-4, 1e-7, 1e-10, 1e-13])
def test_near_duplicates_keep_their_distance_to_the_last_digits(gap):
    reference = normal(500, 5) * 4
    direction = torch.zeros(5, dtype=torch.float64)
    direction[2] = gap
    x = reference[:50] + direction
    expected = torch.linalg.vector_norm(x - reference[:50], dim=-1)
    found = NeighbourDistance(reference).distance(x)
    assert_close(found, expected, rtol=1e-2 if gap < 1e-12 else 1e-4, atol=0)
    expanded = (
        (x.square().sum(1) + reference[:50].square().sum(1) - 2 * (x * reference[:50]).sum(1)).clamp(min=0).sqrt()
    )
    if gap < 1e-8:  # the wrong twin: the expanded square
        assert ((expanded - expected).abs() > 0.1 * expected).any()


def test_data_far_from_the_origin_are_no_harder():
    reference, x = normal(200, 3), normal(50, 3, seed=1)
    near, far = NeighbourDistance(reference, 3), NeighbourDistance(reference + 1e7, 3)
    assert_close(far.distance(x + 1e7), near.distance(x), rtol=1e-6, atol=1e-7)


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_distance_is_invariant_and_score_turns_with_the_data(seed):
    reference, x = normal(30, 3, seed=seed), normal(10, 3, seed=seed + 1)
    rotation = torch.linalg.qr(normal(3, 3, seed=seed + 2)).Q
    plain, turned = NeighbourDistance(reference, 2), NeighbourDistance(reference @ rotation.T - 4, 2)
    assert_close(turned.distance(x @ rotation.T - 4), plain.distance(x), rtol=1e-10, atol=1e-12)
    assert_close(turned.score(x @ rotation.T - 4), plain.score(x) @ rotation.T, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("k", [1, 3, 50])
@pytest.mark.parametrize("features", [1, 4, 81])
def test_the_score_is_the_gradient_of_log_prob(k, features):
    density = NeighbourDistance(normal(20, features), k)
    x = (normal(15, features, seed=1) * 2).requires_grad_(True)
    (gradient,) = torch.autograd.grad(density.log_prob(x).sum(), x)
    assert_close(density.score(x.detach()), gradient, rtol=1e-10, atol=1e-10)


def test_log_prob_falls_as_the_power_of_the_distance():
    density = NeighbourDistance(torch.zeros(1, 4, dtype=torch.float64))
    x = torch.tensor([[2.0, 0, 0, 0], [0, 4.0, 0, 0]], dtype=torch.float64)
    assert_close(density.log_prob(x), -4 * torch.tensor([2.0, 4.0], dtype=torch.float64).log())


def test_on_a_row_the_distance_is_zero_and_the_score_is_finite():
    reference = normal(12, 3)
    density = NeighbourDistance(reference)
    assert (density.distance(reference) == 0).all()
    assert (density.log_prob(reference) == torch.inf).all()
    assert (density.score(reference) == 0).all()
    assert torch.isfinite(NeighbourDistance(reference, 3).score(reference)).all()


def test_a_single_row_has_no_other_and_more_neighbours_than_rows_use_all():
    one = NeighbourDistance(torch.ones(1, 2), k=4)
    assert one.leave_one_out().tolist() == [torch.inf]
    assert one.distance(torch.tensor([[4.0, 5.0]])).tolist() == [5.0]
    three = NeighbourDistance(torch.tensor([[0.0], [1.0], [5.0]]), k=9)
    assert three.distance(torch.tensor([[0.0]])).item() == pytest.approx(2.0)
    assert three.leave_one_out().tolist() == [3.0, 2.5, 4.5]


def test_repeats_are_dropped_unless_they_are_wanted():
    rows = normal(30, 2)
    X = torch.cat([rows, rows, rows[:5]])
    assert torch.equal(fit_neighbours(X).reference, rows)
    assert (fit_neighbours(X).leave_one_out() > 0).all()
    assert (fit_neighbours(X, distinct=False).leave_one_out() == 0).all()
    assert fit_neighbours(torch.ones(7, 3)).reference.shape == (1, 3)


def test_the_subsample_is_random_rows_of_the_table_and_leaves_global_generators_alone():
    X = torch.arange(1000.0)[:, None]
    state = torch.get_rng_state()
    first, again, other = (fit_neighbours(X, max_rows=50, seed=s).reference for s in (1, 1, 2))
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.shape == (50, 1)
    assert abs(first.mean().item() - 499.5) < 5 * 289 / 50**0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_decades_of_scale_in_81_dimensions(dtype, scale):
    reference, x = (scale * normal(40, 81)).to(dtype), (scale * normal(10, 81, seed=1)).to(dtype)
    density = NeighbourDistance(reference, 2)
    found = density.distance(x)
    assert found.dtype == dtype
    expected = torch.tensor(naive(reference.double(), x.double(), 2)).to(dtype)
    assert_close(found, expected, rtol=1e-6 if dtype == torch.float32 else 1e-10, atol=0)
    assert torch.isfinite(density.score(x)).all()


def test_shapes_and_blocks():
    reference, x = normal(700, 2), normal(1000, 2, seed=1)  # several blocks
    density = NeighbourDistance(reference, 2)
    assert_close(density.distance(x.reshape(10, 100, 2)), density.distance(x).reshape(10, 100))
    assert_close(density.distance(x)[999:], density.distance(x[999:]), rtol=1e-12, atol=0)
    assert density.distance(x[0]).shape == ()
    assert density.distance(x[:0]).shape == (0,)
    assert density.score(x[:0]).shape == (0, 2)
    closest = torch.cdist(x, reference).argmin(dim=1)
    assert torch.equal(density.nearest(x), closest)


def test_bad_arguments_are_named():
    with pytest.raises(InputError, match="reference must be a table"):
        NeighbourDistance(torch.zeros(0, 2))
    with pytest.raises(InputError, match="k must be a whole number of at least 1"):
        NeighbourDistance(torch.zeros(1, 2), 0)
    with pytest.raises(InputError, match="x must have 2 features on its last axis"):
        NeighbourDistance(torch.zeros(1, 2)).distance(torch.zeros(3, 1))
    with pytest.raises(InputError, match="x must be a table"):
        fit_neighbours(torch.zeros(3))
    with pytest.raises(InputError, match="max_rows must be a whole number of at least 1; got 0"):
        fit_neighbours(torch.zeros(3, 2), max_rows=0)


def test_leaving_one_out_skips_the_row_itself_in_every_block():
    reference = normal(900, 2)  # several blocks
    table = torch.cdist(reference, reference, compute_mode="donot_use_mm_for_euclid_dist").fill_diagonal_(torch.inf)
    assert_close(NeighbourDistance(reference).leave_one_out(), table.amin(dim=1), rtol=1e-10, atol=0)
