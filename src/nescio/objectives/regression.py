"""What a regression model with an uncertain precision optimises: one value per point, never reduced over points."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from nescio.distributions import Gamma, expected_log_prob, gamma_kl
from nescio.objectives.closed_form import FEW, joint_terms

__all__ = ["PointLosses", "dissipative_loss", "elbo", "join_priors", "joint_dissipative_loss", "variational_loss"]


class PointLosses(NamedTuple):
    """The terms of a loss, each with its own points; the training loop averages each over its points and adds them.

    ``inside`` is ``(..., B)``, one value per training point; ``outside`` is ``(..., K)``, one per pseudo-input, its
    weight already in it; ``penalty`` is ``(...)``, one per model.
    """

    inside: Tensor
    outside: Tensor | None = None
    penalty: Tensor | None = None


def elbo(y: Tensor, loc: Tensor, q: Gamma, prior: Gamma, kl_weight: Tensor | float = 1.0) -> Tensor:
    r"""Evidence lower bound of each target.

    .. math:: E_{q(\lambda|x)}[\log p(y | x, \lambda)] - w \, KL(q(\lambda | x) \| p(\lambda))

    Paper: eq:variational_objective_vv.  Shapes: ``y``, ``loc`` and ``q`` are ``(..., B, P)``, ``prior`` and
    ``kl_weight`` broadcast to it; the result is ``(..., B, P)``. A bound of the evidence only at weight 1.
    """
    return expected_log_prob(y, loc, q) - kl_weight * gamma_kl(q, prior)


def variational_loss(y: Tensor, loc: Tensor, q: Gamma, prior: Gamma, kl_weight: Tensor | float = 1.0) -> Tensor:
    """Negative :func:`elbo`: the loss of variational variance (VV).

    Paper: eq:variational_objective_vv.  Shapes: as :func:`elbo`.
    """
    return -elbo(y, loc, q, prior, kl_weight)


def dissipative_loss(
    y: Tensor,
    loc: Tensor,
    q: Gamma,
    inside_prior: Gamma,
    q_pseudo: Gamma | None,
    outside_prior: Gamma | None,
    *,
    kl_weight: Tensor | float = 1.0,
    pseudo_weight: Tensor | float = 1.0,
) -> PointLosses:
    r"""Dissipative loss: the negative bound at the data, the divergence from the outside prior at pseudo-inputs.

    .. math:: -\sum_x \bigl(E_{q(\lambda|x)}[\log p(y|x,\lambda)] - w\,KL(q(\lambda|x) \| p_{in}(\lambda))\bigr)
              + \tau \sum_{\hat x} KL(q(\lambda|\hat x) \| p_{out}(\lambda))

    Paper: eq:dissipative_loss. Paper: eq:dissipative_loss_expanded.  Shapes: ``y``, ``loc``, ``q`` ``(..., B, P)``;
    ``q_pseudo`` ``(..., K, P)``; priors and weights broadcast to these; the terms are summed over ``P`` alone. Without
    pseudo-inputs there is no outside term.

    Deviation: eq:dissipative_loss_expanded is printed without the log of the likelihood and without brackets, so that
    the divergence at the data would be rewarded; here it is a cost, as eq:dissipative_loss demands.
    Deviation: two priors and two weights; equal priors and weights of one are the paper's loss.
    """
    inside = variational_loss(y, loc, q, inside_prior, kl_weight).sum(-1)
    if q_pseudo is None or outside_prior is None:
        return PointLosses(inside)
    return PointLosses(inside, (pseudo_weight * gamma_kl(q_pseudo, outside_prior)).sum(-1))


def joint_dissipative_loss(
    y: Tensor,
    loc: Tensor,
    q: Gamma,
    prior: Gamma,
    *,
    kl_weight: Tensor | float = 1.0,
    pseudo_weight: Tensor | float = 1.0,
) -> PointLosses:
    """:func:`dissipative_loss` where one posterior holds the rows and, below them, the pseudo-inputs.

    Paper: eq:dissipative_loss_expanded.  Shapes: ``y``, ``loc`` ``(..., B, P)``; ``q`` ``(..., B + K, P)``, to which
    ``prior`` broadcasts. One forward pass and one divergence: a step of a small model costs as many operations as it
    has, however short they are. Such a step on a CPU has its gradient in closed form, which ``torch.func`` cannot
    transform: there, use :func:`dissipative_loss`.
    """
    rows = y.shape[-2]
    if _is_small_step(y, q, prior):
        parts = (q.concentration, q.rate, prior.concentration, prior.rate)
        inside, outside = joint_terms(y, loc, *parts, kl_weight, pseudo_weight)
        return PointLosses(inside.sum(-1), outside.sum(-1))
    kl = gamma_kl(q, prior)
    at_data = Gamma(q.concentration[..., :rows, :], q.rate[..., :rows, :])
    inside = kl_weight * kl[..., :rows, :] - expected_log_prob(y, loc, at_data)
    return PointLosses(inside.sum(-1), (pseudo_weight * kl[..., rows:, :]).sum(-1))


def _is_small_step(y: Tensor, q: Gamma, prior: Gamma) -> bool:
    return (
        q.concentration.numel() <= FEW
        and q.concentration.dtype == torch.float32
        and q.concentration.device.type == "cpu"
        and not torch.compiler.is_compiling()
        and not (y.requires_grad or prior.concentration.requires_grad or prior.rate.requires_grad)
    )


def join_priors(inside: Gamma, outside: Gamma, rows: torch.Size, pseudo: torch.Size) -> Gamma:
    """The inside prior at ``rows (..., B, P)`` and below it the outside prior at ``pseudo (..., K, P)``."""

    def joined(one: Tensor, other: Tensor) -> Tensor:
        if torch.compiler.is_compiling():  # rows last in memory, as compiled networks leave them
            return torch.cat([one.expand(rows).mT, other.expand(pseudo).mT], dim=-1).mT
        return torch.cat([one.expand(rows), other.expand(pseudo)], dim=-2)

    return Gamma(joined(inside.concentration, outside.concentration), joined(inside.rate, outside.rate))
