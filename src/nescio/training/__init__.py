"""The one loop: it trains a stack of independent models and knows none of them."""

from nescio.training.loop import Schedule, Trained, can_compile, train
from nescio.training.phases import Table
from nescio.training.sampling import Draw, Sampler

__all__ = ["Draw", "Sampler", "Schedule", "Table", "Trained", "can_compile", "train"]
