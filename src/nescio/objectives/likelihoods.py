"""Losses of networks that say mean and variance themselves: one value per point and output, never reduced."""

from __future__ import annotations

import torch
from torch import Tensor

from nescio._validation import check_same_shape
from nescio.distributions import StudentT
from nescio.distributions.gaussian_gamma import LOG_2PI

__all__ = [
    "beta_loss",
    "evidential_loss",
    "evidential_predictive",
    "evidential_surprise",
    "faithful_loss",
    "gaussian_loss",
]


def gaussian_loss(y: Tensor, loc: Tensor, log_variance: Tensor) -> Tensor:
    r"""Negative log-density of a Gaussian, :math:`\tfrac12(\log 2\pi\sigma^2 + (y-\mu)^2/\sigma^2)`.

    Source: nix1994, Eq. (4).  Shapes: all ``(..., B, P)``.
    """
    check_same_shape(y=y, loc=loc, log_variance=log_variance)
    return 0.5 * (LOG_2PI + log_variance + (y - loc).square() * torch.exp(-log_variance))


def beta_loss(y: Tensor, loc: Tensor, log_variance: Tensor, beta: float) -> Tensor:
    r"""The Gaussian loss of each point times :math:`\sigma^{2\beta}`, which is not differentiated.

    At ``beta`` zero it is the Gaussian loss; at one the mean's gradient is that of the squared error. In between,
    points whose variance is large keep part of the weight that they lose under the likelihood. Its value is no
    likelihood: models are not to be compared by it.

    Source: seitzer2022, Eq. (4).  Shapes: all ``(..., B, P)``.
    """
    loss = gaussian_loss(y, loc, log_variance)
    return loss if beta == 0.0 else torch.exp(beta * log_variance.detach()) * loss


def faithful_loss(y: Tensor, loc: Tensor, tail: StudentT) -> Tensor:
    r"""Squared error for the mean; for the variance the likelihood about a mean that is not differentiated.

    .. math:: \tfrac12 (y-\mu)^2 - \log p(y \mid \mathrm{sg}(\mu), \sigma, \nu)

    The mean's gradient is that of the squared error alone: the Newton step of the likelihood, whose curvature in the
    mean is :math:`1/\sigma^2`. ``tail`` must come from features whose gradient is stopped, and its location is not
    looked at. Infinite ``df``: the Gaussian version.

    Source: stirn2023, Section 3.  Shapes: all ``(..., B, P)``.
    """
    check_same_shape(y=y, loc=loc, scale=tail.scale)
    return 0.5 * (y - loc).square() - StudentT(tail.df, loc.detach(), tail.scale).log_prob(y)


def evidential_predictive(loc: Tensor, evidence: Tensor, concentration: Tensor, rate: Tensor) -> StudentT:
    r"""What a normal-inverse-Gamma belief about mean and variance says of an observation.

    df :math:`2\alpha`, scale :math:`\sqrt{\beta(1+\nu)/(\nu\alpha)}` with the evidence :math:`\nu`.

    Source: amini2020, Eq. (8).  Shapes: all ``*``.
    """
    return StudentT(2.0 * concentration, loc, (rate * (1.0 + evidence) / (evidence * concentration)).sqrt())


def evidential_loss(y: Tensor, loc: Tensor, evidence: Tensor, concentration: Tensor, rate: Tensor) -> Tensor:
    r"""Negative log of the normal-inverse-Gamma's evidence; with :math:`\Omega = 2\beta(1+\nu)`:

    .. math:: \tfrac12\log\frac\pi\nu - \alpha\log\Omega + (\alpha+\tfrac12)\log(\nu(y-\gamma)^2 + \Omega)
              + \log\frac{\Gamma(\alpha)}{\Gamma(\alpha+\frac12)}

    which is minus the log-density of :func:`evidential_predictive`, computed as such since that keeps its digits.

    Source: amini2020, Eq. (8).  Shapes: all ``(..., B, P)``.
    """
    return -evidential_predictive(loc, evidence, concentration, rate).log_prob(y)


def evidential_surprise(y: Tensor, loc: Tensor, evidence: Tensor, concentration: Tensor) -> Tensor:
    r"""Evidence claimed where the error is large, :math:`|y-\gamma|(2\nu+\alpha)`.

    Source: amini2020, Eq. (9).  Shapes: all ``(..., B, P)``.
    """
    check_same_shape(y=y, loc=loc, evidence=evidence, concentration=concentration)
    return (y - loc).abs() * (2.0 * evidence + concentration)
