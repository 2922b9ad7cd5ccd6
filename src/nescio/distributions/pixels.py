"""Densities of numbers between 0 and 1: truncated to that interval, or as a probability of one of 256 grey values."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special
from torch import Tensor

from nescio._validation import InputError, check_integer
from nescio.distributions.student_t import StudentT, standard_cdf

__all__ = ["discretised_log_prob", "log_mass", "truncated_log_prob"]

NARROW = 1e-5  # in units of the scale: below it the difference of two probabilities has too few digits
TINY = 1e-290  # below it a probability is no normal double


def log_mass(dist: StudentT, low: Tensor | float, high: Tensor | float) -> Tensor:
    r"""Logarithm of the probability of ``[low, high]``, :math:`\log(F(b) - F(a))`.

    Shapes: all broadcast to ``*``; in double precision by SciPy, not differentiable; ``low`` may be minus infinity and
    ``high`` infinity. Good to 1e-9 where the probability is a normal double. Below that a Gaussian keeps its digits,
    and the tail of a Student-t is taken for exponential, good to 1e-2 in the logarithm.
    """
    loc, scale = dist.loc.detach().double(), dist.scale.detach().double()
    ends = (torch.as_tensor(end, dtype=torch.float64, device=loc.device) for end in (low, high))
    a, b = (((end - loc) / scale).cpu().numpy() for end in ends)
    df = dist.df.detach().double().cpu().numpy()
    if (b < a).any():
        raise InputError("low must not be above high.")
    a, b, df = np.broadcast_arrays(a, b, df)
    upper = a > 0
    a, b = np.where(upper, -b, a), np.where(upper, -a, b)  # by symmetry, so that one end is in the lower tail
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = _log_difference(df, a, b)
    return torch.as_tensor(found).to(dtype=dist.loc.dtype, device=dist.loc.device)


def _log_difference(df: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """log(F(b) - F(a)) for a <= b and a <= 0."""
    below_a, beyond_b = standard_cdf(df, a), standard_cdf(df, -np.abs(b))
    above_b, below_b = np.where(b > 0, beyond_b, 1.0 - beyond_b), np.where(b > 0, 1.0 - beyond_b, beyond_b)
    around = np.log1p(-(below_a + above_b))  # one end on each side of the middle
    tail = np.log(below_b - below_a)
    found = np.where((b > 0) & (below_a + above_b < 0.5), around, tail)
    width = b - a
    narrow = width < NARROW
    if narrow.any():
        middle = torch.as_tensor(0.5 * (a + b))
        flat = StudentT(torch.as_tensor(df)).log_prob(middle).numpy() + np.log(width)
        found = np.where(narrow, flat, found)
    lost = ~narrow & (b <= 0) & (below_b < TINY) & (width > 0)
    if lost.any():
        found[lost] = _far_tail(df[lost], a[lost], b[lost])
    return found


def _far_tail(df: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    gaussian = np.isinf(df)
    log_b, log_a = special.log_ndtr(b), special.log_ndtr(a)
    exact = log_b + np.log1p(-np.exp(np.minimum(log_a - log_b, 0.0)))
    slope = np.where(gaussian, -b, -(df + 1.0) * b / (df + b * b))  # of the log-density at b, which falls towards a
    density = StudentT(torch.as_tensor(df)).log_prob(torch.as_tensor(b)).numpy()
    exponential = density - np.log(slope) + np.log(-np.expm1(-slope * (b - a)))
    return np.where(gaussian, exact, exponential)


def truncated_log_prob(dist: StudentT, y: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Log-density of ``y`` given that it lies in ``[low, high]``; minus infinity outside.

    Paper: tab:metrics-vae.  Shapes: ``*`` to ``*``. A density: it grows without bound as the scale shrinks about y.
    """
    inside = (y >= low) & (y <= high)
    return torch.where(inside, dist.log_prob(y) - log_mass(dist, low, high), -torch.inf)


def discretised_log_prob(dist: StudentT, y: Tensor, levels: int = 256) -> Tensor:
    """Log-probability of the grey value of ``y``, one of ``levels`` that divide [0, 1] evenly, ends included.

    Each has the mass of what rounds to it, the first and the last all that lies beyond. Never above zero, so that a
    collapsing scale gains nothing.  Shapes: ``*`` to ``*``.
    """
    check_integer("levels", levels, least=2)
    steps = y.double() * (levels - 1)
    number = steps.round()
    if not bool(((steps - number).abs() < 1e-3).all() and (number >= 0).all() and (number < levels).all()):
        raise InputError(f"y must hold multiples of 1/{levels - 1} between 0 and 1.")
    low = torch.where(number == 0, -torch.inf, (number - 0.5) / (levels - 1))
    high = torch.where(number == levels - 1, torch.inf, (number + 0.5) / (levels - 1))
    return log_mass(dist, low, high)
