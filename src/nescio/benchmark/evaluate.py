"""All measures of one fitted model on one split: scores per region, detection of what is outside, and the paper's own.

In units of the standard deviation of the training targets, as the model scales them, unless a name says ``raw``.
Scores are means over rows and outputs; each region has its own. What is measured off the data stands under ``all``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from nescio import metrics
from nescio._random import child_seed
from nescio.benchmark.outside_points import outside_points
from nescio.datasets.benchmark_splits import Split
from nescio.datasets.uci import UCIData
from nescio.distributions import StudentT, StudentTMixture, expected_log_prob, gamma_kl
from nescio.estimators.base import DistributionRegressor
from nescio.estimators.precision_regressor import PrecisionRegressor

__all__ = ["MOST_ROWS", "evaluate"]

MOST_ROWS = 5_000  # of a region: the error of a mean over them is far below that between splits
LEVELS = (50, 90, 95)

Found = Iterator[tuple[str, str, float]]


def evaluate(model: DistributionRegressor, data: UCIData, split: Split, seed: int) -> list[tuple[str, str, float]]:
    """Rows of region, metric and value.

    ``elbo`` is taken to the inside prior. Off the data: AUROC and FPR95 of the mean std over outputs, AUROC of the
    support, and the mean std; against the ordinary test rows. Where a region has more than 5,000 rows, that many are
    drawn, the same for all methods of one seed.
    """
    found = []
    for region, rows in split.test.items():
        chosen = _sample(rows, seed, region)
        found += [(region, name, value) for name, value in _scores(model, data.X[chosen], data.y[chosen], seed)]
    return [*found, *_detection(model, data, split, seed)]


def _sample(rows: np.ndarray, seed: int, region: str) -> np.ndarray:
    if len(rows) <= MOST_ROWS:
        return rows
    rng = np.random.default_rng(child_seed(seed, "rows", region))
    return np.sort(rng.choice(rows, MOST_ROWS, replace=False))


def _standardised(model: DistributionRegressor, X: np.ndarray) -> StudentTMixture:
    """The predictive distribution ``(N, P)`` in units of the training targets' standard deviation."""
    parts = model.predict_dist(X).distribution.components
    shift, scale = torch.as_tensor(model.y_shift_), torch.as_tensor(model.y_scale_)
    return StudentTMixture(StudentT(parts.df, (parts.loc - shift) / scale, parts.scale / scale))


def _scores(model: DistributionRegressor, X: np.ndarray, y: np.ndarray, seed: int) -> Iterator[tuple[str, float]]:
    dist = _standardised(model, X)
    targets = torch.as_tensor((y - model.y_shift_) / model.y_scale_)
    likelihood = float(metrics.log_likelihood(dist, targets).mean())
    yield "log_likelihood", likelihood
    yield "log_likelihood_raw", likelihood - float(np.log(model.y_scale_).mean())
    yield "rmse", metrics.rmse(dist, targets)
    yield "rmse_variance", metrics.rmse_variance(dist, targets)
    generator = torch.Generator().manual_seed(child_seed(seed, "sample"))
    yield "rmse_sample", metrics.rmse_sample(dist, targets, generator)
    yield "crps", float(metrics.crps(dist, targets).mean())
    for level in LEVELS:
        lower, upper = metrics.interval(dist, level / 100)
        yield f"coverage_{level}", float(metrics.coverage(lower, upper, targets).mean())
        yield f"width_{level}", float(metrics.width(lower, upper).mean())
        if level == 90:
            yield "interval_score_90", float(metrics.interval_score(lower, upper, targets, level / 100).mean())
    yield "calibration_error", metrics.calibration_error(metrics.pit(dist, targets))
    yield "ence", metrics.ence(dist, targets)
    yield "aurc", metrics.aurc(dist, targets)
    if isinstance(model, PrecisionRegressor):
        loc, q = model.posterior(X)
        expected = expected_log_prob(targets.expand(loc.shape), loc, q)
        yield "expected_log_likelihood", float(expected.mean())
        if model.inside_prior_ is not None:
            yield "elbo", float((expected - gamma_kl(q, model.inside_prior_)).mean())


def _detection(model: DistributionRegressor, data: UCIData, split: Split, seed: int) -> Found:
    ordinary = _sample(split.test.get("inside", split.test["all"]), seed, "ordinary")
    scale = lambda X: (X - model.x_shift_) / model.x_scale_
    made = outside_points(scale(data.X[ordinary]), scale(data.X[split.train]), child_seed(seed, "outside"))
    points = {name: x * model.x_scale_ + model.x_shift_ for name, x in made.items()}
    points |= {name: data.X[_sample(split.test[name], seed, name)] for name in ("hole", "tail") if name in split.test}
    inside_std, inside_support = _std(model, data.X[ordinary]), model.support(data.X[ordinary])
    for name, X in points.items():
        std = _std(model, X)
        yield "all", f"auroc_{name}", metrics.auroc(inside_std, std)
        yield "all", f"auroc_support_{name}", metrics.auroc(-inside_support, -model.support(X))
        yield "all", f"fpr95_{name}", metrics.fpr95(inside_std, std)
        yield "all", f"std_{name}", float(std.mean())
    if isinstance(model, PrecisionRegressor):
        _, q = model.posterior(points["box"])
        priors: dict[str, Any] = {"inside": model.inside_prior_, "outside": model.outside_prior_}
        for name, prior in priors.items():
            if prior is not None:
                yield "all", f"kl_ood_{name}", float(gamma_kl(q, prior).mean())


def _std(model: DistributionRegressor, X: np.ndarray) -> np.ndarray:
    """One std per row: the mean over outputs, in standardised units."""
    std: np.ndarray = _standardised(model, X).variance.sqrt().mean(-1).numpy()
    return std
