"""The Gamma divergence and the expected log-density against oracles, and against the mistakes one might make."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats
from torch import Tensor
from torch.testing import assert_close

from nescio._validation import InputError
from nescio.distributions import Gamma, StudentT, expected_log_prob, gamma_kl
from nescio.distributions.gamma import _divergence, _GammaKL
from nescio.distributions.special import exp_minus_tangent, log_gamma_half_step, stirling_remainder

PARAMETERS = [(1.3, 0.7, 2.9, 0.4), (6.1, 5.2, 1.4, 0.9), (0.6, 2.5, 3.7, 8.1), (41.0, 3.0, 17.0, 2.2)]
SHAPES = 1.0 + 10.0 ** np.arange(-6, 7)
RATES = 10.0 ** np.arange(-12, 13, 3)
positive = st.floats(1e-2, 1e3)


def double(*values: float) -> tuple[Tensor, ...]:
    return tuple(torch.tensor(value, dtype=torch.float64) for value in values)


def kl(alpha: float, beta: float, a: float, b: float) -> float:
    alpha_, beta_, a_, b_ = double(alpha, beta, a, b)
    return float(gamma_kl(Gamma(alpha_, beta_), Gamma(a_, b_)))


def exact_kl(alpha: float, beta: float, a: float, b: float) -> float:
    with mpmath.workdps(60):
        alpha_, beta_, a_, b_ = map(mpmath.mpf, (alpha, beta, a, b))
        shapes = (alpha_ - a_) * mpmath.digamma(alpha_) - mpmath.loggamma(alpha_) + mpmath.loggamma(a_)
        return float(shapes + a_ * mpmath.log(beta_ / b_) + alpha_ * (b_ - beta_) / beta_)


def quadrature_kl(alpha: float, beta: float, a: float, b: float) -> float:
    q, p = stats.gamma(alpha, scale=1 / beta), stats.gamma(a, scale=1 / b)

    def integrand(log_precision: float) -> float:
        precision = math.exp(log_precision)
        return float(q.pdf(precision) * (q.logpdf(precision) - p.logpdf(precision)) * precision)

    centre, width = math.log(alpha / beta), 1 / math.sqrt(alpha)
    low, high = centre - 60 * max(width, 1 / alpha), centre + 12 * width + 2
    points = [centre + k * width for k in (-8, -3, 0, 2)]
    return float(integrate.quad(integrand, low, high, points=points, limit=400, epsabs=1e-13, epsrel=1e-12)[0])


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_kl_matches_quadrature_over_the_precision(parameters):
    assert kl(*parameters) == pytest.approx(quadrature_kl(*parameters), rel=1e-10)


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_kl_comparison_rejects_the_wrong_twins(parameters):
    alpha, beta, a, b = parameters
    right = quadrature_kl(*parameters)
    digamma, lgamma = (lambda x: float(mpmath.digamma(x))), math.lgamma
    shapes = (alpha - a) * digamma(alpha) - lgamma(alpha) + lgamma(a)
    twins = {
        "swapped arguments": kl(a, b, alpha, beta),
        "rates read as scales": kl(alpha, 1 / beta, a, 1 / b),
        "digamma of the prior": kl(*parameters) + (alpha - a) * (digamma(a) - digamma(alpha)),
        "log-rate weighted by the posterior shape": shapes + alpha * math.log(beta / b) + alpha * (b - beta) / beta,
        "rate term weighted by the prior shape": shapes + a * math.log(beta / b) + a * (b - beta) / beta,
        "sign of the log-rates": shapes - a * math.log(beta / b) + alpha * (b - beta) / beta,
    }
    for name, wrong in twins.items():
        assert wrong != pytest.approx(right, rel=1e-3), name


def test_kl_keeps_ten_digits_over_all_decades_in_double_precision():
    rows = list(itertools.product(SHAPES[::2], RATES[::4], SHAPES[::3], RATES[::4]))
    alpha, beta, a, b = torch.tensor(rows, dtype=torch.float64).T
    exact = torch.tensor([exact_kl(*row) for row in rows], dtype=torch.float64)
    assert_close(gamma_kl(Gamma(alpha, beta), Gamma(a, b)), exact, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("shape", [1.2, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("step", [1e-2, 1e-4, 1e-6])
def test_kl_of_close_neighbours_does_not_cancel(shape, step):
    alpha, beta, a, b = shape * (1 + step), 0.3 * (1 - 2 * step), shape, 0.3
    exact = exact_kl(alpha, beta, a, b)
    assert kl(alpha, beta, a, b) == pytest.approx(exact, abs=4e-16 * shape * step * 10 + 2e-14)
    if shape >= 1e6:
        naive = torch.distributions.kl_divergence(Gamma(*double(alpha, beta)), Gamma(*double(a, b)))
        assert abs(float(naive) - exact) > 1e-10, "the plain formula would have done"


def test_kl_in_single_precision_is_right_over_the_decades():
    rows = np.array(list(itertools.product(SHAPES, RATES[::2], SHAPES, RATES[::2])))
    single = torch.tensor(rows, dtype=torch.float32)
    alpha, beta, a, b = single.T
    reference = gamma_kl(Gamma(*single.double().T[:2]), Gamma(*single.double().T[2:]))
    value = gamma_kl(Gamma(alpha, beta), Gamma(a, b)).double()
    below_the_tangent = reference < 1e16
    error = (value - reference).abs() / (reference + (a.double() * reference).sqrt() + 1.0)  # sqrt: a h(s) at rounded s
    assert float(error[below_the_tangent].max()) < 2e-5
    assert bool((value[~below_the_tangent] > 1e15).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("divergence", [_GammaKL.apply, _divergence], ids=["eager", "compiled"])
def test_kl_and_its_gradient_are_finite_over_the_decades(dtype, divergence):
    rows = torch.tensor(list(itertools.product(SHAPES, RATES, SHAPES, RATES)), dtype=dtype)
    parts = [column.clone().requires_grad_() for column in rows.T]
    value = divergence(*parts)
    assert bool(torch.isfinite(value).all())
    assert float(value.detach().min()) > -5e-6
    for gradient in torch.autograd.grad(value.sum(), parts):
        assert bool(torch.isfinite(gradient).all())


@given(positive, positive, positive, positive, st.floats(1e-3, 1e3))
@settings(max_examples=150, deadline=None)
def test_kl_is_positive_and_does_not_depend_on_the_unit_of_the_precision(alpha, beta, a, b, unit):
    value = kl(alpha, beta, a, b)
    assert value >= -1e-12
    assert kl(alpha, beta * unit, a, b * unit) == pytest.approx(value, rel=1e-10, abs=1e-10)


@given(positive, positive)
def test_kl_of_a_distribution_from_itself_is_zero(alpha, beta):
    assert kl(alpha, beta, alpha, beta) == pytest.approx(0.0, abs=1e-13)


@given(positive, positive, positive, positive)
@settings(max_examples=30, deadline=None)
def test_kl_gradient_matches_high_precision_differences(alpha, beta, a, b):
    parts = [part.requires_grad_() for part in double(alpha, beta, a, b)]
    gradients = torch.autograd.grad(gamma_kl(Gamma(*parts[:2]), Gamma(*parts[2:])), parts)
    with mpmath.workdps(50):
        m = [mpmath.mpf(x) for x in (alpha, beta, a, b)]
        exact = (
            (m[0] - m[2]) * mpmath.polygamma(1, m[0]) + m[3] / m[1] - 1,
            m[2] / m[1] - m[0] * m[3] / m[1] ** 2,
            mpmath.digamma(m[2]) - mpmath.digamma(m[0]) + mpmath.log(m[1] / m[3]),
            m[0] / m[1] - m[2] / m[3],
        )
    sizes = (m[3] / m[1] + 1, (m[2] + m[0] * m[3] / m[1]) / m[1], 10, m[0] / m[1] + m[2] / m[3])
    for gradient, right, size in zip(gradients, exact, sizes, strict=True):
        assert float(gradient) == pytest.approx(float(right), rel=1e-8, abs=1e-9 * float(size))  # trigamma


def test_kl_gradients_pass_gradcheck_twice_and_broadcast_back():
    q = [torch.rand(4, 3, 2, dtype=torch.float64).add(low).requires_grad_() for low in (1.1, 0.2)]
    p = [torch.rand(2, dtype=torch.float64).add(low).requires_grad_() for low in (1.3, 0.4)]
    function = lambda alpha, beta, a, b: gamma_kl(Gamma(alpha, beta), Gamma(a, b))
    assert torch.autograd.gradcheck(function, (*q, *p))
    assert torch.autograd.gradgradcheck(function, (*q, *p))


def test_kl_refuses_a_prior_that_would_enlarge_the_posterior():
    q = Gamma(torch.full((5,), 2.0), torch.ones(5))
    with pytest.raises(InputError, match=r"p must broadcast to the shape of q, \(5,\); got \(5, 1\)"):
        gamma_kl(q, Gamma(torch.full((5, 1), 2.0), torch.ones(5, 1)))
    with pytest.raises(InputError, match="p must broadcast"):
        gamma_kl(q, Gamma(torch.full((3,), 2.0), torch.ones(3)))


@pytest.mark.parametrize(
    ("y", "loc", "alpha", "beta"), [(1.7, -0.4, 1.2, 0.3), (-2.2, 0.9, 7.5, 4.1), (0.4, 3.1, 55.0, 2.0)]
)
def test_expected_log_prob_matches_quadrature_and_rejects_the_wrong_twins(y, loc, alpha, beta):
    q = stats.gamma(alpha, scale=1 / beta)

    def integrand(log_precision: float) -> float:
        precision = math.exp(log_precision)
        return float(q.pdf(precision) * precision * stats.norm.logpdf(y, loc, precision**-0.5))

    centre = math.log(alpha / beta)
    right = integrate.quad(integrand, centre - 50, centre + 4, points=[centre], limit=400, epsabs=1e-13, epsrel=1e-12)[
        0
    ]
    value = float(expected_log_prob(*double(y, loc), Gamma(*double(alpha, beta))))
    assert value == pytest.approx(right, rel=1e-10)
    psi, square = float(mpmath.digamma(alpha)), (y - loc) ** 2
    twins = {
        "missing half": 2 * value,
        "log of the mean": 0.5 * (math.log(alpha / beta) - math.log(2 * math.pi) - alpha / beta * square),
        "rate read as scale": 0.5 * (psi + math.log(beta) - math.log(2 * math.pi) - alpha * beta * square),
        "missing 2 pi": 0.5 * (psi - math.log(beta) - alpha / beta * square),
        "plug-in variance": float(stats.norm.logpdf(y, loc, math.sqrt(beta / (alpha - 1)))),
        "marginal instead of mean": float(
            StudentT.from_gamma(double(loc)[0], Gamma(*double(alpha, beta))).log_prob(double(y)[0])
        ),
    }
    for name, wrong in twins.items():
        assert wrong != pytest.approx(right, rel=1e-6), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_expected_log_prob_and_its_gradient_are_finite_over_the_decades(dtype):
    rows = torch.tensor(list(itertools.product(SHAPES, RATES, [-1e3, -0.3, 0.0, 2e-5, 40.0])), dtype=dtype)
    alpha, beta, residual = (column.clone().requires_grad_() for column in rows.T)
    value = expected_log_prob(residual, torch.zeros_like(residual), Gamma(alpha, beta))
    for tensor in (value, *torch.autograd.grad(value.sum(), (alpha, beta, residual))):
        assert bool(torch.isfinite(tensor).all())


def test_expected_log_prob_refuses_a_column_against_a_row():
    q = Gamma(torch.full((4, 1), 2.0), torch.ones(4, 1))
    with pytest.raises(InputError, match="must have one shape"):
        expected_log_prob(torch.zeros(4), torch.zeros(4, 1), q)


@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(1.001, 1e4), st.floats(1e-4, 1e4))
@settings(max_examples=150, deadline=None)
def test_elbo_is_tight_at_the_conjugate_posterior(y, loc, concentration, rate):
    y_, loc_, a, b = double(y, loc, concentration, rate)
    prior = Gamma(a, b)
    q = prior.condition(y_ - loc_)
    parts = [q.concentration.clone().requires_grad_(), q.rate.clone().requires_grad_()]
    bound = expected_log_prob(y_, loc_, Gamma(*parts)) - gamma_kl(Gamma(*parts), prior)
    evidence = StudentT.from_gamma(loc_, prior).log_prob(y_)
    assert_close(bound.detach(), evidence, rtol=1e-12, atol=2e-13)
    to_shape, to_rate = torch.autograd.grad(bound, parts)
    assert abs(float(to_shape)) < 1e-12 * (1 + float((y_ - loc_) ** 2 / q.rate))
    assert abs(float(to_rate * q.rate)) < 1e-12 * float(q.concentration)


def test_elbo_is_tight_nowhere_else():
    y, loc = double(1.9, 0.4)
    prior = Gamma(*double(2.3, 0.8))
    evidence = float(StudentT.from_gamma(loc, prior).log_prob(y))
    residual = y - loc
    for q in (
        prior,
        Gamma(prior.concentration + 1.0, prior.rate + 0.5 * residual.square()),
        Gamma(prior.concentration + 0.5, prior.rate + residual.square()),
        Gamma(prior.concentration + 0.5, prior.rate + 0.5 * residual.abs()),
    ):
        assert float(expected_log_prob(y, loc, q) - gamma_kl(q, prior)) < evidence - 1e-3


@pytest.mark.parametrize("z", [1e-6, 0.02, 0.5, 1.0, 1.000001, 2.7, 8.0, 33.3, 1e3, 1e6, 1e9])
def test_special_functions_match_mpmath(z):
    (argument,) = double(z)
    with mpmath.workdps(60):
        m = mpmath.mpf(z)
        remainder = mpmath.loggamma(m) - (m - 0.5) * mpmath.log(m) + m - mpmath.log(2 * mpmath.pi) / 2
        slope = mpmath.digamma(m) - mpmath.log(m) + 1 / (2 * m)
        half_step = mpmath.loggamma(m + 0.5) - mpmath.loggamma(m) - mpmath.log(m) / 2
    value, derivative = stirling_remainder(argument)
    assert float(value) == pytest.approx(float(remainder), abs=2e-14)
    assert float(derivative) == pytest.approx(float(slope), rel=1e-13, abs=1e-14 / min(z, 1e6))
    assert float(log_gamma_half_step(argument)) == pytest.approx(float(half_step), abs=2e-14)
    single = argument.float()
    assert float(stirling_remainder(single)[0]) == pytest.approx(float(remainder), rel=1e-6, abs=2e-6)
    assert float(log_gamma_half_step(single)) == pytest.approx(float(half_step), rel=1e-6, abs=2e-6)


@given(st.floats(-40, 40))
def test_exp_minus_tangent_is_the_convex_gap(x):
    with mpmath.workdps(60):
        exact = float(mpmath.expm1(mpmath.mpf(x)) - mpmath.mpf(x))
    assert float(exp_minus_tangent(double(x)[0])) == pytest.approx(exact, rel=1e-12, abs=4e-16 * abs(x))


def test_exp_minus_tangent_goes_on_as_a_line_with_its_slope():
    x = torch.tensor([39.0, 41.0, 80.0], requires_grad=True)
    value = exp_minus_tangent(x)
    (slope,) = torch.autograd.grad(value.sum(), x)
    assert_close(slope, torch.tensor([math.exp(39.0), math.exp(40.0), math.exp(40.0)]), rtol=1e-5, atol=0.0)
    assert_close(
        value.detach(), torch.tensor([math.exp(39.0), 2 * math.exp(40.0), 41 * math.exp(40.0)]), rtol=1e-5, atol=0.0
    )


def test_gamma_is_a_torch_gamma_with_the_usual_surroundings():
    gamma = Gamma(torch.tensor([1.5, 3.0]), 0.5)
    assert isinstance(gamma, torch.distributions.Gamma)
    assert gamma.batch_shape == (2,)
    assert gamma.expand((4, 2)).batch_shape == (4, 2)
    assert_close(gamma.mean, torch.tensor([3.0, 6.0]))
    reference = torch.distributions.Gamma(torch.tensor([1.5, 3.0]), torch.tensor([0.5, 0.5]))
    assert_close(gamma.log_prob(torch.tensor([0.3, 2.0])), reference.log_prob(torch.tensor([0.3, 2.0])))
    with pytest.raises(ValueError, match="concentration"):
        Gamma(torch.tensor([-1.0]), torch.tensor([1.0]), validate_args=True)
    with pytest.raises(InputError, match="one of these tensors"):
        gamma.condition(torch.zeros(2, 1))


def hot_loss(concentration: Tensor, rate: Tensor, y: Tensor, prior_rate: Tensor) -> Tensor:
    q, prior = Gamma(concentration, rate), Gamma(torch.full_like(prior_rate, 1.5), prior_rate)
    return (gamma_kl(q, prior) - expected_log_prob(y, torch.zeros_like(y), q)).sum()


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: torch.func.grad(f, argnums=(0, 1)),
        lambda f: torch.func.vmap(torch.func.grad(f, argnums=(0, 1)), in_dims=(0, 0, 0, None)),
        lambda f: torch.compile(torch.func.grad(f, argnums=(0, 1)), fullgraph=True, backend="aot_eager"),
        lambda f: torch.compile(
            torch.func.vmap(torch.func.grad(f, argnums=(0, 1)), in_dims=(0, 0, 0, None)),
            fullgraph=True,
            backend="aot_eager",
        ),
    ],
    ids=["grad", "vmap", "compile", "compile-vmap"],
)
def test_hot_functions_trace_through_every_transform(transform):
    torch.manual_seed(3)
    parts = [torch.rand(4, 6, 2, dtype=torch.float64) + low for low in (1.1, 0.2)]
    y, prior_rate = torch.randn(4, 6, 2, dtype=torch.float64), torch.tensor([0.7, 0.2], dtype=torch.float64)
    leaves = [part.clone().requires_grad_() for part in parts]
    expected = torch.autograd.grad(hot_loss(*leaves, y, prior_rate), leaves)
    torch.compiler.reset()
    assert_close(transform(hot_loss)(*parts, y, prior_rate), expected, rtol=1e-7, atol=1e-8)


def test_hot_functions_compile_for_plain_autograd():
    torch.compiler.reset()
    leaves = [torch.full((3, 2), value, dtype=torch.float64, requires_grad=True) for value in (2.2, 0.7)]
    y, prior_rate = torch.full((3, 2), 0.4, dtype=torch.float64), torch.tensor([0.7, 0.2], dtype=torch.float64)
    compiled = torch.compile(hot_loss, fullgraph=True, backend="aot_eager")
    expected = torch.autograd.grad(hot_loss(*leaves, y, prior_rate), leaves)
    assert_close(torch.autograd.grad(compiled(*leaves, y, prior_rate), leaves), expected, rtol=1e-7, atol=1e-8)


def test_a_compiled_mean_of_the_logarithm_is_the_same_in_plain_arithmetic():
    traced = torch.compile(lambda shape, rate: Gamma(shape, rate).mean_log, backend="eager", fullgraph=True)
    shape = torch.logspace(-3, 6, 40, dtype=torch.float64, requires_grad=True)
    rate = torch.logspace(5, -7, 40, dtype=torch.float64)
    value = traced(shape, rate)
    expected = special.digamma(shape.detach().numpy()) - np.log(rate.numpy())
    np.testing.assert_allclose(value.detach(), expected, rtol=1e-12, atol=1e-12)
    (slope,) = torch.autograd.grad(value.sum(), shape)
    np.testing.assert_allclose(slope, special.polygamma(1, shape.detach().numpy()), rtol=1e-9)
    single = shape.detach().float().requires_grad_()
    value = traced(single, rate.float())
    np.testing.assert_allclose(value.detach(), expected, rtol=3e-6, atol=3e-6)
    assert torch.isfinite(torch.autograd.grad(value.sum(), single)[0]).all()
