"""The contract of a fitted regressor: what must hold away from the data and, on fresh rows, inside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from nescio._random import child_seed
from nescio._validation import InputError, check_fraction, check_positive, counted
from nescio.estimators.arrays import check_targets
from nescio.estimators.base import DistributionRegressor
from nescio.testing.away import away_checks, batch_check
from nescio.testing.inside import fresh_checks
from nescio.testing.report import Check, ContractError, Report

__all__ = ["Check", "ContractError", "Report", "assert_extrapolates", "check_extrapolation"]


def assert_extrapolates(model: DistributionRegressor, X: Any = None, y: Any = None, **settings: Any) -> Report:
    """:func:`check_extrapolation` for tests: raises :class:`ContractError` where a check failed."""
    report = check_extrapolation(model, X, y, **settings)
    if not report.passed:
        raise ContractError(report)
    return report


def check_extrapolation(
    model: DistributionRegressor,
    X: Any = None,
    y: Any = None,
    *,
    outside: Any = None,
    level: float = 0.9,
    chance: float = 1e-3,
    random_state: int = 0,
) -> Report:
    """Check a fitted regressor far from its data, on the way there and, with fresh rows, inside.

    Parameters
    ----------
    model
        Any fitted regressor of this library.
    X, y
        Rows that the model was not fitted on, and their targets, for the coverage and the false alarms. Without them
        the rest is checked, from the training rows that the model keeps. Training rows among them are noticed and
        left out.
    outside
        The standard deviation to hold a model to that does not state one (``outside_std_``), in units of y. By default
        the spread of the training targets: what a model that knows nothing else of the targets would say.
    level
        Probability of the intervals.
    chance
        How often a model that keeps a rate may fail the check of it.
    random_state
        Of the directions.

    Returns
    -------
    A report; its ``passed`` is False where a check failed.
    """
    if not isinstance(model, DistributionRegressor):
        raise InputError(f"model must be a regressor of this library; got {type(model).__name__}.")
    if not hasattr(model, "core_"):
        raise InputError("model must be fitted before it can be checked; call fit first.")
    check_fraction("level", level)
    check_fraction("chance", chance)
    if outside is not None:
        for value in np.ravel(outside):
            check_positive("outside", float(value))
    if X is None and y is not None:
        raise InputError("y was given without X; give the rows that these targets belong to.")
    rows = None if X is None else model._read(X)
    targets = None if y is None or rows is None else check_targets(y, len(rows.standardised))[0]
    if targets is not None and targets.shape[1] != model.n_outputs_:
        raise InputError(
            f"y must have the {counted(model.n_outputs_, 'target')} of the fit; its shape is {np.shape(y)}."
        )
    rng = np.random.default_rng(child_seed(random_state, "contract"))
    checks = [*away_checks(model, rows, outside, rng), batch_check(model, X, rng)]
    checks += fresh_checks(model, X, rows, targets, level, chance)
    return Report(tuple(checks))
