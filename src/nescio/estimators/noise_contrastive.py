"""Noise contrastive priors (NCP): at inputs with noise added, the mean is told to be unsure of itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from nescio._random import generators
from nescio._validation import check_positive, check_widths
from nescio.distributions import StudentT
from nescio.estimators.base import DistributionRegressor
from nescio.estimators.core import NetworkCore
from nescio.estimators.problem import Fitted, Problem
from nescio.estimators.schedules import checked_schedule, phase
from nescio.estimators.stacks import ProblemStack, stack_problems, train_stack
from nescio.networks import ACTIVATIONS, MLP, Parameters
from nescio.objectives import PointLosses
from nescio.training import Draw
from nescio.training.devices import resolve_device

__all__ = ["BayesianLastLayer", "NoiseContrastiveRegressor", "gaussian_divergence"]

WEIGHT_STD = 0.1  # of the last layer's weights, at the start and in their prior, as the authors have it
SMALLEST_STD = 1e-3  # of the noise: targets are standardised
SMALLEST_VARIANCE = 1e-8  # of the mean: where all features vanish there is nothing to be unsure with


def gaussian_divergence(variance: Tensor, loc: Tensor, prior_variance: Tensor | float, prior_loc: Tensor) -> Tensor:
    r"""Divergence :math:`KL(N(\mu_0, s_0^2) \| N(\mu, s^2))` of the second from the **prior**, elementwise.

    .. math:: \tfrac12\Bigl[\log\frac{s^2}{s_0^2} + \frac{s_0^2 + (\mu_0 - \mu)^2}{s^2} - 1\Bigr]
    """
    ratio = (prior_variance + (prior_loc - loc).square()) / variance
    prior_log = prior_variance.log() if isinstance(prior_variance, Tensor) else math.log(prior_variance)
    return 0.5 * (variance.log() - prior_log + ratio - 1.0)


class BayesianLastLayer:
    """A trunk of features h(x); Gaussian weights from there to the mean, and a noise of its own.

    The three maps are the mean :math:`h^T m + b`, its variance :math:`\\sum_j h_j^2 s_j^2` and the noise's standard
    deviation, ``(M, 3, B, P)``.
    """

    def __init__(self, n_inputs: int, n_outputs: int, hidden: Sequence[int], activation: str) -> None:
        *trunk, last = check_widths("hidden", hidden, least=1)
        self._trunk = MLP(n_inputs, last, trunk, activation)
        self._activation = activation
        self._shape = (last, n_outputs)

    @property
    def maps(self) -> int:
        """Mean, variance of the mean, std of the noise."""
        return 3

    def initialise(self, generators: Sequence[torch.Generator]) -> Parameters:
        """Draw fresh parameters, those of model m from its own generator alone."""
        parameters = self._trunk.initialise(generators)
        width, outputs = self._shape
        draw = lambda std: torch.stack([std * torch.randn(width, outputs, generator=each) for each in generators])
        rho = math.log(math.expm1(WEIGHT_STD))
        return parameters | {
            "loc_weight": draw(WEIGHT_STD),
            "loc_rho": torch.full((len(generators), width, outputs), rho),
            "loc_bias": torch.zeros(len(generators), 1, outputs),
            "noise_weight": draw(0.1 / math.sqrt(width)),
            "noise_bias": torch.zeros(len(generators), 1, outputs),
        }

    def __call__(self, parameters: Parameters, x: Tensor) -> Tensor:
        """Map ``x (M, B, D)`` to ``(M, 3, B, P)``."""
        features = ACTIVATIONS[self._activation](self._trunk(parameters, x)[:, 0])
        loc = torch.baddbmm(parameters["loc_bias"], features, parameters["loc_weight"])
        spread = torch.bmm(features.square(), softplus(parameters["loc_rho"]).square()) + SMALLEST_VARIANCE
        noise = softplus(torch.baddbmm(parameters["noise_bias"], features, parameters["noise_weight"])) + SMALLEST_STD
        return torch.stack([loc, spread, noise], dim=1)

    @staticmethod
    def weight_divergence(parameters: Parameters) -> Tensor:
        """Divergence of the prior N(0, 0.1²) from the weights' posterior, ``(M,)``."""
        std, loc = softplus(parameters["loc_rho"]), parameters["loc_weight"]
        relative = std.square() / WEIGHT_STD**2
        return (0.5 * (relative + loc.square() / WEIGHT_STD**2 - 1.0 - relative.log())).sum((1, 2))


def read_last_layer(maps: Tensor) -> StudentT:
    """Gaussians ``(M, B, P)`` whose variance is that of the noise and of the mean together."""
    return StudentT(torch.inf, maps[:, 0], (maps[:, 2].square() + maps[:, 1]).sqrt())


class NoiseContrastiveRegressor(DistributionRegressor):
    """Bayesian last layer that is told, at inputs with noise added, to know the mean no better than the prior does.

    At x̃ = x + noise the distribution of the mean is drawn to N(y, 1) by KL[N(y, 1) || N(m(x̃), v(x̃))]; at the data it
    is trained by likelihood. The prediction is Gaussian with variance v(x) + noise(x)². Far from all noised inputs the
    variance is the networks' own affair.

    Source: hafner2019 (BBB+NCP). Unlike there, the expectation over the last layer's weights is taken in closed form
    instead of from one sample per batch, and the mean is trained by squared error first.

    Parameters
    ----------
    noise_std
        Of the noise added to standardised inputs; in D columns a noised row lies sqrt(D) times as far away.
    ncp_weight
        Weight of the divergence at noised inputs. The authors set 0.1 for a few dozen rows; where thousands of rows lie
        close together, noised rows fall among them and a large weight blurs the inside.
    kl_weight
        Weight of the divergence of the weights from their prior, divided by the number of rows; the authors set 0.
    hidden, activation
        The trunk.
    max_steps
        Steps of the second phase; the first takes half as many.
    batch_size, learning_rate
        Of both phases; the rate falls along a cosine.
    validation_fraction
        Share of the rows that are held out to choose the weights by, noised inputs included.
    device, compile
        Where and how to train: ``"auto"`` takes CUDA where it is there, and compiles long runs.
    random_state
        Same seed, same model.
    """

    def __init__(
        self,
        *,
        noise_std: float = 1.0,
        ncp_weight: float = 0.03,
        kl_weight: float = 0.0,
        hidden: Sequence[int] = (50, 50),
        activation: str = "leaky_relu",
        max_steps: int = 2000,
        batch_size: int = 256,
        learning_rate: float = 3e-3,
        validation_fraction: float = 0.1,
        device: str | torch.device = "auto",
        compile: bool | str = "auto",
        random_state: Any = None,
    ) -> None:
        self.noise_std = noise_std
        self.ncp_weight = ncp_weight
        self.kl_weight = kl_weight
        self.hidden = hidden
        self.activation = activation
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.device = device
        self.compile = compile
        self.random_state = random_state

    def _fit_cores(self, problems: Sequence[Problem]) -> list[Fitted]:
        schedule = checked_schedule(self)
        noise_std = check_positive("noise_std", self.noise_std)
        ncp_weight, kl_weight = (
            check_positive(name, getattr(self, name)) if getattr(self, name) else 0.0
            for name in ("ncp_weight", "kl_weight")
        )
        device = resolve_device(self.device)
        fraction = float(self.validation_fraction)
        stack = stack_problems(problems, 1, label="ncp", validation_fraction=fraction, device=device)
        n_inputs, n_outputs = problems[0].x.shape[1], problems[0].y.shape[1]
        network = BayesianLastLayer(n_inputs, n_outputs, self.hidden, self.activation)
        sizes = torch.tensor([float(len(rows)) for rows in stack.training], device=device)
        judged = judged_noise(stack, [problem.seed for problem in problems], n_inputs).to(device)

        def likelihood(maps: Tensor, y: Tensor) -> Tensor:
            """Minus the expected log-likelihood over the weights, without its constant."""
            variance = maps[:, 2].square()
            error = (y - maps[:, 0]).square() + maps[:, 1]
            return 0.5 * (variance.log() + error / variance).sum(-1)

        def contrast(parameters: Parameters, x: Tensor, y: Tensor, noise: Tensor) -> Tensor:
            maps = network(parameters, x + noise_std * noise)
            return ncp_weight * gaussian_divergence(maps[:, 1], maps[:, 0], 1.0, y).sum(-1)

        def squared(parameters: Parameters, draw: Draw) -> PointLosses:
            x, y = stack.table.gather(draw)
            return PointLosses(0.5 * (network(parameters, x)[:, 0] - y).square().sum(-1))

        def losses(parameters: Parameters, draw: Draw) -> PointLosses:
            x, y = stack.table.gather(draw)
            noise = draw.noise[:, : x.shape[1]]  # type: ignore[index]
            inside = likelihood(network(parameters, x), y) + contrast(parameters, x, y, noise)
            return PointLosses(inside, penalty=kl_weight * network.weight_divergence(parameters) / sizes[draw.models])

        def error(parameters: Parameters, models: Tensor, x: Tensor, y: Tensor) -> Tensor:
            return (network(parameters, x)[:, 0] - y).square().sum(-1)

        def criterion(parameters: Parameters, models: Tensor, x: Tensor, y: Tensor) -> Tensor:
            inside = -read_last_layer(network(parameters, x)).log_prob(y).sum(-1)
            return inside + contrast(parameters, x, y, judged[models][:, : x.shape[1]])

        start = network.initialise(stack.streams)
        start = train_stack(stack, start, squared, phase(schedule, 0.5), error, compile=self.compile)
        noise_shape = (schedule.batch_size, n_inputs)
        trained = train_stack(stack, start, losses, schedule, criterion, noise_shape=noise_shape, compile=self.compile)
        return [
            Fitted(NetworkCore(network, stack.share(trained, place), read_last_layer), {})
            for place in range(len(problems))
        ]


def judged_noise(stack: ProblemStack, seeds: Sequence[int], n_inputs: int) -> Tensor:
    """The noise that each model's held-out rows are judged with, ``(M, V, D)``."""
    rows = stack.validation or []
    noise = torch.zeros(len(rows), max(map(len, rows)), n_inputs)
    for model, (seed, own) in enumerate(zip(seeds, rows, strict=True)):
        stream = generators(seed, "ncp judged", 1)[0]
        noise[model, : len(own)] = torch.randn(len(own), n_inputs, generator=stream)
    return noise
