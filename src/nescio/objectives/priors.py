"""Priors of the precision, at a level of the standard deviation: everywhere the same, or rising with a distance."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from nescio._validation import InputError, check_positive
from nescio.distributions import Gamma

__all__ = [
    "PriorFunction",
    "constant_prior",
    "graded_prior",
    "prior_from_level",
    "prior_from_residuals",
    "toy_prior",
]

PriorFunction = Callable[[Tensor], Gamma]
"""A prior for each input: ``(..., D)`` to a Gamma that broadcasts to ``(..., P)``."""

_FINITE_VARIANCE = "for a finite predictive variance"


def prior_from_level(level: Tensor | float, concentration: float) -> Gamma:
    r"""Prior whose predictive standard deviation is ``level``: rate :math:`(a - 1)\,level^2`.

    Paper: sec:appendix-regression-experiments (its prior parameters).  Shapes: ``level`` is a number or ``(P,)``.
    """
    shape = check_positive("concentration", concentration, above=1.0, why=_FINITE_VARIANCE)
    std = torch.as_tensor(level, dtype=level.dtype if isinstance(level, Tensor) else torch.get_default_dtype())
    _check_all_positive("level", std)
    return Gamma(torch.full_like(std, shape), (shape - 1.0) * std.square())


def prior_from_residuals(
    residuals: Tensor, concentration: float, weights: Tensor | None = None, *, floor: float = 1e-12
) -> Gamma:
    r"""Prior at the mean squared residual of each output: rate :math:`(a - 1)\,\overline{(y - \mu(x))^2}`.

    Paper: sec:appendix-regression-experiments (its prior parameters).  Shapes: ``residuals`` ``(N, P)``, ``weights``
    ``(N,)``, not negative; the prior is ``(P,)``. The variance is not taken below ``floor``: residuals that are
    all zero have no level.
    """
    if residuals.ndim != 2 or len(residuals) == 0:
        raise InputError(f"residuals must be (N, P) with at least one row; got the shape {tuple(residuals.shape)}.")
    if weights is None:
        variance = residuals.square().mean(0)
    else:
        if weights.shape != residuals.shape[:1]:
            raise InputError(
                f"weights must have one value per row of residuals, ({len(residuals)},); got {tuple(weights.shape)}."
            )
        if not bool((weights >= 0).all()) or not bool(weights.sum() > 0):
            raise InputError("weights must not be negative and must not all be zero.")
        variance = (weights / weights.sum()) @ residuals.square()
    return prior_from_level(variance.clamp(min=floor).sqrt(), concentration)


def toy_prior(std: Tensor | float, rate: float = 1e-3) -> Gamma:
    r"""Weak prior of the toy figures, at the level ``std``: a small rate, the shape :math:`1 + \beta/\sigma^2`.

    Paper: fig:gamma_prior.  Shapes: ``std`` is a number or ``(P,)``.

    Deviation: the paper prints the shape as :math:`1 + \beta/\sigma`; only the square makes the predictive variance
    :math:`\beta/(\alpha - 1)` match the targets, and only it agrees with the values the authors ran.
    """
    check_positive("rate", rate)
    level = torch.as_tensor(std, dtype=std.dtype if isinstance(std, Tensor) else torch.get_default_dtype())
    _check_all_positive("std", level)
    return Gamma(1.0 + rate / level.square(), torch.full_like(level, rate))


def constant_prior(prior: Gamma) -> PriorFunction:
    """The same prior at every input."""
    return lambda x: prior


def graded_prior(
    surroundings: Callable[[Tensor], tuple[Tensor, Tensor]],
    knots: Tensor,
    growth: Tensor,
    level: Tensor,
    concentration: float,
    ceiling: Tensor | None = None,
    unit: Tensor | None = None,
) -> PriorFunction:
    r"""Prior whose variance rises with the distance d from the data, from that of the nearest row to ``level``.

    .. math:: v(x) = \min\{v_{near}(x) + g(d), \max(ceiling^2, v_{near}(x))\}

    up to the last of the ``knots``, with g piecewise linear between them and the ``ceiling`` no higher than the
    ``level``, which it is by default; from there the logarithm of the variance goes straight to that of ``level`` at
    three times the distance, and stays. With a ``unit (P,)`` the growth is that near a variance of this size, and in
    proportion to it elsewhere: :math:`g(d) v_{near}(x) / unit`.

    Shapes: ``surroundings`` maps ``(..., D)`` to the distance ``(...)`` and the variance near by ``(..., P)``;
    ``knots`` ``(Q,)``, rising; ``growth`` ``(Q, P)``, not negative; ``level`` ``(P,)``, or ``(..., P)``
    where it belongs to the very points that are asked for, and ``ceiling`` likewise; the prior is ``(..., P)``.

    Deviation: the paper has one prior for all inputs. Noise at the nearest row plus what the mean is wrong by at that
    distance is what a held-out block shows, so pseudo-inputs at the rim do not pull at the data.
    """
    shape = check_positive("concentration", concentration, above=1.0, why=_FINITE_VARIANCE)
    if knots.ndim != 1 or growth.ndim != 2 or len(knots) != len(growth) or len(knots) == 0:
        raise InputError(
            "knots must be (Q,) and growth (Q, P), with at least one knot; "
            f"got the shapes {tuple(knots.shape)} and {tuple(growth.shape)}."
        )
    if not bool(torch.isfinite(knots).all()) or not bool((knots.diff() > 0).all()) or float(knots[-1]) <= 0:
        raise InputError(f"knots must be finite, strictly rising and end above zero; got {knots.tolist()}.")
    if not bool((torch.isfinite(growth) & (growth >= 0)).all()):
        raise InputError(f"growth must be finite and not negative; got {growth.tolist()}.")
    _check_all_positive("level", level)
    if unit is not None:
        _check_all_positive("unit", unit)
    far_variance = level.square()
    most = far_variance
    if ceiling is not None:
        _check_all_positive("ceiling", ceiling)
        most = torch.minimum(far_variance, ceiling.square())

    def prior(x: Tensor) -> Gamma:
        distance, near = surroundings(x)
        _check_all_positive("variance near by", near)
        reach = distance.to(knots.dtype).clamp(knots[0], knots[-1])
        right = torch.searchsorted(knots, reach.detach().contiguous()).clamp(min=1).clamp(max=len(knots) - 1)
        left = (right - 1).clamp(min=0)
        width = torch.where(right > left, knots[right] - knots[left], 1.0)  # a single knot has no interval
        added = torch.lerp(growth[left], growth[right], ((reach - knots[left]) / width).unsqueeze(-1))
        if unit is not None:
            added = added * near / unit
        inner = torch.minimum(near + added, torch.maximum(near, most))
        beyond = ((distance.to(knots.dtype) / knots[-1] - 1.0) / 2.0).clamp(0.0, 1.0).unsqueeze(-1)
        variance = torch.lerp(inner.log(), far_variance.log().expand_as(inner), beyond).exp()
        return Gamma(torch.full_like(variance, shape), (shape - 1.0) * variance)

    return prior


def _check_all_positive(name: str, values: Tensor) -> None:
    """Refuse values that are not finite and positive."""
    if not bool((torch.isfinite(values) & (values > 0)).all()):
        raise InputError(f"{name} must be finite and positive; got {values.tolist()}.")
