"""The promise, with defaults, on the paper's toy problem: right inside, wide outside, at the level asked for."""

from __future__ import annotations

import numpy as np
import pytest

from nescio import DissipativeRegressor, VariationalVarianceRegressor
from nescio.datasets.toy import toy_regression, toy_std
from nescio.report.statistics import toy_statistics

GRID = np.linspace(-25.0, 35.0, 601)


@pytest.mark.slow
def test_d_vv_meets_all_three_targets_and_vv_knows_nothing_of_the_outside():
    data = toy_regression(seed=0)
    models = [kind(random_state=0).fit(data.x, data.y) for kind in (DissipativeRegressor, VariationalVarianceRegressor)]
    level = float(models[0].outside_std_[0])
    assert data.y.std() < level < 1.42 * data.y.std()
    stds = [model.predict_dist(GRID[:, None]).std for model in models]
    ours, theirs = (toy_statistics(GRID, std, toy_std(GRID), level) for std in stds)
    assert ours.rms_log_met
    assert ours.ratio_met
    assert ours.deviation_met
    assert not theirs.ratio_met
    assert not theirs.deviation_met
