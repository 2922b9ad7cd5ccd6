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


def test_float32_and_float64_meet_the_same_points():
    points = torch.randn(20, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for placement in (GaussianNoise(), MultiScale()):
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
