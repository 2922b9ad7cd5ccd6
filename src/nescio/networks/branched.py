"""Stacks of perceptrons with one trunk and several heads, some of which may look without touching."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from nescio._validation import check_integer, check_one_of, check_widths
from nescio.networks.mlp import ACTIVATIONS
from nescio.networks.stack import Parameters

__all__ = ["BranchedMLP"]


class BranchedMLP:
    """M perceptrons whose last hidden layer feeds several linear heads.

    Parameters
    ----------
    n_inputs, n_outputs
        D and P.
    hidden
        Widths of the trunk's layers, at least one.
    activation
        A name in ``ACTIVATIONS``.
    maps
        Number of heads.
    watchers
        How many of the heads, the last ones, send no gradient into the trunk.

    Weights and biases are drawn as ``torch.nn.Linear`` draws them.
    """

    def __init__(
        self,
        n_inputs: int,
        n_outputs: int,
        hidden: Sequence[int] = (50,),
        activation: str = "tanh",
        maps: int = 2,
        watchers: int = 0,
    ) -> None:
        self._activation = ACTIVATIONS[check_one_of("activation", activation, ACTIVATIONS)]
        self._maps = check_integer("maps", maps, least=1)
        self._watchers = check_integer("watchers", watchers, least=0)
        self._n_outputs = n_outputs
        self._widths = [n_inputs, *check_widths("hidden", hidden, least=1)]

    @property
    def maps(self) -> int:
        """How many outputs of shape ``(B, P)`` each model gives."""
        return self._maps

    def initialise(self, generators: Sequence[torch.Generator]) -> Parameters:
        """Draw fresh parameters: the trunk's ``weight<l>`` and ``bias<l>``, the heads' ``heads`` and ``offsets``."""
        layers = zip(self._widths[:-1], self._widths[1:], strict=True)
        shapes = {(f"weight{layer}", f"bias{layer}"): widths for layer, widths in enumerate(layers)}
        shapes["heads", "offsets"] = (self._widths[-1], self._maps * self._n_outputs)
        parameters: Parameters = {}
        for (weight, bias), (fan_in, fan_out) in shapes.items():
            bound = 1.0 / math.sqrt(fan_in)
            for name, rows in ((weight, fan_in), (bias, 1)):
                draws = [torch.rand(rows, fan_out, generator=generator) for generator in generators]
                parameters[name] = torch.stack(draws).mul_(2 * bound).sub_(bound)
        return parameters

    def features(self, parameters: Parameters, x: Tensor) -> Tensor:
        """What the heads see of ``x (M, B, D)``: the trunk's last layer, ``(M, B, width)``."""
        hidden = x
        for layer in range(len(self._widths) - 1):
            hidden = self._activation(torch.baddbmm(parameters[f"bias{layer}"], hidden, parameters[f"weight{layer}"]))
        return hidden

    def read(self, heads: Tensor, offsets: Tensor, features: Tensor) -> Tensor:
        """Maps ``(M, k, B, P)`` of ``k`` heads, weights ``(M, width, k P)`` and offsets ``(M, 1, k P)``."""
        out = torch.baddbmm(offsets, features, heads)
        return out.view(*out.shape[:2], -1, self._n_outputs).transpose(1, 2)

    def __call__(self, parameters: Parameters, x: Tensor) -> Tensor:
        """Map ``x (M, B, D)`` to ``(M, maps, B, P)``."""
        features = self.features(parameters, x)
        heads, offsets = parameters["heads"], parameters["offsets"]
        touching = (self._maps - self._watchers) * self._n_outputs
        maps = self.read(heads[..., :touching], offsets[..., :touching], features)
        if not self._watchers:
            return maps
        seen = self.read(heads[..., touching:], offsets[..., touching:], features.detach())
        return torch.cat([maps, seen], dim=1)
