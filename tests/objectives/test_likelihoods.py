"""Losses of networks that say mean and variance, against SciPy, quadrature and the mistakes one might make."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import special, stats
from torch import Tensor
from torch.testing import assert_close

from nescio._validation import InputError
from nescio.distributions import StudentT
from nescio.networks.branched import BranchedMLP
from nescio.objectives.likelihoods import (
    beta_loss,
    evidential_loss,
    evidential_predictive,
    evidential_surprise,
    faithful_loss,
    gaussian_loss,
)


def draw(*bounds: tuple[float, float]) -> list[Tensor]:
    rng = np.random.default_rng(2)
    return [torch.as_tensor(rng.uniform(low, high, size=(5, 2))).requires_grad_() for low, high in bounds]


def test_the_gaussian_loss_is_minus_scipys_log_density_and_beta_zero_is_the_same():
    y, loc, log_variance = draw((-2, 3), (-1, 1), (-3, 2))
    right = -stats.norm.logpdf(*(part.detach().numpy() for part in (y, loc, (0.5 * log_variance).exp())))
    assert_close(gaussian_loss(y, loc, log_variance).detach().numpy(), right, rtol=1e-12, atol=0.0)
    assert_close(beta_loss(y, loc, log_variance, 0.0), gaussian_loss(y, loc, log_variance), rtol=0.0, atol=0.0)
    twins = {
        "no constant": right - 0.5 * math.log(2 * math.pi),
        "log std read as log variance": -stats.norm.logpdf(y.detach(), loc.detach(), log_variance.detach().exp()),
        "not halved": 2 * right,
    }
    for name, wrong in twins.items():
        assert not np.allclose(gaussian_loss(y, loc, log_variance).detach().numpy(), wrong, rtol=1e-3), name
    with pytest.raises(InputError, match="one shape"):
        gaussian_loss(y, loc[:, :1], log_variance)


@pytest.mark.parametrize("beta", [0.25, 0.5, 1.0])
def test_beta_weights_each_point_by_its_variance_and_does_not_differentiate_the_weight(beta):
    y, loc, log_variance = draw((-2, 3), (-1, 1), (-3, 2))
    plain = torch.autograd.grad(gaussian_loss(y, loc, log_variance).sum(), (loc, log_variance))
    weighted = torch.autograd.grad(beta_loss(y, loc, log_variance, beta).sum(), (loc, log_variance))
    for found, without in zip(weighted, plain, strict=True):
        assert_close(found, log_variance.detach().exp() ** beta * without, rtol=1e-12, atol=0.0)
        assert not torch.allclose(found, log_variance.detach().exp() ** (0.5 * beta) * without, rtol=1e-2)
    through = torch.exp(beta * log_variance) * gaussian_loss(y, loc, log_variance)
    assert not torch.allclose(torch.autograd.grad(through.sum(), log_variance)[0], weighted[1], rtol=1e-2)
    if beta == 1.0:
        assert_close(weighted[0], (loc - y).detach(), rtol=1e-12, atol=1e-14)


def integrated(y: float, loc: float, evidence: float, alpha: float, beta: float) -> float:
    """Minus the log of the Gaussian averaged over mean and variance, on a grid fine enough to be exact."""
    centre = math.log(beta / alpha)
    log_variance = np.linspace(centre - 12, centre + 60 / alpha, 4001)
    standard = np.linspace(-12.0, 12.0, 1201)
    variance = np.exp(log_variance)
    prior = stats.invgamma.pdf(variance, alpha, scale=beta) * variance
    mean = loc + np.sqrt(variance / evidence)[:, None] * standard
    inner = (stats.norm.pdf(y, mean, np.sqrt(variance)[:, None]) * stats.norm.pdf(standard)).sum(1)
    return -math.log((prior * inner).sum() * (log_variance[1] - log_variance[0]) * (standard[1] - standard[0]))


@pytest.mark.parametrize(
    ("y", "loc", "evidence", "alpha", "beta"), [(1.7, 0.4, 0.3, 1.6, 0.7), (-2.0, 0.9, 4.0, 6.0, 2.5)]
)
def test_the_evidential_loss_is_the_integral_over_mean_and_variance(y, loc, evidence, alpha, beta):
    values = [torch.tensor(value, dtype=torch.float64) for value in (y, loc, evidence, alpha, beta)]
    found, right = float(evidential_loss(*values)), integrated(y, loc, evidence, alpha, beta)
    assert found == pytest.approx(right, rel=1e-7)

    def printed(omega: float) -> float:
        gammas = special.gammaln(alpha) - special.gammaln(alpha + 0.5)
        inner = math.log(evidence * (y - loc) ** 2 + omega)
        return 0.5 * math.log(math.pi / evidence) - alpha * math.log(omega) + (alpha + 0.5) * inner + gammas

    assert found == pytest.approx(printed(2 * beta * (1 + evidence)), rel=1e-12)
    scale = math.sqrt(beta * (1 + evidence) / (evidence * alpha))
    twins = {
        "half of Omega": printed(beta * (1 + evidence)),
        "df alpha": -stats.t.logpdf(y, alpha, loc, scale),
        "mean known": -stats.t.logpdf(y, 2 * alpha, loc, math.sqrt(beta / alpha)),
        "evidence upside down": -stats.t.logpdf(y, 2 * alpha, loc, math.sqrt(beta * (1 + evidence) / alpha)),
    }
    for name, wrong in twins.items():
        assert wrong != pytest.approx(right, rel=1e-3), name


def test_the_likelihood_cannot_tell_evidence_from_rate():
    y, loc, evidence, concentration, rate = draw((-2, 3), (-1, 1), (0.1, 4), (1.1, 6), (0.1, 3))
    other = 7.0 * evidence
    moved = rate * (1 + evidence) / evidence * other / (1 + other)
    plain = evidential_loss(y, loc, evidence, concentration, rate)
    assert_close(evidential_loss(y, loc, other, concentration, moved), plain, rtol=1e-12, atol=1e-14)
    surprise = evidential_surprise(y, loc, evidence, concentration)
    assert not torch.allclose(evidential_surprise(y, loc, other, concentration), surprise, rtol=1e-2)
    by_hand = (y - loc).abs() * (2 * evidence + concentration)
    assert_close(surprise, by_hand, rtol=1e-14, atol=0.0)
    predictive = evidential_predictive(loc, evidence, concentration, rate)
    variance = rate * (1 + evidence) / (evidence * (concentration - 1))
    assert_close(predictive.variance, variance, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("df", [math.inf, 4.5])
def test_the_faithful_mean_has_the_gradient_of_the_squared_error_and_the_scale_that_of_the_likelihood(df):
    y, loc, scale = draw((-2, 3), (-1, 1), (0.1, 3))
    to_loc, to_scale = torch.autograd.grad(faithful_loss(y, loc, StudentT(df, 0.0, scale)).sum(), (loc, scale))
    assert_close(to_loc, (loc - y).detach(), rtol=1e-12, atol=1e-14)
    likelihood = -StudentT(df, loc, scale).log_prob(y).sum()
    wrong, right = torch.autograd.grad(likelihood, (loc, scale))
    assert_close(to_scale, right, rtol=1e-12, atol=0.0)
    assert not torch.allclose(to_loc, wrong, rtol=1e-2), "the mean must not see the scale"


def test_heads_that_watch_leave_the_trunk_to_the_squared_error():
    streams = [torch.Generator().manual_seed(seed) for seed in range(3)]
    x, y = torch.randn(3, 7, 4, generator=streams[0]), torch.randn(3, 7, 2, generator=streams[1])
    gradients = {}
    for watchers in (1, 0):
        network = BranchedMLP(4, 2, (5, 6), "elu", maps=2, watchers=watchers)
        streams = [torch.Generator().manual_seed(seed) for seed in range(3)]
        parameters = {name: value.requires_grad_() for name, value in network.initialise(streams).items()}
        maps = network(parameters, x)
        loss = faithful_loss(y, maps[:, 0], StudentT(torch.inf, 0.0, torch.nn.functional.softplus(maps[:, 1])))
        gradients[watchers] = torch.autograd.grad(loss.sum(), list(parameters.values()))
    error = 0.5 * (y - network(parameters, x)[:, 0]).square().sum()
    plain = torch.autograd.grad(error, list(parameters.values()))
    trunk = [place for place, name in enumerate(parameters) if name[-1].isdigit()]
    assert len(trunk) == 4
    for place in trunk:
        assert_close(gradients[1][place], plain[place], rtol=1e-5, atol=1e-6)
        assert not torch.allclose(gradients[0][place], plain[place], rtol=1e-2)
    assert maps.shape == (3, 2, 7, 2)
