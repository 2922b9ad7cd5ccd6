"""All measures of one fitted model on one split: scores per region, detection of what is outside, and the paper's own.

In units of the standard deviation of the training targets, as the model scales them, unless a name says ``raw``.
Scores are means over rows and outputs; each region has its own. What is measured off the data stands under ``all``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nescio import metrics
from nescio._random import child_seed
from nescio.benchmark.outside_points import outside_points
from nescio.datasets.benchmark_splits import Split
from nescio.datasets.uci import UCIData
from nescio.distributions import StudentT, StudentTMixture, expected_log_prob, gamma_kl
from nescio.estimators.base import DistributionRegressor
from nescio.estimators.precision_regressor import PrecisionRegressor

__all__ = ["MOST_ROWS", "evaluate", "judged_rows"]

MOST_ROWS = 2_000  # of a region: the error of a mean over them is far below that between splits
LEVELS = (50, 90, 95)

Found = Iterator[tuple[str, str, float]]


def evaluate(
    model: DistributionRegressor, data: UCIData, split: Split, seed: int, known: dict[str, float] | None = None
) -> list[tuple[str, str, float]]:
    """Rows of region, metric and value.

    ``elbo`` is taken to the inside prior. Off the data: AUROC and FPR95 of the mean std over outputs, AUROC of the
    support, and the mean std; against the ordinary test rows. Where a region has more than 2,000 rows, that many are
    drawn, the same for all methods of one seed. The support is that of the inputs, whatever the method: ``known``
    holds its AUROCs on this split, with this seed, by the name of the points, and is filled where it is empty.
    """
    regions = judged_rows(split, len(data.X), seed)
    rows = np.unique(np.concatenate(list(regions.values())))
    dist = _standardised(model, data.X[rows])
    std = _mean_std(dist)
    of_rows = {region: std[np.searchsorted(rows, members)] for region, members in regions.items()}
    by_support = {} if known is None else known
    return [
        *_scores(model, data, regions, rows, dist, seed),
        *_detection(model, data, split, regions, of_rows, seed, by_support),
    ]


def judged_rows(split: Split, rows: int, seed: int) -> dict[str, np.ndarray]:
    """At most ``MOST_ROWS`` rows of each region: the first ones in one random order, so that regions share them."""
    place = np.random.default_rng(child_seed(seed, "rows")).permutation(rows)
    return {region: np.sort(members[np.argsort(place[members])[:MOST_ROWS]]) for region, members in split.test.items()}


def _standardised(model: DistributionRegressor, X: np.ndarray) -> StudentTMixture:
    """The predictive distribution ``(N, P)`` in units of the training targets' standard deviation."""
    parts = model.predict_dist(X).distribution.components
    shift, scale = torch.as_tensor(model.y_shift_), torch.as_tensor(model.y_scale_)
    return StudentTMixture(StudentT(parts.df, (parts.loc - shift) / scale, parts.scale / scale))


def _scores(
    model: DistributionRegressor,
    data: UCIData,
    regions: dict[str, np.ndarray],
    rows: np.ndarray,
    dist: StudentTMixture,
    seed: int,
) -> Found:
    targets = torch.as_tensor((data.y[rows] - model.y_shift_) / model.y_scale_)
    points = dict(_points(model, data.X[rows], dist, targets))
    parts, probabilities = dist.components, metrics.pit(dist, targets)
    for region, members in regions.items():
        own = torch.as_tensor(np.searchsorted(rows, members))
        for name, values in points.items():
            yield region, name, float(values[own].mean())
        part = StudentTMixture(StudentT(parts.df[:, own], parts.loc[:, own], parts.scale[:, own]))
        y = targets[own]
        yield region, "rmse", metrics.rmse(part, y)
        yield region, "rmse_variance", metrics.rmse_variance(part, y)
        generator = torch.Generator().manual_seed(child_seed(seed, "sample", region))
        yield region, "rmse_sample", metrics.rmse_sample(part, y, generator)
        yield region, "calibration_error", metrics.calibration_error(probabilities[own])
        yield region, "ence", metrics.ence(part, y)
        yield region, "aurc", metrics.aurc(part, y)


def _points(
    model: DistributionRegressor, X: np.ndarray, dist: StudentTMixture, y: Tensor
) -> Iterator[tuple[str, Tensor]]:
    """Scores that are means over points, each ``(N,)``."""
    likelihood = metrics.log_likelihood(dist, y)
    yield "log_likelihood", likelihood
    yield "log_likelihood_raw", likelihood - float(np.log(model.y_scale_).mean())
    yield "crps", metrics.crps(dist, y)
    for level in LEVELS:
        lower, upper = metrics.interval(dist, level / 100)
        yield f"coverage_{level}", metrics.coverage(lower, upper, y)
        yield f"width_{level}", metrics.width(lower, upper)
        if level == 90:
            yield "interval_score_90", metrics.interval_score(lower, upper, y, level / 100)
    if isinstance(model, PrecisionRegressor):
        loc, q = model.posterior(X)
        expected = expected_log_prob(y.expand(loc.shape), loc, q)
        yield "expected_log_likelihood", expected.mean((0, 2))
        if model.inside_prior_ is not None:
            yield "elbo", (expected - gamma_kl(q, model.inside_prior_)).mean((0, 2))


def _detection(
    model: DistributionRegressor,
    data: UCIData,
    split: Split,
    regions: dict[str, np.ndarray],
    of_rows: dict[str, np.ndarray],
    seed: int,
    by_support: dict[str, float],
) -> Found:
    ordinary = regions.get("inside", regions["all"])
    scale = lambda X: (X - model.x_shift_) / model.x_scale_
    made = outside_points(scale(data.X[ordinary]), scale(data.X[split.train]), child_seed(seed, "outside"))
    points = {name: x * model.x_scale_ + model.x_shift_ for name, x in made.items()}
    points |= {name: data.X[rows] for name, rows in regions.items() if name in ("hole", "tail")}
    if not by_support:
        usual = -model.support(data.X[ordinary])
        by_support |= {name: metrics.auroc(usual, -model.support(X)) for name, X in points.items()}
    inside_std = of_rows.get("inside", of_rows["all"])
    for name, X in points.items():
        there = of_rows[name] if name in of_rows else _mean_std(_standardised(model, X))
        yield "all", f"auroc_{name}", metrics.auroc(inside_std, there)
        yield "all", f"auroc_support_{name}", by_support[name]
        yield "all", f"fpr95_{name}", metrics.fpr95(inside_std, there)
        yield "all", f"std_{name}", float(there.mean())
    if isinstance(model, PrecisionRegressor):
        _, q = model.posterior(points["box"])
        priors: dict[str, Any] = {"inside": model.inside_prior_, "outside": model.outside_prior_}
        for name, prior in priors.items():
            if prior is not None:
                yield "all", f"kl_ood_{name}", float(gamma_kl(q, prior).mean())


def _mean_std(dist: StudentTMixture) -> np.ndarray:
    """One std per row, ``(N,)``: the mean over outputs, in standardised units."""
    std: np.ndarray = dist.variance.sqrt().mean(-1).numpy()
    return std
