"""Random variables in closed form: tensors in, tensors out."""

from nescio.distributions.gamma import Gamma, gamma_kl
from nescio.distributions.gaussian_gamma import expected_log_prob
from nescio.distributions.mixture import StudentTMixture
from nescio.distributions.student_t import StudentT

__all__ = ["Gamma", "StudentT", "StudentTMixture", "expected_log_prob", "gamma_kl"]
