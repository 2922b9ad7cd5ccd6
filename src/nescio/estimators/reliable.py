"""Reliable training of variance networks: neighbours in a batch, a split, a Gamma precision, a far variance by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor
from torch.nn.functional import softplus

from nescio._random import child_seed
from nescio._validation import check_integer
from nescio.densities import NeighbourDistance, distinct_rows, subsample_rows
from nescio.distributions import StudentT
from nescio.estimators.base import DistributionRegressor
from nescio.estimators.core import padded_chunks
from nescio.estimators.levels import outside_level
from nescio.estimators.locality import Locality, LocalitySampler
from nescio.estimators.means import padded
from nescio.estimators.problem import Fitted, Problem
from nescio.estimators.schedules import checked_schedule, phase
from nescio.estimators.stacks import stack_problems, train_stack
from nescio.networks import MLP, Anchor, Parameters
from nescio.objectives import PointLosses
from nescio.training import Draw, train
from nescio.training.devices import resolve_device

__all__ = ["ReliableVarianceRegressor", "blended", "far_share"]

AT_CENTRE = math.log(999.0)  # so that the far variance has a share of 1/1000 on a centre, whatever the reach
START_REACH = 1.5  # inverse softplus of the reach, as the authors have it
CENTRES = 500  # as the authors have it
MOST_ROWS = 10_000  # that the centres are found on
SMALLEST_UNIT = 0.12  # the authors' own on their toy problem: one, where x is drawn from 0 to 10 and left as it is
SMALLEST_RATE = 1e-8  # the logarithm stays finite where softplus is zero
SMALLEST_EXCESS = 1e-3  # of the shape over one: the variance stays finite
LARGEST_SHAPE = 1e6  # from there on a Student-t is a Gaussian


def far_share(squared: Tensor, reach: Tensor) -> Tensor:
    r"""Share of the far variance at a squared distance: :math:`\sigma((\delta - \gamma \log 999)/\gamma)`."""
    return torch.sigmoid(squared / reach - AT_CENTRE)


def blended(loc: Tensor, shape: Tensor, rate: Tensor, share: Tensor, far_variance: Tensor) -> StudentT:
    r"""The Student-t that stands for a variance :math:`(1 - \nu)/\lambda + \nu \eta` with Gamma-distributed precision.

    The inverse Gamma with that mean :math:`m = (1-\nu)\frac{b}{a-1} + \nu\eta` and the shape
    :math:`1 + (a - 1)(m / ((1-\nu)\frac{b}{a-1}))^2`: at :math:`\nu = 0` the local Student-t, at
    :math:`\nu = 1` the Gaussian of variance :math:`\eta`, as the sum itself. Shapes: all broadcast to ``(..., P)``.
    """
    local = (1.0 - share) * rate / (shape - 1.0)
    mean = local + share * far_variance
    relative = (mean / local.clamp_min(1e-30)).clamp(max=1e4)
    excess = ((shape - 1.0) * relative.square()).clamp(max=LARGEST_SHAPE)
    return StudentT(2.0 * (1.0 + excess), loc, (mean * excess / (1.0 + excess)).sqrt())


def read_maps(maps: Tensor, share: Tensor, far_variance: Tensor) -> StudentT:
    """Predictive distributions ``(M, B, P)`` of raw maps ``(M, 3, B, P)``: mean, shape and rate."""
    shape, rate = 1.0 + SMALLEST_EXCESS + softplus(maps[:, 1]), softplus(maps[:, 2]) + SMALLEST_RATE
    return blended(maps[:, 0], shape, rate, share.unsqueeze(-1), far_variance)


@dataclass(frozen=True)
class Centres:
    """Points that cover the rows, and how far fresh rows are from them, squared."""

    points: Tensor
    unit: float

    def squared(self, x: Tensor) -> Tensor:
        """Squared distance of ``x (N, D)`` to the nearest, in units of what is usual, ``(N,)``."""
        return Anchor(self.points, 0.0, 1.0).distance(x).square() / self.unit


@dataclass(frozen=True)
class ReliableCore:
    """Networks for mean, shape and rate, and the far variance ``(P,)`` around them."""

    network: MLP
    parameters: Parameters
    centres: Centres
    far_variance: Tensor

    @torch.no_grad()
    def predictive(self, x: Tensor) -> StudentT:
        """Predictive distributions at ``x (N, D)``, ``(1, N, P)``."""
        reach = softplus(self.parameters["reach"])
        parts = []
        for chunk in padded_chunks(x, reach.device):
            share = far_share(self.centres.squared(chunk), reach).unsqueeze(0)
            parts.append(read_maps(self.network(self.parameters, chunk.unsqueeze(0)), share, self.far_variance))
        join = lambda values: torch.cat(values, dim=1)[:, : len(x)].cpu().double()
        return StudentT(join([t.df for t in parts]), join([t.loc for t in parts]), join([t.scale for t in parts]))

    def locations(self, x: Tensor) -> Tensor:
        """Means at ``x (N, D)``, ``(1, N, P)``."""
        return self.predictive(x).loc


def fit_centres(x: np.ndarray, seed: int) -> Centres:
    """At most 500 K-means centres of ``x (N, D)``, and the mean squared distance at which a fresh row is from them.

    A row that is a centre of its own says nothing about fresh ones, so its distance to the next row counts too. Where
    there are few columns and many rows that distance is tiny, and a gap that chance left would be far: a floor.
    """
    rows = distinct_rows(subsample_rows(torch.as_tensor(x, dtype=torch.float32), MOST_ROWS, seed))
    points = rows
    if len(rows) > CENTRES:
        state = child_seed(seed, "k-means") % 2**32
        means = KMeans(CENTRES, n_init=1, max_iter=20, random_state=state).fit(rows.double().numpy())
        points = torch.as_tensor(means.cluster_centers_, dtype=torch.float32)
    apart = (Anchor(points, 0.0, 1.0).distance(rows), NeighbourDistance(rows).leave_one_out())
    unit = max(float(each.square().mean()) for each in apart)
    return Centres(points, max(unit, SMALLEST_UNIT) if math.isfinite(unit) else 1.0)


class ReliableVarianceRegressor(DistributionRegressor):
    """Student-t regression after Skafte, Jørgensen and Hauberg, with a far variance by construction.

    Batches of neighbouring rows, with weights that undo the sampling; mean and variance trained against each other,
    each with the other held fixed, after a phase of the mean alone; a Gamma-distributed precision; and a variance that
    goes to a fixed level with the distance to the nearest of 500 centres.

    Source: skafte2019. Their released code sets the far variance in the units of y but uses it where y is standardised:
    that slip is mended here (``outside`` is in units of y). Also unlike there, a batch holds rows for the mean and rows
    for the variance, so that both move at every step; the precision is integrated out, by matched moments where
    the far variance has a share; distances to the centres are in units of what is usual for fresh rows, since in many
    columns everything is far from everything; the shape exceeds 1, so the variance is finite; held-out rows choose the
    weights kept.

    Parameters
    ----------
    outside
        The standard deviation far from the data, in units of y: a number, one number per target, or ``"target"``, the
        spread of the training targets.
    mean_sampler, variance_sampler
        Primary rows, rows drawn for each of them, and the neighbours these are drawn from.
    hidden, activation
        Of the networks of mean, shape and rate, which share nothing.
    max_steps
        Steps of the second phase; the mean's own phase takes a third as many.
    batch_size
        Of the mean's own phase.
    learning_rate
        Of the first phase; the second has a third of it.
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
        outside: float | str | Sequence[float] = "target",
        mean_sampler: tuple[int, int, int] = (1, 40, 50),
        variance_sampler: tuple[int, int, int] = (2, 10, 10),
        hidden: Sequence[int] = (50,),
        activation: str = "relu",
        max_steps: int = 6000,
        batch_size: int = 256,
        learning_rate: float = 1e-2,
        validation_fraction: float = 0.1,
        device: str | torch.device = "auto",
        compile: bool | str = "auto",
        random_state: Any = None,
    ) -> None:
        self.outside = outside
        self.mean_sampler = mean_sampler
        self.variance_sampler = variance_sampler
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
        for name in ("mean_sampler", "variance_sampler"):
            for value in getattr(self, name):
                check_integer(name, value, least=1)
        levels = [outside_level(self.outside, problem.y_scale) for problem in problems]
        device, fraction = resolve_device(self.device), float(self.validation_fraction)
        far = torch.as_tensor(np.stack(levels), dtype=torch.float32).square().unsqueeze(1).to(device)  # (M, 1, P)
        stack = stack_problems(problems, 1, label="reliable", validation_fraction=fraction, device=device)
        network = MLP(problems[0].x.shape[1], problems[0].y.shape[1], self.hidden, self.activation, maps=3)

        inputs = stack.table.inputs
        centres = [
            fit_centres(inputs[rows.to(device)].cpu().numpy(), child_seed(problem.seed, "centres"))
            for rows, problem in zip(stack.training, problems, strict=True)
        ]
        starts = np.cumsum([0, *(len(problem.x) for problem in problems)])
        squared_distance = torch.cat(
            [each.squared(inputs[low:high].cpu()) for each, low, high in zip(centres, starts, starts[1:], strict=False)]
        ).to(device)

        def squared(parameters: Parameters, draw: Draw) -> PointLosses:
            x, y = stack.table.gather(draw)
            return PointLosses(0.5 * (network(parameters, x)[:, 0] - y).square().sum(-1))

        def error(parameters: Parameters, models: Tensor, x: Tensor, y: Tensor) -> Tensor:
            return (network(parameters, x)[:, 0] - y).square().sum(-1)

        places = int(self.mean_sampler[0]) * int(self.mean_sampler[1])

        def losses(parameters: Parameters, draw: Draw) -> PointLosses:
            x, y = stack.table.gather(draw)
            maps = network(parameters, x)
            share = far_share(squared_distance[draw.rows], softplus(parameters["reach"]).unsqueeze(1))
            fixed = maps.detach()
            for_mean = torch.cat([maps[:, :1, :places], fixed[:, 1:, :places]], dim=1)
            for_variance = torch.cat([fixed[:, :1, places:], maps[:, 1:, places:]], dim=1)
            share = torch.cat([share[:, :places].detach(), share[:, places:]], dim=1)
            predicted = read_maps(torch.cat([for_mean, for_variance], dim=2), share, far[draw.models])
            return PointLosses(-predicted.log_prob(y).sum(-1))

        held, heft = (part.to(device) for part in padded(stack.validation or stack.training, stack.weights))

        def criterion(parameters: Parameters, models: Tensor) -> Tensor:
            x, y = stack.table.whole(models, held[models])
            share = far_share(squared_distance[held[models]], softplus(parameters["reach"]).unsqueeze(1))
            each = -read_maps(network(parameters, x), share, far[models]).log_prob(y).sum(-1)
            return (each * heft[models]).sum(1) / heft[models].sum(1).clamp_min(1e-12)

        begin = train_stack(
            stack, network.initialise(stack.streams), squared, phase(schedule, 1 / 3), error, compile=self.compile
        )
        begin["reach"] = torch.full((len(problems),), START_REACH, device=device)
        samplers = [tuple(map(int, self.mean_sampler)), tuple(map(int, self.variance_sampler))]
        localities = [
            [Locality(inputs[rows.to(device)].cpu().numpy(), *sampler) for sampler in samplers]
            for rows in stack.training
        ]
        widths = [primaries * secondaries for primaries, secondaries, _ in samplers]
        sampler: Any = LocalitySampler(stack.training, localities, widths, stack.streams, stack.weights, device)
        second = phase(schedule, 1.0, learning_rate=schedule.learning_rate / 3.0)
        trained = train(begin, losses, sampler, second, criterion=criterion, compile=self.compile).parameters
        return [
            Fitted(ReliableCore(network, stack.share(trained, place), centres[place], far[place].cpu()), {})
            for place in range(len(problems))
        ]
