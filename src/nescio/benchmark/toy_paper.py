"""The toy problem with the settings of the authors' logs: one weak prior, the hardest points of a grid, no split.

A reconstruction: its bound on noise-free test rows is lower than the one in their logs, and the reason is not known.

`python -m nescio.benchmark.toy_paper` writes ``results/toy_paper.csv``. All seeds train in one stack.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nescio._random import child_seed
from nescio.benchmark.desiderata import HOLE, ToyFit
from nescio.benchmark.paper_training import MAPS, posterior, starting_weights
from nescio.benchmark.records import provenance, write_records
from nescio.benchmark.toy_runs import DATA, GRID, toy_record
from nescio.datasets.toy import toy_regression, toy_std
from nescio.distributions import Gamma, StudentT, gamma_kl
from nescio.networks import MLP, Parameters
from nescio.objectives import dissipative_loss, elbo
from nescio.pseudo_inputs import BruteForce

__all__ = ["PAPER_METHODS", "fit_paper_toy", "main"]

PAPER_METHODS = ("d-vv-as-run", "vv-as-run")
HIDDEN, ACTIVATION = 50, "sigmoid"
PRIOR = (1.025, 0.5)  # a variance of 20, that of the targets
KL_WEIGHT, PSEUDO_WEIGHT = 0.5, 1.0  # their tau of 0.5 is a weight of one
STEPS, PATIENCE = 6_000, 250  # full batches; a check after each
LEARNING_RATE = 1e-2
VALIDATION = 0.1
GRID_POINTS = BruteForce(grid=1_000, hardest=250)  # a quarter of theirs, of the same law, in a quarter of the time


def fit_paper_toy(data: str, method: str, seeds: Sequence[int], steps: int = STEPS) -> list[ToyFit]:
    """VV or d-VV with the authors' settings, one fit for each seed, in the units of the data.

    Paper: fig:toy_result.

    The hole is one interval, where theirs were balls around random points, and the grid has a quarter of their points.
    A fit that has stopped keeps its last weights, as theirs did, while the others go on.
    """
    torch.set_num_threads(1)
    hole = HOLE if data == "shifted" else None
    network = MLP(1, 1, (HIDDEN,), ACTIVATION, maps=MAPS)
    prior = Gamma(torch.tensor([PRIOR[0]]), torch.tensor([PRIOR[1]]))
    placement = GRID_POINTS if method == "d-vv-as-run" else None
    fits = []
    toys = [toy_regression(seed=seed, hole=hole) for seed in seeds]
    streams = [torch.Generator().manual_seed(child_seed(seed, "toy paper")) for seed in seeds]
    starts = [starting_weights(stream, 1, 1, HIDDEN) for stream in streams]
    parameters = {name: torch.cat([start[name] for start in starts]) for name in starts[0]}
    rows = min(len(toy.y) for toy in toys)  # a stack has one length; a few rows of the longer tables are left out
    order = [torch.randperm(rows, generator=stream) for stream in streams]
    x = torch.stack([torch.as_tensor(toy.x)[own].float() for toy, own in zip(toys, order, strict=True)])
    y = torch.stack([torch.as_tensor(toy.y)[own].float().unsqueeze(1) for toy, own in zip(toys, order, strict=True)])
    parameters = _train(network, parameters, x, y, prior, placement, steps)
    grid = torch.linspace(*GRID[:2], GRID[2]).reshape(1, -1, 1).expand(len(seeds), -1, 1)
    with torch.no_grad():
        loc, q = posterior(network, parameters, grid)
        exact = Gamma(q.concentration.double(), q.rate.double())
        predictive = StudentT.from_gamma(loc.double(), exact)
        divergence = gamma_kl(exact, Gamma(prior.concentration.double(), prior.rate.double()))
    for place, toy in enumerate(toys):
        variance, aleatoric = (
            values[place, :, 0].numpy() for values in (predictive.variance, predictive.aleatoric_variance)
        )
        fits.append(
            ToyFit(
                data, method, toy.x[:, 0], toy.y, np.linspace(*GRID), loc[place, :, 0].double().numpy(),
                np.sqrt(variance), np.sqrt(aleatoric), np.sqrt(variance - aleatoric), toy_std(np.linspace(*GRID)),
                (PRIOR[1] / (PRIOR[0] - 1.0)) ** 0.5, hole, divergence[place, :, 0].numpy(),
            )
        )  # fmt: skip
    return fits


def _train(
    network: MLP, start: Parameters, x: Tensor, y: Tensor, prior: Gamma, placement: BruteForce | None, steps: int
) -> Parameters:
    """Full batches with Adam; each model stops when its held-out bound has not improved for ``PATIENCE`` checks."""
    held = round(VALIDATION * x.shape[1])
    inside, outside = (x[:, held:], y[:, held:]), (x[:, :held], y[:, :held])
    weights = {name: value.clone().requires_grad_() for name, value in start.items()}
    optimiser = torch.optim.Adam(list(weights.values()), lr=LEARNING_RATE)
    best = torch.full((len(x),), torch.inf)
    waited = torch.zeros(len(x), dtype=torch.long)
    pool = None if placement is None else placement(x[0], 1, [torch.Generator()] * len(x))
    models = torch.arange(len(x)).unsqueeze(1)
    for _ in range(steps):
        before = {name: value.detach().clone() for name, value in weights.items()}
        q_pseudo = None
        if placement is not None and pool is not None:
            with torch.no_grad():
                kl = gamma_kl(posterior(network, weights, pool)[1], prior).sum(-1)
            q_pseudo = posterior(network, weights, pool[models, placement.select(kl)])[1]
        loc, q = posterior(network, weights, inside[0])
        terms = dissipative_loss(
            inside[1], loc, q, prior, q_pseudo, prior, kl_weight=KL_WEIGHT, pseudo_weight=PSEUDO_WEIGHT
        )
        loss = terms.inside.mean(1)
        if terms.outside is not None:
            loss = loss + terms.outside.mean(1)
        optimiser.zero_grad()
        loss.sum().backward()
        optimiser.step()
        stopped = waited >= PATIENCE
        with torch.no_grad():
            for name, value in weights.items():
                value[stopped] = before[name][stopped]
            loc, q = posterior(network, weights, outside[0])
            bound = -elbo(outside[1], loc, q, prior).mean((1, 2))
        waited = torch.where(bound < best, torch.where(stopped, waited, 0), waited + 1)
        best = torch.minimum(best, bound)
        if bool((waited >= PATIENCE).all()):
            break
    return {name: value.detach() for name, value in weights.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit both methods on both data sets and write the records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, default=Path("results/toy_paper.csv"))
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args(arguments)
    records = [
        toy_record(fit, seed) | provenance()
        for data in DATA
        for method in PAPER_METHODS
        for seed, fit in enumerate(fit_paper_toy(data, method, range(options.seeds)))
    ]
    write_records(options.csv, records)
    return 0


if __name__ == "__main__":
    sys.exit(main())
