"""Phase one where the mean is not ours: it is fitted once to all rows, and once per fold and block to see it err."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter
from torch import Tensor

from nescio._random import child_seed
from nescio.datasets.splits import blocks, folds
from nescio.estimators.core import Elsewhere
from nescio.estimators.foreign import ForeignMean, is_fresh
from nescio.estimators.means import MOST_BLOCK_ROWS, Growth, MeanPhase, errors_by_distance
from nescio.estimators.problem import Problem

__all__ = ["fit_foreign"]

Fit = Callable[[np.ndarray, int], ForeignMean]
"""(rows to fit on, a seed) -> the mean."""


def fit_foreign(
    mean: Any, prefit: bool, problem: Problem, x: Tensor, groups: np.ndarray, *, n_folds: int, n_blocks: int
) -> MeanPhase:
    """Residuals of a mean that is not ours, at rows that it did not see, in standardised units.

    A fresh regressor is cloned: one clone learns all rows and is the mean, one per fold and block tells how wrong it is
    on rows that it has not seen. Where a regressor takes one target only, each target has a clone of its own. A fitted
    regressor, a function or a module is taken as it is: no row of the table may have been seen by it.
    """
    original, outputs, seed = problem.original, problem.y.shape[1], problem.seed
    everything = np.arange(len(x))
    if is_fresh(mean, prefit):
        fit = _fitter(mean, problem)
        foreign = fit(everything, child_seed(seed, "mean"))
        residuals, growth = _held_out(fit, problem, x, groups, n_folds, n_blocks)
    else:
        foreign = ForeignMean((mean,), outputs, sees_given=True)
        error = (original.y - foreign.predict(original.given, len(x))) / problem.y_scale
        residuals = torch.as_tensor(error, dtype=torch.float32)
        growth = errors_by_distance(x, residuals, [], [], 0, seed, torch.ones(x.shape[1]))
        if n_blocks:
            growth = _stand_in(residuals, problem, x, groups, n_folds, n_blocks)
    return MeanPhase(Elsewhere(outputs), residuals, growth, foreign)


def _stand_in(
    residuals: Tensor, problem: Problem, x: Tensor, groups: np.ndarray, n_folds: int, n_blocks: int
) -> Growth:
    """How errors grow with distance, where the mean cannot be fitted anew: as those of boosted trees do.

    By how much they err more inside, by folds, is put down to noise.
    """
    fit = _fitter(HistGradientBoostingRegressor(), problem)
    own, growth = _held_out(fit, problem, x, groups, n_folds, n_blocks)
    return growth._replace(offset=_mean_square(own, problem) - _mean_square(residuals, problem))


def _mean_square(residuals: Tensor, problem: Problem) -> np.ndarray:
    """Mean of the squared ``residuals (N, P)`` by the weights of the rows, ``(P,)``."""
    if problem.weights is None:
        return np.asarray(residuals.square().mean(0).double())
    return np.asarray(np.average(residuals.square().double().numpy(), axis=0, weights=problem.weights))


def _held_out(
    fit: Fit, problem: Problem, x: Tensor, groups: np.ndarray, n_folds: int, n_blocks: int
) -> tuple[Tensor, Growth]:
    """Out-of-fold residuals ``(N, P)``, and the errors of blocks with their distances."""
    original, seed = problem.original, problem.seed
    everything = np.arange(len(x))
    dealt = folds(groups, n_folds, child_seed(seed, "folds", 0))
    held_out = [*dealt, *(blocks(x.numpy(), n_blocks, seed=child_seed(seed, "blocks")) if n_blocks else [])]
    seen = [np.setdiff1d(everything, rows, assume_unique=True) for rows in held_out]
    residuals = torch.zeros(problem.y.shape)
    errors = []
    for number, rows in enumerate(held_out):
        if number >= len(dealt) and len(rows) > MOST_BLOCK_ROWS:
            rng = np.random.default_rng(child_seed(seed, "held out rows", number))
            rows = rng.choice(rows, MOST_BLOCK_ROWS, replace=False)
        predicted = fit(seen[number], child_seed(seed, "mean", number)).predict(original.encoded[rows], len(rows))
        error = torch.as_tensor((original.y[rows] - predicted) / problem.y_scale, dtype=torch.float32)
        errors.append((rows, error))
        if number < len(dealt):
            residuals[rows] = error
    alike = torch.ones(x.shape[1])  # a mean that is not ours need not have a slope
    return residuals, errors_by_distance(x, residuals, seen, errors if n_blocks else [], len(dealt), seed, alike)


def _fitter(mean: Any, problem: Problem) -> Fit:
    """A function that fits clones of a regressor to some of the rows."""
    original, outputs = problem.original, problem.y.shape[1]
    together = outputs == 1 or _takes_all_targets(mean)
    targets = [original.y[:, 0] if outputs == 1 else original.y] if together else list(original.y.T)
    weights = original.weights
    if weights is not None and not has_fit_parameter(mean, "sample_weight"):
        warnings.warn(
            f"{type(mean).__name__} takes no sample_weight: the mean is fitted without, the variance with them.",
            UserWarning,
            stacklevel=2,
        )
        weights = None

    def fit(rows: np.ndarray, seed: int) -> ForeignMean:
        named = {} if weights is None else {"sample_weight": weights[rows]}
        fresh = [_seeded(clone(mean), seed).fit(original.encoded[rows], y[rows], **named) for y in targets]
        return ForeignMean(tuple(fresh), outputs, sees_given=False)

    return fit


def _takes_all_targets(mean: Any) -> bool:
    try:
        return bool(get_tags(mean).target_tags.multi_output)
    except AttributeError:  # no scikit-learn estimator
        return False


def _seeded(regressor: Any, seed: int) -> Any:
    """The regressor with a seed wherever it has none: numpy's global generator is nobody's to use up."""
    unset = [
        name
        for name, value in regressor.get_params(deep=True).items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    ]
    return regressor.set_params(**dict.fromkeys(unset, seed % 2**32))
