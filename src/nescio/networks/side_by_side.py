"""Several networks on the same inputs that share nothing, seen as one with more maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from nescio.networks.stack import Network, Parameters

__all__ = ["SideBySide", "as_one"]


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
        maps = [network(part(parameters, label), x) for label, network in self._networks.items()]
        if not torch.compiler.is_compiling():
            return torch.cat(maps, dim=1)
        # Rows last, as compiled products leave them: a loop over the outputs would not be vectorised. And joined on
        # three axes: of four, two of them short, the compiler would put the maps last.
        joined = torch.cat([each.transpose(2, 3).flatten(2) for each in maps], dim=1)
        return joined.view(len(x), self.maps, -1, x.shape[1]).transpose(2, 3)


def part(parameters: Parameters, label: str) -> Parameters:
    """The parameters of one of the networks, by their own names."""
    begin = f"{label}."
    return {name.removeprefix(begin): value for name, value in parameters.items() if name.startswith(begin)}


def as_one(parameters: Parameters) -> Parameters:
    """The parameters of one :class:`MLP` that says the same as perceptrons of equal depth side by side.

    Narrower ones are filled up with units that nothing listens to. Shapes: ``<label>.weight<l>``
    ``(M, 1, fan_in, fan_out)`` become ``weight<l>`` ``(M, maps, ...)`` of the widest.
    """
    labels = list(dict.fromkeys(name.partition(".")[0] for name in parameters))
    parts = [part(parameters, label) for label in labels]
    joined: Parameters = {}
    for name in parts[0]:
        tensors = [each[name] for each in parts]
        rows, columns = (max(tensor.shape[axis] for tensor in tensors) for axis in (-2, -1))
        joined[name] = torch.cat(
            [pad(tensor, (0, columns - tensor.shape[-1], 0, rows - tensor.shape[-2])) for tensor in tensors], dim=1
        )
    return joined
