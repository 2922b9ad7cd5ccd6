"""Has a model seen anything like these rows? Support, verdict, reasons, and a watch over a whole table."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from nescio._validation import InputError, check_fraction
from nescio.calibration import EDGE_RATE, INSIDE, OUTSIDE, OUTSIDE_RATE, UNKNOWN, Support
from nescio.estimators.arrays import LARGEST, encode_rows
from nescio.estimators.explanation import Explainer, Explanation, plain_columns
from nescio.estimators.rows import Rows
from nescio.estimators.watch import Watch, watch_rows
from nescio.preprocessing import ColumnEncoder, is_frame

__all__ = ["RowJudge"]


class RowJudge:
    """What a fitted model says of its inputs alone, whatever it predicts."""

    columns_: ColumnEncoder | None = None
    """How the columns of a frame become numbers; None where the model was fitted on an array."""
    support_: Support
    x_shift_: np.ndarray
    x_scale_: np.ndarray
    x_range_: np.ndarray

    @property
    def encoded_names_(self) -> list[str]:
        """Names of the numbers that the model works with, one for each of ``x_shift_``."""
        if self.columns_ is None:
            return [str(name) for name in getattr(self, "feature_names_in_", range(len(self.x_shift_)))]
        return self.columns_.encoded_names

    def _read(self, X: Any) -> Rows:
        """Rows as a user gives them, checked against what the model was fitted on; what was read stays as it is."""
        check_is_fitted(self)
        if isinstance(X, Rows):
            return X
        encoded, reasons = encode_rows(self, X)
        return self._rows_from_encoded(encoded)._replace(given=X, reasons=reasons)

    def _rows_from_encoded(self, encoded: np.ndarray) -> Rows:
        """Points ``(N, D)`` that were made up in the space of the encoded rows."""
        standardised = np.clip((encoded - self.x_shift_) / self.x_scale_, -LARGEST, LARGEST)
        return Rows(None, encoded, standardised)

    def support(self, X: Any) -> np.ndarray:
        """A p-value of each row: the share of the training data that lies at least as far out.

        Uniform on fresh rows from inside; small where the model has seen nothing like the row, and zero where a cell
        holds what no training row does (a new level, or a gap in a column without one).
        """
        return self._p_values(self._read(X))

    def _p_values(self, rows: Rows) -> np.ndarray:
        if rows.p is not None:
            return rows.p
        p = self.support_.p_value(rows.standardised)
        return p if rows.strange is None else np.where(rows.strange, 0.0, p)

    def verdict(self, X: Any, edge: float = EDGE_RATE, outside: float = OUTSIDE_RATE) -> np.ndarray:
        """``"inside"``, ``"edge"`` or ``"outside"`` per row, from ``support`` at these rates of false alarms.

        Where there are too few training rows for a rate (fewer than 199 for 1 in 200), a warning says so and such rows
        are called ``"edge"``, or ``"unknown"`` where even that cannot be told.
        """
        _check_rates(edge, outside)
        rows = self._read(X)
        self._warn_of_few(outside)
        return self._words(rows, edge, outside)

    def _words(self, rows: Rows, edge: float = EDGE_RATE, outside: float = OUTSIDE_RATE) -> np.ndarray:
        words = self.support_.verdict(self._p_values(rows), edge, outside)
        return words if rows.strange is None else np.where(rows.strange, OUTSIDE, words)

    def _warn_of_few(self, outside: float) -> None:
        if not self.support_.can_tell(outside):
            warnings.warn(
                f"{len(self.support_.scores)} distinct training rows are too few to call a row outside at 1 false "
                f"alarm in {round(1 / outside)}: at least {math.ceil(1 / outside - 1e-9) - 1} are needed.",
                UserWarning,
                stacklevel=3,
            )

    def score_samples(self, X: Any) -> np.ndarray:
        """How much each row looks like the data: larger is more alike (minus the log of the distance)."""
        rows = self._read(X)
        return -np.log(np.maximum(self.support_.score(rows.standardised), 1e-12))

    def explain(self, X: Any, edge: float = EDGE_RATE, outside: float = OUTSIDE_RATE) -> list[Explanation]:
        """Why each row is at the edge or outside: the columns that take it there, ranked, and the nearest rows.

        A column's rank is its part of the squared distance to the nearest training rows, less what it is for rows from
        inside. Rows that are inside have no reasons.
        """
        _check_rates(edge, outside)
        rows = self._read(X)
        self._warn_of_few(outside)
        return self._explanations(rows, self._words(rows, edge, outside))

    def _explanations(self, rows: Rows, words: np.ndarray) -> list[Explanation]:
        found = [Explanation(str(word)) for word in words]
        strange = np.flatnonzero((words != INSIDE) & (words != UNKNOWN))
        unseen, texts = [{}] * len(strange), [{}] * len(strange)  # type: list[dict[str, str]], list[dict[str, str]]
        if len(strange) and self.columns_ is not None and is_frame(rows.given):
            unseen, texts = self.columns_.unseen(_safe_indexing(rows.given, strange))
        columns = self.columns_ or plain_columns([f"column {name}" for name in self.encoded_names_])
        explainer = Explainer(columns, self.support_, self.x_shift_, self.x_scale_, self.x_range_)
        for number, row in enumerate(strange):
            found[row] = explainer.explain(
                rows.standardised[row], rows.encoded[row], str(words[row]), unseen[number], texts[number]
            )
        return found

    def watch(self, X: Any, edge: float = EDGE_RATE, outside: float = OUTSIDE_RATE) -> Watch:
        """Whether more of these rows are at the edge or outside than chance allows: a test without targets."""
        _check_rates(edge, outside)
        return watch_rows(self._p_values(self._read(X)), self.support_, edge, outside)


def _check_rates(edge: float, outside: float) -> None:
    check_fraction("edge", edge)
    check_fraction("outside", outside)
    if outside > edge:
        raise InputError(f"outside must not exceed edge; got outside={outside!r} and edge={edge!r}.")
