"""Variational variance with a mixture prior that is learned along with the posterior (VBEM*)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from nescio._validation import check_integer
from nescio.distributions import Gamma, StudentT, expected_log_prob
from nescio.distributions.gaussian_gamma import LOG_2PI
from nescio.estimators.core import padded_chunks
from nescio.estimators.precision_regressor import PrecisionRegressor
from nescio.estimators.problem import Fitted, Problem
from nescio.estimators.schedules import checked_schedule, phase
from nescio.estimators.stacks import stack_problems, train_stack
from nescio.networks import MLP, Parameters
from nescio.objectives import PointLosses
from nescio.training import Draw
from nescio.training.devices import resolve_device

__all__ = ["VBEMRegressor", "gamma_from_normals", "log_mixture", "mixture_kl"]

START = 3.0  # raw shapes and rates of the components start uniformly within plus and minus this, as the authors have it
SMALLEST_RATE = 1e-8  # the logarithm stays finite where softplus is zero
SECOND_RATE = 0.3  # of the learning rate: steps as large as the mean's own would unlearn it where noise is small
SMALLEST_WEIGHT = 1e-30  # of a proposal: its logarithm stays finite
SMALLEST_CUBE_ROOT = 1e-4  # of a proposal relative to its middle; what falls below has no weight


def gamma_from_normals(concentration: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    r"""Numbers made of standard normals that, with their weights, are Gamma(:math:`\alpha`, 1).

    .. math:: d = \alpha - \tfrac13, \quad g = d (1 + z / \sqrt{9 d})^3, \qquad
              w = \frac{\Gamma(\alpha, 1)\text{-density of } g \times dg/dz}{\phi(z)}

    The mean of :math:`w f(g)` over normal z is :math:`E f` exactly. g is the proposal of Marsaglia and Tsang's sampler,
    so w stays below 1.05 for :math:`\alpha \ge 1`; instead of rejecting, the weight corrects. Both can be
    differentiated in :math:`\alpha`, and each model of a stack can be given its own normals.

    Source: marsaglia2000, Section 2.  Shapes: ``noise`` is ``*``, ``concentration`` broadcasts to it.
    """
    middle = concentration - 1.0 / 3.0
    slope = (9.0 * middle).rsqrt()
    root = 1.0 + slope * noise
    alive = root > SMALLEST_CUBE_ROOT
    root = torch.where(alive, root, 1.0)
    value = middle * root**3
    log_density = (concentration - 1.0) * value.log() - value - torch.lgamma(concentration)
    log_jacobian = torch.log(3.0 * middle * slope) + 2.0 * root.log()
    log_normal = -0.5 * noise.square() - 0.5 * LOG_2PI
    weight = torch.where(alive, torch.exp(log_density + log_jacobian - log_normal), 0.0)
    return value, weight


def log_mixture(precision: Tensor, log_share: Tensor, prior: Gamma) -> Tensor:
    r"""Log-density :math:`\log \sum_k \pi_k \prod_p \Gamma(\lambda_p | a_{kp}, b_{kp})` of precisions.

    Shapes: ``precision`` ``(M, B, S, P)``, ``log_share`` ``(M, B, K)``, ``prior`` ``(M, K, P)``; the result is
    ``(M, B, S)``. Linear in (log lambda, lambda), so that all components are one product of matrices.
    """
    models, rows, samples, outputs = precision.shape
    statistics = torch.cat([precision.clamp_min(1e-30).log(), precision], dim=-1).reshape(models, -1, 2 * outputs)
    slopes = torch.cat([prior.concentration - 1.0, -prior.rate], dim=-1).transpose(1, 2)
    constant = (prior.concentration * prior.rate.log() - torch.lgamma(prior.concentration)).sum(-1)
    each = torch.bmm(statistics, slopes).view(models, rows, samples, -1)
    return torch.logsumexp(each + (log_share + constant.unsqueeze(1)).unsqueeze(2), dim=-1)


def mixture_kl(q: Gamma, log_share: Tensor, prior: Gamma, noise: Tensor) -> Tensor:
    """Divergence of the mixture prior from ``q (M, B, P)``: the entropy exactly, the rest from ``noise (M, B, S, P)``.

    Unbiased for any number S of samples. Shapes: ``log_share`` and ``prior`` as in :func:`log_mixture`; the result is
    ``(M, B)``, summed over the outputs.
    """
    alpha = q.concentration
    entropy = alpha - q.rate.log() + torch.lgamma(alpha) + (1.0 - alpha) * torch.digamma(alpha)
    value, weight = gamma_from_normals(alpha.unsqueeze(2), noise)
    # Of all outputs together. The gradient of prod looks for zeros, which no captured graph may do; a product of the
    # single ones would be compiled anew for each number of them. What is as good as zero weighs nothing either way.
    joint = weight.clamp_min(SMALLEST_WEIGHT).log().sum(-1).exp()
    cross = joint * log_mixture(value / q.rate.unsqueeze(2), log_share, prior)
    return -entropy.sum(-1) - cross.mean(-1)


def split_maps(maps: Tensor) -> tuple[Tensor, Gamma]:
    """Means and posteriors ``(M, B, P)`` of the raw maps ``(M, 3, B, P)``."""
    return maps[:, 0], Gamma(1.0 + softplus(maps[:, 1]), softplus(maps[:, 2]) + SMALLEST_RATE)


@dataclass(frozen=True)
class PosteriorCore:
    """Networks for the mean and for the two parameters of the posterior."""

    network: MLP
    parameters: Parameters

    @torch.no_grad()
    def posterior(self, x: Tensor) -> tuple[Tensor, Gamma]:
        """Means and posteriors at ``x (N, D)``, each ``(1, N, P)``, in double precision."""
        device = self.parameters["weight0"].device
        chunks = padded_chunks(x, device)
        parts = [split_maps(self.network(self.parameters, chunk.unsqueeze(0)).double()) for chunk in chunks]
        join = lambda values: torch.cat(values, dim=1)[:, : len(x)].cpu()
        posterior = Gamma(join([q.concentration for _, q in parts]), join([q.rate for _, q in parts]))
        return join([loc for loc, _ in parts]), posterior

    def locations(self, x: Tensor) -> Tensor:
        """Means at ``x (N, D)``, ``(1, N, P)``."""
        return self.posterior(x)[0]

    def predictive(self, x: Tensor) -> StudentT:
        """Predictive distributions at ``x (N, D)``, ``(1, N, P)``."""
        return StudentT.from_gamma(*self.posterior(x))


class VBEMRegressor(PrecisionRegressor):
    """Variational variance whose prior is a mixture of Gammas, trained with the posterior (VBEM*).

    p(precision | x) is a mixture of ``n_components`` Gammas whose shapes, rates and shares are learned, the shares as
    a network of x; mean, shape and rate of the posterior are three further networks, all trained together by the
    evidence lower bound, after a phase in which the mean learns alone. The divergence from a mixture is estimated from
    samples. Away from the data prior and posterior both extrapolate: the prior has no meaning there, and there is no
    single Gamma that ``knowledge`` could be measured against.

    Source: stirn2020 (VBEM*). Unlike there, the mean has a phase of its own first, and the weights kept are the best
    on held-out rows of the training data.

    Parameters
    ----------
    n_components
        Gammas in the prior, K.
    n_samples
        Samples of the precision per row and step; the estimate is unbiased for any number (the authors take 20).
    hidden, activation
        Of each network.
    max_steps
        Steps of the second phase; the first takes half as many.
    batch_size, learning_rate
        Of the first phase; the second has three tenths of the rate. It falls along a cosine.
    validation_fraction
        Share of the rows that are held out to choose the weights by.
    device, compile
        Where and how to train: ``"auto"`` takes CUDA where it is there, and compiles long runs.
    random_state
        Same seed, same model.
    """

    def __init__(
        self,
        *,
        n_components: int = 100,
        n_samples: int = 1,
        hidden: Sequence[int] = (50,),
        activation: str = "elu",
        max_steps: int = 2000,
        batch_size: int = 256,
        learning_rate: float = 1e-2,
        validation_fraction: float = 0.1,
        device: str | torch.device = "auto",
        compile: bool | str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_samples = n_samples
        self.hidden = hidden
        self.activation = activation
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.device = device
        self.compile = compile
        self.random_state = random_state

    @property
    def inside_prior_(self) -> Gamma | None:
        """None: the prior is a mixture that changes with x."""
        return None

    @property
    def outside_prior_(self) -> Gamma | None:
        """None: nothing is said about the outside."""
        return None

    def _fit_cores(self, problems: Sequence[Problem]) -> list[Fitted]:
        schedule = checked_schedule(self)
        components = check_integer("n_components", self.n_components, least=1)
        samples = check_integer("n_samples", self.n_samples, least=1)
        device, fraction = resolve_device(self.device), float(self.validation_fraction)
        stack = stack_problems(problems, 1, label="vbem", validation_fraction=fraction, device=device)
        n_inputs, n_outputs = problems[0].x.shape[1], problems[0].y.shape[1]
        network = MLP(n_inputs, n_outputs, self.hidden, self.activation, maps=3)
        shares = MLP(n_inputs, components, self.hidden, self.activation)

        def squared(parameters: Parameters, draw: Draw) -> PointLosses:
            x, y = stack.table.gather(draw)
            return PointLosses(0.5 * (network(parameters, x)[:, 0] - y).square().sum(-1))

        def error(parameters: Parameters, models: Tensor, x: Tensor, y: Tensor) -> Tensor:
            return (network(parameters, x)[:, 0] - y).square().sum(-1)

        def losses(parameters: Parameters, draw: Draw) -> PointLosses:
            x, y = stack.table.gather(draw)
            loc, q = split_maps(network(parameters, x))
            own = {name[7:]: value for name, value in parameters.items() if name.startswith("shares_")}
            log_share = shares(own, x)[:, 0].log_softmax(-1)
            prior = Gamma(softplus(parameters["prior_shape"]), softplus(parameters["prior_rate"]))
            noise = draw.noise[:, : x.shape[1]]  # type: ignore[index]
            return PointLosses(mixture_kl(q, log_share, prior, noise) - expected_log_prob(y, loc, q).sum(-1))

        def criterion(parameters: Parameters, models: Tensor, x: Tensor, y: Tensor) -> Tensor:
            return -StudentT.from_gamma(*split_maps(network(parameters, x))).log_prob(y).sum(-1)

        start = network.initialise(stack.streams)
        first = train_stack(stack, start, squared, phase(schedule, 0.5), error, compile=self.compile)
        first |= {f"shares_{name}": value for name, value in shares.initialise(stack.streams).items()}
        for name in ("prior_shape", "prior_rate"):
            draws = [torch.rand(components, n_outputs, generator=each) for each in stack.streams]
            first[name] = torch.stack(draws) * 2.0 * START - START
        noise_shape = (schedule.batch_size, samples, n_outputs)
        second = phase(schedule, 1.0, learning_rate=SECOND_RATE * schedule.learning_rate)
        trained = train_stack(stack, first, losses, second, criterion, noise_shape=noise_shape, compile=self.compile)
        kept = {name: value for name, value in trained.items() if name in start}
        return [Fitted(PosteriorCore(network, stack.share(kept, place)), {}) for place in range(len(problems))]
