"""A mean that is not ours: its predictions are its own, its errors are taken at rows that it did not see."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import nescio
from nescio import DissipativeRegressor, VariationalVarianceRegressor
from nescio._validation import InputError
from nescio.estimators.foreign_means import fit_foreign
from nescio.estimators.grading import prior_from_blocks
from nescio.estimators.means import Growth
from nescio.estimators.problem import Original, Problem

QUICK = {"max_steps": 6, "hidden": (8,), "n_folds": 3, "n_blocks": 2, "n_members": 2, "random_state": 0}
VV = {name: value for name, value in QUICK.items() if name != "n_blocks"}
BOOSTING = HistGradientBoostingRegressor(max_iter=8, random_state=3)
FAR = 1e4


def table(n=90, outputs=1, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 8.0, 0.3] + [2.0, -1.0, 4.0]
    y = 5.0 + 3.0 * np.sin(X[:, :1]) * np.arange(1, outputs + 1) + 0.5 * rng.normal(size=(n, outputs))
    return X, y[:, 0] if outputs == 1 else y * 10.0 ** np.arange(outputs)


def line(X):
    return 4.0 + 0.5 * np.asarray(X)[:, 0]


REGRESSORS = [
    BOOSTING,
    RandomForestRegressor(n_estimators=5, random_state=1),
    make_pipeline(StandardScaler(), Ridge()),
]


@pytest.mark.parametrize("regressor", REGRESSORS, ids=["boosting", "forest", "linear"])
def test_the_mean_is_bit_for_bit_what_the_regressor_alone_says(regressor):
    X, y = table()
    alone = clone(regressor).fit(X, y)
    model = DissipativeRegressor(mean=regressor, **QUICK).fit(X, y)
    fresh = np.concatenate([X, 3.0 * X, FAR * X])
    for mean in (model.predict(fresh), model.predict(fresh, return_std=True)[0], model.predict_dist(fresh).mean):
        np.testing.assert_array_equal(mean, alone.predict(fresh))
    assert not hasattr(regressor, "n_features_in_")
    assert model.mean_ is not regressor


@pytest.mark.parametrize("estimator", [DissipativeRegressor, VariationalVarianceRegressor])
def test_both_methods_take_a_mean_and_the_posterior_speaks_of_it(estimator):
    X, y = table()
    model = estimator(mean=BOOSTING, **(QUICK if estimator is DissipativeRegressor else VV)).fit(X, y)
    loc, _ = model.posterior(X)
    assert loc.shape == (2, 90, 1)
    np.testing.assert_allclose(loc[1, :, 0].numpy() * model.y_scale_ + model.y_shift_, model.predict(X), rtol=1e-12)


def test_an_overfitted_mean_does_not_look_certain():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), 7.0 + 2.0 * rng.normal(size=300)
    model = DissipativeRegressor(mean=DecisionTreeRegressor(random_state=0), **{**QUICK, "n_folds": 5}).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y)  # in-sample it has no error at all
    assert 2.3 < model.inside_std_[0] < 3.4  # out of fold it errs by sqrt(2) times the noise of 2
    assert np.median(model.predict(X, return_std=True)[1]) > 2.0


@pytest.mark.parametrize(("rows", "folds"), [(9_999, 20), (10_000, 10)])
def test_on_small_tables_the_mean_of_a_fold_has_seen_almost_all_rows(rows, folds):
    seen: list[int] = []

    class Counting(LinearRegression):
        def fit(self, X, y):
            seen.append(len(X))
            return super().fit(X, y)

    X = np.linspace(0.0, 1.0, rows)[:, None]
    settings = {name: value for name, value in VV.items() if name != "n_folds"}
    VariationalVarianceRegressor(mean=Counting(), **settings).fit(X, np.cos(X[:, 0]))
    assert sorted(seen)[-1] == rows
    assert sorted(seen)[:-1] == pytest.approx([rows * (1 - 1 / folds)] * folds, abs=1.0)


def test_twins_of_a_row_are_held_out_with_it():
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.normal(size=(60, 2)), 2, axis=0), np.repeat(3.0 * rng.normal(size=60), 2)
    model = DissipativeRegressor(mean=KNeighborsRegressor(1), **QUICK).fit(X, y)
    assert model.inside_std_[0] > 2.5  # a twin in another fold would give the target away


def test_far_away_the_level_holds_around_any_mean():
    X, y = table()
    model = DissipativeRegressor(mean=Ridge(), outside=9.0, **QUICK).fit(X, y)
    np.testing.assert_allclose(model.predict(FAR * X, return_std=True)[1], 9.0, rtol=1e-5)


def test_a_mean_that_fades_is_its_own_inside_and_the_training_mean_far_away():
    X, y = table()
    model = DissipativeRegressor(mean=Ridge(), outside_mean="training", **QUICK).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), Ridge().fit(X, y).predict(X))
    np.testing.assert_allclose(model.predict(FAR * X), y.mean(), rtol=1e-9)
    loc, _ = model.posterior(FAR * X)
    np.testing.assert_allclose(loc.numpy(), 0.0, atol=1e-9)


class OneTarget(RegressorMixin, BaseEstimator):
    """Knows one target only, and says so by failing."""

    def fit(self, X, y):
        if y.ndim != 1:
            raise AssertionError("one target only")
        self.value_ = y.mean()
        return self

    def predict(self, X):
        return np.full(len(X), self.value_)


def test_a_regressor_of_one_target_has_a_clone_for_each():
    X, y = table(outputs=3)
    model = DissipativeRegressor(mean=OneTarget(), **QUICK).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), np.tile([each.mean() for each in y.T], (90, 1)))
    assert len(model.mean_) == 3
    together = DissipativeRegressor(mean=LinearRegression(), **QUICK).fit(X, y)
    np.testing.assert_array_equal(together.predict(X), LinearRegression().fit(X, y).predict(X))
    assert isinstance(together.mean_, LinearRegression)


def test_a_fitted_mean_is_taken_as_it_is_and_its_residuals_directly():
    X, y = table(180)
    fitted = Ridge().fit(X[:90], y[:90])
    coefficients = fitted.coef_.copy()
    model = DissipativeRegressor(mean=fitted, prefit=True, **QUICK).fit(X[90:], y[90:])
    np.testing.assert_array_equal(model.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(fitted.coef_, coefficients)
    assert model.mean_ is fitted
    error = y[90:] - fitted.predict(X[90:])
    np.testing.assert_allclose(model.inside_std_[0], np.sqrt(np.mean(error**2)), rtol=1e-5)
    copy = clone(model)
    assert copy.mean is fitted  # a clone of it would not be fitted
    frozen = DissipativeRegressor(mean=FrozenEstimator(fitted), **QUICK).fit(X[90:], y[90:])
    np.testing.assert_array_equal(frozen.predict(X, return_std=True)[1], model.predict(X, return_std=True)[1])


def test_a_function_and_a_module_need_no_fit():
    X, y = table()
    model = DissipativeRegressor(mean=line, **QUICK).fit(X.tolist(), y)
    np.testing.assert_array_equal(model.predict(X.tolist()), line(X))
    module = torch.nn.Sequential(torch.nn.Linear(3, 1, dtype=torch.float64), torch.nn.Dropout(0.5)).train()
    with torch.no_grad():
        module[0].weight[:] = torch.tensor([0.5, 0.0, 0.0])
        module[0].bias[:] = 4.0
    other = DissipativeRegressor(mean=module, **QUICK).fit(X, y)
    np.testing.assert_allclose(other.predict(X), line(X), rtol=1e-12)
    assert module.training
    np.testing.assert_allclose(other.predict(X, return_std=True)[1], model.predict(X, return_std=True)[1], rtol=1e-3)


def test_a_fitted_mean_sees_the_users_own_frame():
    X, y = table()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    kinds = []

    def by_name(rows):
        kinds.append(type(rows))
        return 4.0 + 0.5 * rows["a"].to_numpy()

    model = DissipativeRegressor(mean=by_name, **QUICK).fit(frame, y)
    np.testing.assert_array_equal(model.predict(frame), line(X))
    assert set(kinds) == {pd.DataFrame}


def test_weights_reach_a_regressor_that_takes_them_as_they_are_given():
    X, y = table()
    weights = np.where(np.arange(90) % 3 == 0, 0.0, 5.0 + np.arange(90))
    model = DissipativeRegressor(mean=Ridge(alpha=50.0), **QUICK).fit(X, y, sample_weight=weights)
    used = weights > 0
    alone = Ridge(alpha=50.0).fit(X[used], y[used], sample_weight=weights[used])
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    with pytest.warns(UserWarning, match="KNeighborsRegressor takes no sample_weight"):
        DissipativeRegressor(mean=KNeighborsRegressor(), **QUICK).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("weighted", [True, False])
def test_what_stands_in_for_a_fitted_mean_has_its_error_inside_by_the_weights_of_the_rows(weighted):
    X, y = table(120, outputs=2)
    weights = np.exp(np.sin(np.arange(120.0)) * 2.0) if weighted else None
    original = Original(X, X, y, weights, np.zeros(3), np.ones(3))
    problem = Problem(X, y, weights, np.array([2.0, 5.0]), 7, original)
    rows, groups = torch.as_tensor(X, dtype=torch.float32), np.arange(120)
    fit = lambda mean: fit_foreign(mean, False, problem, rows, groups, n_folds=3, n_blocks=2)
    line_, trees = fit(lambda rows: np.c_[line(rows), 10.0 * line(rows)]), fit(HistGradientBoostingRegressor())
    inside = [np.average(each.residuals.numpy() ** 2, axis=0, weights=weights) for each in (line_, trees)]
    np.testing.assert_allclose(line_.growth.offset, inside[1] - inside[0], rtol=1e-5)
    np.testing.assert_array_equal(line_.growth.squared_error, trees.growth.squared_error)
    assert trees.growth.offset == 0.0


@pytest.mark.parametrize("concentration", [1.25, 3.0])
def test_what_stands_in_shows_its_growth_whether_it_errs_more_inside_or_less(concentration):
    """Errors of the stand-in have the variance 0.1 inside, those of the mean 0.05 or 0.2: both grow alike."""
    rng = np.random.default_rng(8)
    x, distance = torch.as_tensor(1e-3 * rng.normal(size=(2000, 4)), dtype=torch.float32), np.repeat([0.5, 2.0], 1000)
    tails = rng.standard_t(2.0 * concentration, 2000) * np.sqrt(1.0 - 1.0 / concentration)
    square = np.square(np.sqrt(0.1 + np.where(distance < 1, 0.1, 0.4)) * tails)[:, None]
    problem = Problem(x.numpy(), x.numpy(), None, np.ones(1), 0, None)
    for inside in (0.05, 0.2):
        seen = Growth(np.arange(2000), distance, square, torch.ones(4), np.array([0.1 - inside]))
        noise, places = torch.full((2000, 1), inside), torch.tensor([[0.5, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]])
        there = prior_from_blocks(x, seen, noise, torch.tensor([9.0]), concentration, problem)(places)
        grown = (there.rate / (there.concentration - 1.0))[:, 0] - inside
        np.testing.assert_allclose(grown, [0.1, 0.4], rtol=0.25)


def test_a_mean_without_a_seed_gets_one_and_the_global_generator_is_left_alone():
    X, y = table()
    before = np.random.get_state()[1].copy()  # noqa: NPY002 (the global generator is what is watched)
    first, second = (
        DissipativeRegressor(mean=ExtraTreesRegressor(n_estimators=3), **QUICK).fit(X, y) for _ in range(2)
    )
    np.testing.assert_array_equal(first.predict(3.0 * X), second.predict(3.0 * X))
    assert (before == np.random.get_state()[1]).all()  # noqa: NPY002


def test_a_search_reaches_into_the_mean():
    X, y = table()
    model = DissipativeRegressor(mean=DecisionTreeRegressor(random_state=0), **QUICK)
    search = GridSearchCV(model, {"mean__max_depth": [1, 4]}, cv=2).fit(X, y)
    assert search.best_params_["mean__max_depth"] in (1, 4)
    assert search.best_estimator_.mean_.get_depth() <= 4
    assert model.mean.max_depth is None


def test_a_second_fit_without_a_mean_forgets_the_first():
    X, y = table()
    model = DissipativeRegressor(mean=Ridge(), **QUICK).fit(X, y)
    model.set_params(mean=None, mean_hidden=(4,)).fit(X, y)
    assert model.mean_ is None
    assert not np.array_equal(model.predict(X), Ridge().fit(X, y).predict(X))


MISTAKES = [
    ({"mean": Ridge}, "mean must be a regressor, not its class; write mean=Ridge()"),
    ({"mean": LogisticRegression()}, "mean must be a regressor; a LogisticRegression is none"),
    ({"mean": 3}, "a function of X or a torch module; got 3"),
    ({"mean": Ridge(), "prefit": True}, "must come fitted, and this Ridge is not"),
    ({"prefit": True}, "prefit=True needs a mean that is fitted"),
    ({"mean": Ridge(), "prefit": 1}, "prefit must be True or False; got 1"),
    ({"mean": Ridge(), "mean_network": torch.nn.Linear}, "mean and mean_network both say what the mean is"),
    ({"mean": lambda X: np.zeros((3, 2))}, r"each of the 90 rows and 1 target; it returned the shape \(3, 2\)"),
    ({"mean": lambda X: np.full(len(X), np.nan)}, "NaN or infinity for 90 rows, the first is row 0"),
    ({"mean": lambda X: ["a"] * len(X)}, "mean must return numbers"),
]


@pytest.mark.parametrize(("settings", "words"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mean_that_cannot_be_one_is_refused_in_a_sentence(settings, words):
    with pytest.raises(InputError, match=words):
        DissipativeRegressor(**settings, **QUICK).fit(*table())


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_saved_model_asks_for_its_mean_and_checks_it(outputs, tmp_path):
    X, y = table(outputs=outputs)
    model = DissipativeRegressor(mean=BOOSTING, **QUICK).fit(X, y)
    path = tmp_path / "model.nescio"
    nescio.save(model, path)
    with pytest.raises(InputError, match=r"not in the file; give it back in Python: load\(path, mean=...\)"):
        nescio.load(path)
    loaded = nescio.load(path, mean=model.mean_)
    for first, second in zip(model.predict(X, return_std=True), loaded.predict(X, return_std=True), strict=True):
        np.testing.assert_array_equal(first, second)
    other = [DecisionTreeRegressor(max_depth=1).fit(X, each) for each in np.reshape(y, (90, -1)).T]
    with pytest.raises(InputError, match="with the 'mean' given back, the model does not give the predictions"):
        nescio.load(path, mean=other)
    with pytest.raises(InputError, match="must come fitted"):
        nescio.load(path, mean=BOOSTING)
    with pytest.raises(InputError, match="mean must be one regressor, or one for each of"):
        nescio.load(path, mean=[*other, *other, *other])
    with pytest.raises(InputError, match="not a network; leave mean_network out"):
        nescio.load(path, mean=model.mean_, mean_network=torch.nn.Linear)
    np.testing.assert_array_equal(loaded.fit(X, y).predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("mean", "why"),
    [
        (Ridge().fit(np.eye(7), np.arange(7.0)), "X has 3 features, but Ridge is expecting 7 features as input."),
        (torch.nn.Linear(7, 1), "mat1 and mat2 shapes cannot be multiplied"),
        (lambda X: X[:, 6], "index 6 is out of bounds for axis 1 with size 3."),
    ],
    ids=["regressor", "module", "function"],
)
def test_a_mean_of_another_table_is_refused_at_load_by_the_name_of_the_file(mean, why, tmp_path):
    X, y = table()
    nescio.save(DissipativeRegressor(mean=Ridge(), **QUICK).fit(X, y), tmp_path / "model.nescio")
    words = "model.nescio' cannot be loaded: the mean given back cannot predict the rows stored with the model: "
    with pytest.raises(InputError, match=re.escape(words + why)):
        nescio.load(tmp_path / "model.nescio", mean=mean)


def test_a_saved_model_around_a_function_or_a_frame_comes_back(tmp_path):
    X, y = table()
    model = DissipativeRegressor(mean=line, **QUICK).fit(X, y)
    nescio.save(model, tmp_path / "m")
    np.testing.assert_array_equal(nescio.load(tmp_path / "m", mean=line).predict(X), line(X))
    with pytest.raises(InputError, match="does not give the predictions"):
        nescio.load(tmp_path / "m", mean=lambda X: 2.0 * line(X))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    fitted = Ridge().fit(frame, y)
    nescio.save(DissipativeRegressor(mean=fitted, prefit=True, **QUICK).fit(frame, y), tmp_path / "f")
    np.testing.assert_array_equal(nescio.load(tmp_path / "f", mean=fitted).predict(frame), fitted.predict(frame))
