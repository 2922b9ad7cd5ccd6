r"""Gamma-function differences that survive large arguments, in plain arithmetic (so that they trace, fuse and vectorise).

Everything is built on the remainder of Stirling's formula,
:math:`R(z) = \log\Gamma(z) - (z - \tfrac12)\log z + z - \tfrac12\log 2\pi`: the part of the log-Gamma function that is
left when all that grows has been taken out by hand. ``torch.lgamma`` of 1e6 is 1e7 with an error of one in
single precision; :math:`R` stays below one half for every argument above a quarter.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["exp_minus_tangent", "log_gamma_half_step", "stirling_remainder", "stirling_remainder_derivative"]

# B_2k / (2k (2k - 1)), k = 1..8, of the asymptotic series R(z) ~ sum_k c_k / z^(2k - 1) (Bernoulli numbers).
_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def _order(z: Tensor) -> tuple[int, int]:
    """How far the argument is shifted up, and how many terms of the series then reach the precision of the type.

    The first term left out is below 1e-16 in double precision (shift 8) and below 4e-8 in single precision (shift 3).
    """
    return (8, 8) if z.dtype == torch.float64 else (3, 4)


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """Horner's rule, the constant coefficient first."""
    value = torch.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value


def stirling_remainder(z: Tensor) -> Tensor:
    r"""Remainder :math:`R(z)` of Stirling's formula for the log-Gamma function.

    .. math:: R(z) = R(z + n) + \sum_{k<n} \log\frac{z + n}{z + k} + (z - \tfrac12) \log(1 + n / z) - n

    and the asymptotic series at :math:`z + n`. Shapes: ``*`` to ``*``. Accurate for ``z`` from 1e-6 to infinity, to
    1e-14 in double and 5e-7 in single precision (absolute).
    """
    shift, terms = _order(z)
    top = z + shift
    inverse = top.reciprocal()
    series = inverse * _polynomial(inverse.square(), _SERIES[:terms])
    product = z * inverse
    for k in range(1, shift):
        product = product * ((z + k) * inverse)
    return series - product.log() + ((z - 0.5) * torch.log1p(shift / z) - shift)


def stirling_remainder_derivative(z: Tensor) -> Tensor:
    r"""Derivative :math:`R'(z) = \psi(z) - \log z + 1/(2z)`, which falls off as :math:`-1/(12 z^2)`.

    Shapes: ``*`` to ``*``. The absolute error is a few roundings of :math:`1/z`, where ``torch.digamma(z) - log(z)``
    has roundings of :math:`\log z`.
    """
    shift, terms = _order(z)
    top = z + shift
    inverse = top.reciprocal()
    square = inverse.square()
    slopes = tuple(-(2 * k + 1) * c for k, c in enumerate(_SERIES[:terms]))
    harmonic = 0.5 * (z.reciprocal() + inverse)
    for k in range(1, shift):
        harmonic = harmonic + (z + k).reciprocal()
    return square * _polynomial(square, slopes) + (torch.log1p(shift / z) - harmonic)


def log_gamma_half_step(z: Tensor) -> Tensor:
    r"""Log of :math:`\Gamma(z + \tfrac12) / (\Gamma(z) \sqrt z)`, which rises to zero as :math:`-1/(8z)`.

    .. math:: z \log(1 + \tfrac{1}{2z}) - \tfrac12 + R(z + \tfrac12) - R(z)

    Shapes: ``*`` to ``*``. Accuracy and range are those of :func:`stirling_remainder`; the difference of two
    ``torch.lgamma`` has no correct digit in single precision beyond ``z`` = 1e6.
    """
    return (z * torch.log1p(0.5 / z) - 0.5) + (stirling_remainder(z + 0.5) - stirling_remainder(z))


def exp_minus_tangent(x: Tensor) -> Tensor:
    r"""The convex gap :math:`e^x - 1 - x`, at zero zero, with finite values and gradients.

    Its error is that of ``x`` itself times ``x``. Beyond 40 in single precision (300 in double) it goes on along its tangent:
    there the gap exceeds 1e17, and the gradient with respect to a rate of 1e-12 would leave the single-precision numbers.
    """
    limit = 300.0 if x.dtype == torch.float64 else 40.0
    bounded = x.clamp(max=limit)
    beyond = x - bounded
    return torch.expm1(bounded) - bounded + beyond * bounded.exp()
