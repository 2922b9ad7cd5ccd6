"""Fits that share work: one method on several tables in one stack, or several methods on one table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from sklearn.base import clone

from nescio._random import seed_from
from nescio._validation import InputError
from nescio.estimators.base import DistributionRegressor
from nescio.estimators.sizes import count_members
from nescio.estimators.split import SplitTrainingRegressor

__all__ = ["fit_family", "fit_stack"]


def fit_stack(
    models: Sequence[DistributionRegressor],
    tables: Sequence[tuple[Any, Any]],
    memos: Sequence[dict[Any, Any]] | None = None,
) -> list[Any]:
    """Fit clones of one method, each to its own table ``(X, y)``, as one training stack.

    The models may differ in ``random_state`` alone. What each learns does not depend on the others, up to rounding.
    ``memos`` hold what is known of each table with this seed, and are added to.
    """
    if not models or len(models) != len(tables):
        raise InputError(f"models and tables must be as many, at least one; got {len(models)} and {len(tables)}.")
    known: Sequence[dict[Any, Any]] = memos or [{} for _ in models]
    first = _settings(models[0])
    if any(type(model) is not type(models[0]) or _settings(model) != first for model in models):
        raise InputError("models of one stack must be of one class and differ in random_state alone.")
    fresh = [clone(model) for model in models]
    prepared = [model._prepare(X, y, None, memo=memo) for model, (X, y), memo in zip(fresh, tables, known, strict=True)]
    fitted = fresh[0]._fit_cores([each.problem for each in prepared])
    return [model._accept(each, result) for model, each, result in zip(fresh, prepared, fitted, strict=True)]


def fit_family(
    models: Sequence[DistributionRegressor], X: Any, y: Any, memo: dict[Any, Any] | None = None
) -> list[Any]:
    """Fit clones of several methods to one table; phases that they have in common are trained once.

    All must have one ``random_state``: the phases would not be the same otherwise. ``memo`` holds what is known of the
    table with this seed, and is added to. ``fit_seconds_`` of each is its time with all of its phases, also those that
    were there already.
    """
    if not models:
        raise InputError("models must hold at least one method.")
    if any(model.random_state != models[0].random_state for model in models):
        raise InputError("models of one family must have the same random_state.")
    seed = seed_from(models[0].random_state)
    fresh = [clone(model).set_params(random_state=seed) for model in models]
    split = [model for model in fresh if isinstance(model, SplitTrainingRegressor)]
    blocks = max((model._blocks() for model in split), default=0)
    memo = {} if memo is None else memo
    prepared = []
    for model in fresh:
        began = time.perf_counter()
        table = model._prepare(X, y, None, blocks=blocks, memo=memo)
        prepared.append((model, table, time.perf_counter() - began))
    # The most members first: those of a smaller ensemble need not be trained again.
    prepared.sort(key=lambda each: _members(each[0], *each[1].problem.x.shape), reverse=True)
    for model, table, seconds in prepared:
        began = time.perf_counter()
        model._accept(table, model._fit_cores([table.problem])[0])
        model.fit_seconds_ = seconds + time.perf_counter() - began + sum(table.problem.saved)
    return fresh


def _members(model: Any, n_rows: int, n_inputs: int) -> int:
    asked = getattr(model, "n_members", 1)
    if asked == "auto":
        return count_members(model, n_rows, n_inputs)
    return asked if isinstance(asked, int) else 1  # what cannot be a number is the fit's to refuse


def _settings(model: DistributionRegressor) -> str:
    """Everything but the seed; compared as text, since settings may be arrays or objects."""
    return repr({name: value for name, value in model.get_params(deep=False).items() if name != "random_state"})
