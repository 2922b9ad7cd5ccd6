"""The Student-t and its mixture against SciPy, mpmath and quadrature, and against the mistakes one might make."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
import scoringrules
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from torch import Tensor
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from nescio._validation import InputError
from nescio.distributions import Gamma, StudentT, StudentTMixture

SHAPES = 1.0 + 10.0 ** np.arange(-6, 7)
RATES = 10.0 ** np.arange(-12, 13, 3)


def double(*values: object) -> tuple[Tensor, ...]:
    return tuple(torch.as_tensor(value, dtype=torch.float64) for value in values)


def assert_mean(samples: Tensor, expected: Tensor, sigmas: float = 5.0) -> None:
    error = samples.std(0) / math.sqrt(len(samples))
    assert bool(((samples.mean(0) - expected).abs() < sigmas * error).all())


class _Called(TorchDispatchMode):
    """Names of the operations that torch carries out."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(func._schema.name)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("number", ["df", "loc", "scale"])
def test_a_number_is_not_copied_from_the_host_which_would_break_a_captured_graph(number):
    df, loc, scale, y = double([3.0, 7.5], [0.3, -1.2], [0.5, 2.0], [1.0, -0.2])
    tensors, values = {"df": df, "loc": loc, "scale": scale}, {"df": math.inf, "loc": 0.7, "scale": 2}
    copy = "aten::lift_fresh"
    with _Called() as wrong:
        torch.tensor(math.inf)
    assert copy in wrong.names
    with _Called() as right:
        dist = StudentT(**tensors | {number: values[number]})
    assert copy not in right.names
    filled = torch.full((2,), float(values[number]), dtype=torch.float64)
    expected = StudentT(**tensors | {number: filled})
    assert getattr(dist, number).dtype == torch.float64
    assert_close(dist.log_prob(y), expected.log_prob(y), rtol=0.0, atol=0.0)


@pytest.mark.parametrize(
    ("y", "loc", "alpha", "beta"), [(1.7, -0.4, 1.2, 0.3), (-2.2, 0.9, 7.5, 4.1), (0.4, 3.1, 30.0, 9.0)]
)
def test_density_is_the_integral_over_the_precision_and_rejects_the_wrong_twins(y, loc, alpha, beta):
    q = stats.gamma(alpha, scale=1 / beta)

    def integrand(log_precision: float) -> float:
        precision = math.exp(log_precision)
        return float(q.pdf(precision) * precision * stats.norm.pdf(y, loc, precision**-0.5))

    centre = math.log(alpha / beta)
    points = [centre - 2, centre]
    evidence = integrate.quad(integrand, centre - 50, centre + 5, points=points, limit=400, epsabs=1e-15, epsrel=1e-13)[
        0
    ]
    right = math.log(evidence)
    y_, loc_ = double(y, loc)
    assert float(StudentT.from_gamma(loc_, Gamma(*double(alpha, beta))).log_prob(y_)) == pytest.approx(right, rel=1e-10)
    twins = {
        "df = alpha": stats.t.logpdf(y, alpha, loc, math.sqrt(beta / alpha)),
        "scale from the variance": stats.t.logpdf(y, 2 * alpha, loc, math.sqrt(beta / (alpha - 1))),
        "squared scale": stats.t.logpdf(y, 2 * alpha, loc, beta / alpha),
        "rate read as scale": stats.t.logpdf(y, 2 * alpha, loc, math.sqrt(1 / (alpha * beta))),
        "exponent alpha - 1/2": stats.t.logpdf(y, 2 * alpha, loc, math.sqrt(beta / alpha))
        + math.log1p((y - loc) ** 2 / (2 * beta)),
        "Gaussian": stats.norm.logpdf(y, loc, math.sqrt(beta / alpha)),
    }
    for name, wrong in twins.items():
        assert wrong != pytest.approx(right, rel=1e-4), name


def exact_log_prob(y: float, df: float, loc: float, scale: float) -> float:
    with mpmath.workdps(50):
        y_, nu, mu, sigma = map(mpmath.mpf, (y, df, loc, scale))
        norm = (
            mpmath.loggamma((nu + 1) / 2) - mpmath.loggamma(nu / 2) - mpmath.log(nu * mpmath.pi) / 2 - mpmath.log(sigma)
        )
        return float(norm - (nu + 1) / 2 * mpmath.log1p(((y_ - mu) / sigma) ** 2 / nu))


def test_log_prob_matches_mpmath_over_the_decades():
    rows = list(itertools.product([0.3, 1.0, 2.000002, 7.0, 300.0, 2e6, 1e10], [1e-9, 0.2, 3e6], [-0.7, 0.11, 5e3]))
    df, scale, y = double(*np.array(rows).T)
    exact = torch.tensor([exact_log_prob(y, df, 0.1, scale) for df, scale, y in rows], dtype=torch.float64)
    assert_close(StudentT(df, 0.1, scale).log_prob(y), exact, rtol=1e-10, atol=1e-12)


def test_log_prob_keeps_its_digits_in_single_precision_at_large_df():
    df = torch.logspace(0, 9, 40)
    y = torch.full_like(df, 1.3)
    exact = torch.tensor([exact_log_prob(float(y[0]), float(nu), 0.0, 1.0) for nu in df], dtype=torch.float64)
    assert_close(StudentT(df).log_prob(y).double(), exact, rtol=0.0, atol=2e-6)
    plain = torch.distributions.StudentT(df).log_prob(y).double()
    assert float((plain - exact).abs().max()) > 1e-2, "the plain formula would have done"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_log_prob_variances_and_gradients_are_finite_over_the_decades(dtype):
    rows = torch.tensor(list(itertools.product(SHAPES, RATES, [-1e3, -0.3, 0.0, 40.0])), dtype=dtype)
    alpha, beta, residual = (column.clone().requires_grad_() for column in rows.T)
    t = StudentT.from_gamma(torch.zeros_like(residual), Gamma(alpha, beta))
    for value in (t.log_prob(residual), t.variance, t.aleatoric_variance, t.epistemic_variance, t.epistemic_factor):
        assert bool(torch.isfinite(value).all())
        for gradient in torch.autograd.grad(value.sum(), (alpha, beta, residual), retain_graph=True, allow_unused=True):
            assert gradient is None or bool(torch.isfinite(gradient).all())


@given(
    st.floats(1.01, 1e4),
    st.floats(1e-4, 1e4),
    st.floats(-3, 3),
    st.floats(0.01, 50),
    st.floats(-9, 9),
    st.floats(-4, 4),
)
@settings(max_examples=60, deadline=None)
def test_affine_maps_shift_the_log_density(alpha, beta, loc, factor, offset, y):
    (y_, loc_, alpha_, beta_) = double(y, loc, alpha, beta)
    plain = StudentT.from_gamma(loc_, Gamma(alpha_, beta_)).log_prob(y_)
    moved = StudentT.from_gamma(factor * loc_ + offset, Gamma(alpha_, factor**2 * beta_)).log_prob(factor * y_ + offset)
    assert_close(moved, plain - math.log(factor), rtol=1e-9, atol=1e-9)


@given(st.floats(1.0001, 1e6), st.floats(1e-6, 1e6))
def test_variances_are_the_paper_s_and_add_up(alpha, beta):
    t = StudentT.from_gamma(*double(0.3), Gamma(*double(alpha, beta)))
    assert float(t.variance) == pytest.approx(beta / (alpha - 1), rel=1e-10)
    assert float(t.aleatoric_variance) == pytest.approx(beta / alpha, rel=1e-12)
    assert float(t.epistemic_variance) == pytest.approx(beta / (alpha * (alpha - 1)), rel=1e-10)
    assert float(t.epistemic_factor) == pytest.approx(alpha / (alpha - 1), rel=1e-10)
    assert float(t.aleatoric_variance + t.epistemic_variance) == pytest.approx(float(t.variance), rel=1e-12)


def test_variance_is_infinite_at_concentration_one():
    t = StudentT.from_gamma(torch.zeros(3), Gamma(torch.tensor([0.4, 0.9, 1.0]), torch.ones(3)))
    assert bool(torch.isinf(t.variance).all())
    assert bool(torch.isinf(t.epistemic_variance).all())
    assert bool(torch.isfinite(t.aleatoric_variance).all())
    assert t.mean.isnan().tolist() == [True, False, False]


@pytest.mark.parametrize("df", [0.7, 1.0, 2.0, 3.3, 40.0, 1e5])
def test_cdf_matches_high_precision_and_icdf_inverts_it(df):
    t = StudentT(*double([df] * 5, [0.4] * 5, [2.5] * 5))
    y = double([-30.0, -1.1, 0.4, 2.0, 9.0])[0]
    with mpmath.workdps(40):
        exact = []
        for value in y.tolist():
            z, nu = (mpmath.mpf(value) - mpmath.mpf(0.4)) / mpmath.mpf(2.5), mpmath.mpf(df)
            tail = mpmath.betainc(nu / 2, mpmath.mpf(1) / 2, 0, nu / (nu + z * z), regularized=True) / 2
            exact.append(float(tail if z <= 0 else 1 - tail))
    assert_close(t.cdf(y), double(exact)[0], rtol=1e-10, atol=1e-15)
    probability = double([1e-6, 0.03, 0.5, 0.8, 0.999])[0]
    assert_close(t.cdf(t.icdf(probability)), probability, rtol=1e-10, atol=0.0)
    assert t.icdf(0.5).tolist() == pytest.approx([0.4] * 5)


@pytest.mark.parametrize("df", [1.3, 2.0, 2.5, 7.0, 90.0, 1e6])
def test_crps_matches_quadrature_and_scoringrules(df):
    loc, scale = -0.6, 1.7
    y = np.array([-8.0, -0.6, 0.2, 5.0])
    score = StudentT(*double(df, loc, scale)).crps(double(y)[0]).numpy()
    if df < 1e5:
        np.testing.assert_allclose(score, scoringrules.crps_t(y, df, loc, scale), rtol=1e-10)
    for value, target in zip(score, y, strict=True):
        below = integrate.quad(lambda x: stats.t.cdf(x, df, loc, scale) ** 2, -np.inf, target, epsabs=1e-12)[0]
        above = integrate.quad(lambda x: stats.t.sf(x, df, loc, scale) ** 2, target, np.inf, epsabs=1e-12)[0]
        assert value == pytest.approx(below + above, rel=1e-7)


def test_crps_tends_to_the_gaussian_one():
    score = StudentT(*double(1e9, 0.5, 2.0)).crps(double(1.3)[0])
    assert float(score) == pytest.approx(float(scoringrules.crps_normal(1.3, 0.5, 2.0)), rel=1e-8)


def test_samples_follow_the_distribution_and_leave_the_global_generator_alone():
    t = StudentT(*double([5.0, 12.0], [0.7, -3.0], [1.4, 0.2]))
    state = torch.get_rng_state()
    samples = t.sample((40_000,), torch.Generator().manual_seed(11))
    again = t.sample((40_000,), torch.Generator().manual_seed(11))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(samples, again)
    assert_mean(samples, t.mean)
    assert_mean((samples - t.mean).square(), t.variance)
    for column, (df, loc, scale) in enumerate([(5.0, 0.7, 1.4), (12.0, -3.0, 0.2)]):
        assert stats.kstest(samples[:, column].numpy(), stats.t(df, loc, scale).cdf).pvalue > 1e-4
    torch.manual_seed(5)
    first = t.sample((3,))
    torch.manual_seed(5)
    assert torch.equal(first, t.sample((3,)))


def test_reparameterised_samples_carry_gradients():
    alpha, beta = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (4.0, 2.0))
    samples = StudentT.from_gamma(torch.tensor(0.3, dtype=torch.float64), Gamma(alpha, beta)).rsample(
        (50_000,), torch.Generator().manual_seed(2)
    )
    to_alpha, to_beta = torch.autograd.grad((samples - 0.3).square().mean(), (alpha, beta))
    assert float(to_beta) == pytest.approx(1 / 3, rel=0.05)
    assert float(to_alpha) == pytest.approx(-2 / 9, rel=0.15)


def test_a_column_against_a_row_is_refused():
    t = StudentT(torch.full((4,), 5.0))
    for call in (t.log_prob, t.cdf, t.crps):
        with pytest.raises(InputError, match="one of these tensors"):
            call(torch.zeros(4, 1))
    with pytest.raises(InputError, match="one of these tensors"):
        StudentT.from_gamma(torch.zeros(4, 1), Gamma(torch.full((4,), 2.0), torch.ones(4)))


def mixture(members: int = 4, points: int = 3, seed: int = 0) -> StudentTMixture:
    generator = torch.Generator().manual_seed(seed)
    df, loc, scale = (torch.rand(members, points, 2, generator=generator, dtype=torch.float64) for _ in range(3))
    return StudentTMixture(StudentT(2.1 + 9 * df, 6 * loc - 2, 0.01 + 3 * scale.square()))


def test_mixture_variance_is_the_sum_of_three_parts_and_matches_quadrature():
    m = mixture()
    assert_close(m.variance, m.aleatoric_variance + m.epistemic_variance + m.mean_variance, rtol=1e-14, atol=0.0)
    df, loc, scale = m.components.df, m.components.loc, m.components.scale
    second = (scale.square() * df / (df - 2) + loc.square()).mean(0)
    assert_close(m.variance, second - m.mean.square(), rtol=1e-10, atol=1e-12)
    sample_variance = loc.var(0)
    assert not torch.allclose(m.mean_variance, sample_variance, rtol=1e-2), "M - 1 is the wrong twin"


def test_mixture_density_and_cdf_are_the_plain_averages():
    m = mixture()
    y = torch.full((3, 2), 0.37, dtype=torch.float64)
    df, loc, scale = (part.numpy() for part in (m.components.df, m.components.loc, m.components.scale))
    assert_close(m.log_prob(y), double(np.log(stats.t.pdf(0.37, df, loc, scale).mean(0)))[0], rtol=1e-10, atol=1e-12)
    assert_close(m.cdf(y), double(stats.t.cdf(0.37, df, loc, scale).mean(0))[0], rtol=1e-10, atol=0.0)
    with pytest.raises(InputError, match="one of these tensors"):
        m.log_prob(torch.zeros(3, 1, 2))


@given(st.floats(1e-9, 1 - 1e-9), st.integers(0, 50), st.sampled_from([1e-4, 1.0, 1e6]))
@settings(max_examples=60, deadline=None)
def test_mixture_quantiles_invert_the_cdf(probability, seed, width):
    m = mixture(seed=seed)
    part = m.components
    m = StudentTMixture(
        StudentT(
            part.df, part.loc, part.scale * torch.tensor([1.0, width, 1.0, 1.0], dtype=torch.float64)[:, None, None]
        )
    )
    quantile = m.icdf(probability)
    assert_close(m.cdf(quantile), torch.full_like(quantile, probability), rtol=1e-7, atol=1e-10)
    assert bool((m.icdf(min(probability + 1e-3, 1 - 1e-10)) >= quantile - 1e-9).all())


def test_mixture_quantiles_handle_equal_members_and_the_ends():
    single = StudentT(*double([4.0, 9.0], [0.3, -1.0], [2.0, 0.1]))
    twins = StudentTMixture(single.expand((3, 2)))
    assert_close(twins.icdf(0.13), single.icdf(0.13), rtol=1e-13, atol=0.0)
    assert twins.icdf(1.0).tolist() == [math.inf, math.inf]
    assert twins.icdf(0.0).tolist() == [-math.inf, -math.inf]
    assert_close(twins.icdf(double([0.2, 0.9])[0]), single.icdf(double([0.2, 0.9])[0]), rtol=1e-13, atol=0.0)


@pytest.mark.parametrize("y", [-20.0, 0.1, 5.001, 60.0])
def test_mixture_crps_matches_adaptive_quadrature(y):
    df, loc, scale = np.array([2.05, 3.0, 40.0]), np.array([-1.0, 0.4, 5.0]), np.array([0.5, 2.0, 0.003])
    m = StudentTMixture(StudentT(*(part[:, None] for part in double(df, loc, scale))))

    def squared_error(x: float) -> float:
        one_sided = stats.t.cdf if x < y else stats.t.sf
        return float(one_sided(x, df, loc, scale).mean() ** 2)

    wide = [-1e6, -1e4, -300, -20, -6, -2, -1, 0, 1, 3, 7, 20, 60, 300, 1e4, 1e6]
    narrow = [4.9, 4.97, 4.99, 5, 5.01, 5.03, 5.1]
    right = sum(
        integrate.quad(squared_error, low, high, epsabs=1e-13, epsrel=1e-12)[0]
        for low, high in itertools.pairwise(sorted({*wide, *narrow, y}))
    )
    assert float(m.crps(double([y])[0])) == pytest.approx(right, rel=1e-10)


@given(st.integers(0, 10_000), st.sampled_from([0.01, 0.5, 20.0]), st.sampled_from([0.05, 1.0, 3.0]))
@settings(max_examples=40, deadline=None)
def test_mixture_crps_does_not_care_how_its_members_lie(seed, spread, widths):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 7))
    df, y = rng.uniform(1.2, 30.0, count), float(rng.normal())
    loc, scale = 0.3 + spread * rng.normal(size=count), 0.7 * np.exp(widths * rng.normal(size=count))
    m = StudentTMixture(StudentT(*(part[:, None] for part in double(df, loc, scale))))

    # A grid for each member and the union of all: far finer than it need be. Only 1e-13 of the tail is left out.
    reach = np.concatenate([-(2.0 ** np.arange(40.0))[::-1], [0.0], 2.0 ** np.arange(40.0)])
    breaks = np.unique(np.concatenate([(loc[:, None] + scale[:, None] * reach).ravel(), [y]]))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = 0.5 * np.diff(breaks)[:, None]
    x = (breaks[:-1, None] + half * (1.0 + nodes))[..., None]
    error = stats.t.cdf(np.where(x < y, 1.0, -1.0) * (x - loc) / scale, df).mean(-1)
    assert float(m.crps(double([y])[0])) == pytest.approx(float((error**2 * half * weights).sum()), rel=1e-10)


def test_mixture_takes_values_with_sample_axes():
    m = mixture(members=4, points=3)
    y = torch.linspace(-2.0, 3.0, 4 * 3 * 2, dtype=torch.float64).reshape(4, 3, 2)  # as many samples as members
    for function in (m.log_prob, m.cdf, m.crps):
        assert_close(function(y), torch.stack([function(row) for row in y]), rtol=1e-12, atol=0.0)
    p = torch.tensor([0.1, 0.4, 0.6, 0.95], dtype=torch.float64)
    assert_close(
        m.icdf(p[:, None, None].expand(4, 3, 2)), torch.stack([m.icdf(float(q)) for q in p]), rtol=1e-12, atol=0.0
    )


def test_mixture_crps_of_equal_members_is_the_closed_form():
    for df in (1.4, 2.0, 5.5, 200.0):
        single = StudentT(*double([df, df], [0.3, -1.0], [2.0, 1e-4]))
        y = double([1.1, -0.99])[0]
        assert_close(StudentTMixture(single.expand((2, 2))).crps(y), single.crps(y), rtol=2e-10, atol=0.0)
        assert torch.equal(StudentTMixture(single.expand((1, 2))).crps(y), single.crps(y))


def test_mixture_crps_is_a_distance_far_away_and_scales_with_the_units():
    m = mixture()
    y = torch.full((3, 2), 2.7, dtype=torch.float64)
    part = m.components
    scaled = StudentTMixture(StudentT(part.df, 10 * part.loc, 10 * part.scale))
    assert_close(scaled.crps(10 * y), 10 * m.crps(y), rtol=1e-10, atol=0.0)
    step = m.crps(torch.full_like(y, 1e7)) - m.crps(torch.full_like(y, 1e7 - 1))
    assert_close(step, torch.ones_like(step), rtol=1e-6, atol=0.0)


def test_mixture_samples_follow_the_mixture():
    m = mixture()
    state = torch.get_rng_state()
    samples = m.sample((20_000,), torch.Generator().manual_seed(4))
    assert torch.equal(torch.get_rng_state(), state)
    assert samples.shape == (20_000, 3, 2)
    probability = m.cdf(samples)
    for values in probability.reshape(20_000, 6).T:
        assert stats.kstest(values.numpy(), "uniform").pvalue > 1e-4


def test_mixture_refuses_components_without_a_member_axis():
    with pytest.raises(InputError, match="members on the first axis"):
        StudentTMixture(StudentT(3.0))


def test_single_precision_in_gives_single_precision_out():
    m = StudentTMixture(StudentT(torch.full((2, 3), 4.0), torch.zeros(2, 3), torch.ones(2, 3)))
    y = torch.full((3,), 0.3)
    for value in (m.cdf(y), m.icdf(0.3), m.crps(y), m.log_prob(y), m.variance, m.sample((2,)), m.components.crps(y)):
        assert value.dtype == torch.float32
