"""Models of images that know where they stop."""

from nescio.generative.bernoulli import BernoulliVAE
from nescio.generative.detection import NoveltyDetector
from nescio.generative.dissipative import DissipativeVAE
from nescio.generative.v3ae import VariationalVarianceVAE
from nescio.generative.vae import GaussianVAE

__all__ = ["BernoulliVAE", "DissipativeVAE", "GaussianVAE", "NoveltyDetector", "VariationalVarianceVAE"]
