"""Random variables in closed form: tensors in, tensors out."""

from nescio.distributions.gamma import Gamma, gamma_kl
from nescio.distributions.gaussian_gamma import expected_log_prob
from nescio.distributions.mixture import StudentTMixture
from nescio.distributions.pixels import discretised_log_prob, log_mass, truncated_log_prob
from nescio.distributions.student_t import StudentT

__all__ = [
    "Gamma",
    "StudentT",
    "StudentTMixture",
    "discretised_log_prob",
    "expected_log_prob",
    "gamma_kl",
    "log_mass",
    "truncated_log_prob",
]
