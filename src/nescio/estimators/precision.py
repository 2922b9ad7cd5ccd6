"""Phase two: the Gamma posterior over the precision, on out-of-fold residuals inside and pseudo-inputs outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from nescio.distributions import Gamma, StudentT, gamma_kl
from nescio.estimators.levels import LevelFunction
from nescio.estimators.means import padded
from nescio.networks import Anchor, Head, Network, Parameters
from nescio.networks.mlp import without_inputs
from nescio.objectives import PointLosses, dissipative_loss, join_priors, joint_dissipative_loss
from nescio.training import Draw, Sampler, Schedule, Table, train

__all__ = ["Outside", "PseudoInputs", "fit_precision", "stacked_prior"]

JUDGED_PSEUDO_INPUTS = 1_024  # of a model's pool, in the criterion


@dataclass(frozen=True)
class PseudoInputs:
    """Each model's pool: the points ``(M, K, D)``, the outside prior at them, and how to pick from it."""

    points: Tensor
    prior: Gamma
    weight: float
    batch: int
    """How many of a pool a step is given; all of them where it picks with ``select``."""
    select: Callable[[Tensor], Tensor] | None = None

    def prior_at(self, models: Tensor, places: Tensor) -> Gamma:
        """The outside prior of ``models (A,)`` at ``places (A, B)`` of their pools, ``(A, B, P)``."""
        index = (models.unsqueeze(1), places)
        return Gamma(self.prior.concentration[index], self.prior.rate[index])


class Outside(NamedTuple):
    """What a method knows about the world beyond the data: the pools of its members, the level, the anchor."""

    inputs: Tensor
    """What the precision networks see of the rows, ``(N, D)`` or, with the distance, ``(N, D + 1)``."""
    pseudo: PseudoInputs
    prior: Gamma
    anchor: Anchor
    anchor_variance: bool
    fade_mean: bool
    level: LevelFunction | None = None
    """The level where it is a function of x; ``prior`` is then at its average over the rows."""
    sees: Tensor | None = None
    """Which of ``inputs`` a member's network sees, ones and zeros ``(M, D)``; None for all of them."""


def fit_precision(
    x: Tensor,
    residuals: Tensor,
    weights: Tensor | None,
    training: Sequence[Tensor],
    validation: Sequence[Tensor],
    network: Network,
    head: Head,
    schedule: Schedule,
    *,
    inside_prior: Gamma,
    kl_weight: Tensor,
    offset: Tensor,
    pseudo: PseudoInputs | None,
    sees: Tensor | None = None,
    warm_up: Schedule | None = None,
    streams: Sequence[torch.Generator],
    device: torch.device,
    compile: bool | str,
    progress: Callable[[int], object] | None,
) -> tuple[Parameters, Tensor]:
    """Train M posteriors; their parameters, and the criterion each reached, ``(M,)``.

    ``inside_prior`` and ``offset`` have shapes ``(M, 1, P)`` and ``(M, 2, 1, P)``, ``kl_weight`` ``(M, 1, 1)``;
    ``sees (M, D)`` blots out inputs of a model where it is zero, and what is learned makes nothing of them. The
    criterion is the negative marginal log-likelihood of the validation rows plus the pseudo-input term: without that
    term the snapshot chosen would be arbitrary outside. During ``warm_up`` the posterior learns the priors alone, the
    residual level at the rows and the outside prior at the pseudo-inputs: it starts from the priors everywhere, and a
    snapshot early in the training is right outside too.
    """
    table = Table(x, residuals).to(device)
    places, heft = (part.to(device) for part in padded(validation, weights))
    prior_shape, prior_rate = inside_prior.concentration.to(device), inside_prior.rate.to(device)
    kl_weight, offset = kl_weight.to(device), offset.to(device)
    pool = None if pseudo is None else _to(pseudo, device)
    seen = None if sees is None else sees.unsqueeze(1).to(device)
    # A tensor, since a step that is compiled for a number would be compiled again for the next one.
    precise = torch.float64 if device.type == "cpu" else torch.float32
    pseudo_weight = torch.tensor(0.0 if pseudo is None else pseudo.weight, dtype=precise, device=device)

    def posterior(parameters: Parameters, models: Tensor, inputs: Tensor) -> Gamma:
        known = inputs if seen is None else inputs * seen[models]
        return head(network(parameters, known) + offset[models])

    def at_pseudo_inputs(parameters: Parameters, models: Tensor, chosen: Tensor) -> tuple[Gamma, Gamma]:
        inputs = pool.points[models.unsqueeze(1), chosen]  # type: ignore[union-attr]
        return posterior(parameters, models, inputs), pool.prior_at(models, chosen)  # type: ignore[union-attr]

    def losses(parameters: Parameters, draw: Draw) -> PointLosses:
        inputs, targets = table.gather(draw)
        inside = Gamma(prior_shape[draw.models], prior_rate[draw.models])
        zero = torch.zeros_like(targets)
        if pool is None or draw.pseudo is None:
            q = posterior(parameters, draw.models, inputs)
            return dissipative_loss(targets, zero, q, inside, None, None, kl_weight=kl_weight[draw.models])
        chosen = draw.pseudo
        if pool.select is not None:
            with torch.no_grad():
                kl = gamma_kl(*at_pseudo_inputs(parameters, draw.models, chosen)).sum(-1)
            chosen = pool.select(kl)
        points = pool.points[draw.models.unsqueeze(1), chosen]
        q = posterior(parameters, draw.models, torch.cat([inputs, points], dim=1))
        outside = pool.prior_at(draw.models, chosen)
        prior = join_priors(inside, outside, targets.shape, outside.concentration.shape)
        return joint_dissipative_loss(
            targets, zero, q, prior, kl_weight=kl_weight[draw.models], pseudo_weight=pseudo_weight
        )

    def towards_priors(parameters: Parameters, draw: Draw) -> PointLosses:
        inputs, targets = table.gather(draw)
        points = pool.points[draw.models.unsqueeze(1), draw.pseudo]  # type: ignore[union-attr]
        outside = pool.prior_at(draw.models, draw.pseudo)  # type: ignore[union-attr, arg-type]
        prior = join_priors(head(offset[draw.models]), outside, targets.shape, outside.concentration.shape)
        q = posterior(parameters, draw.models, torch.cat([inputs, points], dim=1))
        inside, beyond = gamma_kl(q, prior).sum(-1).split([inputs.shape[1], points.shape[1]], dim=1)
        return PointLosses(inside, beyond)

    def criterion(parameters: Parameters, models: Tensor) -> Tensor:
        inputs, targets = table.whole(models, places[models])
        marginal = StudentT.from_gamma(torch.zeros_like(targets), posterior(parameters, models, inputs))
        loss = -marginal.log_prob(targets).sum(-1)
        value = (loss * heft[models]).sum(1) / heft[models].sum(1).clamp_min(1e-12)
        if pool is not None:
            count = min(JUDGED_PSEUDO_INPUTS, pool.points.shape[1])
            chosen = torch.arange(count, device=models.device).expand(len(models), count)
            q, prior = at_pseudo_inputs(parameters, models, chosen)
            value = value + pool.weight * gamma_kl(q, prior).sum(-1).mean(1)
        return value

    def draws(batch_size: int) -> Sampler:
        return Sampler(
            training,
            streams,
            batch_size,
            sample_weight=weights,
            pool_size=0 if pool is None else pool.points.shape[1],
            pseudo_batch_size=None if pool is None else pool.batch,
            device=device,
        )

    sampler = draws(schedule.batch_size)
    start = {name: value.to(device) for name, value in network.initialise(streams).items()}
    if pool is not None and pool.select is None and warm_up is not None:
        first = sampler if warm_up.batch_size == schedule.batch_size else draws(warm_up.batch_size)
        start = train(start, towards_priors, first, warm_up, compile=compile, progress=progress).parameters
    trained = train(start, losses, sampler, schedule, criterion=criterion, compile=compile, progress=progress)
    learned = {name: value.cpu() for name, value in trained.parameters.items()}
    if sees is not None:
        learned = without_inputs(learned, sees[: len(streams)])
    return learned, trained.criterion.cpu()


def _to(pseudo: PseudoInputs, device: torch.device) -> PseudoInputs:
    """The pools on a device, in memory of their own: a view in one fit and none in the next is compiled for twice."""
    points, shape, rate = (
        tensor.to(device, copy=True) for tensor in (pseudo.points, pseudo.prior.concentration, pseudo.prior.rate)
    )
    return replace(pseudo, points=points, prior=Gamma(shape, rate))


def stacked_prior(
    variance: Tensor, settings: Sequence[tuple[float, float]], head: Head
) -> tuple[Gamma, Tensor, Tensor]:
    """Inside prior ``(M, 1, P)``, KL weight ``(M, 1, 1)`` and starting offset ``(M, 2, 1, P)`` for each setting."""
    shape = torch.tensor([shape for shape, _ in settings], dtype=variance.dtype).view(-1, 1, 1)
    kl_weight = torch.tensor([weight for _, weight in settings], dtype=variance.dtype).view(-1, 1, 1)
    prior = Gamma(shape.expand(-1, 1, len(variance)), (shape - 1.0) * variance)
    # The optimum of the loss for a constant posterior; without a KL any shape goes, and 5 is as good as another. The
    # bound keeps the branch that is not taken finite.
    optimum = torch.where(kl_weight > 0, shape + 0.5 / kl_weight.clamp_min(1e-3), 5.0)
    raw = head.raw(variance.expand(len(settings), 1, -1), optimum.expand(-1, 1, len(variance)))
    return prior, kl_weight, torch.stack(raw, dim=1)
