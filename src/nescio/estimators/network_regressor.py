"""The methods that train plain networks on all their tables in one stack."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from tqdm.auto import tqdm

from nescio._validation import check_fraction, check_integer, check_positive
from nescio.distributions import StudentT
from nescio.estimators.base import DistributionRegressor
from nescio.estimators.core import NetworkCore
from nescio.estimators.problem import Fitted, Problem
from nescio.estimators.stacks import PointCriterion, ProblemStack, stack_problems, train_stack
from nescio.networks import Network, Parameters
from nescio.training import Schedule
from nescio.training.devices import resolve_device
from nescio.training.steppers import Losses

__all__ = ["NetworkRegressor", "StackRun", "cores", "gaussian"]


@dataclass(frozen=True)
class StackRun:
    """The problems laid side by side, and how to train on them."""

    stack: ProblemStack
    n_inputs: int
    n_outputs: int
    n_problems: int
    schedule: Schedule
    compile: bool | str
    progress: Callable[[int], object]

    def train(
        self,
        start: Parameters,
        losses: Losses,
        criterion: PointCriterion | None,
        *,
        share: float = 1.0,
        slower: float = 1.0,
        check_every: int = 50,
        **named: Any,
    ) -> Parameters:
        """One phase of this share of the steps, at this share of the learning rate."""
        steps = max(1, round(share * self.schedule.max_steps))
        schedule = replace(
            self.schedule,
            max_steps=steps,
            learning_rate=slower * self.schedule.learning_rate,
            check_every=min(check_every, steps),
        )
        return train_stack(
            self.stack, start, losses, schedule, criterion, compile=self.compile, progress=self.progress, **named
        )

    def sizes(self) -> Tensor:
        """How many rows each model trains on, ``(M,)``."""
        device = self.stack.table.inputs.device
        return torch.tensor([len(rows) for rows in self.stack.training], dtype=torch.float32, device=device)

    def held_out(self, model: int) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs ``(V, D)``, targets ``(V, P)`` and weights ``(V,)`` of a model's held-out rows."""
        rows = (self.stack.validation or self.stack.training)[model]
        table, weights = self.stack.table, self.stack.weights
        places = rows.to(table.inputs.device)
        heft = torch.ones(len(rows)) if weights is None else weights[rows]
        return table.inputs[places], table.targets[places], heft.to(table.inputs)

    def held_out_error(self, network: Network, parameters: Parameters) -> Tensor:
        """Mean squared error of each model's first map on its held-out rows, ``(M, P)``."""
        errors = []
        for model in range(len(self.stack.training)):
            x, y, weights = self.held_out(model)
            with torch.no_grad():
                maps = network({name: value[model : model + 1] for name, value in parameters.items()}, x.unsqueeze(0))
            errors.append(((maps[0, 0] - y).square() * weights[:, None]).sum(0) / weights.sum())
        return torch.stack(errors)


class NetworkRegressor(DistributionRegressor):
    """Wiring of the stack. What is trained, in which phases, is the subclass's to say."""

    @abstractmethod
    def _train(self, problems: Sequence[Problem], progress: Callable[[int], object]) -> list[Fitted]:
        """Train one model for each problem."""

    @abstractmethod
    def _shares(self) -> float:
        """How many times ``max_steps`` all phases take together."""

    @abstractmethod
    def _check_own(self) -> None:
        """Refuse bad parameters of the subclass's own, before anything is trained."""

    def _fit_cores(self, problems: Sequence[Problem]) -> list[Fitted]:
        steps = check_integer("max_steps", self.max_steps, least=1)
        check_integer("batch_size", self.batch_size, least=1)
        check_positive("learning_rate", self.learning_rate)
        check_fraction("validation_fraction", self.validation_fraction)
        self._check_own()
        with tqdm(total=round(self._shares() * steps), disable=None if self.verbose else True) as bar:
            return self._train(problems, bar.update)

    def _lay_out(
        self,
        problems: Sequence[Problem],
        progress: Callable[[int], object],
        *,
        validation_fraction: float | None = None,
    ) -> StackRun:
        """The problems as one stack; a ``validation_fraction`` other than the estimator's own may be given."""
        stack = stack_problems(
            problems,
            1,
            label=type(self).__name__,
            validation_fraction=float(self.validation_fraction) if validation_fraction is None else validation_fraction,
            device=resolve_device(self.device),
        )
        n_inputs, n_outputs = problems[0].x.shape[1], problems[0].y.shape[1]
        schedule = Schedule(int(self.max_steps), int(self.batch_size), float(self.learning_rate))
        return StackRun(stack, n_inputs, n_outputs, len(problems), schedule, self.compile, progress)


def cores(run: StackRun, network: Network, parameters: Parameters, read: Any) -> list[Fitted]:
    """A fitted core for each problem, of the networks whose raw maps ``read`` turns into distributions."""
    return [
        Fitted(NetworkCore(network, run.stack.share(parameters, problem), read), {})
        for problem in range(run.n_problems)
    ]


def gaussian(loc: Tensor, log_variance: Tensor) -> StudentT:
    """Gaussians as Student-t distributions of infinite df."""
    return StudentT(torch.inf, loc, torch.exp(0.5 * log_variance))
