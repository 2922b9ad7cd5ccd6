"""The face that all regressors share: what goes in is checked and standardised, what comes out is in units of y."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import _safe_indexing

from nescio._random import seed_from
from nescio._validation import InputError, check_fraction, check_random_state, counted
from nescio.calibration import Conformal
from nescio.distributions import StudentT, StudentTMixture
from nescio.estimators.arrays import (
    LEAST_ROWS,
    check_inputs,
    check_rows,
    check_targets,
    check_weights,
    encode_training,
)
from nescio.estimators.foreign import ForeignMean
from nescio.estimators.intervals import calibrated_interval, interval_kinds
from nescio.estimators.judging import RowJudge
from nescio.estimators.levels import LevelFunction
from nescio.estimators.prediction import Prediction
from nescio.estimators.problem import Fitted, Original, Problem
from nescio.estimators.rows import Rows
from nescio.estimators.scaling import target_scaler, warn_of_constants, weighted_scaler
from nescio.preprocessing import ColumnEncoder, is_frame, number_of_rows

__all__ = ["DistributionRegressor"]


class Prepared(NamedTuple):
    """A checked table, standardised, with what leads back to the units it came in."""

    problem: Problem
    x_shift: np.ndarray
    x_scale: np.ndarray
    y_shift: np.ndarray
    single_target: bool
    columns: ColumnEncoder | None
    x_range: np.ndarray
    """Smallest and largest encoded values, ``(2, D)``."""
    used: np.ndarray | None
    """Which rows have a weight; None where all are used."""


class DistributionRegressor(RowJudge, RegressorMixin, BaseEstimator, ABC):
    """A regressor whose prediction is a distribution, and which says whether it has seen anything like a row."""

    level_: LevelFunction | None = None
    """The level outside where it is a function of x."""
    foreign_: ForeignMean | None = None
    """The mean where it is not ours."""
    conformal_: Conformal | None = None
    """How far into the tails an interval must go to cover; None where it is taken from the distribution as it is."""

    @abstractmethod
    def _fit_cores(self, problems: Sequence[Problem]) -> list[Fitted]:
        """Train on standardised tables, one result for each; several tables may share one stack."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DistributionRegressor:
        """Fit to a table and its targets.

        Parameters
        ----------
        X
            ``(N, D)``: an array, numeric and finite, or a pandas or polars frame, whose columns may also hold
            categories, dates and gaps (see ``columns_.describe()``).
        y
            ``(N,)`` or ``(N, P)``.
        sample_weight
            ``(N,)``, not negative.

        Nothing of an earlier fit is lost until this one has succeeded.
        """
        before = dict(self.__dict__)
        try:
            return self._fit(X, y, sample_weight)
        except BaseException:  # an interrupt included
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> DistributionRegressor:
        prepared = self._prepare(X, y, sample_weight)
        return self._accept(prepared, self._fit_cores([prepared.problem])[0])

    def _prepare(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        blocks: int = 0,
        memo: dict[Any, Any] | None = None,
    ) -> Prepared:
        """Check and standardise a table; methods fitted together share ``blocks`` and ``memo``."""
        check_random_state(self.random_state)
        seed = seed_from(self.random_state)
        framed = is_frame(X)
        if framed:
            check_rows(number_of_rows(X))
        inputs = X if framed else check_inputs(self, X, reset=True)
        targets, single = check_targets(y, len(inputs))
        weights = check_weights(sample_weight, targets)
        used, unscaled = None, None
        if weights is not None:
            used = np.flatnonzero(weights > 0)
            unscaled = np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), weights.shape)[used]
            inputs, targets, weights = _safe_indexing(inputs, used), targets[used], weights[used]
            if len(inputs) < LEAST_ROWS:
                raise InputError(
                    f"sample_weight leaves {counted(len(inputs), 'row')} of positive weight; at least {LEAST_ROWS} are "
                    "needed."
                )
        columns, given = None, inputs
        if framed:
            columns, inputs = encode_training(self, inputs, targets, seed)
        x_shift, x_scale = weighted_scaler(inputs, weights)
        if columns is not None:
            x_scale = np.where(np.isnan(columns.scales), x_scale, columns.scales)
        y_shift, y_scale = target_scaler(targets, weights)
        warn_of_constants(inputs)
        problem = Problem(
            (inputs - x_shift) / x_scale,
            (targets - y_shift) / y_scale,
            weights,
            y_scale,
            seed,
            Original(given, inputs, targets, unscaled, x_shift, x_scale),
            blocks,
            {} if memo is None else memo,
        )
        x_range = np.stack([inputs.min(axis=0), inputs.max(axis=0)])
        return Prepared(problem, x_shift, x_scale, y_shift, single, columns, x_range, used)

    def _accept(self, prepared: Prepared, fitted: Fitted) -> DistributionRegressor:
        """Keep what was learned."""
        problem = prepared.problem
        self.support_ = problem.support()
        if prepared.used is not None:
            self.support_ = replace(self.support_, rows=prepared.used[self.support_.rows])
        self.columns_, self.x_range_ = prepared.columns, prepared.x_range
        self.x_shift_, self.x_scale_ = prepared.x_shift, prepared.x_scale
        self.y_shift_, self.y_scale_ = prepared.y_shift, problem.y_scale
        self.single_target_, self.n_outputs_, self.n_rows_ = prepared.single_target, problem.y.shape[1], len(problem.x)
        for name, value in fitted.learned.items():
            setattr(self, name, value)
        self.core_: Any = fitted.core
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Whether ``fit`` has come to its end."""
        return hasattr(self, "core_")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may expect of this estimator."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.non_deterministic = False
        return tags

    def _for_core(self, rows: Rows) -> tuple[torch.Tensor | None, ...]:
        """The standardised rows and, where a core can use it, which count as outside and their level there."""
        if not getattr(self.core_, "takes_outside", False):
            return (rows.x,)
        strange = None if rows.strange is None else torch.as_tensor(rows.strange)
        level = None if self.level_ is None else torch.as_tensor(self.level_(rows.encoded), dtype=torch.float32)
        return rows.x, strange, level

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predicted means, ``(N,)`` or ``(N, P)``; with ``return_std`` a pair of means and standard deviations."""
        if return_std:
            prediction = self.predict_dist(X)
            return prediction.mean, prediction.std
        mean: np.ndarray = self._locations(self._read(X)).mean(0)
        return mean[:, 0] if self.single_target_ else mean

    def _locations(self, rows: Rows) -> np.ndarray:
        """Means of the members in units of y, ``(M, N, P)``; ``(1, N, P)`` where they are not ours."""
        foreign = self._foreign_locations(rows)
        if foreign is not None:
            return foreign[None]
        loc: np.ndarray = self.core_.locations(*self._for_core(rows)).double().numpy()
        return loc * self.y_scale_ + self.y_shift_

    def _foreign_locations(self, rows: Rows) -> np.ndarray | None:
        """Means in units of y, ``(N, P)``, where a regressor of the user's gives them, else None."""
        found = None if self.foreign_ is None else self.foreign_.locations(rows)
        if found is not None and self.core_.fade_mean:
            found = found + self.core_.fading(*self._for_core(rows)).numpy() * (self.y_shift_ - found)
        return found

    def predict_dist(self, X: Any) -> Prediction:
        """The whole predictive distribution of each row, in units of y."""
        return self._distribution(self._read(X))

    def _distribution(self, rows: Rows) -> Prediction:
        parts: StudentT = self.core_.predictive(*self._for_core(rows))
        shift, scale = torch.as_tensor(self.y_shift_), torch.as_tensor(self.y_scale_)
        foreign = self._foreign_locations(rows)
        loc = parts.loc.double() * scale + shift
        loc = loc if foreign is None else torch.as_tensor(foreign).expand_as(loc)
        scaled = StudentT(parts.df.double(), loc, parts.scale.double() * scale)
        return Prediction(StudentTMixture(scaled), self.single_target_)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper end of the central interval of this probability.

        With ``calibrate="conformal"`` the interval of a row inside, or at the edge, covers its target with this
        probability whatever the distribution says; ``interval_kind`` tells which rows these are. Outside, and without
        calibration, it is the distribution's own.
        """
        check_fraction("level", level)
        rows = self._read(X)
        prediction = self._distribution(rows)
        if self.conformal_ is None:
            return prediction.interval(level)
        return calibrated_interval(prediction, self.conformal_, self._words(rows), level)

    def interval_kind(self, X: Any, level: float = 0.9) -> np.ndarray:
        """What the interval of each row rests on.

        ``"inside"`` or ``"edge"``: on held-out rows of that verdict, it covers at the level; with too few rows at the
        edge it is the wider of the one inside and the distribution's own. ``"outside level"``: on the level outside.
        ``"fitted"``: on the distribution alone, where there is no calibration or too little for it, or the verdict is
        unknown; with calibration it may be wider than the distribution's own.
        """
        check_fraction("level", level)
        return interval_kinds(self.conformal_, self._words(self._read(X)), level)
