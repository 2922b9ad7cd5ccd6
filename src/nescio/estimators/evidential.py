"""Deep evidential regression: a network that says a normal-inverse-Gamma belief about mean and variance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from nescio._validation import InputError
from nescio.distributions import StudentT
from nescio.estimators.network_regressor import NetworkRegressor, cores
from nescio.estimators.problem import Fitted, Problem
from nescio.networks import Parameters
from nescio.networks.branched import BranchedMLP
from nescio.objectives import PointLosses
from nescio.objectives.likelihoods import evidential_loss, evidential_predictive, evidential_surprise
from nescio.training import Draw

__all__ = ["EvidentialRegressor"]

FLOOR = 1e-6  # of evidence and rate, added to the softplus: a zero would divide


def belief(maps: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Location, evidence, concentration and rate ``(M, B, P)`` of the raw maps ``(M, 4, B, P)``."""
    loc, evidence, concentration, rate = maps.unbind(1)
    return loc, softplus(evidence) + FLOOR, softplus(concentration) + 1.0 + FLOOR, softplus(rate) + FLOOR


def read_belief(maps: Tensor) -> StudentT:
    """Predictive Student-t distributions of the raw maps."""
    return evidential_predictive(*belief(maps))


class EvidentialRegressor(NetworkRegressor):
    r"""Regression with a Student-t whose four parameters are heads of one network.

    The likelihood fixes location, df and scale alone: moving evidence :math:`\nu` and rate :math:`\beta` at constant
    :math:`\beta(1+\nu)/\nu` leaves it unchanged, so :math:`\nu` is the regulariser's and the start's, and the original
    split into aleatoric :math:`\beta/(\alpha-1)` and epistemic :math:`\beta/(\nu(\alpha-1))` is not to be read as
    calibrated. Here ``aleatoric_std`` is the width of the Student-t, :math:`\sqrt{\beta(1+\nu)/(\alpha\nu)}`, and
    ``epistemic_std`` what its tails add; the evidence itself is not reported.

    Source: amini2020. Source: meinert2023 (the corrected reading).

    Parameters
    ----------
    penalty
        Weight of the evidence claimed at large errors.
    hidden, activation
        The trunk that the four heads share.
    max_steps, batch_size, learning_rate
        Of the training; the rate falls along a cosine.
    validation_fraction
        Share of the rows that are held out; the weights kept are those of their best likelihood.
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
        penalty: float = 0.01,
        hidden: Sequence[int] = (50,),
        activation: str = "relu",
        max_steps: int = 3000,
        batch_size: int = 128,
        learning_rate: float = 5e-3,
        validation_fraction: float = 0.15,
        device: str | torch.device = "auto",
        compile: bool | str = "auto",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.penalty = penalty
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
        return 1.0

    def _check_own(self) -> None:
        if (
            isinstance(self.penalty, bool)
            or not isinstance(self.penalty, (int, float))
            or not 0.0 <= self.penalty < 1e6
        ):
            raise InputError(f"penalty must be a number that is not negative; got {self.penalty!r}.")

    def _train(self, problems: Sequence[Problem], progress: Callable[[int], object]) -> list[Fitted]:
        run = self._lay_out(problems, progress)
        network = BranchedMLP(run.n_inputs, run.n_outputs, self.hidden, self.activation, maps=4)
        table, weight = run.stack.table, float(self.penalty)

        def losses(parameters: Parameters, draw: Draw) -> PointLosses:
            x, y = table.gather(draw)
            loc, evidence, concentration, rate = belief(network(parameters, x))
            loss = evidential_loss(y, loc, evidence, concentration, rate)
            return PointLosses((loss + weight * evidential_surprise(y, loc, evidence, concentration)).sum(-1))

        def criterion(parameters: Parameters, models: Tensor, x: Tensor, y: Tensor) -> Tensor:
            return -read_belief(network(parameters, x)).log_prob(y).sum(-1)

        start = network.initialise(run.stack.streams)
        return cores(run, network, run.train(start, losses, criterion, check_every=20), read_belief)
