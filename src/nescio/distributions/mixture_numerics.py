"""Quantiles and scores of mixtures of Student-t distributions, which have no closed form: arrays in, arrays out."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from nescio.distributions.student_t import StudentT, standard_cdf

__all__ = ["gaussian_crps", "integrated_crps", "invert_cdf"]

_FloatArray = NDArray[np.float64]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)  # on panels of ratio 4: about 1e-12 of the panel
_PANEL_RATIO = 4.0
_CHUNK = 2_000_000  # values of the distribution function held at once: 16 MB


def invert_cdf(
    df: _FloatArray, loc: _FloatArray, scale: _FloatArray, p: _FloatArray, quantiles: _FloatArray
) -> _FloatArray:
    """Solve ``F(x) = p`` between the smallest and the largest of the members' ``quantiles`` ``(M, *)``.

    Most points settle within a handful of steps and a few take dozens: only those that have not settled go on.
    """
    count, shape = len(quantiles), quantiles.shape[1:]
    df, loc, scale = (np.broadcast_to(part, quantiles.shape).reshape(count, -1) for part in (df, loc, scale))
    p, quantiles = np.broadcast_to(p, shape).reshape(-1), quantiles.reshape(count, -1)
    low, high = quantiles.min(0), quantiles.max(0)
    result: _FloatArray = quantiles.mean(0)
    rounding = 4.0 * np.finfo(np.float64).eps
    settled = 1e-8  # of the narrowest member: a step of Newton's method this small leaves an error of its square
    with np.errstate(all="ignore"):
        peak = _peak(df) / scale
    left = np.flatnonzero((high > low) & np.isfinite(quantiles).all(0))
    for _ in range(200):  # bisection alone would need at most about 100
        if not len(left):
            break
        x, widths = result[left], scale[:, left]
        with np.errstate(all="ignore"):
            standardised = (x - loc[:, left]) / widths
            excess = standard_cdf(df[:, left], standardised).mean(0) - p[left]
            high[left] = np.where(excess >= 0.0, x, high[left])
            low[left] = np.where(excess <= 0.0, x, low[left])
            slope = (peak[:, left] * _bell(df[:, left], standardised)).mean(0)
            proposal = x - excess / slope
            inside = (proposal > low[left]) & (proposal < high[left])
            proposal = np.where(inside, proposal, 0.5 * (low[left] + high[left]))
        result[left] = proposal
        narrowest = widths.min(0)
        least = np.maximum(rounding * (np.abs(x) + narrowest), np.where(inside, settled * narrowest, 0.0))
        moved = np.abs(proposal - x) > least
        left = left[moved & (high[left] > low[left])]
    return result.reshape(shape)


def _peak(df: _FloatArray) -> _FloatArray:
    """Density of the standard Student-t at zero."""
    if np.isinf(df).all():
        return np.full(df.shape, 1.0 / math.sqrt(2.0 * math.pi))
    each = torch.tensor(df)  # a copy: what was broadcast cannot be written to, and torch warns of it
    peak: _FloatArray = StudentT(each).log_prob(torch.zeros_like(each)).exp().numpy()
    return peak


def _bell(df: _FloatArray, t: _FloatArray) -> _FloatArray:
    """Density of the standard Student-t over that at zero."""
    square = np.square(t)
    gaussian = np.isinf(df)
    if gaussian.all():
        bell: _FloatArray = np.exp(-0.5 * square)
        return bell
    finite = np.where(gaussian, 1.0, df)
    heavy = (0.5 * finite + 0.5) * np.log1p(square / finite)
    mixed: _FloatArray = np.exp(-np.where(gaussian, 0.5 * square, heavy))
    return mixed


def gaussian_crps(_: _FloatArray, loc: _FloatArray, scale: _FloatArray, y: _FloatArray) -> _FloatArray:
    r"""Score of a mixture of Gaussians ``(M, N)`` at targets ``(N,)``.

    .. math:: \frac1M \sum_i A(y - \mu_i, \sigma_i^2) - \frac1{2M^2} \sum_{ij} A(\mu_i - \mu_j, \sigma_i^2 + \sigma_j^2)

    with the mean absolute value :math:`A(\mu, \sigma^2) = \mu(2\Phi(\mu/\sigma) - 1) + 2\sigma\varphi(\mu/\sigma)`
    of a Gaussian. Source: grimit2006, mixtures of Gaussians. The double sum goes over pairs, some points at a time.
    """
    count = len(loc)
    score: _FloatArray = _mean_absolute(y - loc, scale).mean(0) - scale.mean(0) / (count * math.sqrt(math.pi))
    step = max(1, _CHUNK // count)
    for start in range(0, len(y), step):
        part = slice(start, start + step)
        unit = scale[:, part].max(0)  # squares of the scales themselves might leave the range of numbers
        place, variance = loc[:, part] / unit, np.square(scale[:, part] / unit)
        total = np.zeros_like(unit)
        for one in range(count - 1):
            width = np.sqrt(variance[one] + variance[one + 1 :]).clip(1e-150)
            total += _mean_absolute(place[one] - place[one + 1 :], width).sum(0)
        score[part] -= unit * total / count**2
    return score


def _mean_absolute(loc: _FloatArray, scale: _FloatArray) -> _FloatArray:
    """Mean absolute value of a Gaussian."""
    z = loc / scale
    bell = math.sqrt(2.0 / math.pi) * np.exp(-0.5 * np.square(z))
    error = torch.from_numpy(z / math.sqrt(2.0)).erf_().numpy()  # a third of the time of SciPy's
    value: _FloatArray = loc * error + scale * bell
    return value


def integrated_crps(df: _FloatArray, loc: _FloatArray, scale: _FloatArray, y: _FloatArray) -> _FloatArray:
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
        row, left, right = _panels(breaks, loc[:, part], scale[:, part], y[part])
        half = 0.5 * (right - left)[:, None]
        x = left[:, None] + half * (1.0 + _NODES)
        sign = np.where(left < y[part][row], 1.0, -1.0)[:, None]  # no panel has the target within it
        error = np.zeros_like(x)
        for member in range(len(loc)):
            member_df, member_loc, member_scale = (array[member, part][row, None] for array in (df, loc, scale))
            error += standard_cdf(member_df, sign * (x - member_loc) / member_scale)
        score[part] = np.bincount(row, ((error / len(loc)) ** 2 * half * _WEIGHTS).sum(1), len(y[part]))
    return np.where((df > 1.0).all(0), score, np.nan)


def _panels(
    breaks: _FloatArray, loc: _FloatArray, scale: _FloatArray, y: _FloatArray
) -> tuple[NDArray[np.intp], _FloatArray, _FloatArray]:
    """Row, left and right end of the panels between some of the sorted ``breaks (N, K)``; the targets are among them.

    Members that lie close together need one grid and not one each: a break is left out where the panel across it is
    still no wider than a member's scale or, away from the member, than the ratio of the panels allows.
    """
    start, kept = breaks[:, 0].copy(), np.ones(breaks.shape, dtype=bool)
    for place in range(1, breaks.shape[1] - 1):
        end = breaks[:, place + 1]
        away = np.maximum(np.maximum(start - loc, loc - end), 0.0)
        resolved = (end - start <= np.maximum(scale, (_PANEL_RATIO - 1.0) * away)).all(0)
        kept[:, place] = ~resolved | (breaks[:, place] == y)
        start = np.where(kept[:, place], breaks[:, place], start)
    row, column = np.nonzero(kept)
    follows = row[1:] == row[:-1]
    ends = breaks[row, column]
    return row[:-1][follows], ends[:-1][follows], ends[1:][follows]
