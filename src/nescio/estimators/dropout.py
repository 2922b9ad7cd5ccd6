"""Monte Carlo dropout: units are dropped at prediction too, and the passes are mixed with a fitted noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nescio._random import child_seed
from nescio._validation import InputError, check_fraction, check_integer
from nescio.distributions import StudentT
from nescio.distributions.gaussian_gamma import LOG_2PI
from nescio.estimators.core import NetworkCore
from nescio.estimators.network_regressor import NetworkRegressor, StackRun
from nescio.estimators.problem import Fitted, Problem
from nescio.networks import Parameters
from nescio.networks.dropout import DropoutMLP, kept
from nescio.objectives import PointLosses
from nescio.training import Draw

__all__ = ["MCDropoutRegressor", "fit_noise"]

GRID = torch.linspace(-6.0, 20.0, 131)
"""Logarithms of the noise's precision that are tried: a std from 20 to 5e-5 in standardised units, in steps of 10 %."""


@dataclass(frozen=True)
class Homoscedastic:
    """Gaussians of one standard deviation ``(P,)`` about the first of the maps ``(M, 1, B, P)``."""

    std: Tensor

    def __call__(self, maps: Tensor) -> StudentT:
        return StudentT(torch.inf, maps[:, 0], self.std.to(maps))


def fit_noise(errors: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    r"""The noise's precision of best likelihood, and that likelihood, for each output.

    .. math:: \tfrac1V \sum_v \log \tfrac1T \sum_t N(y_v \mid f_t(x_v), \tau^{-1})

    Source: gal2016, Eq. (8).  Shapes: ``errors (T, V, P)``, ``weights (V,)``; both results ``(P,)``. The logarithm of
    the precision is searched on ``GRID``, without the published grids, whose upper ends were hit on three sets.
    """
    squares = 0.5 * errors.square()
    levels = []
    for log_precision in GRID.tolist():
        each = torch.logsumexp(-math.exp(log_precision) * squares, 0) - math.log(len(errors))
        each = each + 0.5 * (log_precision - LOG_2PI)
        levels.append((each * weights[:, None]).sum(0) / weights.sum())
    best, place = torch.stack(levels).max(0)
    return GRID.to(best.device)[place].exp(), best


class MCDropoutRegressor(NetworkRegressor):
    """Regression with an even mixture of Gaussians about the passes of a network with dropout, all of one width.

    Rate and noise are those of the best likelihood of held-out rows; then one network is trained on all rows. The
    masks of the passes are drawn once, so a row's prediction does not depend on its batch. The variance is the noise's
    plus the spread of the passes.

    Source: gal2016.

    Parameters
    ----------
    rates
        Chances to lose an input or a unit to choose from; all are tried in one stack.
    n_passes
        How many thinned networks are mixed.
    hidden, activation
        The network.
    max_steps, batch_size, learning_rate
        Of the choice and of the final training, each; the rate falls along a cosine.
    validation_fraction
        Share of the rows that are held out for the choice.
    device, compile
        Where and how to train: ``"auto"`` takes CUDA where it is there, and compiles long runs.
    verbose
        Whether to show a progress bar; it stays hidden where there is no terminal.
    random_state
        Same seed, same model.

    After ``fit``, ``rate_`` is the rate chosen and ``noise_std_ (P,)`` the standard deviation of the noise, in units of
    y.
    """

    def __init__(
        self,
        *,
        rates: Sequence[float] = (0.005, 0.01, 0.05, 0.1),
        n_passes: int = 100,
        hidden: Sequence[int] = (50,),
        activation: str = "relu",
        max_steps: int = 2000,
        batch_size: int = 128,
        learning_rate: float = 1e-2,
        validation_fraction: float = 0.2,
        device: str | torch.device = "auto",
        compile: bool | str = "auto",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.rates = rates
        self.n_passes = n_passes
        self.hidden = hidden
        self.activation = activation
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.device = device
        self.compile = compile
        self.verbose = verbose
        self.random_state = random_state

    def _shares(self) -> float:
        return 2.0

    def _check_own(self) -> None:
        check_integer("n_passes", self.n_passes, least=1)
        if not len(self.rates):
            raise InputError("rates must hold at least one rate; got none.")
        for rate in self.rates:
            check_fraction("rates", rate)

    def _train(self, problems: Sequence[Problem], progress: Callable[[int], object]) -> list[Fitted]:
        # The rates of one table begin at the same weights and see the same batches: what differs is the rate.
        copies = [problem for problem in problems for _ in self.rates]
        choice = self._lay_out(copies, progress)
        network = DropoutMLP(choice.n_inputs, choice.n_outputs, self.hidden, self.activation)
        tried = self._fit_weights(choice, network, [rate for _ in problems for rate in self.rates])
        chosen, precisions = [], []
        for place, problem in enumerate(problems):
            found = []
            for number, rate in enumerate(self.rates):
                model = place * len(self.rates) + number
                single = {name: value[model : model + 1] for name, value in tried.items()}
                thinned = network.thin(single, self._masks(network, rate, problem.seed).to(single["weight0"]))
                x, y, weights = choice.held_out(model)
                with torch.no_grad():
                    errors = network.plain(thinned, x.expand(len(thinned["weight0"]), *x.shape))[:, 0] - y
                found.append(fit_noise(errors, weights))
            best = max(range(len(found)), key=lambda number: float(found[number][1].sum()))
            chosen.append(float(self.rates[best]))
            precisions.append(found[best][0].cpu())

        final = self._lay_out(problems, progress, validation_fraction=0.0)
        trained = self._fit_weights(final, network, chosen)
        results = []
        for place, (problem, rate, precision) in enumerate(zip(problems, chosen, precisions, strict=True)):
            thinned = network.thin(final.stack.share(trained, place), self._masks(network, rate, problem.seed))
            std = precision.rsqrt()
            learned = {"rate_": rate, "noise_std_": std.double().numpy() * problem.y_scale}
            results.append(Fitted(NetworkCore(network.plain, thinned, Homoscedastic(std)), learned))
        return results

    def _masks(self, network: DropoutMLP, rate: float, seed: int) -> Tensor:
        """Masks of the passes, ``(T, units)``."""
        generator = torch.Generator().manual_seed(child_seed(seed, "passes"))
        noise = torch.randn(1, int(self.n_passes), network.units, generator=generator)
        return kept(noise, torch.tensor([rate]))[0]

    def _fit_weights(self, run: StackRun, network: DropoutMLP, rates: Sequence[float]) -> Parameters:
        table = run.stack.table
        rate = torch.tensor(rates, device=table.inputs.device)

        def losses(parameters: Parameters, draw: Draw) -> PointLosses:
            x, y = table.gather(draw)
            noise = torch.zeros(0) if draw.noise is None else draw.noise
            masks = kept(noise[:, : x.shape[1]], rate[draw.models])
            return PointLosses(0.5 * (network(parameters, x, masks)[:, 0] - y).square().sum(-1))

        start = network.initialise(run.stack.streams)
        # As many rows of noise for a small table as for a large one: its numbers must not depend on its neighbours.
        return run.train(start, losses, None, noise_shape=(int(self.batch_size), network.units))
