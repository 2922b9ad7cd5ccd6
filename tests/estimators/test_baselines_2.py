"""The second half of the baselines: scikit-learn's checks, our laws, and each method's formulas."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor as Oracle
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from nescio.distributions import Gamma
from nescio.estimators.gaussian_process import GaussianProcessRegressor, negative_log_evidence
from nescio.estimators.pseudo_count import PseudoCountRegressor, leave_one_out, pseudo_count_posterior
from nescio.estimators.together import fit_stack

EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": (
        "a row of weight two is one row in a batch, two equal rows are two: the batches drawn differ, and with them "
        "the stochastic fit"
    ),
    "check_sample_weight_equivalence_on_sparse_data": "sparse tables are refused",
}
METHODS = [
    GaussianProcessRegressor(max_rows=60, n_starts=1, max_iterations=8, random_state=0),
    PseudoCountRegressor(max_steps=20, hidden=(8,), mean_hidden=(8,), learning_rate=0.05, random_state=0),
]
names = lambda model: type(model).__name__


def expected_failures(estimator):
    if isinstance(estimator, GaussianProcessRegressor):  # no batches: copies are weights
        return {name: why for name, why in EXPECTED_FAILURES.items() if "sparse" in name}
    return EXPECTED_FAILURES


@parametrize_with_checks(METHODS, expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_compatible(estimator, check):
    check(estimator)


def make_table(n=70, outputs=1, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 4.0, 0.3] + [2.0, -1.0, 5.0]
    y = 3.0 + np.sin(X[:, :1]) * np.arange(1, outputs + 1) + 0.2 * rng.normal(size=(n, outputs))
    return X, y[:, 0] if outputs == 1 else y


def like(model, **changes):
    return type(model)(**{**model.get_params(deep=False), **changes})


@pytest.mark.parametrize("method", METHODS, ids=names)
def test_same_seed_same_fit_pickled_too_and_the_global_generators_are_untouched(method):
    X, y = make_table()
    before = torch.get_rng_state(), repr(np.random.get_state())  # noqa: NPY002 (it is what is watched)
    first, second = like(method).fit(X, y), like(method).fit(X, y)
    copy = pickle.loads(pickle.dumps(first))
    for other in (second, copy):
        np.testing.assert_array_equal(other.predict_dist(X).std, first.predict_dist(X).std)
        np.testing.assert_array_equal(other.predict(X), first.predict(X))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert repr(np.random.get_state()) == before[1]  # noqa: NPY002


@pytest.mark.parametrize("method", METHODS, ids=names)
def test_a_rows_answer_does_not_depend_on_its_batch(method):
    X, y = make_table(outputs=2)
    model = like(method).fit(X, y)
    far = np.concatenate([X, 50.0 * X])
    whole = model.predict_dist(far)
    assert np.isfinite(whole.log_prob(np.concatenate([y, y]))).all()
    np.testing.assert_allclose(model.predict(far), whole.mean, rtol=1e-5)
    for rows in (slice(0, 1), slice(3, 60), np.array([139, 0, 70])):
        part = model.predict_dist(far[rows])
        np.testing.assert_array_equal(part.mean, whole.mean[rows])
        np.testing.assert_array_equal(part.std, whole.std[rows])


@pytest.mark.parametrize("method", METHODS, ids=names)
def test_rescaling_the_target_rescales_the_prediction(method):
    X, y = make_table()
    plain, scaled = like(method).fit(X, y).predict_dist(X), like(method).fit(X, 1e3 * y - 3e3).predict_dist(X)
    np.testing.assert_allclose(scaled.mean, 1e3 * plain.mean - 3e3, rtol=2e-3, atol=5.0)
    np.testing.assert_allclose(scaled.std, 1e3 * plain.std, rtol=2e-2)
    np.testing.assert_allclose(scaled.log_prob(1e3 * y - 3e3), plain.log_prob(y) - np.log(1e3), atol=0.05)


@pytest.mark.parametrize("method", METHODS, ids=names)
def test_a_stack_learns_what_each_learns_alone(method):
    tables = [make_table(), make_table(n=90, seed=2)]
    models = [like(method, random_state=seed) for seed in (5, 6)]
    for alone, shared, (X, y) in zip(models, fit_stack(models, tables), tables, strict=True):
        expected, found = alone.fit(X, y).predict_dist(X), shared.predict_dist(X)
        np.testing.assert_allclose(found.mean, expected.mean, rtol=2e-3, atol=2e-3)
        np.testing.assert_allclose(found.std, expected.std, rtol=2e-2)


@pytest.mark.parametrize("method", METHODS, ids=names)
def test_constant_columns_copies_and_weights_are_legal_and_weights_matter(method):
    X, y = make_table()
    X = np.concatenate([np.column_stack([X, np.ones(70)])] * 2)
    y = np.concatenate([y, y])
    even = like(method).fit(X, y).predict_dist(X)
    weights = np.where(np.arange(140) % 2, 1.0, 1e-3)
    skewed = like(method).fit(X, y + 3.0 * (np.arange(140) % 2), weights).predict_dist(X)
    assert np.isfinite(even.std).all()
    assert np.isfinite(skewed.std).all()
    assert skewed.mean.mean() > even.mean.mean() + 2.0


@pytest.mark.parametrize(("kernel", "shape"), [("rbf", RBF), ("matern", lambda scale: Matern(scale, nu=2.5))])
def test_the_evidence_of_the_process_and_its_slope_are_scikit_learns(kernel, shape):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(25, 3)), rng.normal(size=25)
    theta = np.log([1.3, 2.0, 0.7, 1.4, 0.05])
    value, gradient = negative_log_evidence(theta, x, y, np.ones(25), kernel)
    oracle = Oracle(ConstantKernel(1.4) * shape([1.3, 2.0, 0.7]) + WhiteKernel(0.05), optimizer=None, alpha=0.0)
    expected, slope = oracle.fit(x, y).log_marginal_likelihood(np.log([1.4, 1.3, 2.0, 0.7, 0.05]), eval_gradient=True)
    np.testing.assert_allclose(value, -expected, rtol=1e-10)
    np.testing.assert_allclose(gradient, -slope[[1, 2, 3, 0, 4]], rtol=1e-8)


def test_a_row_of_the_process_counts_by_its_weight():
    """Two observations of one input with noise s are one observation of their mean with noise s/2."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    settings = {"n_starts": 2, "random_state": 0}
    copies = GaussianProcessRegressor(**settings).fit(np.concatenate([X, X[:9]]), np.concatenate([y, y[:9]]))
    weighted = GaussianProcessRegressor(**settings).fit(X, y, np.where(np.arange(30) < 9, 2.0, 1.0))
    plain = GaussianProcessRegressor(**settings).fit(X, y)
    np.testing.assert_allclose(copies.predict(X), weighted.predict(X), rtol=1e-3, atol=1e-3)
    assert not np.allclose(copies.predict(X), plain.predict(X), rtol=1e-3, atol=1e-3)


def test_the_process_returns_to_its_prior_far_away():
    X, y = make_table()
    model = GaussianProcessRegressor(random_state=0).fit(X, y)
    mean, std = model.predict(1e6 * X, return_std=True)
    np.testing.assert_allclose(mean, y.mean())
    np.testing.assert_allclose(std, y.std() * float(np.sqrt(model.signal_variance_ + model.noise_)[0]))
    assert (model.predict(X, return_std=True)[1] < 0.7 * std).all()


def test_pseudo_counts_are_conjugate_and_reach_both_limits():
    residuals = torch.tensor([0.3, -1.2, 0.7, 2.0], dtype=torch.float64)
    prior = Gamma(torch.tensor([1.7], dtype=torch.float64), torch.tensor([0.9], dtype=torch.float64))
    expected = prior
    for residual in residuals:  # one at a time, by Bayes' rule
        expected = expected.condition(residual.view(1))
    variance = residuals.square().mean().view(1)
    found = pseudo_count_posterior(prior, torch.tensor([4.0], dtype=torch.float64), variance)
    torch.testing.assert_close(found.concentration, expected.concentration)
    torch.testing.assert_close(found.rate, expected.rate)
    wrong = pseudo_count_posterior(prior, torch.tensor([4.0], dtype=torch.float64), variance.sqrt())
    assert not torch.allclose(wrong.rate, expected.rate)
    nothing = pseudo_count_posterior(prior, torch.zeros(1, dtype=torch.float64), variance)
    torch.testing.assert_close(nothing.rate / (nothing.concentration - 1.0), prior.rate / (prior.concentration - 1.0))
    much = pseudo_count_posterior(prior, torch.tensor([1e9], dtype=torch.float64), variance)
    torch.testing.assert_close(much.rate / (much.concentration - 1.0), variance, rtol=1e-7, atol=0.0)


def test_the_density_of_a_row_is_that_of_all_other_rows():
    x = torch.as_tensor(np.random.default_rng(0).normal(size=(9, 2)))
    found = leave_one_out(x, torch.tensor([2, 5]), 0.7)
    for value, place in zip(found, (2, 5), strict=True):
        others = np.delete(x.numpy(), place, axis=0)
        densities = stats.multivariate_normal(np.zeros(2), 0.49 * np.eye(2)).pdf(x.numpy()[place] - others)
        np.testing.assert_allclose(value, np.log(densities.mean()), rtol=1e-10)


def test_counts_grow_with_the_rows_and_leave_the_prior_far_away():
    settings = {"max_steps": 30, "hidden": (8,), "mean_hidden": (8,), "count_rate": 0.5, "random_state": 0}
    X, y = make_table(n=200)
    small = PseudoCountRegressor(**settings, outside=7.0, bandwidth=0.5).fit(X[:100], y[:100])
    large = PseudoCountRegressor(**settings, outside=7.0, bandwidth=0.5).fit(X, y)
    inside = large.posterior(X[:1])[1].concentration / small.posterior(X[:1])[1].concentration
    assert 1.3 < float(inside) < 2.2
    _, q = large.posterior(1e5 * X)
    torch.testing.assert_close(q.rate, large.outside_prior_.rate.expand_as(q.rate))
    np.testing.assert_allclose(large.predict(1e5 * X, return_std=True)[1], 7.0)
    np.testing.assert_allclose(large.knowledge(1e5 * X), 0.0, atol=1e-12)
    assert (large.knowledge(X) > 0.1).mean() > 0.8
