"""The second half of the baselines: scikit-learn's checks, our laws, and each method's formulas."""

from __future__ import annotations

import builtins
import itertools
import math
import pickle
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from sklearn.gaussian_process import GaussianProcessRegressor as Oracle
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch.nn.functional import softplus

from nescio import VariationalVarianceRegressor
from nescio.distributions import Gamma
from nescio.estimators.bayes_by_backprop import BayesByBackpropRegressor, VariationalMLP, weight_divergence
from nescio.estimators.gaussian_process import GaussianProcessRegressor, negative_log_evidence
from nescio.estimators.locality import Locality, LocalitySampler
from nescio.estimators.natural_boosting import NaturalBoostingRegressor
from nescio.estimators.noise_contrastive import BayesianLastLayer, NoiseContrastiveRegressor, gaussian_divergence
from nescio.estimators.pseudo_count import (
    PseudoCountRegressor,
    leave_one_out,
    pseudo_count_posterior,
    squared_distances,
)
from nescio.estimators.reliable import START_REACH, ReliableVarianceRegressor, blended, far_share, fit_centres
from nescio.estimators.together import fit_stack
from nescio.estimators.vbem import VBEMRegressor, gamma_from_normals, log_mixture, mixture_kl

EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": (
        "which rows are held out is drawn row by row: one row of weight two and two equal rows lead to other divisions "
        "of the table, and with them to another fit"
    ),
    "check_sample_weight_equivalence_on_sparse_data": "sparse tables are refused",
}
QUICK = {"max_steps": 30, "hidden": (8,), "learning_rate": 0.1, "random_state": 0}
METHODS = [
    GaussianProcessRegressor(max_rows=60, n_starts=1, max_iterations=8, random_state=0),
    PseudoCountRegressor(max_steps=12, hidden=(8,), mean_hidden=(8,), learning_rate=0.1, random_state=0),
    NoiseContrastiveRegressor(**QUICK),
    BayesByBackpropRegressor(**QUICK, n_samples=5),
    VBEMRegressor(**QUICK, n_components=5),
    ReliableVarianceRegressor(**QUICK, mean_sampler=(1, 8, 9), variance_sampler=(2, 4, 5)),
]
if find_spec("ngboost"):  # of the extra ``peers``; without it the method says so, which is tested below
    METHODS.append(NaturalBoostingRegressor(max_stages=5, learning_rate=0.6, random_state=0))
names = lambda model: type(model).__name__


def expected_failures(estimator):
    if isinstance(estimator, GaussianProcessRegressor):  # nothing is held out: copies are weights
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
        np.testing.assert_allclose(part.mean, whole.mean[rows], rtol=1e-13)  # sums over members may round differently
        np.testing.assert_allclose(part.std, whole.std[rows], rtol=1e-13)


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
    X = rng.normal(size=(30, 2))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=30)  # of mere noise the likelihood has many a summit
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


def test_the_density_of_a_row_is_that_of_all_other_rows(monkeypatch):
    monkeypatch.setattr("nescio.estimators.pseudo_count.BLOCK", 9)  # one row at a time
    x = torch.as_tensor(np.random.default_rng(0).normal(size=(9, 2)))
    found = leave_one_out(squared_distances(x, torch.tensor([2, 5])), x.shape[1], 0.7)
    for value, place in zip(found, (2, 5), strict=True):
        others = np.delete(x.numpy(), place, axis=0)
        densities = stats.multivariate_normal(np.zeros(2), 0.49 * np.eye(2)).pdf(x.numpy()[place] - others)
        np.testing.assert_allclose(value, np.log(densities.mean()), rtol=1e-10)


def test_counts_grow_with_the_rows_and_leave_the_prior_far_away():
    settings = {
        "max_steps": 30,
        "hidden": (8,),
        "mean_hidden": (8,),
        "count_rate": 0.5,
        "n_members": 1,
        "random_state": 0,
    }
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


def test_the_level_of_the_residuals_takes_their_weights():
    X, y = make_table()
    weights = np.exp(2.0 * np.sin(np.arange(70.0)))
    settings = {"max_steps": 12, "hidden": (8,), "mean_hidden": (8,), "random_state": 0}
    for heft in (weights, None):
        counting = PseudoCountRegressor(**settings, outside="residual").fit(X, y, heft)
        local = VariationalVarianceRegressor(**settings).fit(X, y, heft)
        prior = counting.outside_prior_
        level = (prior.rate / (prior.concentration - 1.0)).sqrt().numpy() * counting.y_scale_
        np.testing.assert_allclose(level, local.inside_std_, rtol=1e-6)


def double(*values):
    return torch.tensor(values, dtype=torch.float64)


def gaussian_kl_by_quadrature(loc, std, other_loc, other_std):
    """KL(N(loc, std) || N(other_loc, other_std)) as an integral."""
    density = stats.norm(loc, std)
    integrand = lambda t: density.pdf(t) * (density.logpdf(t) - stats.norm(other_loc, other_std).logpdf(t))
    return integrate.quad(integrand, loc - 12 * std, loc + 12 * std, epsabs=1e-12)[0]


def test_the_divergence_of_weights_is_the_integral_and_rejects_the_wrong_twins():
    loc, std, prior = 0.7, 0.3, 1.9
    found = float(weight_divergence(double([loc]), double([std]), double(prior)))
    assert found == pytest.approx(gaussian_kl_by_quadrature(loc, std, 0.0, prior), rel=1e-9)
    assert found != pytest.approx(gaussian_kl_by_quadrature(0.0, prior, loc, std), rel=1e-2)  # the other direction
    assert found != pytest.approx(gaussian_kl_by_quadrature(loc, std**2, 0.0, prior), rel=1e-2)  # variance for std
    several = weight_divergence(double([loc, loc], [loc, 0.0]), double([std, std], [std, std]), double(prior, prior))
    np.testing.assert_allclose(several[0], 2 * found)


def test_the_contrast_is_the_divergence_from_the_prior_and_not_the_other_way_round():
    found = float(gaussian_divergence(double(0.49), double(0.4), 1.44, double(-0.8)))
    assert found == pytest.approx(gaussian_kl_by_quadrature(-0.8, 1.2, 0.4, 0.7), rel=1e-9)
    assert found != pytest.approx(gaussian_kl_by_quadrature(0.4, 0.7, -0.8, 1.2), rel=1e-2)


def test_noise_for_sums_is_noise_for_weights():
    """The local reparametrisation has the mean and variance of networks with drawn weights."""
    network = VariationalMLP(3, 1, (), "relu")
    streams = [torch.Generator().manual_seed(0)]
    parameters = {name: value.double() for name, value in network.initialise(streams).items()}
    x = torch.randn(1, 2, 3, generator=streams[0], dtype=torch.float64)
    noise = torch.randn(1, 2, 1, generator=streams[0], dtype=torch.float64)
    middle = network(parameters, x, 0.0 * noise)
    std = (network(parameters, x, noise) - middle) / noise
    drawn = network.plain(network.sample(parameters, 40_000, seed=1), x.expand(40_000, 2, 3))[:, 0]
    np.testing.assert_allclose(drawn.mean(0), middle[0].numpy(), atol=5 * float(std.max()) / 200)
    np.testing.assert_allclose(drawn.std(0), std[0].numpy(), rtol=5 / 280)  # 5 standard errors of a deviation


def test_the_divergence_counts_once_and_by_the_number_of_rows():
    """Twice the rows, the same evidence per row: with the divergence over N the posterior gets sharper."""
    X, y = make_table(n=40)
    settings = {"max_steps": 400, "hidden": (8,), "learning_rate": 0.02, "random_state": 0, "noise": "homoscedastic"}
    few = BayesByBackpropRegressor(**settings).fit(X, y)
    many = BayesByBackpropRegressor(**settings).fit(np.tile(X, (8, 1)), np.tile(y, 8))
    assert many.predict_dist(X).mean_std.mean() < 0.8 * few.predict_dist(X).mean_std.mean()


def test_the_last_layer_is_unsure_where_noise_was_added_and_sure_at_the_data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 1))
    y = np.sin(3 * X[:, 0]) + 0.05 * rng.normal(size=300)
    settings = {"max_steps": 300, "hidden": (50, 50), "learning_rate": 0.01, "random_state": 0, "noise_std": 1.0}
    told = NoiseContrastiveRegressor(**settings, ncp_weight=0.1).fit(X, y)
    untold = NoiseContrastiveRegressor(**settings, ncp_weight=0.0).fit(X, y)
    away = np.array([[-2.0], [2.0]])
    assert (told.predict(away, return_std=True)[1] > 3 * untold.predict(away, return_std=True)[1]).all()
    assert told.predict_dist(away).std.min() > 1.5 * told.predict_dist(X).std.mean()
    divergence = BayesianLastLayer.weight_divergence(
        {"loc_weight": torch.full((1, 2, 1), 0.2), "loc_rho": torch.full((1, 2, 1), float(np.log(np.expm1(0.05))))}
    )
    assert float(divergence) == pytest.approx(2 * gaussian_kl_by_quadrature(0.2, 0.05, 0.0, 0.1), rel=1e-4)


@pytest.mark.parametrize("concentration", [1.0001, 1.4, 3.0, 60.0])
def test_weighted_normals_are_gammas(concentration):
    z = np.linspace(-12, 12, 400_001)
    value, weight = (part.numpy() for part in gamma_from_normals(double(concentration), torch.as_tensor(z)))
    law = stats.gamma(concentration)
    assert weight.max() < 1.06
    for power, expected in ((0, 1.0), (1, law.mean()), (2, law.moment(2))):
        found = integrate.trapezoid(stats.norm.pdf(z) * weight * value**power, z)
        assert found == pytest.approx(expected, rel=2e-3 if concentration < 1.4 else 1e-6)
    unweighted = integrate.trapezoid(stats.norm.pdf(z) * np.log(value), z)
    expected = integrate.quad(lambda t: law.pdf(t) * np.log(t), 0, np.inf)[0]
    assert concentration > 10 or unweighted != pytest.approx(expected, rel=1e-4)


def test_the_divergence_from_a_mixture_prior_is_the_integral():
    q = Gamma(double([[2.3]]), double([[0.7]]))
    prior = Gamma(double([[1.5], [4.0]]), double([[0.6], [9.0]]))
    log_share = double([[0.3, 0.7]]).log()
    posterior = stats.gamma(2.3, scale=1 / 0.7)
    mixture = lambda t: 0.3 * stats.gamma(1.5, scale=1 / 0.6).pdf(t) + 0.7 * stats.gamma(4.0, scale=1 / 9.0).pdf(t)
    expected = integrate.quad(lambda t: posterior.pdf(t) * (posterior.logpdf(t) - np.log(mixture(t))), 0, 80)[0]
    noise = torch.randn(1, 1, 200_000, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    singles = torch.cat([mixture_kl(q, log_share, prior, part) for part in noise.split(1_000, dim=2)]).numpy()
    error = singles.std() / np.sqrt(singles.size)
    assert abs(singles.mean() - expected) < 5 * error
    assert error < 0.01
    swapped = mixture_kl(q, double([[0.7, 0.3]]).log(), prior, noise)
    assert abs(float(swapped) - expected) > 20 * error
    points = double(0.2, 1.1, 5.0)
    found = log_mixture(points.view(1, 1, 3, 1), log_share, prior)
    np.testing.assert_allclose(found[0, 0], np.log(mixture(points.numpy())), rtol=1e-10)


def test_a_component_of_the_mixture_prior_is_a_product_over_outputs():
    prior = Gamma(double([[1.5, 3.0], [4.0, 2.0]]), double([[0.6, 1.0], [9.0, 5.0]]))
    found = log_mixture(double(0.4, 2.0).view(1, 1, 1, 2), double(0.3, 0.7).log().view(1, 1, 2), prior)
    density = lambda a, b, t: stats.gamma(a, scale=1 / b).pdf(t)
    joint = 0.3 * density(1.5, 0.6, 0.4) * density(3, 1, 2.0) + 0.7 * density(4, 9, 0.4) * density(2, 5, 2.0)
    np.testing.assert_allclose(float(found), np.log(joint), rtol=1e-10)
    assert VBEMRegressor(**QUICK, n_components=3).fit(*make_table(outputs=2)).inside_prior_ is None


@pytest.mark.parametrize("primaries", [1, 2])
def test_inclusion_is_exact_by_enumeration_of_all_batches(primaries):
    x = np.array([[0.0], [0.2], [0.5], [1.4], [1.5], [4.0]])
    locality = Locality(x, primaries, 2, 3)
    near = [np.argsort(np.abs(x[:, 0] - point))[:3] for point in x[:, 0]]
    batches = [list(itertools.combinations(rows, 2)) for rows in near]  # what one primary can bring in
    included = np.zeros(6)
    for chosen in itertools.product(range(6), repeat=primaries):
        ways = list(itertools.product(*(batches[primary] for primary in chosen)))
        for way in ways:
            included[list(set(itertools.chain(*way)))] += 1 / len(ways) / 6**primaries
    np.testing.assert_allclose(locality.inclusion, included, rtol=1e-6)
    assert not np.allclose(locality.inclusion, primaries * 2 / 6)  # as if rows were drawn evenly


@pytest.mark.parametrize("weighted", [False, True])
def test_weighted_sums_over_local_batches_are_means_over_all_rows(weighted):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2))
    values = torch.as_tensor(np.square(x).sum(1) + 2.0, dtype=torch.float32)  # outer rows are drawn less often
    heft = torch.as_tensor(rng.lognormal(2.0, 1.0, 40), dtype=torch.float32) if weighted else None
    own, stream, steps = torch.arange(5, 35), torch.Generator().manual_seed(0), 20_000
    localities = [[Locality(x, 1, 4, 6), Locality(x, 2, 5, 5)]]
    sampler = LocalitySampler([own], localities, [4, 10], [stream], heft, torch.device("cpu"))
    draws = sampler.take(steps, torch.tensor([0]))
    mean = np.average(values, weights=None if heft is None else heft[own])
    for part in (slice(0, 4), slice(4, 14)):
        sums = np.array([float((draw.weights * values[draw.rows - 5])[0, part].sum()) for draw in draws])
        assert abs(sums.mean() - mean) < 5 * sums.std() / np.sqrt(steps)
        plain = np.array([float(values[draw.rows - 5][0, part].mean()) for draw in draws])
        assert abs(plain.mean() - mean) > 5 * plain.std() / np.sqrt(steps)  # without the weights


def test_the_blend_has_the_right_mean_variance_and_both_limits():
    loc, shape, rate, far = double(0.4), double(2.6), double(0.8), double(3.0)
    local, away = blended(loc, shape, rate, double(0.0), far), blended(loc, shape, rate, double(1.0), far)
    np.testing.assert_allclose([local.df, local.scale**2], [[5.2], [0.8 / 2.6]])
    assert float(away.df) > 1e5
    np.testing.assert_allclose(away.variance, far)
    share = 0.3
    middle = blended(loc, shape, rate, double(share), far)
    np.testing.assert_allclose(middle.variance, 0.7 * 0.8 / 1.6 + 0.3 * 3.0)
    precisions = stats.gamma(2.6, scale=1 / 0.8).ppf((np.arange(20_000) + 0.5) / 20_000)  # the sum itself
    spread = np.sqrt((1 - share) / precisions + share * 3.0)
    for y in (0.4, 1.5, 3.0):
        exact = np.log(stats.norm(0.4, spread).pdf(y).mean())
        assert float(middle.log_prob(double(y))) == pytest.approx(exact, abs=0.05)


def test_the_far_share_is_a_thousandth_on_a_centre_whatever_the_reach():
    for reach in (0.1, 1.7, 30.0):
        assert float(far_share(double(0.0), double(reach))) == pytest.approx(1e-3)
        assert float(far_share(double(reach * np.log(999.0)), double(reach))) == pytest.approx(0.5)


@pytest.mark.parametrize("rows", [300, 560, 5000])  # each row a centre; almost every row; ten rows to one
def test_inside_the_data_no_gap_between_centres_is_far_and_beyond_them_all_is(rows):
    rng = np.random.default_rng(0)
    x = rng.uniform(-math.sqrt(3.0), math.sqrt(3.0), (rows, 1))
    centres, reach = fit_centres(x, 0), softplus(double(START_REACH))
    share = lambda places: far_share(centres.squared(torch.as_tensor(places, dtype=torch.float32)[:, None]), reach)
    inside = share(np.linspace(-1.7, 1.7, 2001))
    assert float(inside.max()) < 0.002
    assert float(share([4.5]).min()) > 0.9


def test_fresh_rows_in_many_columns_are_not_far_because_training_rows_are_centres():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1600, 30)) * np.geomspace(3.0, 0.1, 30)
    centres = fit_centres(x[:600], 0)  # five hundred of them
    fresh = far_share(centres.squared(torch.as_tensor(x[600:], dtype=torch.float32)), softplus(double(START_REACH)))
    assert float(fresh.mean()) < 0.01


def test_far_away_the_reliable_variance_is_the_level():
    X, y = make_table()
    model = ReliableVarianceRegressor(**QUICK, outside=6.0).fit(X, y)
    np.testing.assert_allclose(model.predict(1e4 * X, return_std=True)[1], 6.0, rtol=1e-4)
    assert model.predict(X, return_std=True)[1].max() < 4.0


def test_the_plain_normal_is_ngboosts_own_to_the_last_bit():
    pytest.importorskip("ngboost")
    from ngboost.distns import Normal
    from ngboost.manifold import manifold
    from ngboost.scores import LogScore

    from nescio.estimators.boosting_parts import PlainNormal

    rng = np.random.default_rng(4)
    parameters, y = np.stack([3.0 + rng.normal(size=50), rng.normal(size=50)]), rng.normal(size=50)
    own, plain = (manifold(LogScore, kind)(parameters) for kind in (Normal, PlainNormal))
    for name in ("score", "d_score"):
        assert np.array_equal(getattr(own, name)(y), getattr(plain, name)(y))
    assert np.array_equal(own.metric(), plain.metric())
    assert np.array_equal(own.mean(), plain.mean())


@pytest.mark.parametrize("share", [1.0, 0.4])
@pytest.mark.parametrize("weighted", [False, True])
def test_plain_trees_and_stages_are_the_librarys_own_to_the_last_bit(share, weighted):
    ngboost = pytest.importorskip("ngboost")
    from sklearn.tree import DecisionTreeRegressor

    from nescio.estimators.boosting_parts import PlainBooster, PlainTree

    rng = np.random.default_rng(9)
    X = rng.normal(size=(150, 3)).astype(np.float32)
    y = 2.0 + X[:, 0] * np.exp(0.3 * X[:, 1]) + rng.normal(size=150)
    weights = rng.uniform(0.5, 2.0, 150) if weighted else None
    of = lambda part: None if weights is None else weights[part]
    learn, stop, found = slice(0, 100), slice(100, 150), []
    for booster, tree in ((ngboost.NGBRegressor, DecisionTreeRegressor), (PlainBooster, PlainTree)):
        base = tree(max_depth=3, random_state=5)
        model = booster(Base=base, n_estimators=12, minibatch_frac=share, verbose=False, random_state=3)
        named = {"X_val": X[stop], "Y_val": y[stop], "val_sample_weight": of(stop)}
        model.fit(X[learn], y[learn], sample_weight=of(learn), **named)
        found.append((model.pred_param(X), model.best_val_loss_itr, model.scalings))
    for own, plain in zip(*found, strict=True):
        assert np.array_equal(own, plain)


def test_boosting_without_its_library_says_what_to_install(monkeypatch):
    plain = builtins.__import__

    def missing(name, *arguments, **named):
        if name == "ngboost":
            raise ImportError(name)
        return plain(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ValueError, match=r"needs ngboost, .* pip install 'nescio\[peers\]'"):
        NaturalBoostingRegressor().fit(*make_table())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (GaussianProcessRegressor(kernel="linear"), "kernel must be one of 'rbf', 'matern'; got 'linear'"),
        (PseudoCountRegressor(outside=-1.0), "outside must be a positive number in units of y"),
        (PseudoCountRegressor(prior_shape=1.0), "prior_shape must be a finite number that exceeds 1"),
        (NoiseContrastiveRegressor(noise_std=0.0), "noise_std must be a finite number that exceeds 0"),
        (BayesByBackpropRegressor(noise="none"), "noise must be one of"),
        (VBEMRegressor(n_components=0), "n_components must be a whole number of at least 1"),
        (ReliableVarianceRegressor(mean_sampler=(0, 4, 5)), "mean_sampler must be a whole number of at least 1"),
        (NaturalBoostingRegressor(max_stages=0), "max_stages must be a whole number of at least 1"),
        (VBEMRegressor(max_steps=0), "max_steps must be a whole number of at least 1"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_a_bad_parameter_gets_one_sentence(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*make_table(n=20))
