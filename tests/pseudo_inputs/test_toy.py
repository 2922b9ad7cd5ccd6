"""The placements of the toy figures."""

from __future__ import annotations

import pytest
import torch
from scipy import stats

from nescio._random import generators
from nescio._validation import InputError
from nescio.pseudo_inputs import BruteForce, UniformIntervals

POINTS = torch.linspace(0, 10, 30, dtype=torch.float64)[:, None]


def test_each_interval_has_its_equal_share_uniformly():
    placed = UniformIntervals()(POINTS, 2000, generators(0, "p", 2))
    left, right = placed[placed < 5], placed[placed > 5]
    assert len(left) == len(right) == 2000
    assert stats.kstest(left.numpy(), stats.uniform(-3, 3.5).cdf).pvalue > 1e-4
    assert stats.kstest(right.numpy(), stats.uniform(10.2, 2.8).cdf).pvalue > 1e-4


def test_an_interval_is_a_box_in_several_dimensions():
    placed = UniformIntervals(((-2.0, -1.0), (4.0, 5.0), (8.0, 9.0)))(torch.zeros(3, 2), 301, generators(0, "p", 1))[0]
    shares = [int(((placed >= low) & (placed <= low + 1)).all(dim=1).sum()) for low in (-2.0, 4.0, 8.0)]
    assert sorted(shares) == [100, 100, 101]


def test_brute_force_returns_the_grid_and_picks_every_second_of_the_hardest():
    placement = BruteForce()
    pool = placement(POINTS, 7, generators(0, "p", 2))
    assert pool.shape == (2, 4000, 1)
    assert pool[0, 0, 0] == -25
    assert pool[0, -1, 0] == 35
    kl = torch.rand(2, 4000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    chosen = placement.select(kl)
    assert chosen.shape == (2, 500)
    assert chosen.dtype == torch.long
    for model in range(2):
        ranked = sorted(range(4000), key=lambda i: -kl[model, i].item())
        assert chosen[model].tolist() == ranked[:1000:2]


def test_a_stride_that_does_not_divide_leaves_whole_strides():
    placement = BruteForce(grid=20, hardest=10, stride=3)
    assert placement.select(torch.arange(20.0)[None]).tolist() == [[19, 16, 13]]


def test_bad_arguments_are_named():
    with pytest.raises(InputError, match="intervals must be pairs"):
        UniformIntervals(((1.0, 1.0),))
    with pytest.raises(InputError, match="single input; got points with 2 features"):
        BruteForce()(torch.zeros(3, 2), 5, generators(0, "p", 1))
    with pytest.raises(InputError, match=r"kl must have shape \(M, 4000\)"):
        BruteForce().select(torch.zeros(2, 3))
    with pytest.raises(InputError, match="hardest must lie between stride and grid"):
        BruteForce(grid=10)
