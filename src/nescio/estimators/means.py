"""Phase one: the mean, a bag of networks. Folds and blocks are one stack under one squared error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nescio._random import child_seed, generators
from nescio.datasets.splits import blocks, folds
from nescio.densities import fit_neighbours
from nescio.estimators.core import Bag, Mean
from nescio.estimators.sizes import is_small
from nescio.networks import Network, Parameters
from nescio.objectives import PointLosses
from nescio.training import Draw, Sampler, Schedule, Table, train

__all__ = [
    "MOST_BLOCK_ROWS",
    "Growth",
    "MeanPhase",
    "errors_by_distance",
    "find_relevance",
    "fit_means",
    "hold_out",
    "padded",
]

MOST_VALIDATION_ROWS = 2_000  # a mean over more rows is no better a judge, and its cost would grow with N
MOST_BLOCK_ROWS = 2_000  # held-out rows per block that the growth of the error is learned from
LEAST_RELEVANCE = 0.05  # of the root mean square of them all


class Growth(NamedTuple):
    """How wrong a mean is at rows that were held out in blocks or folds."""

    held_out: np.ndarray
    """The rows, ``(Q,)``."""
    distance: np.ndarray
    """Their distances to what was left, ``(Q,)``."""
    squared_error: np.ndarray
    """Their squared errors, ``(Q, P)``."""
    relevance: Tensor
    """What a unit of each input counts for in a distance, ``(D,)``."""
    offset: np.ndarray | float = 0.0
    """By how much the squared errors inside are above those of the mean that is asked about, ``(P,)``."""


class MeanPhase(NamedTuple):
    """What phase one leaves: the mean, and how wrong it is on rows that it did not see."""

    mean: Mean
    residuals: Tensor
    """Of all rows, ``(N, P)``, from a mean that did not see the row."""
    growth: Growth
    foreign: Any = None
    """The mean itself where it is not ours."""


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
    n_folds: int,
    n_repeats: int,
    n_blocks: int,
    validation_fraction: float,
    device: torch.device,
    compile: bool | str,
    progress: Callable[[int], object] | None,
) -> MeanPhase:
    """Train one network per fold and per block, all in one stack; the folds are dealt ``n_repeats`` times.

    Paper: sec:ood_pi_training (split training: the mean first, then frozen).

    Deviation: the mean is the average over the folds' networks, which is right more often than one of them, most of
    all in holes, and costs nothing more. The residuals that phase two learns from are those of the average over the
    networks that did not see the row.

    Distances in small tables are those that the mean feels: the nearest of few rows is far away in some inputs, and if
    the mean is flat along them that is no risk.
    """
    everything = np.arange(len(x))
    points = x.numpy()
    dealt = [rows for repeat in range(n_repeats) for rows in folds(groups, n_folds, child_seed(seed, "folds", repeat))]
    held_out = [*dealt, *(blocks(points, n_blocks, seed=child_seed(seed, "blocks")) if n_blocks else [])]
    seen = [np.setdiff1d(everything, rows, assume_unique=True) for rows in held_out]
    splits = [
        hold_out(rows, groups, validation_fraction, child_seed(seed, "validation", number))
        for number, rows in enumerate(seen)
    ]
    streams = generators(child_seed(seed, "mean"), "model", len(held_out))

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

    errors = []
    total, count = torch.zeros_like(y), torch.zeros(len(y), 1)
    for number, rows in enumerate(held_out):
        if number >= len(dealt) and len(rows) > MOST_BLOCK_ROWS:
            rng = np.random.default_rng(child_seed(seed, "held out rows", number))
            rows = rng.choice(rows, MOST_BLOCK_ROWS, replace=False)
        single = {name: value[number : number + 1] for name, value in trained.parameters.items()}
        with torch.no_grad():
            predicted = torch.cat(
                [network(single, part.unsqueeze(0))[0, 0] for part in table.inputs[rows].split(65_536)]
            )
        errors.append((rows, y[rows] - predicted.cpu()))
        if number < len(dealt):
            total[rows] += errors[-1][1]
            count[rows] += 1.0
    residuals = total / count
    bag = Bag(network, {name: value[: len(dealt)].cpu() for name, value in trained.parameters.items()})
    relevance = find_relevance(bag, x) if n_blocks and is_small(*x.shape) else torch.ones(x.shape[1])
    return MeanPhase(
        bag, residuals, errors_by_distance(x, residuals, seen, errors if n_blocks else [], len(dealt), seed, relevance)
    )


def find_relevance(mean: Mean, x: Tensor) -> Tensor:
    """How much a mean feels each of its inputs: the root mean square of its slope at the rows ``x (N, D)``, ``(D,)``.

    In units of their own root mean square, and none below a twentieth of it: what the mean does not feel in the data it
    may have to feel outside. Inputs that do not vary, along which nothing was learned, count as usual. A mean that has
    no slope, or none that is finite, feels all inputs alike. A module with dropout is asked as it was trained.
    """
    points = x.clone().requires_grad_(True)
    loc = mean(points, 1)[0]
    slopes = torch.zeros(x.shape[1])
    for output in range(loc.shape[1] if loc.requires_grad else 0):
        total = loc[:, output].sum()
        slopes += torch.autograd.grad(total, points, retain_graph=True, materialize_grads=True)[0].square().mean(0)
    varies = (x != x[:1]).any(0)
    usual = slopes[varies].mean()
    if not bool(torch.isfinite(slopes).all()) or not bool(usual > 0):
        return torch.ones(x.shape[1])
    relevance = torch.where(varies, slopes / usual, 1.0).sqrt().clamp_min(LEAST_RELEVANCE)
    return relevance / relevance.square().mean().sqrt()


def errors_by_distance(
    x: Tensor,
    residuals: Tensor,
    seen: Sequence[np.ndarray],
    errors: Sequence[tuple[np.ndarray, Tensor]],
    n_dealt: int,
    seed: int,
    relevance: Tensor,
) -> Growth:
    """Errors ``(rows, (R, P))`` of each hold-out with the distances of its rows to the rows ``seen``.

    The first ``n_dealt`` hold-outs are folds; of them ``residuals (N, P)`` count, and at most 2,000 rows. A unit of an
    input counts for ``relevance (D,)`` in a distance.
    """
    x = x * relevance
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for number, (rows, error) in enumerate(errors):
        if number < n_dealt:
            rng = np.random.default_rng(child_seed(seed, "held out rows", number))
            rows = rows[rng.permutation(len(rows))[:MOST_BLOCK_ROWS]]
            error = residuals[rows]
        neighbours = fit_neighbours(x[seen[number]], seed=child_seed(seed, "reference", number))
        found.append((rows, neighbours.distance(x[rows]).double().numpy(), error.square().double().numpy()))
    if not found:
        return Growth(np.empty(0, dtype=np.int64), np.empty(0), np.empty((0, residuals.shape[1])), relevance)
    rows, distances, squares = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Growth(rows, distances, squares, relevance)
