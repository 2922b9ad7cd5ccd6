"""Functions of x: stacks of networks, and heads that turn their outputs into distributions."""

from nescio.networks.anchor import Anchor
from nescio.networks.heads import ConcentrationRateHead, Head, VarianceShapeHead, make_head
from nescio.networks.mlp import ACTIVATIONS, MLP
from nescio.networks.stack import ModuleStack, Network, Parameters

__all__ = [
    "ACTIVATIONS",
    "MLP",
    "Anchor",
    "ConcentrationRateHead",
    "Head",
    "ModuleStack",
    "Network",
    "Parameters",
    "VarianceShapeHead",
    "make_head",
]
