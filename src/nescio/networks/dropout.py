"""Stacks of perceptrons that lose inputs and units at random, and what is left of them when the losses are fixed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nescio.networks.mlp import ACTIVATIONS, MLP
from nescio.networks.stack import Parameters

__all__ = ["DropoutMLP", "kept"]


def kept(noise: Tensor, rate: Tensor) -> Tensor:
    """Masks from standard normal numbers ``(M, *)``: zero with chance ``rate (M,)``, else ``1 / (1 - rate)``."""
    rate = rate.view(-1, *(1 for _ in noise.shape[1:]))
    alive: Tensor = noise > torch.special.ndtri(rate)
    return alive.to(noise.dtype) / (1.0 - rate)


class DropoutMLP:
    """M perceptrons with a mask before every layer of weights, the first included.

    A mask has a column for each input and each hidden unit, in this order: ``units`` of them.

    Source: gal2016, Eq. (3).
    """

    def __init__(self, n_inputs: int, n_outputs: int, hidden: Sequence[int] = (50,), activation: str = "relu") -> None:
        self.plain = MLP(n_inputs, n_outputs, hidden, activation)
        """The same network without masks."""
        self._activation = ACTIVATIONS[activation]
        self._widths = [n_inputs, *hidden]

    @property
    def units(self) -> int:
        """How many numbers a mask has."""
        return sum(self._widths)

    def initialise(self, generators: Sequence[torch.Generator]) -> Parameters:
        """Draw fresh parameters, as :class:`MLP` draws them."""
        return self.plain.initialise(generators)

    def __call__(self, parameters: Parameters, x: Tensor, masks: Tensor) -> Tensor:
        """Map ``x (M, B, D)`` under ``masks (M, B, units)`` to ``(M, 1, B, P)``."""
        hidden = x
        for layer, mask in enumerate(torch.split(masks, self._widths, dim=-1)):
            if layer:
                hidden = self._activation(hidden)
            hidden = torch.baddbmm(parameters[f"bias{layer}"][:, 0], hidden * mask, parameters[f"weight{layer}"][:, 0])
        return hidden.unsqueeze(1)

    def thin(self, parameters: Parameters, masks: Tensor) -> Parameters:
        """Parameters of plain networks that are one network ``(1, ...)`` under each of the masks ``(T, units)``."""
        thinned = {}
        for layer, mask in enumerate(torch.split(masks, self._widths, dim=-1)):
            thinned[f"weight{layer}"] = parameters[f"weight{layer}"] * mask[:, None, :, None]
            bias = parameters[f"bias{layer}"]
            thinned[f"bias{layer}"] = bias.expand(len(masks), *bias.shape[1:]).clone()
        return thinned
