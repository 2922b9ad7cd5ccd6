"""Phase one: the means. Members, folds and blocks are one stack of networks under one squared error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nescio._random import child_seed, generators
from nescio.datasets.splits import blocks, folds
from nescio.densities import fit_neighbours
from nescio.networks import Network, Parameters
from nescio.objectives import PointLosses
from nescio.training import Draw, Sampler, Schedule, Table, train

__all__ = ["MeanPhase", "fit_means", "hold_out", "padded"]

MOST_VALIDATION_ROWS = 2_000  # a mean over more rows is no better a judge, and its cost would grow with N
MOST_BLOCK_ROWS = 2_000  # held-out rows per block that the growth of the error is learned from


class MeanPhase(NamedTuple):
    """What phase one leaves: the members' networks, and how wrong such networks are on rows they did not see."""

    parameters: Parameters
    """Of the members, ``(M, ...)``."""
    validation: list[Tensor]
    """The rows each member was stopped by."""
    residuals: Tensor
    """Out-of-fold residuals of all rows, ``(N, P)``."""
    held_out: np.ndarray
    """Rows that were held out in blocks or folds, ``(Q,)``."""
    distance: np.ndarray
    """Their distances to what was left, ``(Q,)``."""
    squared_error: np.ndarray
    """Their squared errors, ``(Q, P)``."""

    def of_members(self, count: int) -> MeanPhase:
        """The same with the first ``count`` members alone."""
        parameters = {name: value[:count] for name, value in self.parameters.items()}
        return self._replace(parameters=parameters, validation=self.validation[:count])


def hold_out(rows: np.ndarray, groups: np.ndarray, fraction: float, seed: int) -> tuple[Tensor, Tensor]:
    """Split ``rows`` at random into those to train on and those to stop by; at least one of each.

    Rows of one group, with the same inputs, stay on one side: a twin in training would vouch for overfitting. Where
    all rows are one group, single rows are dealt.
    """
    count = min(max(1, round(fraction * len(rows))), MOST_VALIDATION_ROWS, len(rows) - 1)
    members = groups[rows]
    order = np.random.default_rng(seed).permutation(len(rows))
    if members.min() == members.max():
        stop = np.isin(np.arange(len(rows)), order[:count])
    else:
        shuffled = members[order]
        _, first = np.unique(shuffled, return_index=True)
        turns = shuffled[np.sort(first)]  # the groups in the order in which the shuffled rows bring them up
        sizes = np.bincount(members)[turns]
        taken = turns[: max(1, min(int(np.searchsorted(np.cumsum(sizes), count, side="right")), len(turns) - 1))]
        stop = np.isin(members, taken)
    return torch.as_tensor(rows[~stop]), torch.as_tensor(rows[stop])


def padded(rows: Sequence[Tensor], weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Rows of each model side by side, ``(M, V)``, and their weights, zero where a model has fewer rows."""
    width = max(map(len, rows))
    places = torch.zeros(len(rows), width, dtype=torch.long)
    heft = torch.zeros(len(rows), width)
    for model, part in enumerate(rows):
        places[model, : len(part)] = part
        heft[model, : len(part)] = 1.0 if weights is None else weights[part]
    return places, heft


def fit_means(
    x: Tensor,
    y: Tensor,
    groups: np.ndarray,
    weights: Tensor | None,
    network: Network,
    schedule: Schedule,
    *,
    seed: int,
    n_members: int,
    n_folds: int,
    n_blocks: int,
    validation_fraction: float,
    device: torch.device,
    compile: bool | str,
    progress: Callable[[int], object] | None,
) -> MeanPhase:
    """Train the members' means with one network per fold and per block, all in one stack.

    Paper: sec:ood_pi_training (split training: the mean first, then frozen).

    Deviation: the residuals that phase two learns from are those of networks that did not see the row.
    """
    everything = np.arange(len(x))
    points = x.numpy()
    dealt = folds(groups, n_folds, child_seed(seed, "folds"))
    held_out = [*dealt, *(blocks(points, n_blocks, seed=child_seed(seed, "blocks")) if n_blocks else [])]
    names: list[tuple[str, int]] = [("member", member) for member in range(n_members)]
    names += [("held out", number) for number in range(len(held_out))]
    seen = [everything] * n_members + [np.setdiff1d(everything, rows, assume_unique=True) for rows in held_out]
    splits = [
        hold_out(rows, groups, validation_fraction, child_seed(seed, "validation", *name))
        for name, rows in zip(names, seen, strict=True)
    ]
    streams = [generators(child_seed(seed, "mean", role), "model", [number])[0] for role, number in names]

    table = Table(x, y).to(device)
    places, heft = (part.to(device) for part in padded([stop for _, stop in splits], weights))

    def losses(parameters: Parameters, draw: Draw) -> PointLosses:
        inputs, targets = table.gather(draw)
        return PointLosses(0.5 * (network(parameters, inputs)[:, 0] - targets).square().sum(-1), None, None)

    def criterion(parameters: Parameters, models: Tensor) -> Tensor:
        inputs, targets = table.whole(models, places[models])
        error = (network(parameters, inputs)[:, 0] - targets).square().sum(-1)
        return ((error * heft[models]).sum(1) / heft[models].sum(1).clamp_min(1e-12)).clamp_min(1e-12).log()

    start = {name: value.to(device) for name, value in network.initialise(streams).items()}
    sampler = Sampler([rows for rows, _ in splits], streams, schedule.batch_size, sample_weight=weights, device=device)
    trained = train(start, losses, sampler, schedule, criterion=criterion, compile=compile, progress=progress)

    residuals = torch.zeros_like(y)
    numbers, distance, squared_error = [], [], []
    for number, rows in enumerate(held_out):
        is_fold = number < len(dealt)
        rng = np.random.default_rng(child_seed(seed, "held out rows", number))
        if not is_fold and len(rows) > MOST_BLOCK_ROWS:
            rows = rng.choice(rows, MOST_BLOCK_ROWS, replace=False)
        single = {
            name: value[n_members + number : n_members + number + 1] for name, value in trained.parameters.items()
        }
        with torch.no_grad():
            predicted = torch.cat(
                [network(single, part.unsqueeze(0))[0, 0] for part in table.inputs[rows].split(65_536)]
            )
        error = y[rows] - predicted.cpu()
        if is_fold:
            residuals[rows] = error
            pick = rng.permutation(len(rows))[:MOST_BLOCK_ROWS]
            rows, error = rows[pick], error[torch.as_tensor(pick)]
        if n_blocks:
            left = np.setdiff1d(everything, held_out[number], assume_unique=True)
            neighbours = fit_neighbours(x[left], seed=child_seed(seed, "reference", number))
            numbers.append(rows)
            distance.append(neighbours.distance(x[rows]).numpy())
            squared_error.append(error.square().numpy())
    return MeanPhase(
        {name: value[:n_members].cpu() for name, value in trained.parameters.items()},
        [stop for _, stop in splits[:n_members]],
        residuals,
        np.concatenate(numbers) if numbers else np.empty(0, dtype=np.int64),
        np.concatenate(distance).astype(np.float64) if distance else np.empty(0),
        np.concatenate(squared_error).astype(np.float64) if squared_error else np.empty((0, y.shape[1])),
    )
