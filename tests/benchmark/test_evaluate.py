"""All measures of one model on one split, against naive sums over the rows that a region has."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from nescio.benchmark import evaluate as module
from nescio.benchmark.evaluate import evaluate
from nescio.benchmark.names import METRICS
from nescio.benchmark.outside_points import outside_points
from nescio.datasets.benchmark_splits import make_splits
from nescio.datasets.uci import UCIData
from nescio.distributions import expected_log_prob, gamma_kl
from nescio.estimators.dissipative import DissipativeRegressor
from nescio.estimators.variational_variance import VariationalVarianceRegressor


def table():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 3)) * [1.0, 30.0, 0.1] + [5.0, 0.0, 2.0]
    y = np.c_[X[:, 0] * 40.0 + rng.normal(size=150), X[:, 1] + 3.0 * rng.normal(size=150)] + 100.0
    return UCIData("made up", X, y, ("a", "b", "c"), ("u", "v"))


@pytest.fixture(scope="module")
def fitted():
    data = table()
    split = make_splits(data.X, "gap", trials=2)[1]
    model = DissipativeRegressor(random_state=1, max_steps=30, hidden=(8,), mean_hidden=(8,), n_folds=2, n_members=2)
    model.fit(data.X[split.train], data.y[split.train])
    return data, split, model, {(region, name): value for region, name, value in evaluate(model, data, split, 7)}


def test_every_metric_of_a_gap_is_there_once_and_none_that_has_no_name(fitted):
    data, split, model, found = fitted
    rows = evaluate(model, data, split, 7)
    assert len(rows) == len(found)
    assert {name for _, name in found} == {n for n in METRICS if not n.endswith("_tail")} - {"seconds"}
    assert {region for region, _ in found} == {"all", "inside", "hole"}
    assert rows == evaluate(model, data, split, 7)


def test_what_the_support_detects_is_found_once_for_all_methods_of_a_split(fitted, monkeypatch):
    data, split, model, _ = fitted
    known = {}
    rows = evaluate(model, data, split, 7, known)
    monkeypatch.setattr(type(model), "support", None)
    assert rows == evaluate(model, data, split, 7, known)
    assert known == {n.removeprefix("auroc_support_"): v for _, n, v in rows if n.startswith("auroc_support_")}


def test_two_methods_with_one_seed_have_the_same_support(fitted):
    data, split, _, found = fitted
    other = VariationalVarianceRegressor(random_state=1, max_steps=5, hidden=(4,), mean_hidden=(4,), n_folds=2)
    other.fit(data.X[split.train], data.y[split.train])
    names = [name for _, name in found if name.startswith("auroc_support_")]
    values = {name: value for _, name, value in evaluate(other, data, split, 7)}
    assert len(names) == 5
    assert [values[name] for name in names] == [found["all", name] for name in names]


@pytest.mark.parametrize("region", ["all", "inside", "hole"])
def test_scores_are_means_over_the_rows_of_the_region_in_standardised_units(fitted, region):
    data, split, model, found = fitted
    rows = split.test[region]
    scale = data.y[split.train].std(0)
    prediction = model.predict_dist(data.X[rows])
    raw = prediction.log_prob(data.y[rows])
    assert found[region, "log_likelihood_raw"] == pytest.approx(raw.mean(), rel=1e-9)
    assert found[region, "log_likelihood"] == pytest.approx((raw + np.log(scale)).mean(), rel=1e-9)
    errors = (prediction.mean - data.y[rows]) / scale
    assert found[region, "rmse"] == pytest.approx(np.sqrt((errors**2).mean()), rel=1e-9)
    spread = np.sqrt(np.mean((prediction.variance / scale**2 - errors**2) ** 2))
    assert found[region, "rmse_variance"] == pytest.approx(spread, rel=1e-9)
    lower, upper = prediction.interval(0.9)
    assert found[region, "coverage_90"] == np.mean((lower <= data.y[rows]) & (data.y[rows] <= upper))
    assert found[region, "width_90"] == pytest.approx(((upper - lower) / scale).mean(), rel=1e-9)
    assert found[region, "crps"] == pytest.approx((prediction.crps(data.y[rows]) / scale).mean(), rel=1e-9)


def test_the_bound_is_taken_to_the_inside_prior(fitted):
    data, split, model, found = fitted
    rows = split.test["hole"]
    loc, q = model.posterior(data.X[rows])
    y = loc.new_tensor((data.y[rows] - model.y_shift_) / model.y_scale_).expand(loc.shape)
    expected = expected_log_prob(y, loc, q)
    bound = lambda prior: float((expected - gamma_kl(q, prior)).mean())
    assert found["hole", "expected_log_likelihood"] == pytest.approx(float(expected.mean()), rel=1e-9)
    assert found["hole", "elbo"] == pytest.approx(bound(model.inside_prior_), rel=1e-9)
    assert found["hole", "elbo"] != pytest.approx(bound(model.outside_prior_), rel=1e-2)
    assert found["hole", "elbo"] < found["hole", "expected_log_likelihood"]


def test_detection_sets_the_ordinary_test_rows_against_what_is_outside(fitted):
    data, split, model, found = fitted
    std = lambda X: (model.predict_dist(X).std / data.y[split.train].std(0)).mean(1)
    ordinary, hole = data.X[split.test["inside"]], data.X[split.test["hole"]]
    labels = np.repeat([0, 1], [len(ordinary), len(hole)])
    scores = np.concatenate([std(ordinary), std(hole)])
    assert found["all", "auroc_hole"] == pytest.approx(roc_auc_score(labels, scores))
    support = np.concatenate([model.support(ordinary), model.support(hole)])
    assert found["all", "auroc_support_hole"] == pytest.approx(roc_auc_score(labels, -support))
    assert found["all", "std_hole"] == pytest.approx(std(hole).mean(), rel=1e-9)
    assert found["all", "auroc_far"] > 0.7
    assert found["all", "std_far"] > found["all", "std_near"]


def test_the_points_outside_are_made_from_the_training_scale(fitted, monkeypatch):
    data, split, model, _ = fitted
    seen = {}

    def watched(x, train, seed):
        seen.update(x=x, train=train)
        return outside_points(x, train, seed)

    monkeypatch.setattr(module, "outside_points", watched)
    evaluate(model, data, split, 7)
    np.testing.assert_allclose(seen["train"].mean(0), 0.0, atol=1e-9)
    np.testing.assert_allclose(seen["train"].std(0), 1.0, rtol=1e-9)
    assert len(seen["x"]) == len(split.test["inside"])


def test_a_large_region_is_a_sample_of_its_rows_and_all_methods_get_the_same(fitted, monkeypatch):
    data, split, model, found = fitted
    monkeypatch.setattr(module, "MOST_ROWS", 20)
    regions = module.judged_rows(split, len(data.X), 7)
    for region, rows in regions.items():
        assert len(rows) == min(20, len(split.test[region]))
        assert set(rows) <= set(split.test[region])
        assert (np.diff(rows) > 0).all()
    assert set(regions["all"]) <= set(regions["inside"]) | set(regions["hole"])
    shares = [np.isin(module.judged_rows(split, len(data.X), s)["all"], split.test["hole"]).mean() for s in range(200)]
    whole = np.isin(split.test["all"], split.test["hole"]).mean()
    assert abs(np.mean(shares) - whole) < 5 * stats.sem(shares)  # the union keeps the regions' shares
    small = {(region, name): value for region, name, value in evaluate(model, data, split, 7)}
    assert small.keys() == found.keys()
    assert small["hole", "rmse"] != found["hole", "rmse"]


def test_methods_without_a_prior_have_no_bound_to_it():
    data = table()
    (split,) = make_splits(data.X, "standard", trials=1)
    for prior, missing in ((None, {"elbo", "kl_ood_inside", "kl_ood_outside"}), ("residual", {"kl_ood_outside"})):
        model = VariationalVarianceRegressor(prior=prior, random_state=0, max_steps=5, hidden=(4,), n_folds=2)
        model.fit(data.X[split.train], data.y[split.train])
        names = {name for _, name, _ in evaluate(model, data, split, 0)}
        assert names == {n for n in METRICS if not n.endswith(("_tail", "_hole"))} - {"seconds"} - missing
