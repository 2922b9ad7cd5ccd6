"""Mean-variance networks: a Gaussian whose mean and variance are two networks, trained by likelihood or beta-NLL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from nescio._validation import InputError
from nescio.distributions import StudentT
from nescio.estimators.network_regressor import NetworkRegressor, cores, gaussian
from nescio.estimators.problem import Fitted, Problem
from nescio.networks import MLP, Parameters
from nescio.networks.side_by_side import SideBySide, part
from nescio.objectives import PointLosses
from nescio.objectives.likelihoods import beta_loss, gaussian_loss
from nescio.training import Draw

__all__ = ["MeanVarianceRegressor"]

LOWEST, HIGHEST = -18.4, 20.0
"""Of the logarithm of a standardised variance: a std of 1e-4, and of 2e4, beyond which single precision suffers."""

DECAY = 5.0  # over the rows: each weight of the variance has a Gaussian prior of variance 0.1
SLOWER = 0.1  # the second phase's rate: at the full one the variance overfits a few hundred rows before the first check
CHECK_EVERY = 20  # for the same reason


def read_mean_and_variance(maps: Tensor) -> StudentT:
    """Gaussians ``(M, B, P)`` of the raw maps ``(M, 2, B, P)``: the mean and the logarithm of the variance."""
    return gaussian(maps[:, 0], maps[:, 1].clamp(LOWEST, HIGHEST))


class MeanVarianceRegressor(NetworkRegressor):
    """Regression with a Gaussian whose mean and variance are networks of x.

    The mean is first trained alone (squared error), then both by the likelihood, from a variance at the level of the
    held-out errors; the weights kept are those of the best likelihood of the held-out rows. Away from the data the
    variance is whatever the network says.

    Source: nix1994. Source: seitzer2022 (``beta``). Source: sluijterman2024 (the warm-up).

    Parameters
    ----------
    beta
        0: the likelihood. Above, each point's loss is weighted with the variance to this power (beta-NLL; its authors
        recommend 0.5). At most 1, where the mean has the gradient of the squared error.
    hidden
        Hidden layers of the two networks, which share nothing.
    activation, variance_activation
        Of the mean and of the variance; a bounded one keeps the variance from running away between the rows.
    max_steps
        Steps of the second phase; the first takes half as many.
    batch_size, learning_rate
        Of the first phase; the second has a tenth of the rate. It falls along a cosine.
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
        beta: float = 0.0,
        hidden: Sequence[int] = (50,),
        activation: str = "relu",
        variance_activation: str = "tanh",
        max_steps: int = 2000,
        batch_size: int = 128,
        learning_rate: float = 1e-2,
        validation_fraction: float = 0.15,
        device: str | torch.device = "auto",
        compile: bool | str = "auto",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.beta = beta
        self.hidden = hidden
        self.activation = activation
        self.variance_activation = variance_activation
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.device = device
        self.compile = compile
        self.verbose = verbose
        self.random_state = random_state

    def _shares(self) -> float:
        return 1.5

    def _check_own(self) -> None:
        if isinstance(self.beta, bool) or not isinstance(self.beta, (int, float)) or not 0.0 <= self.beta <= 1.0:
            raise InputError(f"beta must lie between 0 (the likelihood) and 1; got {self.beta!r}.")

    def _train(self, problems: Sequence[Problem], progress: Callable[[int], object]) -> list[Fitted]:
        run = self._lay_out(problems, progress)
        mean = MLP(run.n_inputs, run.n_outputs, self.hidden, self.activation)
        variance = MLP(run.n_inputs, run.n_outputs, self.hidden, self.variance_activation)
        both = SideBySide({"mean": mean, "variance": variance})
        table, beta = run.stack.table, float(self.beta)
        decay = DECAY / run.sizes()

        def squared(parameters: Parameters, draw: Draw) -> PointLosses:
            x, y = table.gather(draw)
            return PointLosses(0.5 * (mean(parameters, x)[:, 0] - y).square().sum(-1))

        def error(parameters: Parameters, models: Tensor, x: Tensor, y: Tensor) -> Tensor:
            return (mean(parameters, x)[:, 0] - y).square().sum(-1)

        def likelihood(parameters: Parameters, draw: Draw) -> PointLosses:
            x, y = table.gather(draw)
            maps = both(parameters, x)
            loss = beta_loss(y, maps[:, 0], maps[:, 1].clamp(LOWEST, HIGHEST), beta).sum(-1)
            weights = [value for name, value in parameters.items() if name.startswith("variance.weight")]
            squares = torch.stack([value.square().flatten(1).sum(1) for value in weights]).sum(0)
            return PointLosses(loss, penalty=decay[draw.models] * squares)

        def criterion(parameters: Parameters, models: Tensor, x: Tensor, y: Tensor) -> Tensor:
            maps = both(parameters, x)
            return gaussian_loss(y, maps[:, 0], maps[:, 1].clamp(LOWEST, HIGHEST)).sum(-1)

        start = both.initialise(run.stack.streams)
        first = run.train(part(start, "mean"), squared, error, share=0.5)
        level = run.held_out_error(mean, first)
        joined = {name: value.to(level.device) for name, value in start.items()}
        joined |= {f"mean.{name}": value for name, value in first.items()}
        joined[f"variance.bias{len(self.hidden)}"][:, 0, 0] += level.log().clamp_min(LOWEST)
        trained = run.train(joined, likelihood, criterion, slower=SLOWER, check_every=CHECK_EVERY)
        return cores(run, both, trained, read_mean_and_variance)
