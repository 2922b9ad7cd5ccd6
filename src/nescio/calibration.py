"""What the training rows say about rows to come: support, intervals that cover, and how errors grow with distance."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import torch
from scipy import signal, stats
from sklearn.isotonic import IsotonicRegression

from nescio._random import child_seed, hashed_uniform
from nescio.densities import NeighbourDistance

__all__ = [
    "EDGE",
    "EDGE_RATE",
    "INSIDE",
    "OUTSIDE",
    "OUTSIDE_RATE",
    "UNKNOWN",
    "VERDICTS",
    "Conformal",
    "Support",
    "coverage_band",
    "error_growth",
    "fit_support",
]

SMALLEST_TAIL = 1e-12  # of a probability: beyond it a quantile is rounding
LEAST_VARIANCE = 1e-12  # of an error: without noise and growth there is none, and nothing is divided by it
EXPECTATIONS = 20  # steps of expectation and maximisation: the curve moves by less than a hundredth after
SCORINGS = 30  # of them where rows count by their variance, found in turns too: seldom a few hundredths off after

TIE = 1e-9  # relative: the rows of a grid have equal scores up to rounding, which may differ from batch to batch
VERDICTS = INSIDE, EDGE, OUTSIDE, UNKNOWN = "inside", "edge", "outside", "unknown"
EDGE_RATE, OUTSIDE_RATE = 1 / 20, 1 / 200  # false alarms of the verdicts, unless others are asked for


@dataclass(frozen=True)
class Support:
    """A conformal test of the input: would a row of the training table have looked as strange as this one?

    ``neighbours`` gives the score, the mean distance to the k nearest training rows; ``scores`` are those of training
    rows, each taken as if it had not been there, in ascending order.
    """

    neighbours: NeighbourDistance
    scores: np.ndarray
    rows: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """The place of each reference row in the table that was given to fit."""

    def score(self, x: np.ndarray) -> np.ndarray:
        """Strangeness of ``x (N, D)``, ``(N,)``: larger is stranger."""
        scores: np.ndarray = self.neighbours.distance(torch.as_tensor(x, dtype=torch.float64)).numpy()
        return scores

    def p_value_of_seen(self, x: np.ndarray) -> np.ndarray:
        """:meth:`p_value` of training rows ``x (N, D)``, each taken as if it had not been there."""
        points = torch.as_tensor(x, dtype=torch.float64)
        nearest = self.neighbours.nearest(points)
        own = (self.neighbours.reference[nearest] == points).all(-1)
        score = torch.where(own, self.neighbours.leave_one_out()[nearest], self.neighbours.distance(points))
        return self._p(x, score.numpy())

    def p_value(self, x: np.ndarray) -> np.ndarray:
        r"""The share of training rows at least as strange, smoothed so that it is uniform on rows from inside.

        .. math:: p = \frac{\#\{s_i > s\} + U (1 + \#\{s_i = s\})}{n + 1}

        U is a hash of the row, so the answer is the same in any batch and at any time.
        """
        return self._p(x, self.score(x))

    def _p(self, x: np.ndarray, score: np.ndarray) -> np.ndarray:
        above = len(self.scores) - np.searchsorted(self.scores, score * (1.0 + TIE), side="right")
        equal = len(self.scores) - np.searchsorted(self.scores, score * (1.0 - TIE), side="left") - above
        p: np.ndarray = (above + hashed_uniform(x) * (1 + equal)) / (len(self.scores) + 1)
        return p

    def verdict(self, p: np.ndarray, edge: float, outside: float) -> np.ndarray:
        """One word per p-value: ``inside``, ``edge`` or ``outside`` at the false-alarm rates ``edge`` and ``outside``.

        With fewer than ``1/rate - 1`` scores a rate cannot be kept: rows are then called ``edge`` instead of
        ``outside``, and all of them ``unknown`` where even ``edge`` cannot be told.
        """
        if not self.can_tell(edge):
            return np.full(len(p), UNKNOWN)
        words = np.where(p <= edge, EDGE, INSIDE).astype(object)
        if self.can_tell(outside):
            words[p <= outside] = OUTSIDE
        return words.astype(str)

    def can_tell(self, rate: float) -> bool:
        """Whether there are rows enough to raise one false alarm in ``1/rate``."""
        return (len(self.scores) + 1) * rate >= 1.0 - 1e-9


@dataclass(frozen=True)
class Conformal:
    r"""How far into its tails a model must go for its central intervals to cover at a stated level.

    The score of a row is the two-sided tail probability of its target under the distribution that a model, which did
    not see the row, gives it: :math:`t = 2 \min\{F(y), 1 - F(y)\}`. An interval that covers a fresh row with
    probability ``level`` leaves out the tail of rank :math:`\lceil (n + 1) level \rceil` from above, within the group
    of rows with the same verdict.

    Source: vovk2005 (split conformal), chernozhukov2021 (scores from a distribution function).
    """

    inside: np.ndarray
    """Scores of rows inside, each column ascending, ``(n, P)``."""
    edge: np.ndarray
    """Those of rows at the edge, ``(m, P)``."""

    def enough(self, group: str, level: float) -> bool:
        """Whether a group has rows enough for a level: 9 for 90 %, 19 for 95 %, 99 for 99 %."""
        count = len(self.edge if group == EDGE else self.inside)
        return _rank(count, level) <= count

    def tails(self, words: np.ndarray, level: float) -> np.ndarray:
        """The tail probability to leave out, ``(N, P)``, of rows with these verdicts.

        Inside: that of the rows inside. At the edge: that of the rows there, or where they are too few the smaller of
        the one inside and the stated one. Outside: the stated one, ``1 - level``. Unknown: the smaller of the one
        inside, which then stands for all rows, and the stated one. Where there are too few rows inside, the smaller of
        the stated one and of all that were seen.
        """
        inside = self._tail(self.inside, level)
        smaller = np.minimum(inside, 1.0 - level)
        edge = self._tail(self.edge, level) if self.enough(EDGE, level) else smaller
        stated = np.full_like(inside, 1.0 - level)
        tails: np.ndarray = np.where((words == EDGE)[:, None], edge, inside)
        tails = np.where((words == UNKNOWN)[:, None], smaller, tails)
        return np.where((words == OUTSIDE)[:, None], stated, tails)

    @staticmethod
    def _tail(scores: np.ndarray, level: float) -> np.ndarray:
        rank = _rank(len(scores), level)
        if rank <= len(scores):
            tail = scores[len(scores) - rank]
        else:
            tail = np.minimum(scores.min(axis=0, initial=1.0), 1.0 - level)
        return np.asarray(np.maximum(tail, SMALLEST_TAIL))


def _rank(count: int, level: float) -> int:
    return math.ceil((count + 1) * level - 1e-9)  # 0.9 times 10 is 9, whatever its last bit says


def fit_support(x: np.ndarray, *, k: int = 5, max_rows: int = 10_000, seed: int = 0) -> Support:
    """Calibrate the support of ``x (N, D)``.

    Up to ``max_rows`` rows each is scored against all the others. Above that a random ``max_rows`` are the reference
    and as many others give the scores, so that the cost grows linearly with N. Rows with the same inputs count once:
    a row's twins would otherwise vouch for it.
    """
    distinct, first = np.unique(x, axis=0, return_index=True)
    order = np.random.default_rng(child_seed(seed, "support")).permutation(len(distinct))
    reference = torch.as_tensor(distinct[order[:max_rows]], dtype=torch.float64)
    neighbours = NeighbourDistance(reference, k=k)
    if len(distinct) > max_rows:
        rest = torch.as_tensor(distinct[order[max_rows : 2 * max_rows]], dtype=torch.float64)
        scores = neighbours.distance(rest).numpy()
    else:
        scores = neighbours.leave_one_out().numpy()
    return Support(neighbours, np.sort(scores[np.isfinite(scores)]), first[order[:max_rows]])


def error_growth(
    distance: np.ndarray,
    squared_error: np.ndarray,
    noise: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    df: float = math.inf,
    by_precision: bool = False,
    knots: int = 24,
) -> tuple[np.ndarray, np.ndarray]:
    """How the variance of the mean's error grows with the distance from its training rows, over the noise.

    A curve that never falls, by isotonic regression of the squared errors less the noise. With ``df`` degrees of
    freedom each squared error counts by the precision that a Student-t of variance noise plus growth expects of it,
    found in turns with the curve: a few blocks in which the mean went far astray are taken for what they are, and do
    not make all others wide.

    Parameters
    ----------
    distance
        Of rows that were held out, blockwise, to what was left, ``(Q,)``.
    squared_error
        Of the mean at them, ``(Q, P)``.
    noise
        The variance inside, ``(Q, P)``, not negative.
    weights
        Of these rows, ``(Q,)``; None where all count alike.
    df
        Degrees of freedom, above 2.
    by_precision
        Whether a row counts by the inverse square of its variance, noise plus growth, too. The curve is then the
        likeliest that never falls, for tails as heavy as those of a prior (``df`` of some ten and less); with lighter
        ones it may go to and fro about it. Where all rows count alike noisy rows lead.
    knots
        Number of distances at which the curve is kept.

    Returns
    -------
    distances ``(R,)`` and growths ``(R, P)`` up to the 99 % quantile of the distances seen, nowhere negative.
    """
    seen = max(float(np.quantile(distance, 0.99)), 1e-6)
    places = np.quantile(distance[distance <= seen], np.linspace(0.0, 1.0, knots)) / seen
    inner = np.unique(np.append(np.round(places, 3), 1.0))  # nearer ones, of gridded data, differ by rounding alone
    growth = np.empty((len(inner), squared_error.shape[1]))
    tail = 1.0 / (1.0 - 2.0 / df)  # the variance of a Student-t of scale one
    turns = SCORINGS if by_precision else 0 if math.isinf(df) else EXPECTATIONS
    for output in range(squared_error.shape[1]):
        isotonic = IsotonicRegression(y_min=0.0, increasing=True, out_of_bounds="clip")
        square, least = squared_error[:, output], noise[:, output]
        grown = isotonic.fit(distance, square - least, weights).predict(distance)
        for _ in range(turns):
            variance = np.maximum(least + grown, LEAST_VARIANCE)
            # Expected precision of each error, given its size, in units of its variance; the squares then count by it.
            precision = tail * (1.0 + 1.0 / df) / (1.0 + tail / df * np.maximum(square, 0.0) / variance)
            heft = weights
            if by_precision:
                heft = np.square(variance.min() / variance) * (1.0 if weights is None else weights)
            grown = isotonic.fit(distance, precision * square - least, heft).predict(distance)
        growth[:, output] = isotonic.predict(seen * inner)
    return seen * inner, growth


def coverage_band(groups: Iterable[tuple[int, int]], level: float, band: float = 0.99) -> tuple[int, int]:
    """Fewest and most covered rows, of groups (rows tested, rows to calibrate with), that a level allows.

    With n rows to calibrate with and rank k = ceil((n + 1) level) the coverage of a group is Beta(k, n + 1 - k), and
    the number of its rows that are covered beta-binomial; binomial where n is too small for the level, as it is without
    calibration, n = 0. Groups are taken as independent.

    >>> coverage_band([(100, 10_000_000)], 0.9), coverage_band([(100, 0)], 0.9)
    ((82, 97), (82, 97))
    """
    chances = np.ones(1)
    for tested, known in groups:
        rank = math.ceil(level * (known + 1) - 1e-9)
        law = stats.betabinom(tested, rank, known + 1 - rank) if rank <= known else stats.binom(tested, level)
        chances = signal.fftconvolve(chances, law.pmf(np.arange(tested + 1)))
    fewest, most = np.searchsorted(np.cumsum(chances), [0.5 * (1.0 - band), 0.5 * (1.0 + band)])
    return int(fewest), int(most)
