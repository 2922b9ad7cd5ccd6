"""Many statistics, one score: how far a row of numbers is from the rows of a table, larger is further.

Each is made from a table ``(N, K)`` of inside rows and then takes rows ``(M, K)`` to scores ``(M,)``. Values that are
not finite count as very large or very small ones, nan as very large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.special import logsumexp, ndtri
from sklearn.covariance import LedoitWolf

from nescio._validation import InputError, check_one_of
from nescio.densities import fit_kde

__all__ = ["COMBINATIONS", "Copod", "Directed", "Mahalanobis", "NormalScores", "WhitenedDensity", "make_combination"]

Score = Callable[[np.ndarray], np.ndarray]

COMBINATIONS = ("mahalanobis", "normal", "copod", "kde", "directed")
HUGE = 1e30  # stands for infinity; its square is still a number
QUANTILES = np.linspace(0.005, 0.995, 199)  # one in a hundred inside rows lies beyond the outermost
FURTHEST = 4.0  # normal scores of inside rows beyond it, one in 16,000, would outweigh all others in a covariance


class NormalScores:
    r"""Columns made Gaussian by the distribution of an inside table: :math:`\Phi^{-1}(F_k(x))`.

    Between the 0.5 and the 99.5 % quantile the table's own distribution function is interpolated, equal values at the
    middle of their ranks. Beyond, each column goes on linearly, at the slope from the median to that quantile: of two
    rows further out than all that was seen, the further one has the larger score. A column without spread has no scale
    to be judged by and scores 0.
    """

    def __init__(self, table: np.ndarray) -> None:
        quantiles = np.quantile(_finite(table), QUANTILES, axis=0)
        self._columns = [_Column(column) for column in quantiles.T]

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Normal scores of ``rows (M, K)``, ``(M, K)``."""
        values = _finite(rows)
        return np.stack([column(values[:, place]) for place, column in enumerate(self._columns)], axis=1)


class _Column:
    def __init__(self, quantiles: np.ndarray) -> None:
        self.knots, place, count = np.unique(quantiles, return_inverse=True, return_counts=True)
        self.scores = np.bincount(place, weights=ndtri(QUANTILES)) / count
        low, middle, high = quantiles[0], np.median(quantiles), quantiles[-1]
        reach = float(ndtri(QUANTILES[-1]))
        widths = [width or high - low or np.inf for width in (middle - low, high - middle)]
        self.slopes = [reach / width for width in widths]

    def __call__(self, values: np.ndarray) -> np.ndarray:
        below, above = np.minimum(values - self.knots[0], 0.0), np.maximum(values - self.knots[-1], 0.0)
        scores: np.ndarray = np.interp(values, self.knots, self.scores)
        scores += self.slopes[0] * below + self.slopes[1] * above
        return scores


class Mahalanobis:
    r"""Squared distance :math:`(s - \bar s)^\top \Sigma^{-1} (s - \bar s)` of standardised rows.

    The covariance is shrunk, by an amount estimated from the table; a column without spread is left out.

    Source: ledoit2004.
    """

    def __init__(self, table: np.ndarray) -> None:
        values = _within(table)
        spread = values.std(axis=0)
        self._centre, self._spread = values.mean(axis=0), np.where(spread > 0.0, spread, np.inf)
        self._covariance = LedoitWolf().fit((values - self._centre) / self._spread)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Squared distances of ``rows (M, K)``, ``(M,)``."""
        distances: np.ndarray = self._covariance.mahalanobis((_finite(rows) - self._centre) / self._spread)
        return distances

    def whiten(self, rows: np.ndarray) -> np.ndarray:
        """The rows turned and scaled so that their squared norm is the distance, ``(M, K)``."""
        values, directions = np.linalg.eigh(self._covariance.precision_)
        factor = directions * np.sqrt(np.maximum(values, 0.0))
        whitened: np.ndarray = (_finite(rows) - self._centre) / self._spread @ factor
        return whitened


class Copod:
    r"""Copula-based outlier score: how small the tail probabilities of a row are together.

    .. math:: \max\Bigl(-\sum_k \log U_k,\ -\sum_k \log V_k,\ -\sum_k \log W_k\Bigr)

    with the left tail :math:`U_k = \hat F_k(s_k)`, the right tail :math:`V_k` and, for :math:`W_k`, the left one where
    the column is skewed to the left and the right one elsewhere.

    Source: li2020, Algorithm 1.  Its distribution functions are of a table that holds the row in question; so here a
    row is counted together with the N of the table, and no tail is empty.
    """

    def __init__(self, table: np.ndarray) -> None:
        values = _finite(table)
        self._sorted = np.sort(values, axis=0)
        deviation = values - values.mean(axis=0)
        scale = np.abs(deviation).max(axis=0, initial=0.0)
        cubes = (deviation / np.where(scale > 0.0, scale, 1.0)) ** 3  # the sign of the skewness is all that is needed
        self._left_skewed = cubes.mean(axis=0) < 0.0

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Scores of ``rows (M, K)``, ``(M,)``."""
        values, count = _finite(rows), len(self._sorted)
        columns = list(zip(self._sorted.T, values.T, strict=True))
        up_to = np.stack([np.searchsorted(known, column, side="right") for known, column in columns], axis=1)
        below = np.stack([np.searchsorted(known, column, side="left") for known, column in columns], axis=1)
        left, right = -np.log((up_to + 1) / (count + 1)), -np.log((count - below + 1) / (count + 1))
        skewed = np.where(self._left_skewed, left, right)
        scores: np.ndarray = np.max([tails.sum(axis=1) for tails in (left, right, skewed)], axis=0)
        return scores


class WhitenedDensity:
    """Negative log-density of a Gaussian kernel on every whitened inside row, at most 10,000 of them.

    Unlike a Mahalanobis distance it follows dependence that is not linear; far out it is the distance to the nearest
    inside row. Rows of the table itself score lower than others like them, each for the kernel that sits on it.
    """

    def __init__(self, table: np.ndarray) -> None:
        self._white = Mahalanobis(table)
        self._density = fit_kde(torch.as_tensor(self._white.whiten(table)))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Scores of ``rows (M, K)``, ``(M,)``."""
        scores: np.ndarray = -self._density.log_prob(torch.as_tensor(self._white.whiten(rows))).numpy()
        return scores


class Directed:
    r"""Soft maximum of evidence of known direction and of the distance from what is ordinary.

    .. math:: \log \sum_j \exp \Phi^{-1}(F_j(e_j))

    where e runs over the columns with a direction, times it (1 where large values are foreign, -1 where small ones),
    and the Mahalanobis distance of all columns, which has no direction. One strong piece of evidence is enough, and
    several weak ones add up; a distance alone sees rows on the ordinary side of a column as foreign too.
    """

    def __init__(self, table: np.ndarray, directions: Sequence[int]) -> None:
        self._directions = np.asarray(directions, dtype=np.float64)
        self._distance = make_combination("normal", table)
        self._normal = NormalScores(self._evidence(table))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Scores of ``rows (M, K)``, ``(M,)``."""
        scores: np.ndarray = logsumexp(self._normal(self._evidence(rows)), axis=1)
        return scores

    def _evidence(self, rows: np.ndarray) -> np.ndarray:
        directed = self._directions != 0.0
        evidence = rows[:, directed] * self._directions[directed]  # nan stays nan: foreign on either side
        return np.column_stack([evidence, np.sqrt(self._distance(rows))])


def make_combination(kind: str, table: np.ndarray, directions: Sequence[int] | None = None) -> Score:
    """The score named ``kind`` of rows, from an inside ``table (N, K)``.

    ``"mahalanobis"`` is the distance of the columns as they are; ``"normal"`` that of their normal scores, which
    ``"kde"`` sees too, both learning from those within four standard deviations; ``"copod"`` sees ranks alone;
    ``"directed"`` takes ``directions (K,)``, 1, -1 or, where there is none, 0.
    """
    check_one_of("combine", kind, COMBINATIONS)
    if table.ndim != 2 or len(table) < 2 or not table.shape[1]:
        raise InputError(f"table must have the shape (N, K) with at least 2 rows; got {table.shape}.")
    if kind in ("mahalanobis", "copod"):
        return Mahalanobis(table) if kind == "mahalanobis" else Copod(table)
    if kind == "directed":
        return Directed(table, [0] * table.shape[1] if directions is None else directions)
    normal = NormalScores(table)
    learned = np.clip(normal(table), -FURTHEST, FURTHEST)
    score: Score = Mahalanobis(learned) if kind == "normal" else WhitenedDensity(learned)
    return lambda rows: score(normal(rows))


def _within(table: np.ndarray) -> np.ndarray:
    """The table with what is not finite at the ends of what is: a few such rows must not be all that is learned."""
    there = np.isfinite(table)
    ends = [extreme(np.where(there, table, other), axis=0) for extreme, other in ((np.min, np.inf), (np.max, -np.inf))]
    low, high = (np.where(np.isfinite(end), end, 0.0) for end in ends)
    return np.clip(_finite(table), low, high)


def _finite(values: np.ndarray) -> np.ndarray:
    finite: np.ndarray = np.clip(np.nan_to_num(np.asarray(values, dtype=np.float64), nan=HUGE), -HUGE, HUGE)
    return finite
