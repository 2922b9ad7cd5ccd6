"""Natural gradient boosting (NGBoost): trees for the mean and the log-scale of a Gaussian, a rival without networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn import config_context
from torch import Tensor

from nescio._random import child_seed
from nescio._validation import InputError, check_fraction, check_integer, check_positive
from nescio.datasets.splits import group_rows
from nescio.distributions import StudentT
from nescio.estimators.base import DistributionRegressor
from nescio.estimators.means import hold_out
from nescio.estimators.problem import Fitted, Problem

__all__ = ["NaturalBoostingRegressor"]

FULL_ROWS = 1_000  # rows that a stage's trees see at most: twice as many gain 0.04 nats at best, half as many lose 0.07
SMALLEST_STD = 1e-6  # in standardised units: a constant target leaves the trees nothing to say


def _library() -> Any:
    """NGBoost, which is an extra, in the parts that are used here."""
    try:
        import ngboost  # noqa: F401

        from nescio.estimators import boosting_parts
    except ImportError as error:
        raise InputError(
            "NaturalBoostingRegressor needs ngboost, which is not installed; pip install 'nescio[peers]'."
        ) from error
    return boosting_parts


@dataclass(frozen=True)
class BoostingCore:
    """One boosted model per output."""

    models: list[Any]

    def predictive(self, x: Tensor) -> StudentT:
        """Gaussians at ``x (N, D)``, ``(1, N, P)``."""
        found = [each.pred_dist(x.float().numpy()).params for each in self.models]
        loc = torch.as_tensor(np.stack([each["loc"] for each in found], axis=-1)[None])
        scale = torch.as_tensor(np.stack([each["scale"] for each in found], axis=-1)[None])
        return StudentT(torch.inf, loc, scale.clamp_min(SMALLEST_STD))

    def locations(self, x: Tensor) -> Tensor:
        """Means at ``x (N, D)``, ``(1, N, P)``."""
        return self.predictive(x).loc


class NaturalBoostingRegressor(DistributionRegressor):
    """NGBoost's Gaussian regression: depth-3 trees along the natural gradient of the likelihood.

    The number of stages is the one with the best likelihood on held-out rows; the model is then fitted anew to all rows
    with that many. Away from the data trees say what the outermost leaf says. One model per target.

    Source: duan2020.

    Parameters
    ----------
    max_stages
        The most stages to try.
    learning_rate
        Shrinkage of each stage. The published tables have 0.01 and up to 2,000 stages; four times the rate reaches the
        same level in a quarter of the time.
    patience
        Stages without a gain after which no more are tried.
    max_depth
        Of the trees.
    validation_fraction
        Share of the rows that are held out to choose the stages by.
    random_state
        Same seed, same model.

    Above 1,000 rows each stage sees a random 1,000 of them.
    """

    def __init__(
        self,
        *,
        max_stages: int = 500,
        learning_rate: float = 0.04,
        patience: int = 50,
        max_depth: int = 3,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.max_stages = max_stages
        self.learning_rate = learning_rate
        self.patience = patience
        self.max_depth = max_depth
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _fit_cores(self, problems: Sequence[Problem]) -> list[Fitted]:
        check_integer("max_stages", self.max_stages, least=1)
        check_integer("patience", self.patience, least=1)
        check_integer("max_depth", self.max_depth, least=1)
        check_positive("learning_rate", self.learning_rate)
        check_fraction("validation_fraction", self.validation_fraction)
        library = _library()
        fitted = []
        for problem in problems:
            pairs = [self._fit_one(library, problem, target) for target in range(problem.y.shape[1])]
            stages = np.array([count for _, count in pairs])
            fitted.append(Fitted(BoostingCore([model for model, _ in pairs]), {"n_stages_": stages}))
        return fitted

    def _fit_one(self, library: Any, problem: Problem, target: int) -> tuple[Any, int]:
        x, y = problem.x.astype(np.float32), problem.y[:, target]  # in the precision that trees have
        weigh = lambda rows: None if problem.weights is None else problem.weights[rows]
        seed = child_seed(problem.seed, "stages", target)
        parts = hold_out(np.arange(len(x)), group_rows(problem.x), float(self.validation_fraction), seed)
        learn, stop = (part.numpy() for part in parts)

        def boost(rows: np.ndarray, stages: int, **named: Any) -> Any:
            model = library.PlainBooster(
                Dist=library.PlainNormal,
                Base=library.PlainTree(max_depth=int(self.max_depth), random_state=seed % 2**32),
                n_estimators=stages,
                learning_rate=float(self.learning_rate),
                minibatch_frac=min(1.0, FULL_ROWS / len(rows)),
                verbose=False,
                random_state=seed % 2**32,
            )
            # Its line search steps beyond the finite numbers and comes back; its trees all have the same parameters.
            with np.errstate(all="ignore"), config_context(skip_parameter_validation=True):
                return model.fit(x[rows], y[rows], sample_weight=weigh(rows), **named)

        tried = boost(
            learn,
            int(self.max_stages),
            X_val=x[stop],
            Y_val=y[stop],
            val_sample_weight=weigh(stop),
            early_stopping_rounds=int(self.patience),
        )
        stages = int(tried.best_val_loss_itr or 0) + 1
        return boost(np.arange(len(x)), stages), stages
