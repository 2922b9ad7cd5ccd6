"""An equally weighted mixture of Student-t distributions: what an ensemble says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special
from torch import Tensor
from torch.distributions import Distribution, constraints

from nescio._validation import InputError
from nescio.distributions.gamma import check_no_outer_product
from nescio.distributions.student_t import StudentT, standard_cdf, standard_quantile

__all__ = ["StudentTMixture"]

_FloatArray = NDArray[np.float64]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)  # on panels of ratio 4: about 1e-12 of the panel
_PANEL_RATIO = 4.0
_CHUNK = 2_000_000  # values of the distribution function held at once: 16 MB


class StudentTMixture(Distribution):
    """Mixture of ``M`` Student-t distributions with equal weights.

    Parameters
    ----------
    components
        A :class:`StudentT` with the members on its first axis, ``(M, *)``. The mixture has shape ``*``.
    """

    arg_constraints: dict[str, constraints.Constraint] = {}  # noqa: RUF012 (PyTorch's class attribute)
    support = constraints.real

    def __init__(self, components: StudentT, validate_args: bool | None = False) -> None:
        if not components.batch_shape or components.batch_shape[0] == 0:
            raise InputError(
                "components must have the members on the first axis, at least one; "
                f"got the shape {tuple(components.batch_shape)}."
            )
        self.components = components
        super().__init__(components.batch_shape[1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """Mean of the members' means; members that agree give exactly what they say.  Shapes: ``*``."""
        means = self.components.mean
        return means[0] + (means - means[0]).mean(0)

    @property
    def aleatoric_variance(self) -> Tensor:
        """Mean of the members' aleatoric variances.  Shapes: ``*``."""
        return self.components.aleatoric_variance.mean(0)

    @property
    def epistemic_variance(self) -> Tensor:
        """Mean of the members' epistemic variances; infinite where one of them is.  Shapes: ``*``."""
        return self.components.epistemic_variance.mean(0)

    @property
    def mean_variance(self) -> Tensor:
        """Spread of the members' means (over ``M``, not ``M - 1``: they are the whole mixture).  Shapes: ``*``."""
        return self.components.mean.var(0, correction=0)

    @property
    def variance(self) -> Tensor:
        """Law of total variance: the sum of the three parts.  Shapes: ``*``."""
        return self.aleatoric_variance + self.epistemic_variance + self.mean_variance

    def log_prob(self, value: Tensor) -> Tensor:
        """Log of the mean of the members' densities.  Shapes: ``*`` to ``*``."""
        check_no_outer_product(value=value, loc=self.components.loc[0])
        members, values = self._aligned(value)
        return torch.logsumexp(members.log_prob(values), 0) - math.log(len(values))

    def cdf(self, value: Tensor) -> Tensor:
        """Mean of the members' distribution functions.  Shapes: ``*`` to ``*``; not differentiable."""
        check_no_outer_product(value=value, loc=self.components.loc[0])
        members, values = self._aligned(value)
        return members.cdf(values).mean(0)

    def icdf(self, value: Tensor | float) -> Tensor:
        """Quantile at probability ``value``, to the last digits.  Shapes: ``*`` to ``*``; not differentiable.

        The quantile lies between the smallest and the largest of the members' quantiles. Newton's method inside that
        bracket, which shrinks at every step; a step that would leave it becomes a bisection.
        """
        like = self.components.loc
        probability = torch.as_tensor(value, dtype=torch.float64, device=like.device)
        check_no_outer_product(value=probability, loc=like[0])
        members, probabilities = self._aligned(probability)
        df, loc, scale = _arrays(members)
        p = probabilities[0].cpu().numpy()
        quantiles = loc + scale * standard_quantile(df, p)
        return torch.as_tensor(_invert(df, loc, scale, p, quantiles)).to(dtype=like.dtype, device=like.device)

    def crps(self, y: Tensor) -> Tensor:
        r"""Continuous ranked probability score of ``y``, in the units of ``y``, not reduced; smaller is better.

        .. math:: \int_{-\infty}^{y} F(x)^2 dx + \int_y^\infty (1 - F(x))^2 dx

        Shapes: ``*`` to ``*``. One member, or all members Gaussian: the closed form. Else: Gauss-Legendre quadrature
        on panels that are graded geometrically around every member, so members of very different widths are all
        resolved; relative error about 1e-11. The cost grows with the square of ``M``. Needs ``df`` above one, else nan.
        """
        like = self.components.loc
        check_no_outer_product(y=y, loc=like[0])
        if len(like) == 1:
            return StudentT(self.components.df[0], like[0], self.components.scale[0]).crps(y)
        members, values = self._aligned(y)
        target = values[0].detach().double().cpu().numpy()
        df, loc, scale = (np.broadcast_to(part, values.shape).reshape(len(like), -1) for part in _arrays(members))
        score, gaussian = np.empty(target.size), np.isinf(df).all(0)
        for where, function in ((gaussian, _gaussian_crps), (~gaussian, _integrated_crps)):
            if where.any():
                score[where] = function(df[:, where], loc[:, where], scale[:, where], target.reshape(-1)[where])
        return torch.as_tensor(score.reshape(target.shape)).to(dtype=like.dtype, device=like.device)

    def sample(self, sample_shape: Any = (), generator: torch.Generator | None = None) -> Tensor:
        """Samples ``(*sample_shape, *)``, the member drawn anew for each; a ``generator`` spares the global one."""
        shape = self._extended_shape(torch.Size(sample_shape))
        like = self.components.loc
        device = like.device if generator is None else generator.device
        member = torch.randint(len(like), shape, device=device, generator=generator).to(like.device)
        rows = member.reshape(-1, self.batch_shape.numel())
        df, loc, scale = (
            part.reshape(len(like), -1).gather(0, rows).reshape(shape)
            for part in (self.components.df, like, self.components.scale)
        )
        return StudentT(df, loc, scale).sample((), generator)

    def _aligned(self, value: Tensor) -> tuple[StudentT, Tensor]:
        """The members with room for the sample axes of ``value``, and ``value`` once for each: ``(M, S, *)``."""
        count, batch = len(self.components.loc), self.batch_shape
        room = (count, *(1 for _ in range(value.ndim - len(batch))), *batch)
        members = StudentT(
            self.components.df.reshape(room), self.components.loc.reshape(room), self.components.scale.reshape(room)
        )
        return members, value.expand(count, *(value.shape if value.ndim > len(batch) else batch))


def _arrays(members: StudentT) -> tuple[_FloatArray, _FloatArray, _FloatArray]:
    """Parameters of the members as double-precision arrays."""
    df, loc, scale = (part.detach().double().cpu().numpy() for part in (members.df, members.loc, members.scale))
    return df, loc, scale


def _invert(
    df: _FloatArray, loc: _FloatArray, scale: _FloatArray, p: _FloatArray, quantiles: _FloatArray
) -> _FloatArray:
    """Solve ``F(x) = p`` between the smallest and the largest of the members' ``quantiles`` ``(M, *)``."""
    low, high = quantiles.min(0), quantiles.max(0)
    x: _FloatArray = quantiles.mean(0)
    rounding, narrowest = 4.0 * np.finfo(np.float64).eps, scale.min(0)
    settled = ~(high > low) | ~np.isfinite(quantiles).all(0)
    for _ in range(200):  # bisection alone would need at most about 100
        if settled.all():
            break
        with np.errstate(all="ignore"):
            standardised = (x - loc) / scale
            excess = standard_cdf(df, standardised).mean(0) - p
            high = np.where(excess >= 0.0, x, high)
            low = np.where(excess <= 0.0, x, low)
            slope = (_standard_density(df, standardised) / scale).mean(0)
            proposal = x - excess / slope
            inside = (proposal > low) & (proposal < high)
            proposal = np.where(inside, proposal, 0.5 * (low + high))
        still = np.abs(proposal - x) <= rounding * (np.abs(x) + narrowest)
        x = np.where(settled, x, proposal)
        settled = settled | still | (high <= low)
    return x


def _standard_density(df: _FloatArray, t: _FloatArray) -> _FloatArray:
    """Density of the standard Student-t."""
    if np.isinf(df).all():
        gaussian: _FloatArray = np.exp(-0.5 * np.square(t)) / math.sqrt(2.0 * math.pi)
        return gaussian
    density: _FloatArray = StudentT(torch.as_tensor(df)).log_prob(torch.as_tensor(t)).exp().numpy()
    return density


def _gaussian_crps(_: _FloatArray, loc: _FloatArray, scale: _FloatArray, y: _FloatArray) -> _FloatArray:
    r"""Score of a mixture of Gaussians ``(M, N)`` at targets ``(N,)``.

    .. math:: \frac1M \sum_i A(y - \mu_i, \sigma_i^2) - \frac1{2M^2} \sum_{ij} A(\mu_i - \mu_j, \sigma_i^2 + \sigma_j^2)

    with the mean absolute value :math:`A(\mu, \sigma^2) = \mu(2\Phi(\mu/\sigma) - 1) + 2\sigma\varphi(\mu/\sigma)`
    of a Gaussian. Source: grimit2006, mixtures of Gaussians. The double sum goes over pairs, some points at a time.
    """
    count = len(loc)
    first, second = np.triu_indices(count, 1)
    score: _FloatArray = _mean_absolute(y - loc, scale).mean(0) - scale.mean(0) / (count * math.sqrt(math.pi))
    step = max(1, _CHUNK // max(1, len(first)))
    for start in range(0, len(y), step):
        part = slice(start, start + step)
        gap, width = loc[first, part] - loc[second, part], np.hypot(scale[first, part], scale[second, part])
        score[part] -= _mean_absolute(gap, width).sum(0) / count**2
    return score


def _mean_absolute(loc: _FloatArray, scale: _FloatArray) -> _FloatArray:
    """Mean absolute value of a Gaussian."""
    z = loc / scale
    bell = math.sqrt(2.0 / math.pi) * np.exp(-0.5 * np.square(z))
    value: _FloatArray = loc * special.erf(z / math.sqrt(2.0)) + scale * bell
    return value


def _integrated_crps(df: _FloatArray, loc: _FloatArray, scale: _FloatArray, y: _FloatArray) -> _FloatArray:
    """Integrate the squared error of the distribution function: members ``(M, N)``, targets and scores ``(N,)``."""
    # The tail left out beyond X = 4^levels scales is of order X^(1 - 2 df): below 1e-13.
    heaviest = float(np.clip(df.min(), 1.0, None)) if df.size else 1.0
    levels = max(3, math.ceil(13.0 * math.log(10.0) / ((2.0 * heaviest - 1.0) * math.log(_PANEL_RATIO))))
    positive = _PANEL_RATIO ** np.arange(levels + 1)
    offsets = np.concatenate([-positive[::-1], [0.0], positive])
    score = np.empty_like(y)
    step = max(1, _CHUNK // (len(loc) * (len(loc) * len(offsets) + 1) * len(_NODES)))
    for start in range(0, len(y), step):
        part = slice(start, start + step)
        breaks = loc[:, part, None] + scale[:, part, None] * offsets
        breaks = np.concatenate([*breaks, y[part, None]], axis=1)
        breaks.sort(axis=1)
        half = 0.5 * np.diff(breaks, axis=1)[..., None]
        x = breaks[:, :-1, None] + half * (1.0 + _NODES)
        sign = np.where(x < y[part, None, None], 1.0, -1.0)
        error = np.zeros_like(x)
        for member in range(len(loc)):
            parameters = (array[member, part, None, None] for array in (df, loc, scale))
            member_df, member_loc, member_scale = parameters
            error += standard_cdf(member_df, sign * (x - member_loc) / member_scale)
        score[part] = ((error / len(loc)) ** 2 * half * _WEIGHTS).sum((1, 2))
    return np.where((df > 1.0).all(0), score, np.nan)
