"""How good a predictive distribution is: scores per point, and measures that take all points together.

Distributions and targets are ``(N, P)``. A score per point is ``(N,)``, a mean over outputs; average it over points.
Measures of a whole set are one number: where the order of points matters they are taken per output and then averaged,
so that one output cannot make up for another. Every value is in the units that distribution and targets are in.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve
from torch import Tensor

from nescio._validation import InputError, check_fraction, check_integer, check_same_shape
from nescio.distributions import StudentT, StudentTMixture

__all__ = [
    "aupr",
    "aurc",
    "auroc",
    "calibration_error",
    "coverage",
    "crps",
    "ence",
    "fpr95",
    "interval",
    "interval_score",
    "log_likelihood",
    "pit",
    "rmse",
    "rmse_sample",
    "rmse_variance",
    "width",
]

Predictive = StudentT | StudentTMixture


def log_likelihood(dist: Predictive, y: Tensor) -> Tensor:
    """Log-density of ``y``, nats per output; larger is better.  Shapes: ``(N, P)`` to ``(N,)``, mean over outputs.

    The mean, as the paper has it for its own method, so that sets with one and with three targets can be compared;
    times P it is the joint log-density. With y in other units, c times as large, it is lower by log c.
    """
    _check(dist, y)
    return dist.log_prob(y).mean(-1)


def crps(dist: Predictive, y: Tensor) -> Tensor:
    """Continuous ranked probability score, in units of y; smaller is better.

    Source: gneiting2007, the CRPS.  Shapes: ``(N, P)`` to ``(N,)``, mean over outputs.
    """
    _check(dist, y)
    return dist.crps(y).mean(-1)


def interval(dist: Predictive, level: float) -> tuple[Tensor, Tensor]:
    """Lower and upper ends ``(N, P)`` of the central interval of probability ``level``, in units of y."""
    tail = 0.5 * (1.0 - check_fraction("level", level))
    return dist.icdf(tail), dist.icdf(1.0 - tail)


def coverage(lower: Tensor, upper: Tensor, y: Tensor) -> Tensor:
    """Share of a point's outputs that lie in their intervals, ends included.  Shapes: ``(N, P)`` to ``(N,)``."""
    check_same_shape(lower=lower, upper=upper, y=y)
    return ((lower <= y) & (y <= upper)).to(lower.dtype).mean(-1)


def width(lower: Tensor, upper: Tensor) -> Tensor:
    """Width of the intervals, in units of y.  Shapes: ``(N, P)`` to ``(N,)``, mean over outputs."""
    check_same_shape(lower=lower, upper=upper)
    return (upper - lower).mean(-1)


def interval_score(lower: Tensor, upper: Tensor, y: Tensor, level: float) -> Tensor:
    r"""Winkler's score of a central interval of probability ``level``, in units of y; smaller is better.

    .. math:: (u - l) + \tfrac2a (l - y)_+ + \tfrac2a (y - u)_+, \quad a = 1 - \mathrm{level}

    Source: gneiting2007, the interval score.  Shapes: ``(N, P)`` to ``(N,)``, mean over outputs. Infinite for an
    infinite interval.
    """
    check_same_shape(lower=lower, upper=upper, y=y)
    miss = 1.0 - check_fraction("level", level)
    try:
        import scoringrules
    except ModuleNotFoundError:
        raise InputError("the interval score needs scoringrules: pip install 'nescio[bench]'.") from None
    bounded = torch.isfinite(lower) & torch.isfinite(upper)
    ends = [torch.where(bounded, end, y).detach().cpu().double().numpy() for end in (y, lower, upper)]
    score = torch.as_tensor(scoringrules.interval_score(*ends, miss, backend="numpy"))
    score = score.reshape(y.shape).to(y)  # it comes back without its axes of length one
    return torch.where(bounded, score, torch.inf).mean(-1)


def pit(dist: Predictive, y: Tensor) -> Tensor:
    """Probability integral transform: the predicted probability of a value up to ``y``.  Shapes: ``(N, P)``."""
    _check(dist, y)
    return dist.cdf(y)


def calibration_error(probabilities: Tensor) -> float:
    """Mean distance between the coverage promised and the coverage found, over central intervals of 1 to 99 %.

    ``probabilities`` is what ``pit`` returns, ``(N, P)``. A share between 0 and 1/2, the mean over levels and then over
    outputs. A perfect forecast does not reach zero: with N points it scores about 0.3 / sqrt(N).
    """
    _check_table(probabilities=probabilities)
    levels = torch.arange(1, 100, dtype=torch.float64) / 100.0
    centrality = (2.0 * probabilities.detach().cpu().double() - 1.0).abs()  # an interval of this level just holds y
    found = (centrality[None] <= levels[:, None, None]).double().mean(1)
    return float((found - levels[:, None]).abs().mean())


def ence(dist: Predictive, y: Tensor, bins: int = 10) -> float:
    r"""Expected normalised calibration error of the predicted variance; a relative error, smaller is better.

    Points are put into ``bins`` of equal size by their predicted variance; with the root mean variance RMV and the
    root mean squared error RMSE of each bin:

    .. math:: \sum_b \frac{n_b}{N} \frac{|\mathrm{RMV}_b - \mathrm{RMSE}_b|}{\mathrm{RMV}_b}

    Source: levi2022, ENCE.  One number for ``(N, P)``: per output, then the mean. Points of one variance share a bin,
    so the order of rows does not matter; a bin of infinite variance counts as 1, the limit.
    """
    _check(dist, y)
    count = check_integer("bins", bins, least=1)
    errors, variances = _squared_errors(dist, y), dist.variance.detach().cpu().double().numpy()
    return float(np.mean([_ence(errors[:, p], variances[:, p], count) for p in range(errors.shape[1])]))


def _ence(errors: np.ndarray, variances: np.ndarray, bins: int) -> float:
    rank = np.searchsorted(np.sort(variances), variances)  # equal variances share the rank of the first
    total = 0.0
    for members in (rank * bins // len(rank) == b for b in range(bins)):
        if members.any():
            ratio = np.sqrt(errors[members].mean()) / np.sqrt(variances[members].mean())
            total += members.sum() * abs(1.0 - ratio)
    return float(total / len(rank))


def aurc(dist: Predictive, y: Tensor) -> float:
    """Area under the risk-coverage curve, in squared units of y; smaller is better.

    Rows are answered from the smallest predicted std on; the risk is the mean squared error of those answered so far,
    and the area its mean over coverages 1/N, 2/N, ..., 1. A std that says nothing gives the plain mean squared error.

    Source: geifman2019, AURC (with the squared error as the loss).  One number for ``(N, P)``: per output, then the
    mean. Rows of one std are taken in random order, in expectation.
    """
    _check(dist, y)
    errors, variances = _squared_errors(dist, y), dist.variance.detach().cpu().double().numpy()
    return float(np.mean([_aurc(errors[:, p], variances[:, p]) for p in range(errors.shape[1])]))


def _aurc(errors: np.ndarray, variances: np.ndarray) -> float:
    _, tie, count = np.unique(variances, return_inverse=True, return_counts=True)
    expected = np.repeat(np.bincount(tie, weights=errors) / count, count)  # sorted by variance, ties averaged
    return float((np.cumsum(expected) / np.arange(1, len(errors) + 1)).mean())


def rmse(dist: Predictive, y: Tensor) -> float:
    """Root mean squared error of the predicted mean, in units of y, over points and outputs.

    Paper: tab:uci_benchmarks_mean_rmse.
    """
    _check(dist, y)
    return float(np.sqrt(_squared_errors(dist, y).mean()))


def rmse_variance(dist: Predictive, y: Tensor) -> float:
    r"""Root mean squared error of the predicted variance, in squared units of y, over points and outputs.

    .. math:: \sqrt{\operatorname{mean} (\mathrm{Var}[y|x] - (y - \mu(x))^2)^2}

    Paper: tab:uci_benchmarks_variance_rmse.  Not a proper score, and a single infinite variance makes it infinite (the
    authors put 1e12 there, which is where the table's cells of order 1e11 come from).
    """
    _check(dist, y)
    variances = dist.variance.detach().cpu().double().numpy()
    return float(np.sqrt(np.square(variances - _squared_errors(dist, y)).mean()))


def rmse_sample(dist: Predictive, y: Tensor, generator: torch.Generator) -> float:
    """Root mean squared error of one draw per point and output, in units of y.

    Paper: tab:uci_benchmarks_sample_rmse.  Not a proper score: it is smallest for a spread of zero.
    """
    _check(dist, y)
    draws = dist.sample(generator=generator)
    return float((draws.double() - y.double()).square().mean().sqrt())


def auroc(inside_score: np.ndarray, outside_score: np.ndarray) -> float:
    """Chance that an outside point scores higher than an inside one, ties counted half.  Shapes: ``(N,)``, ``(K,)``.

    Infinite scores are allowed.
    """
    labels, scores = _detection(inside_score, outside_score)
    return float(roc_auc_score(labels, scores))


def aupr(inside_score: np.ndarray, outside_score: np.ndarray) -> float:
    """Average precision, the area under the precision-recall curve, with outside points positive; larger is better.

    Shapes: ``(N,)``, ``(K,)``. It depends on the share of outside points, which is what scores of no worth give.
    """
    labels, scores = _detection(inside_score, outside_score)
    return float(average_precision_score(labels, scores))


def fpr95(inside_score: np.ndarray, outside_score: np.ndarray) -> float:
    """Share of inside points flagged at the threshold that flags 95 % of the outside ones; smaller is better.

    Shapes: ``(N,)``, ``(K,)``. The threshold is the largest with at least 95 % of the outside points at or above it.
    """
    labels, scores = _detection(inside_score, outside_score)
    flagged_inside, flagged_outside, _ = roc_curve(labels, scores, drop_intermediate=False)
    return float(flagged_inside[np.argmax(flagged_outside >= 0.95)])


def _detection(inside: np.ndarray, outside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels (outside is 1) and ranks of the scores: ranks are finite where scores need not be."""
    scores = [np.asarray(part, dtype=np.float64) for part in (inside, outside)]
    for name, part in zip(("inside_score", "outside_score"), scores, strict=True):
        if part.ndim != 1 or not len(part) or np.isnan(part).any():
            raise InputError(f"{name} must be a list of numbers, one per point and none of them nan.")
    ranks = np.unique(np.concatenate(scores), return_inverse=True)[1]
    return np.repeat([0, 1], [len(part) for part in scores]), ranks


def _squared_errors(dist: Predictive, y: Tensor) -> np.ndarray:
    errors: np.ndarray = (dist.mean - y).detach().cpu().double().square().numpy()
    return errors


def _check(dist: Predictive, y: Tensor) -> None:
    _check_table(y=y)
    if tuple(dist.batch_shape) != tuple(y.shape):
        raise InputError(
            f"dist and y must have one shape (N, P); got {tuple(dist.batch_shape)} and {tuple(y.shape)}; "
            "write a single target as one column."
        )


def _check_table(**tables: Tensor) -> None:
    for name, table in tables.items():
        if table.ndim != 2 or not table.numel():
            raise InputError(f"{name} must have the shape (N, P) with at least one row; got {tuple(table.shape)}.")
