"""Deep ensembles: the same method from several starts, mixed evenly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from sklearn.base import clone
from torch import Tensor

from nescio._random import child_seed
from nescio._validation import InputError, check_integer
from nescio.distributions import StudentT
from nescio.estimators.base import DistributionRegressor
from nescio.estimators.mean_variance import MeanVarianceRegressor
from nescio.estimators.problem import Core, Fitted, Problem

__all__ = ["DeepEnsembleRegressor", "EnsembleCore"]


@dataclass(frozen=True)
class EnsembleCore:
    """Cores whose members are all mixed evenly; ``outside`` is what they take besides the rows."""

    cores: tuple[Core, ...]

    @property
    def takes_outside(self) -> bool:
        """Whether the members take which rows count as outside, and their level there."""
        return all(getattr(core, "takes_outside", False) for core in self.cores)

    def locations(self, x: Tensor, *outside: Tensor | None) -> Tensor:
        """Means of the members at ``x (N, D)``, ``(M, N, P)``."""
        return torch.cat([core.locations(x, *outside) for core in self.cores])

    def predictive(self, x: Tensor, *outside: Tensor | None) -> StudentT:
        """Predictive distributions of the members at ``x (N, D)``, ``(M, N, P)``."""
        parts = [core.predictive(x, *outside) for core in self.cores]
        return StudentT(
            torch.cat([part.df for part in parts]),
            torch.cat([part.loc for part in parts]),
            torch.cat([part.scale for part in parts]),
        )


class DeepEnsembleRegressor(DistributionRegressor):
    """An even mixture of several fits of one method to the same table.

    The members differ in their start, their batches and the rows they hold out for early stopping; no bagging. The
    prediction is the mixture itself; the paper scores the Gaussian with the mixture's mean and variance. Members and
    tables are trained in one stack where the members' method trains in stacks. Adversarial training is left out.

    Source: lakshminarayanan2017.

    Parameters
    ----------
    n_members
        How many.
    member
        A regressor of this library, which is cloned; its ``random_state`` is not looked at. None: mean-variance
        networks. It may have no ``mean`` of yours, and is not calibrated.
    random_state
        Same seed, same ensemble; each member's seed comes from it.
    """

    def __init__(self, *, n_members: int = 5, member: Any = None, random_state: Any = None) -> None:
        self.n_members = n_members
        self.member = member
        self.random_state = random_state

    def _fit_cores(self, problems: Sequence[Problem]) -> list[Fitted]:
        count = check_integer("n_members", self.n_members, least=1)
        if self.member is not None and not isinstance(self.member, DistributionRegressor):
            raise InputError(f"member must be a regressor of this library or None; got {type(self.member).__name__}.")
        for name in ("mean", "calibrate"):
            if getattr(self.member, name, None) is not None:
                raise InputError(
                    f"member must not set {name}, which an ensemble does not carry; leave it out, "
                    f"or fit {type(self.member).__name__} alone."
                )
        member = MeanVarianceRegressor() if self.member is None else clone(self.member)
        each = [
            replace(problem, seed=child_seed(problem.seed, "ensemble", number), memo={})
            for problem in problems
            for number in range(count)
        ]
        fitted = member._fit_cores(each)
        groups = [fitted[place : place + count] for place in range(0, len(fitted), count)]
        return [
            # The level outside is the user's own function, the same for all members.
            Fitted(EnsembleCore(tuple(one.core for one in group)), {"level_": group[0].learned.get("level_")})
            for group in groups
        ]
