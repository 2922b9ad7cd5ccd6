"""Noise placements: the displacement has the law that is promised."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from nescio._random import generators
from nescio._validation import InputError
from nescio.pseudo_inputs import FarNoise, GaussianNoise, MultiScale

ROW = torch.tensor([[1.5, -4.0, 0.2]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("placement", "scale"), [(GaussianNoise(), 1.0), (GaussianNoise(0.3), 0.3), (FarNoise(), 15.0)]
)
def test_displacements_are_normal_with_the_given_scale(placement, scale):
    moved = (placement(ROW, 5000, generators(0, "p", 1))[0] - ROW).numpy()
    assert stats.kstest((moved / scale).ravel(), "norm").pvalue > 1e-4
    correlation = np.corrcoef(moved.T)[np.triu_indices(3, 1)]
    assert np.all(np.abs(correlation) < 5 / np.sqrt(5000))
    assert stats.kstest((moved / scale**2).ravel() if scale != 1 else 2 * moved.ravel(), "norm").pvalue < 1e-10


def test_one_scale_per_point_is_log_uniform_between_the_bounds():
    features = 4000  # so many that the spread of one point tells its scale
    row = torch.zeros(1, features, dtype=torch.float64)
    moved = MultiScale(0.5, 8.0)(row, 1000, generators(3, "p", 1))[0]
    place = (moved.square().mean(dim=1).sqrt() / 0.5).log() / np.log(16.0)
    assert stats.kstest(place.numpy(), "uniform").pvalue > 1e-3
    uniform_scale = 0.5 + 7.5 * np.random.default_rng(0).random(1000)  # the wrong twin: uniform, not log-uniform
    assert stats.kstest(np.log(uniform_scale / 0.5) / np.log(16.0), "uniform").pvalue < 1e-10


def test_a_share_of_the_points_is_moved_as_far_along_one_input():
    count, share = 20_000, 0.3
    plain = (MultiScale()(ROW, count, generators(5, "p", 1))[0] - ROW).numpy()
    moved = (MultiScale(one_input=share)(ROW, count, generators(5, "p", 1))[0] - ROW).numpy()
    along = (moved != 0.0).sum(1) == 1
    assert stats.binomtest(int(along.sum()), count, share).pvalue > 1e-4
    np.testing.assert_array_equal(moved[~along], plain[~along])
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), np.linalg.norm(plain, axis=1), rtol=1e-12)
    which = np.abs(moved[along]).argmax(1)
    assert stats.chisquare(np.bincount(which, minlength=3)).pvalue > 1e-4
    up = moved[along, which] > 0.0
    assert stats.binomtest(int(up.sum()), len(up)).pvalue > 1e-4
    everything = MultiScale(one_input=1.0)(ROW, 50, generators(5, "p", 1))[0] - ROW
    assert ((everything != 0.0).sum(1) == 1).all()


def test_float32_and_float64_meet_the_same_points():
    points = torch.randn(20, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for placement in (GaussianNoise(), MultiScale(), MultiScale(one_input=0.5)):
        wide = placement(points, 50, generators(0, "p", 2))
        narrow = placement(points.float(), 50, generators(0, "p", 2))
        assert (wide - narrow).abs().max() < 1e-4


def test_bad_scales_are_named():
    with pytest.raises(InputError, match="scale must be a finite number that exceeds 0; got 0"):
        GaussianNoise(0.0)
    with pytest.raises(InputError, match="scale must be"):
        FarNoise(float("inf"))
    with pytest.raises(InputError, match=r"largest must not be below smallest \(2\); got 1"):
        MultiScale(2.0, 1.0)
    with pytest.raises(InputError, match=r"one_input must be a share between 0 and 1; got 1\.5"):
        MultiScale(one_input=1.5)
