"""What variational autoencoders optimise: one value per image, never reduced over images.

Shapes: ``S`` samples of the code of each image, ``B`` images, ``P`` pixels (with their channels), ``L`` latents, ``K``
pseudo-inputs. Sums run over pixels and latents, means over the samples of a code.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from nescio._validation import check_same_shape
from nescio.distributions import Gamma, StudentT, gamma_kl
from nescio.distributions.gaussian_gamma import LOG_2PI
from nescio.objectives.regression import PointLosses, elbo

__all__ = [
    "bernoulli_log_prob",
    "entropy_loss",
    "latent_kl",
    "reconstruction_entropy",
    "shared_variance_log_prob",
    "v3ae_loss",
    "vae_loss",
]

SMALLEST_VARIANCE = 1e-8  # of pixels between 0 and 1: far below the 1e-6 that one grey value in 256 makes


def latent_kl(loc: Tensor, scale: Tensor) -> Tensor:
    r"""Divergence of a code's posterior from the standard Gaussian.

    .. math:: KL(N(\mu, \mathrm{diag}\,\sigma^2) \| N(0, I))
              = \tfrac12 \sum_l (\mu_l^2 + \sigma_l^2 - 1) - \sum_l \log \sigma_l

    Paper: eq:appendix_v3ae_loss.  Shapes: ``(..., L)`` to ``(...)``. Written about :math:`\sigma = 1`, where the terms
    cancel, in a form that keeps its digits.
    """
    check_same_shape(loc=loc, scale=scale)
    excess = scale - 1.0
    return (0.5 * (loc.square() + excess.square()) + (excess - torch.log1p(excess))).sum(-1)


def bernoulli_log_prob(x: Tensor, logits: Tensor) -> Tensor:
    r"""Bernoulli log-likelihood of grey values in [0, 1], :math:`x \eta - \log(1 + e^\eta)`.

    Shapes: both ``(..., P)``, and so the result. For grey values it is no density: they may be compared by it, models
    of another kind may not.
    """
    check_same_shape(x=x, logits=logits)
    return x * logits - softplus(logits)


def shared_variance_log_prob(x: Tensor, loc: Tensor) -> Tensor:
    r"""Gaussian log-density with one variance for all pixels of a batch: the one that fits it best.

    .. math:: -\tfrac12\left(\frac{(x - \mu)^2}{\sigma^2} + \log 2\pi\sigma^2\right), \qquad
              \sigma^2 = \overline{(x - \mu)^2}

    Source: rybkin2021.  Shapes: both ``(..., P)``, and so the result. At its optimum the derivative by the variance is
    zero, so the variance is taken as a number and the gradient is that of the whole.
    """
    check_same_shape(x=x, loc=loc)
    squared = (x - loc).square()
    variance = squared.detach().mean().clamp_min(SMALLEST_VARIANCE)
    return -0.5 * (squared / variance + torch.log(variance) + LOG_2PI)


def reconstruction_entropy(logits: Tensor) -> Tensor:
    r"""Entropy of a Bernoulli reconstruction read as one categorical distribution over its pixels.

    .. math:: H = -\sum_i \pi_i \log \pi_i, \qquad \pi_i = p_i / \sum_j p_j, \qquad p_i = \mathrm{sigmoid}(\eta_i)

    Paper: eq:v3ae_entropy_loss.  Shapes: ``(..., P)`` to ``(...)``; between 0 and log P. In log space: it is finite
    where all probabilities underflow.
    """
    log_share = torch.log_softmax(logsigmoid(logits), dim=-1)
    return -(log_share.exp() * log_share).sum(-1)


def vae_loss(log_prob: Tensor, divergence: Tensor, *, latent_weight: Tensor | float = 1.0) -> Tensor:
    r"""Negative evidence lower bound of each image, :math:`-E_{q(z|x)}[\log p(x|z)] + w\,KL(q(z|x) \| p(z))`.

    Shapes: ``log_prob (..., S, B, P)``, ``divergence (..., B)``; the result is ``(..., B)``.
    """
    return latent_weight * divergence - log_prob.sum(-1).mean(-2)


def v3ae_loss(
    x: Tensor,
    loc: Tensor,
    q: Gamma,
    inside_prior: Gamma,
    divergence: Tensor,
    q_pseudo: Gamma | None = None,
    outside_prior: Gamma | None = None,
    *,
    marginal: bool = False,
    kl_weight: Tensor | float = 1.0,
    latent_weight: Tensor | float = 1.0,
    pseudo_weight: Tensor | float = 1.0,
) -> PointLosses:
    r"""Dissipative loss of the V3AE: the negative bound at images, the divergence from the outside prior at codes.

    .. math:: -\sum_x \bigl(E_{q(z|x)}[E_{q(\lambda|z)}[\log p(x|z,\lambda)] - w\,KL(q(\lambda|z) \| p_{in}(\lambda))]
              - v\,KL(q(z|x) \| p(z))\bigr) + \tau \sum_{\hat z} KL(q(\lambda|\hat z) \| p_{out}(\lambda))

    ``marginal`` puts the Student-t's log-density in the place of the expected one: the precision is integrated out.

    Paper: eq:v3ae_loss. Paper: eq:appendix_v3ae_loss.  Shapes: ``loc``, ``q`` ``(..., S, B, P)``, to which ``x`` and
    the priors broadcast; ``divergence (..., B)``; ``q_pseudo (..., K, P)``. Terms are ``(..., B)`` and ``(..., K)``.

    Deviation: eq:appendix_v3ae_loss is printed with the outside term inside the negated bracket, where minimising
    would drive it up; here it is a cost, as in eq:v3ae_loss.
    """
    targets = x.expand_as(loc)
    if marginal:
        bound = StudentT.from_gamma(loc, q).log_prob(targets) - kl_weight * gamma_kl(q, inside_prior)
    else:
        bound = elbo(targets, loc, q, inside_prior, kl_weight)
    inside = vae_loss(bound, divergence, latent_weight=latent_weight)
    if q_pseudo is None or outside_prior is None:
        return PointLosses(inside)
    return PointLosses(inside, (pseudo_weight * gamma_kl(q_pseudo, outside_prior)).sum(-1))


def entropy_loss(
    x: Tensor,
    logits: Tensor,
    divergence: Tensor,
    pseudo_logits: Tensor | None = None,
    *,
    latent_weight: Tensor | float = 1.0,
    pseudo_weight: Tensor | float = 1.0,
) -> PointLosses:
    r"""Loss of a Bernoulli VAE that is told to be undecided where there are no data.

    .. math:: -\sum_x \mathrm{ELBO}(x) - \tau \sum_{\hat z} H[\tilde x | \hat z]

    Paper: eq:v3ae_entropy_loss.  Shapes: ``logits (..., S, B, P)``, to which ``x`` broadcasts; ``divergence (..., B)``;
    ``pseudo_logits (..., K, P)``. Terms are ``(..., B)`` and ``(..., K)``.

    Deviation: as printed, the entropy at pseudo-inputs would be lowered; the text around it says that it is raised.
    """
    inside = vae_loss(bernoulli_log_prob(x.expand_as(logits), logits), divergence, latent_weight=latent_weight)
    if pseudo_logits is None:
        return PointLosses(inside)
    return PointLosses(inside, -pseudo_weight * reconstruction_entropy(pseudo_logits))
