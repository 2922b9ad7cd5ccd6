"""Schedules by the number of inputs: up to three, later mean weights and a posterior in small steps."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from nescio import VariationalVarianceRegressor
from nescio.datasets.toy import toy_mean, toy_regression, toy_std
from nescio.estimators import schedules
from nescio.estimators.schedules import mean_schedule, precision_schedule
from nescio.training import Schedule

BASE = Schedule(1500, 256, 1e-2, check_every=50)


def test_with_four_inputs_only_tolerance_length_and_patience_are_set():
    assert asdict(mean_schedule(BASE, 4)) == asdict(BASE) | {"tolerance": 0.03}
    assert asdict(precision_schedule(BASE, 4200, 4)) == asdict(BASE) | {"max_steps": 4200, "patience": 600}


@pytest.mark.parametrize("inputs", [1, 3])
def test_up_to_three_inputs_means_keep_later_weights_and_posteriors_take_small_steps(inputs):
    assert asdict(mean_schedule(BASE, inputs)) == asdict(BASE) | {"tolerance": 0.1}
    found = asdict(precision_schedule(BASE, 4200, inputs))
    assert found == asdict(BASE) | {"max_steps": 4200, "patience": 600, "learning_rate": pytest.approx(3e-3 / 4.2)}
    assert precision_schedule(BASE, 300, inputs).learning_rate == 1e-2
    assert precision_schedule(BASE, 100, inputs).learning_rate == 1e-2


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
