"""Gaussian mixtures against SciPy, scikit-learn, autograd and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import multivariate_normal
from sklearn.mixture import BayesianGaussianMixture
from sklearn.mixture import GaussianMixture as SklearnMixture
from torch.testing import assert_close

from nescio._validation import InputError
from nescio.densities import GaussianMixture, fit_gaussian_mixture

TYPES = ["spherical", "diag", "full"]


def mixture(kind: str, components: int = 3, features: int = 2, seed: int = 0) -> GaussianMixture:
    g = torch.Generator().manual_seed(seed)
    weights = torch.rand(components, generator=g, dtype=torch.float64) + 0.1
    means = 2.0 * torch.randn(components, features, generator=g, dtype=torch.float64) + 0.7
    if kind == "spherical":
        factors = 0.5 + torch.rand(components, generator=g, dtype=torch.float64)
    elif kind == "diag":
        factors = 0.5 + torch.rand(components, features, generator=g, dtype=torch.float64)
    else:
        factors = torch.randn(components, features, features, generator=g, dtype=torch.float64).triu(1)
        factors = factors + torch.diag_embed(0.5 + torch.rand(components, features, generator=g, dtype=torch.float64))
    return GaussianMixture(weights, means, factors, kind)


def precision_matrices(density: GaussianMixture) -> np.ndarray:
    """L L^T per component, written out for each kind."""
    features = density.means.shape[1]
    factors = density.precisions_cholesky.numpy()
    if density.covariance_type == "spherical":
        return np.stack([np.eye(features) * f**2 for f in factors])
    if density.covariance_type == "diag":
        return np.stack([np.diag(f**2) for f in factors])
    return np.stack([f @ f.T for f in factors])


def scipy_log_prob(density: GaussianMixture, x: np.ndarray) -> np.ndarray:
    covariances = np.linalg.inv(precision_matrices(density))
    terms = [multivariate_normal(m, c).logpdf(x) for m, c in zip(density.means.numpy(), covariances, strict=True)]
    return np.logaddexp.reduce(np.stack(terms) + np.log(density.weights.numpy())[:, None], axis=0)


@pytest.mark.parametrize("kind", TYPES)
def test_log_prob_agrees_with_scipy(kind):
    density = mixture(kind)
    x = np.random.default_rng(1).normal(size=(50, 2)) * 4
    assert_close(density.log_prob(torch.tensor(x)), torch.tensor(scipy_log_prob(density, x)), rtol=1e-10, atol=1e-10)


def test_a_factor_taken_for_its_transpose_or_its_inverse_is_noticed():
    density = mixture("full")
    x = torch.tensor(np.random.default_rng(1).normal(size=(20, 2)))
    expected = torch.tensor(scipy_log_prob(density, x.numpy()))
    factors = density.precisions_cholesky
    for wrong in (factors.mT, torch.linalg.inv(factors)):
        twin = GaussianMixture(density.weights, density.means, wrong, "full")
        assert (twin.log_prob(x) - expected).abs().max() > 1e-2


@pytest.mark.parametrize("kind", TYPES)
def test_the_density_integrates_to_one(kind):
    density = mixture(kind)
    grid = np.linspace(-25, 25, 1001)
    mesh = torch.tensor(np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1))
    mass = integrate.trapezoid(integrate.trapezoid(density.log_prob(mesh).exp().numpy(), grid), grid)
    assert abs(mass - 1) < 1e-8


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("features", [1, 2, 7])
def test_the_score_is_the_gradient_of_log_prob(kind, features):
    density = mixture(kind, components=4, features=features)
    x = torch.randn(30, features, generator=torch.Generator().manual_seed(3), dtype=torch.float64) * 3
    x.requires_grad_(True)
    (gradient,) = torch.autograd.grad(density.log_prob(x).sum(), x)
    assert_close(density.score(x.detach()), gradient, rtol=1e-10, atol=1e-10)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("bayesian", [True, False])
def test_a_fitted_mixture_scores_as_scikit_learn_does(kind, bayesian):
    X = np.random.default_rng(5).normal(size=(150, 3)) * [1.0, 0.3, 2.0] + [0.0, 4.0, -1.0]
    density = fit_gaussian_mixture(torch.tensor(X), 5, kind, bayesian, seed=2, min_weight=0.0)
    family = BayesianGaussianMixture if bayesian else SklearnMixture
    oracle = family(n_components=5, covariance_type=kind, random_state=2).fit(X)
    if (
        bayesian
    ):  # score_samples of the Bayesian mixture is the variational bound, so a plain one is given its parameters
        plain = SklearnMixture(n_components=5, covariance_type=kind)
        plain.weights_, plain.means_ = oracle.weights_ / oracle.weights_.sum(), oracle.means_
        plain.precisions_cholesky_ = oracle.precisions_cholesky_
        oracle = plain
    assert_close(density.log_prob(torch.tensor(X)), torch.tensor(oracle.score_samples(X)), rtol=1e-10, atol=1e-10)


@given(st.sampled_from(TYPES), st.integers(0, 10**6), st.floats(-50, 50))
@settings(max_examples=40, deadline=None)
def test_translation_moves_the_density_with_the_data(kind, seed, shift):
    density = mixture(kind, seed=seed)
    moved = GaussianMixture(density.weights, density.means + shift, density.precisions_cholesky, kind)
    x = torch.randn(8, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 3
    assert_close(moved.log_prob(x + shift), density.log_prob(x), rtol=1e-8, atol=1e-8)
    assert_close(moved.score(x + shift), density.score(x), rtol=1e-8, atol=1e-8)


@given(st.sampled_from(["spherical", "full"]), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_rotation_turns_the_density_with_the_data(kind, seed):
    density = mixture(kind, features=3, seed=seed)
    g = torch.Generator().manual_seed(seed + 1)
    rotation = torch.linalg.qr(torch.randn(3, 3, generator=g, dtype=torch.float64)).Q
    factors = density.precisions_cholesky if kind == "spherical" else rotation @ density.precisions_cholesky
    if (
        kind == "full"
    ):  # back to triangular, L Q = any square root of the precision; the sign of the diagonal is positive
        lower = torch.linalg.cholesky(factors.flip(-2) @ factors.flip(-2).mT)
        factors = lower.flip(-1, -2)
    turned = GaussianMixture(density.weights, density.means @ rotation.T, factors, kind)
    x = torch.randn(8, 3, generator=g, dtype=torch.float64) * 3
    assert_close(turned.log_prob(x @ rotation.T), density.log_prob(x), rtol=1e-8, atol=1e-8)
    assert_close(turned.score(x @ rotation.T), density.score(x) @ rotation.T, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("distance", [1e0, 1e2, 1e4, 1e6])
def test_nothing_underflows_in_81_dimensions(dtype, distance):
    X = torch.randn(60, 81, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    density = fit_gaussian_mixture(X, 10)
    far = (X[:5] + distance).to(dtype)
    log_prob, score = density.log_prob(far), density.score(far)
    assert log_prob.dtype == score.dtype == dtype
    assert torch.isfinite(log_prob).all()
    assert torch.isfinite(score).all()
    assert (score.double() * (density.mean - far.double())).sum(dim=-1).min() > 0  # it still points back to the data


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("bayesian", [True, False])
def test_degenerate_tables_can_be_fitted(kind, bayesian):
    g = torch.Generator().manual_seed(0)
    rows = torch.randn(20, 3, generator=g, dtype=torch.float64)
    constant = rows.clone()
    constant[:, 1] = 4.2
    tables = {
        "one row": rows[:1],
        "repeats": rows[:2].repeat(10, 1),
        "constant": constant,
        "all alike": rows[:1].repeat(9, 1),
    }
    for name, table in tables.items():
        density = fit_gaussian_mixture(table, covariance_type=kind, bayesian=bayesian)
        assert torch.isfinite(density.log_prob(table)).all(), name
        assert torch.isfinite(density.score(rows)).all(), name
        assert len(density.means) <= len(torch.unique(table, dim=0)), name


def test_light_components_are_dropped_and_the_rest_sum_to_one():
    X = torch.randn(300, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    density = fit_gaussian_mixture(X, min_weight=1e-2)
    assert 1 <= len(density.means) < 300
    assert_close(density.weights.sum(), torch.tensor(1.0, dtype=torch.float64), rtol=1e-12, atol=0)
    assert len(fit_gaussian_mixture(X, 3, min_weight=0.999).means) >= 1


@pytest.mark.parametrize("kind", TYPES)
def test_samples_have_the_moments_of_the_mixture(kind):
    density = mixture(kind)
    draws = density.sample((40_000,), torch.Generator().manual_seed(1))
    covariances = np.linalg.inv(precision_matrices(density))
    means, weights = density.means.numpy(), density.weights.numpy()
    mean = weights @ means
    assert_close(density.mean, torch.tensor(mean))
    covariance = np.einsum("k,kde->de", weights, covariances + np.einsum("kd,ke->kde", means - mean, means - mean))
    deviation = draws.numpy() - mean
    assert np.all(np.abs(deviation.mean(axis=0)) < 5 * np.sqrt(np.diag(covariance) / 40_000))
    products = np.einsum("nd,ne->nde", deviation, deviation)
    assert np.all(np.abs(products.mean(axis=0) - covariance) < 5 * products.std(axis=0) / np.sqrt(40_000))


def test_sampling_leaves_the_global_generator_alone_and_repeats_itself():
    density = mixture("diag")
    state = torch.get_rng_state()
    first = density.sample((2, 3), torch.Generator().manual_seed(5))
    assert torch.equal(state, torch.get_rng_state())
    assert first.shape == (2, 3, 2)
    assert torch.equal(first, density.sample((2, 3), torch.Generator().manual_seed(5)))
    assert density.sample().shape == (2,)


def test_fitting_is_a_function_of_the_seed_and_leaves_global_generators_alone():
    X = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again = fit_gaussian_mixture(X, 4, seed=3), fit_gaussian_mixture(X, 4, seed=3)
    assert torch.equal(first.means, again.means)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_a_point_does_not_depend_on_its_batch_and_shapes_follow():
    density = mixture("diag", components=300, features=40)
    x = torch.randn(500, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)  # several blocks
    whole = density.log_prob(x)
    assert_close(whole[450:451], density.log_prob(x[450:451]), rtol=1e-13, atol=0)
    assert density.score(x.reshape(5, 100, 40)).shape == (5, 100, 40)
    assert density.log_prob(x[0]).shape == ()
    assert density.log_prob(x[:0]).shape == (0,)
    assert density.score(x[:0]).shape == (0, 40)


def test_bad_arguments_are_named():
    one = torch.ones(2)
    with pytest.raises(InputError, match="covariance_type must be one of"):
        GaussianMixture(one, torch.zeros(2, 3), one, "tied")
    with pytest.raises(InputError, match=r"precisions_cholesky must have shape \(2, 3\) for diag"):
        GaussianMixture(one, torch.zeros(2, 3), one, "diag")
    with pytest.raises(InputError, match=r"means must be a table \(K, D\) with at least 1 component; got \(0, 3\)"):
        GaussianMixture(one, torch.zeros(0, 3), one, "spherical")
    with pytest.raises(InputError, match=r"covariance_type must be one of .*; got 'tied'"):
        fit_gaussian_mixture(torch.zeros(4, 2), covariance_type="tied")
    with pytest.raises(InputError, match="n_components must be a whole number of at least 1; got 0"):
        fit_gaussian_mixture(torch.zeros(4, 2), 0)
    with pytest.raises(InputError, match="none negative"):
        GaussianMixture(-one, torch.zeros(2, 3), one, "spherical")
    with pytest.raises(InputError, match="x must have 2 features"):
        mixture("diag").log_prob(torch.zeros(4, 1))
