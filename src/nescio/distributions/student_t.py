"""The Student-t distribution: a Gaussian whose Gamma-distributed precision has been integrated out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special
from torch import Tensor
from torch.distributions import Distribution
from torch.distributions.utils import broadcast_all

from nescio.distributions.gamma import Gamma, check_no_outer_product
from nescio.distributions.gaussian_gamma import LOG_2PI
from nescio.distributions.special import log_gamma_half_step

__all__ = ["StudentT", "standard_cdf", "standard_quantile"]


class StudentT(torch.distributions.StudentT):
    r"""Student-t distribution with ``df`` degrees of freedom, location and scale.

    Paper: eq:student-t.  Shapes: ``df``, ``loc`` and ``scale`` broadcast to ``*``. Where ``df`` is infinite it is the
    Gaussian, exactly.

    ``log_prob``, the variances and the samples can be differentiated; ``cdf``, ``icdf`` and ``crps`` are computed in
    double precision by SciPy and cannot.
    """

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = False,
    ) -> None:
        like = next((part for part in (df, loc, scale) if isinstance(part, Tensor)), None)
        if like is not None:  # filled in where the others are: a copy from the host would break a captured CUDA graph
            df, loc, scale = (
                part if isinstance(part, Tensor) else like.new_full((), part) for part in (df, loc, scale)
            )
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        Distribution.__init__(self, self.df.shape, validate_args=validate_args)

    @classmethod
    def from_gamma(cls, loc: Tensor, q: Gamma) -> StudentT:
        r"""Marginal of a Gaussian with precision ``q``: df :math:`2\alpha`, scale :math:`\sqrt{\beta/\alpha}`.

        Paper: eq:student-t. Paper: sec:appendix-student-t.  Shapes: ``loc`` and ``q`` broadcast to the larger of them.
        """
        check_no_outer_product(loc=loc, concentration=q.concentration)
        return cls(2.0 * q.concentration, loc, (q.rate / q.concentration).sqrt())

    def expand(self, batch_shape: Any, _instance: Any = None) -> StudentT:
        """The same distribution with its batch axes expanded to ``batch_shape``."""
        return StudentT(self.df.expand(batch_shape), self.loc.expand(batch_shape), self.scale.expand(batch_shape))

    @property
    def mean(self) -> Tensor:
        """The location; undefined (nan) up to one degree of freedom."""
        return torch.where(self.df > 1.0, self.loc, torch.nan)

    @property
    def aleatoric_variance(self) -> Tensor:
        r"""The part :math:`\beta/\alpha` of the variance: the squared scale.

        Paper: eq:student-t.  Shapes: ``*``.
        """
        return self.scale.square()

    @property
    def epistemic_factor(self) -> Tensor:
        r"""The factor :math:`\alpha/(\alpha-1)` by which an uncertain precision inflates the variance.

        Paper: eq:student-t.  Shapes: ``*``. Infinite up to two degrees of freedom.
        """
        return 1.0 + self._excess

    @property
    def epistemic_variance(self) -> Tensor:
        r"""The part :math:`\beta/(\alpha(\alpha-1))` of the variance that a known precision would remove.

        Shapes: ``*``. Infinite up to two degrees of freedom.
        """
        return self.aleatoric_variance * self._excess

    @property
    def variance(self) -> Tensor:
        r"""Variance :math:`\beta/(\alpha-1)`, the sum of both parts.

        Paper: sec:appendix-student-t.  Shapes: ``*``. Infinite up to two degrees of freedom (also up to one, where
        the mean does not exist and PyTorch says nan).
        """
        return self.aleatoric_variance * self.epistemic_factor

    @property
    def _excess(self) -> Tensor:
        r"""The excess :math:`1/(\alpha-1)` of the epistemic factor over one."""
        finite = self.df > 2.0
        excess = 2.0 / torch.where(finite, self.df - 2.0, 1.0)  # both branches finite: no nan in the gradient
        return torch.where(finite, excess, torch.inf)

    def log_prob(self, value: Tensor) -> Tensor:
        r"""Log-density of ``value``.

        .. math:: \log\frac{\Gamma(\alpha+\frac12)}{\Gamma(\alpha)\sqrt\alpha} - \tfrac12\log 2\pi - \log\sigma
                  - (\alpha + \tfrac12)\log\Bigl(1 + \frac{(y-\mu)^2}{2\alpha\sigma^2}\Bigr), \quad \nu = 2\alpha

        Paper: sec:appendix-student-t.  Shapes: ``*`` to ``*``. Written so that the Gaussian limit keeps its digits in
        single precision: the ratio of Gamma functions is one expression, not a difference.
        """
        check_no_outer_product(value=value, loc=self.loc)
        gaussian = torch.isinf(self.df)
        df = torch.where(gaussian, 1.0, self.df)  # both branches finite: no nan in the gradient
        half = 0.5 * df
        square = ((value - self.loc) / self.scale).square()
        kernel = torch.where(gaussian, 0.5 * square, (half + 0.5) * torch.log1p(square / df))
        return torch.where(gaussian, 0.0, log_gamma_half_step(half)) - 0.5 * LOG_2PI - self.scale.log() - kernel

    def cdf(self, value: Tensor) -> Tensor:
        """Probability of at most ``value``.  Shapes: ``*`` to ``*``; not differentiable."""
        check_no_outer_product(value=value, loc=self.loc)
        standardised = (value.double() - self.loc.double()) / self.scale.double()
        return _through_scipy(standard_cdf, self.df, standardised, like=self.loc)

    def icdf(self, value: Tensor | float) -> Tensor:
        """Quantile at probability ``value``.  Shapes: ``*`` to ``*``; not differentiable."""
        probability = torch.as_tensor(value, dtype=torch.float64, device=self.loc.device)
        check_no_outer_product(value=probability, loc=self.loc)
        standardised = _through_scipy(standard_quantile, self.df, probability, like=self.loc.double())
        return (self.loc.detach() + self.scale.detach() * standardised).to(self.loc.dtype)

    def crps(self, y: Tensor) -> Tensor:
        r"""Continuous ranked probability score of ``y``, in the units of ``y``, not reduced; smaller is better.

        With :math:`z = (y-\mu)/\sigma`, the standard density :math:`f` and distribution function :math:`F`:

        .. math:: \sigma\Bigl[z(2F(z)-1) + 2f(z)\frac{\nu+z^2}{\nu-1}
                  - \frac{2\sqrt\nu}{\nu-1}\frac{B(\frac12,\nu-\frac12)}{B(\frac12,\frac\nu2)^2}\Bigr]

        and at infinite :math:`\nu` its limit :math:`\sigma[z(2F(z)-1) + 2f(z) - \pi^{-1/2}]`.

        Source: jordan2019, Appendix A (Student's t).  Shapes: ``*`` to ``*``. Needs ``df`` above one, else nan.
        """
        check_no_outer_product(y=y, loc=self.loc)
        df, scale = self.df.detach().double(), self.scale.detach().double()
        z = (y.detach().double() - self.loc.detach().double()) / scale
        below = _through_scipy(standard_cdf, df, z, like=z)
        density = StudentT(df).log_prob(z).exp()
        beta_ratio = (2.0 * log_gamma_half_step(0.5 * df) - log_gamma_half_step(df - 0.5)).exp()
        spread = df * (df / (df - 0.5)).sqrt() / math.sqrt(math.pi) * beta_ratio
        heavy = (2.0 * density * (df + z.square()) - spread) / (df - 1.0)
        rest = torch.where(torch.isinf(df), 2.0 * density - 1.0 / math.sqrt(math.pi), heavy)
        score = scale * (z * (2.0 * below - 1.0) + rest)
        return torch.where(df > 1.0, score, torch.nan).to(self.loc.dtype)

    def rsample(self, sample_shape: Any = (), generator: torch.Generator | None = None) -> Tensor:
        """Samples ``(*sample_shape, *)``, differentiable; with a ``generator`` the global one is left alone."""
        shape = self._extended_shape(torch.Size(sample_shape))
        device = self.loc.device if generator is None else generator.device
        gaussian = torch.isinf(self.df).expand(shape).to(device)
        half = torch.where(gaussian, 1.0, (0.5 * self.df).expand(shape).to(device))
        normal = torch.randn(shape, dtype=half.dtype, device=device, generator=generator)
        precision = torch._standard_gamma(half, generator=generator).clamp(min=torch.finfo(half.dtype).tiny) / half
        precision = torch.where(gaussian, 1.0, precision)
        return self.loc + self.scale * (normal * precision.rsqrt()).to(self.loc.device)

    def sample(self, sample_shape: Any = (), generator: torch.Generator | None = None) -> Tensor:
        """Samples ``(*sample_shape, *)`` without a gradient; see :meth:`rsample`."""
        with torch.no_grad():
            return self.rsample(sample_shape, generator)


def standard_cdf(df: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distribution function of the standard Student-t; the Gaussian's where ``df`` is infinite."""
    return _by_kind(special.stdtr, special.ndtr, df, z)


def standard_quantile(df: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantile of the standard Student-t; SciPy's own says plus infinity at probability zero."""
    quantile: NDArray[np.float64] = np.where(p == 0.0, -np.inf, _by_kind(special.stdtrit, special.ndtri, df, p))
    return quantile


def _by_kind(heavy: Any, gaussian: Any, df: NDArray[np.float64], argument: NDArray[np.float64]) -> NDArray[np.float64]:
    """``heavy(df, argument)`` where ``df`` is finite and ``gaussian(argument)`` elsewhere, neither without need."""
    infinite = np.isinf(df)
    if not infinite.any():
        values: NDArray[np.float64] = heavy(df, argument)
    elif infinite.all():
        values = np.broadcast_to(gaussian(argument), np.broadcast_shapes(df.shape, argument.shape))
    else:
        values = np.where(infinite, gaussian(argument), heavy(np.where(infinite, 1.0, df), argument))
    return values


def _through_scipy(function: Any, df: Tensor, argument: Tensor, *, like: Tensor) -> Tensor:
    """Evaluate ``function(df, argument)`` in double precision on the host; the result has the type of ``like``."""
    values = function(df.detach().double().cpu().numpy(), argument.detach().double().cpu().numpy())
    return torch.as_tensor(np.array(values)).to(dtype=like.dtype, device=like.device)
