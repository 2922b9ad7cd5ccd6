"""scikit-learn's own checks, and life among its tools."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from nescio import DissipativeRegressor, VariationalVarianceRegressor

QUICK = {"max_steps": 80, "learning_rate": 0.02, "hidden": (8,), "mean_hidden": (8,), "random_state": 0}

EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": (
        "which rows are held out is drawn row by row: one row of weight two and two equal rows lead to other divisions "
        "of the table, and with them to another fit"
    ),
    "check_sample_weight_equivalence_on_sparse_data": "sparse tables are refused",
}


@parametrize_with_checks(
    [DissipativeRegressor(**QUICK), VariationalVarianceRegressor(**QUICK)],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_compatible(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3)) * [1.0, 20.0, 0.1] + [5.0, -3.0, 0.0]
    return X, 7.0 + 2.0 * X[:, 0] + rng.normal(size=60)


def test_it_works_in_pipelines_searches_and_cross_validation(table):
    X, y = table
    pipeline = make_pipeline(StandardScaler(), DissipativeRegressor(**QUICK)).fit(X, y)
    mean, std = pipeline.predict(X, return_std=True)
    assert mean.shape == std.shape == (60,)
    assert pipeline.score_samples(X).shape == (60,)
    assert len(cross_val_score(VariationalVarianceRegressor(**QUICK), X, y, cv=3)) == 3
    search = GridSearchCV(DissipativeRegressor(**QUICK), {"pseudo_weight": [0.1, 1.0]}, cv=2).fit(X, y)
    assert search.best_params_["pseudo_weight"] in (0.1, 1.0)


def test_a_clone_has_the_parameters_and_none_of_the_fit(table):
    model = DissipativeRegressor(**QUICK, outside=3.0).fit(*table)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "core_")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_go_in_and_their_names_are_checked_at_predict(table, frame):
    X, y = table
    named = frame({name: X[:, place] for place, name in enumerate("abc")})
    model = DissipativeRegressor(**QUICK).fit(named, y)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(named), DissipativeRegressor(**QUICK).fit(X, y).predict(X))
    other = frame({name: X[:, place] for place, name in enumerate("abd")})
    with pytest.raises(ValueError, match="X lacks 'c', which the model was fitted with"):
        model.predict(other)


def test_a_column_of_text_without_names_is_refused(table):
    X, y = table
    with pytest.raises(ValueError, match=r"not numeric: '1' .*; give all columns names that are text"):
        DissipativeRegressor(**QUICK).fit(pd.DataFrame({0: X[:, 0], 1: ["Oslo"] * 60}), y)


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_a_gap_is_named_with_its_column_and_row(table, value, word):
    X, y = table
    broken = X.copy()
    broken[17, 1] = value
    with pytest.raises(ValueError, match=rf"X contains {word} in column 1 \(1 row, the first is row 17\)"):
        DissipativeRegressor(**QUICK).fit(broken, y)
    y = y.copy()
    y[5] = value
    with pytest.raises(ValueError, match=rf"y contains {word} \(1 row, the first is row 5\)"):
        DissipativeRegressor(**QUICK).fit(X, y)
