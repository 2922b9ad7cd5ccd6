"""Several networks on the same inputs that share nothing, seen as one with more maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from nescio.networks.stack import Network, Parameters

__all__ = ["SideBySide"]


class SideBySide:
    """Networks that differ in layers or activation; their maps follow each other in the order of ``networks``.

    A parameter of the network called ``mean`` has the name ``mean.<its own name>``.
    """

    def __init__(self, networks: Mapping[str, Network]) -> None:
        self._networks = dict(networks)

    @property
    def maps(self) -> int:
        """How many outputs of shape ``(B, P)`` each model gives."""
        return sum(network.maps for network in self._networks.values())

    def initialise(self, generators: Sequence[torch.Generator]) -> Parameters:
        """Draw fresh parameters, network after network."""
        drawn = {label: network.initialise(generators) for label, network in self._networks.items()}
        return {f"{label}.{name}": value for label, part in drawn.items() for name, value in part.items()}

    def __call__(self, parameters: Parameters, x: Tensor) -> Tensor:
        """Map ``x (M, B, D)`` to ``(M, maps, B, P)``."""
        return torch.cat([network(part(parameters, label), x) for label, network in self._networks.items()], dim=1)


def part(parameters: Parameters, label: str) -> Parameters:
    """The parameters of one of the networks, by their own names."""
    begin = f"{label}."
    return {name.removeprefix(begin): value for name, value in parameters.items() if name.startswith(begin)}
