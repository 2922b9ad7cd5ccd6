"""The authors' training on our loop: whole epochs, their stopping rule, the last weights, two phases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from nescio._random import child_seed
from nescio.benchmark.paper_settings import PaperSettings
from nescio.densities import Density
from nescio.distributions import Gamma
from nescio.networks import MLP, ConcentrationRateHead, Parameters
from nescio.objectives import PointLosses, dissipative_loss, elbo
from nescio.pseudo_inputs import FarNoise, GaussianNoise, MixtureDescent, Placement
from nescio.training import Draw, Schedule, train
from nescio.training.loop import Criterion
from nescio.training.steppers import Losses

__all__ = ["EpochSampler", "PaperStack", "posterior", "pseudo_input_pool", "starting_weights"]

HEAD = ConcentrationRateHead()
MAPS = 3  # the mean, the concentration and the rate are three networks
NOISE_REPEATS = 4  # times that the authors repeated each row before they added noise
COMPILE_FROM = 4  # batches in an epoch; smaller sets stop after a thousand steps or two, before compiling pays


class EpochSampler:
    """Batches that never span two epochs: the last of an epoch holds what is left.

    ``rows`` and ``pools`` hold, for each model, the places of its rows in the table and of its pseudo-inputs in the
    common pool; all models have equally many rows. Model m's batches depend on its generator alone.
    """

    def __init__(
        self,
        rows: Sequence[Tensor],
        generators: Sequence[torch.Generator],
        batch_size: int,
        pools: Sequence[Tensor] | None = None,
    ) -> None:
        self._rows, self._generators, self._batch_size, self._pools = rows, generators, batch_size, pools
        self._waiting: list[list[Tensor]] = [[] for _ in rows]
        self._left = None if pools is None else [pool[:0] for pool in pools]

    def _next_batch(self, model: int) -> Tensor:
        if not self._waiting[model]:
            rows = self._rows[model]
            order = torch.randperm(len(rows), generator=self._generators[model])
            self._waiting[model] = list(rows[order].split(self._batch_size))[::-1]
        return self._waiting[model].pop()

    def _next_pseudo(self, model: int, pools: Sequence[Tensor], left: list[Tensor]) -> Tensor:
        pool = pools[model]
        width = min(self._batch_size, *(len(each) for each in pools))
        if len(left[model]) < width:
            left[model] = pool[torch.randperm(len(pool), generator=self._generators[model])]
        taken, left[model] = left[model][:width], left[model][width:]
        return taken

    def take(self, steps: int, models: Tensor) -> list[Draw]:
        """The next ``steps`` draws for the models that are still in training."""
        draws = []
        for _ in range(steps):
            rows = torch.stack([self._next_batch(model) for model in models.tolist()])
            pseudo = None
            if self._pools is not None and self._left is not None:
                pseudo = torch.stack([self._next_pseudo(model, self._pools, self._left) for model in models.tolist()])
            draws.append(Draw(models, rows, None, pseudo))
        return draws


def starting_weights(generator: torch.Generator, n_inputs: int, n_outputs: int, hidden: int) -> Parameters:
    """Weights ``(1, 3, ...)`` of one trial, drawn as PyTorch draws its linear layers, one network after the other."""
    maps = []
    for _ in range(MAPS):
        layers: Parameters = {}
        for layer, (fan_in, fan_out) in enumerate(((n_inputs, hidden), (hidden, n_outputs))):
            bound = fan_in**-0.5
            layers[f"weight{layer}"] = torch.empty(fan_out, fan_in).uniform_(-bound, bound, generator=generator).T
            layers[f"bias{layer}"] = torch.empty(1, fan_out).uniform_(-bound, bound, generator=generator)
        maps.append(layers)
    return {name: torch.stack([layers[name] for layers in maps]).unsqueeze(0) for name in maps[0]}


def pseudo_input_pool(
    points: Tensor,
    generator: torch.Generator,
    settings: PaperSettings,
    most_batches: int,
    densities: dict[Any, Density] | None = None,
) -> Tensor:
    """Pseudo-inputs of one trial, placed batch by batch around ``points (N, D)``, ``(K, D)``.

    For a descent a mixture is fitted to each batch and walked down; ``densities`` keeps the mixtures of this trial for
    the next settings. Noise is in units of the spread of all entries of the table, as theirs was.

    Deviation: the authors placed points around every batch, and the fit to a full batch started from the one before.
    Here at most ``most_batches`` batches are taken, drawn at random (more of them enlarge the pool and leave its law
    alone), and each fit starts afresh.
    """
    placement: Placement = settings.placement
    order = torch.randperm(len(points), generator=generator)
    batches = points[order].split(settings.batch_size)[:most_batches]
    share = None if settings.pool is None else -(-settings.pool // len(batches))
    known = {} if densities is None else densities
    placed = []
    for place, batch in enumerate(batches):
        count, own = NOISE_REPEATS * len(batch), placement
        if isinstance(placement, GaussianNoise | FarNoise):
            own = replace(placement, scale=placement.scale * float(points.std()))
        elif isinstance(placement, MixtureDescent):
            seed = int(torch.randint(2**31, (), generator=generator))
            own = replace(placement, seed=seed)
            if own.density is None:
                fit = (place, settings.batch_size, seed)
                key = (*fit, own.covariance_type, own.bayesian, own.n_components, own.max_rows)
                if key not in known:
                    known[key] = own.fitted(batch).density  # type: ignore[assignment]
                own = replace(own, density=known[key])
            components = len(own.density.means)  # type: ignore[union-attr]
            count = own.pool_multiplier * components * (settings.batch_size // components + 1)
        placed.append(own(batch, share or count, [generator])[0])
    return torch.cat(placed)[: settings.pool]


def posterior(network: MLP, parameters: Parameters, x: Tensor) -> tuple[Tensor, Gamma]:
    """Mean ``(M, B, P)`` and posterior of the precision at ``x (M, B, D)``."""
    raw = network(parameters, x)
    return raw[:, 0], HEAD(raw[:, 1:])


@dataclass(frozen=True)
class PaperStack:
    """All trials of one data set and kind of split, standardised each by its own rows.

    ``x (T, D)`` and ``y (T, P)`` hold the tables of all trials one below the other; ``train`` and ``validation`` are
    places in them, one list per trial; ``start`` is where the three networks of each trial begin.
    """

    x: Tensor
    y: Tensor
    train: list[Tensor]
    validation: list[Tensor]
    start: Parameters
    seeds: list[int]

    def generators(self, purpose: str) -> list[torch.Generator]:
        """Fresh generators, one per trial: what a phase draws does not depend on the phases before it."""
        return [torch.Generator().manual_seed(child_seed(seed, "paper", purpose)) for seed in self.seeds]

    def joint_phase(self, settings: PaperSettings) -> Parameters:
        """VV: mean, concentration and rate trained together on the weighted bound."""
        network = MLP(self.x.shape[1], self.y.shape[1], (settings.hidden,), settings.activation, maps=MAPS)
        prior = _prior(settings)

        def losses(parameters: Parameters, draw: Draw) -> PointLosses:
            loc, q = posterior(network, parameters, self.x[draw.rows])
            return dissipative_loss(self.y[draw.rows], loc, q, prior, None, None, kl_weight=settings.kl_weight)

        def criterion(parameters: Parameters, models: Tensor) -> Tensor:
            rows = torch.stack(self.validation)[models]
            loc, q = posterior(network, parameters, self.x[rows])
            return -elbo(self.y[rows], loc, q, prior).mean((1, 2))

        sampler = EpochSampler(self.train, self.generators("joint"), settings.batch_size)
        return self._train(self.start, losses, sampler, settings, criterion)

    def second_phase(self, settings: PaperSettings, trained: Parameters, pools: list[Tensor]) -> Parameters:
        """d-VV after VV: the mean stays as it is; concentration and rate begin again, with pseudo-inputs."""
        network = MLP(self.x.shape[1], self.y.shape[1], (settings.hidden,), settings.activation, maps=MAPS)
        precision = MLP(self.x.shape[1], self.y.shape[1], (settings.hidden,), settings.activation, maps=MAPS - 1)
        prior = _prior(settings)
        rest = self.y.new_zeros(self.y.shape)  # what the frozen mean leaves of the targets
        for model in range(len(self.train)):
            rows = torch.cat([self.train[model], self.validation[model]])
            own = {name: value[model : model + 1] for name, value in trained.items()}
            with torch.no_grad():
                rest[rows] = self.y[rows] - posterior(network, own, self.x[None, rows])[0][0]
        pool, sizes = torch.cat(pools), [len(each) for each in pools]
        places = list(torch.arange(len(pool)).split(sizes))
        weight = settings.pseudo_weight or 0.0

        def losses(parameters: Parameters, draw: Draw) -> PointLosses:
            y, outside = rest[draw.rows], pool[draw.pseudo]
            q = HEAD(precision(parameters, torch.cat([self.x[draw.rows], outside], dim=1)))
            seen = y.shape[1]
            q_in = Gamma(q.concentration[:, :seen], q.rate[:, :seen])
            q_out = Gamma(q.concentration[:, seen:], q.rate[:, seen:])
            still = torch.zeros_like(y)
            kl_weight = settings.kl_weight
            return dissipative_loss(y, still, q_in, prior, q_out, prior, kl_weight=kl_weight, pseudo_weight=weight)

        def criterion(parameters: Parameters, models: Tensor) -> Tensor:
            rows = torch.stack(self.validation)[models]
            y = rest[rows]
            return -elbo(y, torch.zeros_like(y), HEAD(precision(parameters, self.x[rows])), prior).mean((1, 2))

        start = {name: value[:, 1:] for name, value in self.start.items()}
        sampler = EpochSampler(self.train, self.generators("second"), settings.batch_size, places)
        second = self._train(start, losses, sampler, settings, criterion)
        return {name: torch.cat([trained[name][:, :1], second[name]], dim=1) for name in trained}

    def _train(
        self, start: Parameters, losses: Losses, sampler: EpochSampler, settings: PaperSettings, criterion: Criterion
    ) -> Parameters:
        """Their stopping rule in steps: 50 checks without a better bound end a trial; the last weights are kept."""
        rows = len(self.train[0])
        epoch = settings.steps_per_epoch(rows)
        check = settings.check_epochs * epoch
        schedule = Schedule(
            max_steps=settings.max_epochs(rows) * epoch,
            batch_size=settings.batch_size,
            learning_rate=settings.learning_rate,
            final_fraction=1.0,
            check_every=check,
            patience=settings.patience_checks * check,
            keep="last",
        )
        mode: bool | str = "auto" if epoch >= COMPILE_FROM else False
        if mode:
            torch.compiler.reset()  # else the ninth shape in one process would be refused, and run eagerly
        return train(start, losses, sampler, schedule, criterion=criterion, compile=mode).parameters


def _prior(settings: PaperSettings) -> Gamma:
    return Gamma(torch.tensor(settings.prior_concentration), torch.tensor(settings.prior_rate))
