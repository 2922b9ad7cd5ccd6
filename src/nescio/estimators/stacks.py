"""Networks for several tables in one stack: what the methods that train plain networks have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nescio._random import child_seed, generators
from nescio.datasets.splits import group_rows
from nescio.estimators.means import hold_out, padded
from nescio.estimators.problem import Problem
from nescio.networks import Parameters
from nescio.training import Sampler, Schedule, Table, train
from nescio.training.steppers import Losses

__all__ = ["ProblemStack", "stack_problems", "train_stack"]

PointCriterion = Callable[[Parameters, Tensor, Tensor, Tensor], Tensor]
"""(parameters, models ``(A,)``, inputs ``(A, V, D)``, targets ``(A, V, P)``) -> loss of each row, ``(A, V)``."""


@dataclass(frozen=True)
class ProblemStack:
    """The tables of several problems, one below the other, and for each model the rows it may see.

    Model ``i * n_members + j`` is member j of problem i.
    """

    table: Table
    training: list[Tensor]
    validation: list[Tensor] | None
    """The rows each model is stopped by; None where all rows are trained on."""
    weights: Tensor | None
    streams: list[torch.Generator]
    n_members: int

    def share(self, parameters: Parameters, problem: int) -> Parameters:
        """The parameters of the members of one problem, on the host."""
        mine = slice(problem * self.n_members, (problem + 1) * self.n_members)
        return {name: value[mine].cpu() for name, value in parameters.items()}


def stack_problems(
    problems: Sequence[Problem],
    n_members: int,
    *,
    label: str,
    validation_fraction: float,
    device: torch.device,
) -> ProblemStack:
    """Lay the problems side by side; a ``validation_fraction`` of zero holds no rows out.

    Streams and held-out rows come from each problem's own seed, so a model does not depend on its stack mates.
    """
    training, validation, streams = [], [], []
    start = 0
    for problem in problems:
        rows, groups = np.arange(len(problem.x)), group_rows(problem.x)
        for member in range(n_members):
            learn, stop = torch.as_tensor(rows), None
            if validation_fraction:
                seed = child_seed(problem.seed, label, "validation", member)
                learn, stop = hold_out(rows, groups, validation_fraction, seed)
                validation.append(stop + start)
            training.append(learn + start)
        streams += generators(problem.seed, label, n_members)
        start += len(rows)
    table = Table(
        torch.as_tensor(np.concatenate([problem.x for problem in problems]), dtype=torch.float32),
        torch.as_tensor(np.concatenate([problem.y for problem in problems]), dtype=torch.float32),
    )
    weights = None
    if any(problem.weights is not None for problem in problems):
        each = [np.ones(len(problem.x)) if problem.weights is None else problem.weights for problem in problems]
        weights = torch.as_tensor(np.concatenate(each), dtype=torch.float32)
    return ProblemStack(table.to(device), training, validation or None, weights, streams, n_members)


def train_stack(
    stack: ProblemStack,
    start: Parameters,
    losses: Losses,
    schedule: Schedule,
    criterion: PointCriterion | None = None,
    *,
    noise_shape: Sequence[int] | None = None,
    pool_size: int = 0,
    compile: bool | str = "auto",
    progress: Callable[[int], object] | None = None,
) -> Parameters:
    """Train every model of the stack from ``start``; judged on its held-out rows where there are any.

    ``losses`` gathers its batches from ``stack.table``. Without held-out rows or a criterion the last weights are kept.
    """
    device = stack.table.inputs.device
    judge = None
    if criterion is not None and stack.validation is not None:
        places, heft = (part.to(device) for part in padded(stack.validation, stack.weights))

        def judge(parameters: Parameters, models: Tensor) -> Tensor:
            each = criterion(parameters, models, *stack.table.whole(models, places[models]))
            return (each * heft[models]).sum(1) / heft[models].sum(1).clamp_min(1e-12)

    sampler = Sampler(
        stack.training,
        stack.streams,
        schedule.batch_size,
        sample_weight=stack.weights,
        pool_size=pool_size,
        noise_shape=noise_shape,
        device=device,
    )
    begin = {name: value.to(device) for name, value in start.items()}
    return train(begin, losses, sampler, schedule, criterion=judge, compile=compile, progress=progress).parameters
