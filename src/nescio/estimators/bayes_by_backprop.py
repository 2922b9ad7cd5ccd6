"""Bayes by backprop (BBB): a factorised Gaussian over all weights of a network, by variational inference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from nescio._random import child_seed
from nescio._validation import check_integer, check_one_of
from nescio.distributions import StudentT
from nescio.estimators.base import DistributionRegressor
from nescio.estimators.core import NetworkCore
from nescio.estimators.problem import Fitted, Problem
from nescio.estimators.schedules import checked_schedule, phase
from nescio.estimators.stacks import stack_problems, train_stack
from nescio.networks import ACTIVATIONS, MLP, Parameters
from nescio.objectives import PointLosses
from nescio.training import Draw
from nescio.training.devices import resolve_device

__all__ = ["BayesByBackpropRegressor", "VariationalMLP", "weight_divergence"]

START_STD = 0.05  # of a weight, as a part of its starting range: nearly deterministic
WARM_UP = 0.3  # share of the steps that the first phase takes ...
WARM_UP_WEIGHT = 0.05  # ... and weight of the divergence in it: else all units are pruned before they have learned
LOWEST, HIGHEST = -14.0, 6.0  # of the logarithm of the noise's variance, in standardised units


def weight_divergence(loc: Tensor, std: Tensor, prior_std: Tensor) -> Tensor:
    r"""Divergence :math:`KL(N(m, s^2) \| N(0, p^2))` summed over all weights of a model.

    .. math:: \sum \tfrac12\Bigl[\frac{s^2 + m^2}{p^2} - 1 - \log\frac{s^2}{p^2}\Bigr]

    Shapes: ``loc`` and ``std`` ``(M, ...)``, ``prior_std`` ``(M,)``; the result is ``(M,)``.
    """
    prior = prior_std.view(-1, *[1] * (loc.dim() - 1))
    ratio = (std / prior).square()
    return (0.5 * (ratio + (loc / prior).square() - 1.0 - ratio.log())).flatten(1).sum(1)


class VariationalMLP:
    """M perceptrons whose weights are Gaussians, with one learned prior scale per layer.

    For weights ``weight<l>`` and ``bias<l>`` as :class:`MLP` has them, ``..._rho`` holds the inverse softplus of the
    standard deviations and ``prior<l>`` the logarithm of the prior's, ``(M,)``.
    """

    def __init__(self, n_inputs: int, n_outputs: int, hidden: Sequence[int], activation: str) -> None:
        self.plain = MLP(n_inputs, n_outputs, hidden, activation)
        self._activation = activation
        self.widths = [*hidden, n_outputs]

    def initialise(self, streams: Sequence[torch.Generator]) -> Parameters:
        """Draw fresh parameters, those of model m from its own generator alone."""
        parameters = self.plain.initialise(streams)
        for layer in range(len(self.widths)):
            fan_in = parameters[f"weight{layer}"].shape[-2]
            for name in (f"weight{layer}", f"bias{layer}"):
                rho = math.log(math.expm1(START_STD / math.sqrt(fan_in)))
                parameters[f"{name}_rho"] = torch.full_like(parameters[name], rho)
            parameters[f"prior{layer}"] = torch.full((len(streams),), -0.5 * math.log(fan_in))
        return parameters

    def __call__(self, parameters: Parameters, x: Tensor, noise: Tensor) -> Tensor:
        """Map ``x (M, B, D)`` to ``(M, B, P)`` with fresh weights for each row; ``noise`` is ``(M, B, sum of widths)``.

        A sum of Gaussian weights is Gaussian: its noise is drawn instead of the weights'. Source: kingma2015, Eq. (6).
        """
        hidden, parts = x, noise.split(self.widths, dim=-1)
        for layer, part in enumerate(parts):
            weight, bias = parameters[f"weight{layer}"][:, 0], parameters[f"bias{layer}"][:, 0]
            std = softplus(parameters[f"weight{layer}_rho"][:, 0])
            bias_std = softplus(parameters[f"bias{layer}_rho"][:, 0])
            spread = torch.baddbmm(bias_std.square(), hidden.square(), std.square())
            hidden = torch.baddbmm(bias, hidden, weight) + spread.sqrt() * part
            if layer < len(parts) - 1:
                hidden = ACTIVATIONS[self._activation](hidden)
        return hidden

    def divergence(self, parameters: Parameters) -> Tensor:
        """Divergence of all weights from their priors, ``(M,)``."""
        terms = [
            weight_divergence(parameters[name], softplus(parameters[f"{name}_rho"]), parameters[f"prior{layer}"].exp())
            for layer in range(len(self.widths))
            for name in (f"weight{layer}", f"bias{layer}")
        ]
        return torch.stack(terms).sum(0)

    def sample(self, parameters: Parameters, count: int, seed: int) -> Parameters:
        """Weights of ``count`` plain networks, drawn for the one model that ``parameters`` holds."""
        generator = torch.Generator().manual_seed(seed)
        drawn: Parameters = {}
        for layer in range(len(self.widths)):
            for name in (f"weight{layer}", f"bias{layer}"):
                loc, std = parameters[name], softplus(parameters[f"{name}_rho"])
                drawn[name] = loc + std * torch.randn(count, *loc.shape[1:], generator=generator)
        return drawn


def read_halves(maps: Tensor) -> StudentT:
    """Gaussians ``(M, B, P)`` of ``(M, 1, B, 2 P)``: means, and the logarithms of the noise's variances."""
    loc, log_variance = maps[:, 0].chunk(2, dim=-1)
    return StudentT(torch.inf, loc, torch.exp(0.5 * log_variance.clamp(LOWEST, HIGHEST)))


class BayesByBackpropRegressor(DistributionRegressor):
    """Network with a Gaussian over each weight, in all layers; the prediction mixes networks drawn from it.

    Trained on all rows by the evidence lower bound: mean negative log-likelihood plus KL/N, after a phase in which the
    divergence counts little. Noise is drawn for the sums in each layer and not for the weights. One scale of the prior
    per layer is learned.

    Source: blundell2015 (the method). Unlike there, the prior is one Gaussian per layer, which has a divergence in
    closed form. Mean-field posteriors are known to be too sure of themselves between clusters of data.

    Parameters
    ----------
    noise
        ``"heteroscedastic"``: the noise's variance is a second output of the network; ``"homoscedastic"``: one number
        per target.
    n_samples
        Networks that the prediction mixes; drawn once, after the fit.
    hidden, activation
        The network.
    max_steps
        Steps in all, the first 30 % of them with 1/20 of the divergence.
    batch_size, learning_rate
        Of both phases; the rate falls along a cosine in the second.
    device, compile
        Where and how to train: ``"auto"`` takes CUDA where it is there, and compiles long runs.
    random_state
        Same seed, same model.
    """

    def __init__(
        self,
        *,
        noise: str = "heteroscedastic",
        n_samples: int = 100,
        hidden: Sequence[int] = (50,),
        activation: str = "relu",
        max_steps: int = 6000,
        batch_size: int = 256,
        learning_rate: float = 1e-2,
        device: str | torch.device = "auto",
        compile: bool | str = "auto",
        random_state: Any = None,
    ) -> None:
        self.noise = noise
        self.n_samples = n_samples
        self.hidden = hidden
        self.activation = activation
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device
        self.compile = compile
        self.random_state = random_state

    def _fit_cores(self, problems: Sequence[Problem]) -> list[Fitted]:
        schedule = checked_schedule(self)
        check_one_of("noise", self.noise, ("heteroscedastic", "homoscedastic"))
        samples = check_integer("n_samples", self.n_samples, least=1)
        device = resolve_device(self.device)
        stack = stack_problems(problems, 1, label="bbb", validation_fraction=0.0, device=device)
        n_inputs, n_outputs = problems[0].x.shape[1], problems[0].y.shape[1]
        single = self.noise == "homoscedastic"
        network = VariationalMLP(n_inputs, (1 if single else 2) * n_outputs, self.hidden, self.activation)
        sizes = torch.tensor([float(len(rows)) for rows in stack.training], device=device)

        def bound(kl_weight: float) -> Any:
            def losses(parameters: Parameters, draw: Draw) -> PointLosses:
                x, y = stack.table.gather(draw)
                out = network(parameters, x, draw.noise[:, : x.shape[1]])  # type: ignore[index]
                loc, log_variance = (out, parameters["noise"].expand_as(out)) if single else out.chunk(2, dim=-1)
                log_variance = log_variance.clamp(LOWEST, HIGHEST)
                each = 0.5 * (log_variance + (y - loc).square() * torch.exp(-log_variance)).sum(-1)
                return PointLosses(each, penalty=kl_weight * network.divergence(parameters) / sizes[draw.models])

            return losses

        start = network.initialise(stack.streams)
        if single:
            start["noise"] = torch.zeros(len(problems), 1, n_outputs)
        common: dict[str, Any] = {
            "noise_shape": (schedule.batch_size, sum(network.widths)),
            "compile": self.compile,
        }
        warm = phase(schedule, WARM_UP, final_fraction=1.0)
        start = train_stack(stack, start, bound(WARM_UP_WEIGHT), warm, **common)
        trained = train_stack(stack, start, bound(1.0), phase(schedule, 1.0 - WARM_UP), **common)
        plain = MLP(n_inputs, 2 * n_outputs, self.hidden, self.activation)
        fitted = []
        for place, problem in enumerate(problems):
            own = stack.share(trained, place)
            drawn = network.sample(own, samples, child_seed(problem.seed, "bbb samples"))
            if single:
                drawn = with_noise(drawn, own["noise"], len(network.widths) - 1)
            fitted.append(Fitted(NetworkCore(plain, drawn, read_halves), {}))
        return fitted


def with_noise(drawn: Parameters, log_variance: Tensor, last: int) -> Parameters:
    """The same networks with P outputs more, which say ``log_variance (1, 1, P)`` everywhere."""
    weight, bias = drawn[f"weight{last}"], drawn[f"bias{last}"]
    return drawn | {
        f"weight{last}": torch.cat([weight, torch.zeros_like(weight)], dim=-1),
        f"bias{last}": torch.cat([bias, log_variance.unsqueeze(1).expand_as(bias)], dim=-1),
    }
