"""The dissipative loss of a small step with its gradient in closed form: a third of the operations of autograd's."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from nescio.distributions.gaussian_gamma import LOG_2PI
from nescio.distributions.special import tangent_limit

__all__ = ["FEW", "joint_terms"]

FEW = 16_384  # numbers up to which a step costs as many operations as it has, however short they are


class _JointTerms(torch.autograd.Function):
    r"""Terms of the dissipative loss and their derivatives, in double precision.

    With :math:`s = \log(b\alpha/(\beta a))`, :math:`l = \log(a/\alpha)` and :math:`r = y - \mu`:

    .. math:: KL &= a(e^s - 1 - s) + \log\frac{\Gamma(a)}{\Gamma(\alpha)} + (a-\alpha)(1-\psi(\alpha)) - a l \\
              \partial_\alpha KL &= a(e^s - 1)/\alpha + (\alpha - a)(\psi'(\alpha) - 1/\alpha), \quad
              \partial_\beta KL = -a(e^s - 1)/\beta

    Double precision forgives the sums that the general formula has to avoid.
    """

    @staticmethod
    def forward(
        ctx: Any,
        y: Tensor,
        loc: Tensor,
        concentration: Tensor,
        rate: Tensor,
        prior_concentration: Tensor,
        prior_rate: Tensor,
        kl_weight: Tensor | float,
        pseudo_weight: Tensor | float,
    ) -> tuple[Tensor, Tensor]:
        alpha, beta = concentration.double(), rate.double()
        a, b = prior_concentration.double(), prior_rate.double()
        rows, limit = y.shape[-2], tangent_limit(torch.float32)
        digamma, trigamma = torch.digamma(alpha), torch.polygamma(1, alpha)
        excess = a - alpha
        shape_ratio = (a / alpha).log()
        log_rates = (b / beta).log()
        mean_ratio = log_rates - shape_ratio
        bounded = mean_ratio.clamp(max=limit)
        pull = a * torch.expm1(bounded)
        kl = pull + a * ((mean_ratio - bounded) * math.exp(limit) - log_rates)
        kl += torch.lgamma(a) - torch.lgamma(alpha) + excess * (1.0 - digamma)
        to_alpha = (pull + excess) / alpha - excess * trigamma
        to_beta = pull / -beta

        residual = y.double() - loc.double()
        alpha_in, beta_in = alpha[..., :rows, :], beta[..., :rows, :]
        scaled = residual / beta_in
        quadratic = residual * scaled
        inside = kl_weight * kl[..., :rows, :]
        inside += 0.5 * (alpha_in * quadratic + beta_in.log() - digamma[..., :rows, :] + LOG_2PI)
        slope_alpha = torch.cat(
            [
                kl_weight * to_alpha[..., :rows, :] + 0.5 * (quadratic - trigamma[..., :rows, :]),
                pseudo_weight * to_alpha[..., rows:, :],
            ],
            dim=-2,
        )
        slope_beta = torch.cat(
            [
                kl_weight * to_beta[..., :rows, :] + 0.5 * (1.0 - alpha_in * quadratic) / beta_in,
                pseudo_weight * to_beta[..., rows:, :],
            ],
            dim=-2,
        )
        kind = concentration.dtype
        ctx.save_for_backward(slope_alpha.to(kind), slope_beta.to(kind), (alpha_in * scaled).neg_().to(kind))
        return inside.to(kind), (pseudo_weight * kl[..., rows:, :]).to(kind)

    @staticmethod
    def backward(ctx: Any, to_inside: Tensor, to_outside: Tensor) -> tuple[Tensor | None, ...]:
        slope_alpha, slope_beta, slope_loc = ctx.saved_tensors
        weight = torch.cat([to_inside, to_outside], dim=-2)
        to_loc = to_inside * slope_loc if ctx.needs_input_grad[1] else None
        return None, to_loc, weight * slope_alpha, weight * slope_beta, None, None, None, None


def joint_terms(
    y: Tensor,
    loc: Tensor,
    concentration: Tensor,
    rate: Tensor,
    prior_concentration: Tensor,
    prior_rate: Tensor,
    kl_weight: Tensor | float,
    pseudo_weight: Tensor | float,
) -> tuple[Tensor, Tensor]:
    """Terms of :func:`nescio.objectives.joint_dissipative_loss` before they are summed over ``P``.

    Paper: eq:dissipative_loss_expanded.  Shapes: as there. For single precision on a CPU; differentiable once, in
    ``loc``, ``concentration`` and ``rate``. Values are right to a rounding of single precision.
    """
    terms: tuple[Tensor, Tensor] = _JointTerms.apply(  # type: ignore[no-untyped-call]
        y, loc, concentration, rate, prior_concentration, prior_rate, kl_weight, pseudo_weight
    )
    return terms
