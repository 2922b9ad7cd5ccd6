"""A mean that is not ours: a scikit-learn regressor, a function or a torch module, asked for rows as they came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from nescio._validation import InputError, counted
from nescio.estimators.core import padded_chunks
from nescio.estimators.rows import Rows

__all__ = ["ForeignMean", "check_mean", "given_mean", "is_fresh"]


def check_mean(mean: Any, prefit: Any) -> None:
    """Refuse what cannot be a mean."""
    if not isinstance(prefit, bool):
        raise InputError(f"prefit must be True or False; got {prefit!r}.")
    if mean is None:
        if prefit:
            raise InputError("prefit=True needs a mean that is fitted; pass it as mean=..., or leave prefit=False.")
        return
    if isinstance(mean, type):
        raise InputError(f"mean must be a regressor, not its class; write mean={mean.__name__}().")
    if _is_estimator(mean):
        if not _regresses(mean):
            raise InputError(f"mean must be a regressor; a {type(mean).__name__} is none.")
        if not is_fresh(mean, prefit):
            _check_fitted(mean)
    elif not callable(mean):
        raise InputError(
            f"mean must be a scikit-learn regressor, a function of X or a torch module; got {_shown(mean)}."
        )


def is_fresh(mean: Any, prefit: bool) -> bool:
    """Whether a mean is to be fitted here: a regressor that was not announced as fitted."""
    return _is_estimator(mean) and not prefit and not isinstance(mean, FrozenEstimator)


def _is_estimator(mean: Any) -> bool:
    return hasattr(mean, "fit") and hasattr(mean, "predict") and not isinstance(mean, torch.nn.Module)


def _regresses(mean: Any) -> bool:
    try:
        return bool(is_regressor(mean))
    except AttributeError:  # no scikit-learn estimator, but it fits and predicts
        return not isinstance(mean, BaseEstimator)


def _check_fitted(mean: Any) -> None:
    try:
        check_is_fitted(mean)
    except NotFittedError:
        raise InputError(
            f"a mean that is not fitted here must come fitted, and this {type(mean).__name__} is not; fit it on rows "
            "of its own, or leave prefit=False."
        ) from None
    except TypeError:  # not scikit-learn's, which cannot tell
        return


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


@dataclass(frozen=True)
class ForeignMean:
    """Fitted predictors of all targets: one for all of them, or one for each."""

    predictors: tuple[Any, ...]
    outputs: int
    sees_given: bool
    """Whether it is asked for the rows as the user gave them, and not for the encoded ones."""

    @property
    def given_back(self) -> Any:
        """What a loaded model needs: the predictor, or all of them where each target has its own."""
        return self.predictors[0] if len(self.predictors) == 1 else self.predictors

    def locations(self, rows: Rows) -> np.ndarray | None:
        """Means in units of y, ``(N, P)``; None where the rows are made up and the mean wants them as they came."""
        table = rows.given if self.sees_given else rows.encoded
        return None if table is None else self.predict(table, len(rows.encoded))

    def predict(self, table: Any, count: int) -> np.ndarray:
        """Means in units of y of a table of ``count`` rows, ``(N, P)``; anything but finite numbers is refused."""
        if len(self.predictors) == 1:
            return _answer(self.predictors[0], table, count, self.outputs)
        return np.concatenate([_answer(each, table, count, 1) for each in self.predictors], axis=1)


def given_mean(absent: bool, given: Mapping[str, Any], prefit: bool, outputs: int) -> ForeignMean | None:
    """The mean that a saved model asks back for where its own is ``absent``: one, or one for each of its targets."""
    if absent is not ("mean" in given):
        raise InputError(
            "its mean is a regressor of yours and not in the file; give it back in Python: load(path, mean=...)."
            if absent
            else "this model's mean is its own; leave mean out of load."
        )
    if not absent:
        return None
    found = given["mean"]
    predictors = tuple(found) if isinstance(found, (list, tuple)) else (found,)
    if len(predictors) not in (1, outputs):
        raise InputError(f"mean must be one regressor, or one for each of {outputs} targets; got {len(predictors)}.")
    for each in predictors:
        check_mean(each, True)
    return ForeignMean(predictors, outputs, sees_given=not is_fresh(predictors[0], prefit))


def _answer(predictor: Any, table: Any, count: int, outputs: int) -> np.ndarray:
    if isinstance(predictor, torch.nn.Module):
        raw = _forward(predictor, table)
    elif hasattr(predictor, "predict"):
        raw = predictor.predict(table)
    else:
        raw = predictor(np.asarray(table) if isinstance(table, (list, tuple)) else table)
    try:
        values = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"mean must return numbers; it returned {_shown(raw)}.") from None
    if values.shape == (count,):
        values = values[:, None]
    if values.shape != (count, outputs):
        raise InputError(
            f"mean must return one number for each of the {count} rows and {counted(outputs, 'target')}; it returned "
            f"the shape {np.shape(raw)}."
        )
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        raise InputError(
            f"mean must return finite numbers; it returned NaN or infinity for {counted(int(bad.sum()), 'row')}, the "
            f"first is row {int(bad.argmax())}."
        )
    return values


@torch.no_grad()
def _forward(module: torch.nn.Module, table: Any) -> np.ndarray:
    """What the module says in evaluation mode, in its own precision and on its own device, a part at a time."""
    like = next((value for value in module.parameters() if value.is_floating_point()), torch.zeros(0))
    x = torch.as_tensor(np.asarray(table, dtype=np.float64)).to(like.dtype)
    training = module.training
    module.eval()
    try:
        parts = [module(part) for part in padded_chunks(x, like.device)]
    finally:
        module.train(training)
    return torch.cat(parts)[: len(x)].cpu().double().numpy()
