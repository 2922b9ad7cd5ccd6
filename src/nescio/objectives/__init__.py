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

__all__ = [
    "PointLosses",
    "PriorFunction",
    "constant_prior",
    "dissipative_loss",
    "elbo",
    "graded_prior",
    "join_priors",
    "joint_dissipative_loss",
    "prior_from_level",
    "prior_from_residuals",
    "toy_prior",
    "variational_loss",
]
