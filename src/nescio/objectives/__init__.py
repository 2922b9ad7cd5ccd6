"""What is optimised: per-point losses and the priors in them."""

from nescio.objectives.priors import (
    PriorFunction,
    constant_prior,
    graded_prior,
    prior_from_level,
    prior_from_residuals,
    toy_prior,
)
from nescio.objectives.regression import (
    PointLosses,
    dissipative_loss,
    elbo,
    join_priors,
    joint_dissipative_loss,
    variational_loss,
)
from nescio.objectives.vae import (
    bernoulli_log_prob,
    entropy_loss,
    latent_kl,
    reconstruction_entropy,
    v3ae_loss,
    vae_loss,
)

__all__ = [
    "PointLosses",
    "PriorFunction",
    "bernoulli_log_prob",
    "constant_prior",
    "dissipative_loss",
    "elbo",
    "entropy_loss",
    "graded_prior",
    "join_priors",
    "joint_dissipative_loss",
    "latent_kl",
    "prior_from_level",
    "prior_from_residuals",
    "reconstruction_entropy",
    "toy_prior",
    "v3ae_loss",
    "vae_loss",
    "variational_loss",
]
