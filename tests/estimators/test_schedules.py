"""Schedules and sizes: up to three inputs, later mean weights and a posterior in small steps; else by the table."""

from __future__ import annotations

import io
from dataclasses import asdict

import numpy as np
import pytest
import torch

from nescio import DissipativeRegressor, VariationalVarianceRegressor
from nescio.datasets.toy import toy_mean, toy_regression, toy_std
from nescio.estimators import precision, schedules, split
from nescio.estimators.schedules import mean_schedule, posterior_share, precision_schedule, warm_up_schedule
from nescio.estimators.sizes import count_members, first_to_see
from nescio.pseudo_inputs import BruteForce
from nescio.training import Sampler, Schedule

BASE = Schedule(1500, 256, 1e-2, check_every=50)


def test_with_four_inputs_means_take_twice_the_rate_and_posteriors_have_length_and_patience_set():
    assert asdict(mean_schedule(BASE, 4)) == asdict(BASE) | {"tolerance": 0.03, "learning_rate": 2e-2}
    assert asdict(precision_schedule(BASE, 4200, 1000, 4)) == asdict(BASE) | {"max_steps": 4200, "patience": 600}
    assert asdict(precision_schedule(BASE, 900, 999, 4)) == asdict(BASE) | {"max_steps": 900, "patience": 300}


@pytest.mark.parametrize("inputs", [1, 3])
def test_up_to_three_inputs_means_keep_later_weights_and_posteriors_take_small_steps(inputs):
    assert asdict(mean_schedule(BASE, inputs)) == asdict(BASE) | {"tolerance": 0.1}
    found = asdict(precision_schedule(BASE, 4200, 500, inputs))
    assert found == asdict(BASE) | {"max_steps": 4200, "patience": 600, "learning_rate": pytest.approx(3e-3 / 4.2)}
    assert precision_schedule(BASE, 300, 500, inputs).learning_rate == 1e-2
    assert precision_schedule(BASE, 100, 500, inputs).learning_rate == 1e-2


@pytest.mark.parametrize(
    ("rows", "variance", "share"),
    [
        (2_000, [np.exp(-2.0)], 0.3),
        (100, [np.exp(-2.0)], 0.3),  # no shorter on a smaller table
        (8_000, [np.exp(-2.0)], 0.6),
        (8_000, [np.exp(-8.0)], 1.2),  # and by the precision, from four nats on
        (8_000, [np.exp(-6.0), np.exp(-10.0)], 1.2),
        (2_000, [np.exp(-4.0)], 0.3),
        (45_000, [np.exp(-8.0)], 1.4),
    ],
)
def test_a_posterior_is_as_long_as_rows_and_precision_make_it(rows, variance, share):
    assert posterior_share(rows, 4, torch.tensor(variance)) == pytest.approx(share)
    assert posterior_share(rows, 3, torch.tensor(variance)) == 1.4


@pytest.mark.parametrize(
    ("rows", "inputs", "members"), [(999, 4, 10), (999, 3, 5), (1_000, 4, 5), (9_999, 4, 5), (10_000, 1, 2)]
)
def test_small_tables_have_more_posteriors_and_large_ones_two(rows, inputs, members):
    assert count_members(VariationalVarianceRegressor(), rows, inputs) == members
    assert count_members(VariationalVarianceRegressor(n_members=3), rows, inputs) == 3


@pytest.mark.parametrize(("rows", "inputs", "seeing"), [(999, 4, 5), (1_000, 4, 2), (9_999, 9, 2), (10_000, 4, 1)])
def test_at_most_half_of_the_members_see_the_distance(rows, inputs, seeing):
    members = count_members(DissipativeRegressor(), rows, inputs)
    assert len(range(members)[first_to_see(members, rows, inputs) :: 2]) == seeing
    assert first_to_see(1, rows, inputs) == 0


@pytest.mark.parametrize(("inputs", "seen"), [(3, 8), (4, 4)])
def test_a_step_sees_half_a_batch_of_pseudo_inputs_with_more_than_three_inputs(monkeypatch, inputs, seen):
    asked = []

    def sampler(*arguments, **named):
        asked.append(named["pseudo_batch_size"])
        return Sampler(*arguments, **named)

    monkeypatch.setattr(precision, "Sampler", sampler)
    X = np.random.default_rng(0).normal(size=(60, inputs))
    settings = {"max_steps": 4, "n_members": 1, "n_folds": 2, "batch_size": 8, "n_pseudo_inputs": 50, "random_state": 0}
    DissipativeRegressor(**settings).fit(X, X[:, 0])
    assert asked[-1] == seen
    if inputs == 3:
        DissipativeRegressor(**settings, placement=BruteForce()).fit(X[:, :1], X[:, 0])
        assert asked[-1] > 8  # it picks from the whole pool


@pytest.mark.parametrize(("inputs", "batch"), [(4, 128), (3, 256)])
def test_a_warm_up_has_no_more_rows_than_pseudo_inputs(inputs, batch):
    found = warm_up_schedule(Schedule(1500, 256, 1e-2), 600, inputs)
    assert (found.max_steps, found.batch_size, found.check_every) == (600, batch, 50)


@pytest.mark.parametrize(
    ("settings", "phases"),
    [
        ({}, (1, 1 / 3, 0.4, 0.6)),
        ({"outside_prior": "inside"}, (1, 1 / 3, 0.6)),
        ({"outside_prior": "inside", "shape": 2.0, "kl_weight": 0.2}, (1, 1 / 3, 0.6)),
    ],
)
def test_the_bar_is_full_at_the_end_of_a_fit(settings, phases, monkeypatch):
    bars = []

    class Bar(split.tqdm):
        def __init__(self, *args, **named):
            super().__init__(*args, **named | {"disable": False, "file": io.StringIO()})
            bars.append(self)

    monkeypatch.setattr(split, "tqdm", Bar)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    DissipativeRegressor(max_steps=40, n_members=1, n_folds=2, random_state=0, **settings).fit(X, X[:, 0])
    assert bars[0].n == bars[0].total == sum(round(40 * share) for share in phases)


@pytest.mark.slow
def test_the_mean_is_right_at_the_quiet_rim_where_an_early_stop_leaves_it_wrong(monkeypatch):
    data = toy_regression(seed=0)
    rim = np.linspace(0.0, 1.0, 11)

    def error(tolerance):
        monkeypatch.setattr(schedules, "WIDE_TOLERANCE", tolerance)
        model = VariationalVarianceRegressor(shape=2.0, kl_weight=0.2, precision_steps=0.01, n_folds=10, random_state=0)
        mean = model.fit(data.x, data.y).predict(rim[:, None])
        return float(np.sqrt(np.mean(np.square((mean - toy_mean(rim)) / toy_std(rim)))))

    assert error(schedules.WIDE_TOLERANCE) < 0.75 * error(schedules.TOLERANCE)
