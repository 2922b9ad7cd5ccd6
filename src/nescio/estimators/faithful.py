"""Faithful heteroscedastic regression: the mean is that of the squared error, the variance looks on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from nescio._validation import check_one_of
from nescio.distributions import StudentT
from nescio.estimators.network_regressor import NetworkRegressor, cores
from nescio.estimators.problem import Fitted, Problem
from nescio.networks import Parameters
from nescio.networks.branched import BranchedMLP
from nescio.objectives import PointLosses
from nescio.objectives.likelihoods import faithful_loss
from nescio.training import Draw

__all__ = ["FaithfulRegressor"]

FLOOR = 1e-2  # of a standardised scale; a variance of 1e-4
LEAST_DF = 3.0  # so that the variance exists


def read_gaussian(maps: Tensor) -> StudentT:
    """Gaussians ``(M, B, P)`` of the raw maps ``(M, 2, B, P)``."""
    return StudentT(torch.inf, maps[:, 0], softplus(maps[:, 1]) + FLOOR)


def read_student(maps: Tensor) -> StudentT:
    """Student-t distributions ``(M, B, P)`` of the raw maps ``(M, 3, B, P)``."""
    return StudentT(softplus(maps[:, 2]) + LEAST_DF, maps[:, 0], softplus(maps[:, 1]) + FLOOR)


class FaithfulRegressor(NetworkRegressor):
    """Regression whose mean is exactly as good as that of a network trained by squared error.

    One trunk; the heads of scale (and df) see its features but send no gradient into it. Trunk and mean are kept at
    the best squared error of the held-out rows. Then the other heads alone go on at these features and are kept at
    the best likelihood: stopped by the squared error, as published, they overfit.

    Source: stirn2023.

    Parameters
    ----------
    tails
        ``"student"``: the head has a df of its own, at least 3; ``"gaussian"``: it has none.
    hidden, activation
        The trunk that the heads share.
    max_steps
        Steps of each of the two phases.
    batch_size, learning_rate
        Of both phases; the rate falls along a cosine.
    validation_fraction
        Share of the rows that are held out to choose the weights by.
    device, compile
        Where and how to train: ``"auto"`` takes CUDA where it is there, and compiles long runs.
    verbose
        Whether to show a progress bar; it stays hidden where there is no terminal.
    random_state
        Same seed, same model.
    """

    def __init__(
        self,
        *,
        tails: str = "gaussian",
        hidden: Sequence[int] = (50, 50),
        activation: str = "elu",
        max_steps: int = 1500,
        batch_size: int = 128,
        learning_rate: float = 1e-2,
        validation_fraction: float = 0.15,
        device: str | torch.device = "auto",
        compile: bool | str = "auto",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.tails = tails
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
        check_one_of("tails", self.tails, ("student", "gaussian"))

    def _train(self, problems: Sequence[Problem], progress: Callable[[int], object]) -> list[Fitted]:
        run = self._lay_out(problems, progress)
        watchers = 2 if self.tails == "student" else 1
        read = read_student if self.tails == "student" else read_gaussian
        network = BranchedMLP(
            run.n_inputs, run.n_outputs, self.hidden, self.activation, maps=1 + watchers, watchers=watchers
        )
        table = run.stack.table

        def losses(parameters: Parameters, draw: Draw) -> PointLosses:
            x, y = table.gather(draw)
            maps = network(parameters, x)
            return PointLosses(faithful_loss(y, maps[:, 0], read(maps)).sum(-1))

        def error(parameters: Parameters, models: Tensor, x: Tensor, y: Tensor) -> Tensor:
            return (network(parameters, x)[:, 0] - y).square().sum(-1)

        first = run.train(network.initialise(run.stack.streams), losses, error)
        column = run.n_outputs  # the heads' first columns are the mean's

        def maps_of(parameters: Parameters, models: Tensor, x: Tensor) -> Tensor:
            kept = {name: value[models] for name, value in first.items()}
            features = network.features(kept, x)
            mean = network.read(kept["heads"][..., :column], kept["offsets"][..., :column], features)
            return torch.cat([mean, network.read(parameters["heads"], parameters["offsets"], features)], dim=1)

        def likelihood(parameters: Parameters, draw: Draw) -> PointLosses:
            x, y = table.gather(draw)
            return PointLosses(-read(maps_of(parameters, draw.models, x)).log_prob(y).sum(-1))

        def criterion(parameters: Parameters, models: Tensor, x: Tensor, y: Tensor) -> Tensor:
            return -read(maps_of(parameters, models, x)).log_prob(y).sum(-1)

        # From a scale at the level of the held-out errors, whatever it was when the mean was at its best.
        level = run.held_out_error(network, first).sqrt() - FLOOR
        offsets = torch.zeros_like(first["offsets"][..., column:])
        offsets[:, 0, :column] = torch.log(torch.expm1(level.clamp_min(FLOOR)))  # softplus backwards
        heads = {"heads": torch.zeros_like(first["heads"][..., column:]), "offsets": offsets}
        trained = run.train(heads, likelihood, criterion, slower=0.1, check_every=20)
        joined = {name: torch.cat([first[name][..., :column], value], dim=-1) for name, value in trained.items()}
        return cores(run, network, first | joined, read)
