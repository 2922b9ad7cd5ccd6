"""Microseconds per model-step against a plain training loop, and rows per second of ``predict``: `make speed`.

The d-VV objective on N = 1,000 rows of D = 8 inputs, batches of 256 rows and 256 pseudo-inputs, one thread. All
variants train the same three maps on the same loss; they take turns in one process and the median of the turns is
reported, so that what else the machine does falls on all of them alike.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from nescio import DissipativeRegressor
from nescio._random import generators
from nescio.benchmark.records import provenance, write_records
from nescio.distributions import Gamma
from nescio.estimators.core import CHUNK
from nescio.networks import MLP, ConcentrationRateHead, Parameters
from nescio.objectives import PointLosses, joint_dissipative_loss
from nescio.training import Draw, Sampler, Table
from nescio.training.steppers import CompiledStepper, EagerStepper, Stepper

__all__ = ["main"]

ROWS, COLUMNS, BATCH = 1_000, 8, 256
PRIOR = (1.5, 0.5)
RATE = 1e-3
NETS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {"1x50": ((50,), (50,)), "default": ((50, 50), (64, 64))}
Turn = Callable[[int], None]


def make_data() -> tuple[Tensor, Tensor, Tensor]:
    """Rows, targets and a pool of pseudo-inputs."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, COLUMNS, generator=generator)
    y = x[:, :1].sin() + 0.3 * torch.randn(ROWS, 1, generator=generator)
    return x, y, 3.0 * torch.randn(ROWS, COLUMNS, generator=generator)


def _module(hidden: tuple[int, ...]) -> nn.Sequential:
    widths = (COLUMNS, *hidden)
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(widths):
        layers += [nn.Linear(fan_in, fan_out), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], 1))


def plain_loop(net: str, loader: bool) -> Turn:
    """What one writes first: three ``nn.Sequential``, Adam, and a DataLoader or a permutation for the batches."""
    x, y, pool = make_data()
    mean_hidden, hidden = NETS[net]
    mu, alpha, beta = _module(mean_hidden), _module(hidden), _module(hidden)
    optimiser = torch.optim.Adam([*mu.parameters(), *alpha.parameters(), *beta.parameters()], lr=RATE)
    prior = torch.distributions.Gamma(torch.tensor(PRIOR[0]), torch.tensor(PRIOR[1]))

    def posterior(inputs: Tensor) -> torch.distributions.Gamma:
        softplus = nn.functional.softplus
        return torch.distributions.Gamma(1.0 + softplus(alpha(inputs)), softplus(beta(inputs)) + 1e-10)

    def from_loader() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        data = DataLoader(TensorDataset(x, y, pool), batch_size=BATCH, shuffle=True)
        while True:
            yield from data

    def from_permutation() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        while True:
            order = torch.randperm(ROWS)
            for rows in order.split(BATCH):
                yield x[rows], y[rows], pool[rows]

    batches = from_loader() if loader else from_permutation()

    def turn(steps: int) -> None:
        for _ in range(steps):
            inputs, targets, hats = next(batches)
            q = posterior(inputs)
            expected = 0.5 * (
                torch.digamma(q.concentration)
                - torch.log(q.rate)
                - np.log(2 * np.pi)
                - q.concentration / q.rate * (targets - mu(inputs)).square()
            )
            kl = torch.distributions.kl_divergence
            loss = -(expected - 0.5 * kl(q, prior)).mean() + kl(posterior(hats), prior).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return turn


def stacked_loop(net: str, models: int, stepper_class: type[Stepper]) -> Turn:
    """Ours: the same maps and the same loss, M models at once."""
    x, y, pool = make_data()
    mean_hidden, hidden = NETS[net]
    mean, precision = MLP(COLUMNS, 1, mean_hidden), MLP(COLUMNS, 1, hidden, maps=2)
    head, table = ConcentrationRateHead(), Table(x, y)
    prior = Gamma(torch.tensor(PRIOR[0]), torch.tensor(PRIOR[1]))
    streams = generators(0, "speed", models)
    start: Parameters = {f"mean/{name}": value for name, value in mean.initialise(streams).items()}
    start |= {f"precision/{name}": value for name, value in precision.initialise(streams).items()}

    def part(parameters: Parameters, name: str) -> Parameters:
        return {key.removeprefix(name): value for key, value in parameters.items() if key.startswith(name)}

    def losses(parameters: Parameters, draw: Draw) -> PointLosses:
        inputs, targets = table.gather(draw)
        q = head(precision(part(parameters, "precision/"), torch.cat([inputs, pool[draw.pseudo]], dim=1)))
        loc = mean(part(parameters, "mean/"), inputs)[:, 0]
        return joint_dissipative_loss(targets, loc, q, prior, kl_weight=0.5)

    sampler = Sampler([torch.arange(ROWS)] * models, streams, BATCH, pool_size=ROWS)
    stepper = stepper_class(start, losses)
    everyone = torch.arange(models)

    def turn(steps: int) -> None:
        stepper.advance(sampler.take(steps, everyone), [RATE] * steps)

    return turn


def training_speed(net: str, turns: int, steps: int) -> list[dict[str, Any]]:
    """Time all variants in turns."""
    variants: list[tuple[str, int, Turn]] = [
        ("plain loop, DataLoader", 1, plain_loop(net, loader=True)),
        ("plain loop, tensor indexing", 1, plain_loop(net, loader=False)),
    ]
    for name, stepper in (("stack, eager", EagerStepper), ("stack, compiled", CompiledStepper)):
        variants += [(name, models, stacked_loop(net, models, stepper)) for models in (1, 5, 20)]
    for _, _, turn in variants:
        turn(5)  # compile, allocate, warm the caches
    times: list[list[float]] = [[] for _ in variants]
    for _ in range(turns):
        for place, (_, models, turn) in enumerate(variants):
            began = time.perf_counter()
            turn(steps)
            times[place].append((time.perf_counter() - began) / steps / models * 1e6)
    medians = [statistics.median(values) for values in times]
    return [
        {
            "variant": name,
            "models": models,
            "batch": BATCH,
            "net": net,
            "microseconds_per_model_step": round(median, 1),
            "ratio_to_plain_loop": round(medians[0] / median, 2),
        }
        for (name, models, _), median in zip(variants, medians, strict=True)
    ]


def predict_speed(turns: int, rows: int = 100_000) -> list[dict[str, Any]]:
    """Rows per second of ``predict(X, return_std=True)`` beside a bare forward pass of the same networks."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS))
    model = DissipativeRegressor(max_steps=20, random_state=0).fit(X, np.sin(X[:, 0]))
    fresh = rng.normal(size=(rows, COLUMNS))
    chunks = torch.as_tensor(fresh, dtype=torch.float32).unsqueeze(0).split(CHUNK, dim=1)  # the faster way for both
    core = model.core_
    # The distance from the data is an input too, but finding it is no part of a bare pass.
    missing = core.precision_parameters["weight0"].shape[-2] - COLUMNS
    seen = [torch.nn.functional.pad(x, (0, missing)) for x in chunks]

    def bare() -> None:
        with torch.no_grad():
            for x, padded in zip(chunks, seen, strict=True):
                core.mean.network(core.mean.parameters, x.expand(len(core.mean), -1, -1))
                core.precision_network(core.precision_parameters, padded)

    calls = {"predict, bare forward pass": bare, "predict, ours": lambda: model.predict(fresh, return_std=True)}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(turns):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - began) / rows * 1e6)
    medians = {name: statistics.median(values) for name, values in times.items()}
    return [
        {
            "variant": name,
            "models": 1,
            "batch": rows,
            "net": "default",
            "microseconds_per_model_step": round(median, 4),
            "ratio_to_plain_loop": round(medians["predict, bare forward pass"] / median, 2),
        }
        for name, median in medians.items()
    ]


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, default=Path("speed.csv"), help="of records with versions and hardware")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    records = [record for net in NETS for record in training_speed(net, options.turns, options.steps)]
    records += predict_speed(options.turns)
    write_records(options.csv, [record | provenance() for record in records])
    print(f"{'variant':30s} {'net':8s} {'models':>6s} {'us per model-step (or row)':>28s} {'ratio':>7s}")
    for record in records:
        print(
            f"{record['variant']:30s} {record['net']:8s} {record['models']:6d} "
            f"{record['microseconds_per_model_step']:28.2f} {record['ratio_to_plain_loop']:7.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
