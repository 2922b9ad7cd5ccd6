"""Stacks of multilayer perceptrons: M models times several maps, one batched product per layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from nescio._validation import check_integer, check_one_of, check_positive, check_widths
from nescio.networks.stack import Parameters

__all__ = ["ACTIVATIONS", "MLP", "without_inputs"]


class _TanhLayer(torch.autograd.Function):
    """``tanh(hidden @ weight + bias)`` as ``2 sigmoid(2 z) - 1``, in place: a third of the time of two operations.

    The absolute error is one rounding of 1.
    """

    @staticmethod
    def forward(ctx: Any, bias: Tensor, hidden: Tensor, weight: Tensor) -> Tensor:
        value = torch.baddbmm(bias, hidden, weight, beta=2, alpha=2).sigmoid_().mul_(2.0).sub_(1.0)
        ctx.save_for_backward(hidden, weight, value)
        return value

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        hidden, weight, value = ctx.saved_tensors
        # In place: the next layer made this gradient for nobody else, and fresh memory costs as much as the arithmetic.
        inner = torch.ops.aten.tanh_backward.grad_input(gradient, value, grad_input=gradient)
        to_hidden = torch.bmm(inner, weight.transpose(1, 2)) if ctx.needs_input_grad[1] else None
        return inner.sum(1, keepdim=True), to_hidden, torch.bmm(hidden.transpose(1, 2), inner)


class _Column(torch.autograd.Function):
    """``hidden @ weight`` where the weight is a single column: as products with rows, which are five times as fast."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(hidden, weight)
        return torch.bmm(weight.transpose(1, 2), hidden.transpose(1, 2)).transpose(1, 2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        hidden, weight = ctx.saved_tensors
        return gradient * weight.transpose(1, 2), torch.bmm(gradient.transpose(1, 2), hidden).transpose(1, 2)


MANY = 200_000  # hidden values of a layer from which the by-hand column product gains more than its call costs

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "elu": torch.nn.functional.elu,
    "relu": torch.relu,
    "silu": torch.nn.functional.silu,
    "softplus": torch.nn.functional.softplus,
    "leaky_relu": torch.nn.functional.leaky_relu,
}


class MLP:
    """M x maps perceptrons on the same inputs, merged in one batched product per layer.

    Paper: sec:appendix-regression-experiments (one hidden layer of 50 units for each of the maps).

    Parameters
    ----------
    n_inputs, n_outputs
        D and P.
    hidden
        Widths of the hidden layers.
    activation
        A name in ``ACTIVATIONS``. Bounded ones (tanh, sigmoid) extrapolate to a constant.
    maps
        How many maps a model has: one for a mean, two for a Gamma posterior.
    gain
        Factor on the first layer's starting weights. Above 1 the network starts with finer features and can change
        within a shorter distance, which a variance at the rim of the data must do.

    Weights and biases are drawn as ``torch.nn.Linear`` draws them, from U(-1/sqrt(fan in), 1/sqrt(fan in)).
    """

    def __init__(
        self,
        n_inputs: int,
        n_outputs: int,
        hidden: Sequence[int] = (50,),
        activation: str = "tanh",
        maps: int = 1,
        gain: float = 1.0,
    ) -> None:
        widths = check_widths("hidden", hidden)
        self._activation = ACTIVATIONS[check_one_of("activation", activation, ACTIVATIONS)]
        self._maps = check_integer("maps", maps, least=1)
        self._gain = check_positive("gain", gain)
        self._widths = [n_inputs, *widths, n_outputs]

    @property
    def maps(self) -> int:
        """How many outputs of shape ``(B, P)`` each model gives."""
        return self._maps

    def initialise(self, generators: Sequence[torch.Generator]) -> Parameters:
        """Draw fresh parameters: ``weight<l> (M, maps, fan_in, fan_out)`` and ``bias<l> (M, maps, 1, fan_out)``."""
        parameters: Parameters = {}
        for layer, (fan_in, fan_out) in enumerate(zip(self._widths[:-1], self._widths[1:], strict=True)):
            bound = (self._gain if layer == 0 else 1.0) / math.sqrt(fan_in)
            for name, rows in ((f"weight{layer}", fan_in), (f"bias{layer}", 1)):
                draws = [torch.rand(self._maps, rows, fan_out, generator=generator) for generator in generators]
                parameters[name] = torch.stack(draws).mul_(2 * bound).sub_(bound)
        return parameters

    def __call__(self, parameters: Parameters, x: Tensor) -> Tensor:
        """Map ``x (M, B, D)`` to ``(M, maps, B, P)``."""
        models, rows, columns = x.shape
        hidden = x
        if self._maps > 1:
            hidden = x.unsqueeze(1).expand(models, self._maps, rows, columns).reshape(-1, rows, columns)
        last = len(self._widths) - 2
        for layer in range(last + 1):
            weight = parameters[f"weight{layer}"].flatten(0, 1)
            bias = parameters[f"bias{layer}"].flatten(0, 1)
            if layer < last:
                hidden = self._layer(bias, hidden, weight)
            elif weight.shape[-1] == 1 and x.device.type == "cpu" and torch.is_grad_enabled():
                hidden = _column(hidden, weight) + bias
            elif torch.compiler.is_compiling() and x.device.type == "cpu":
                # As products with rows: with two or three columns a batched product takes five times as long.
                hidden = torch.bmm(weight.transpose(1, 2).contiguous(), hidden.transpose(1, 2)).transpose(1, 2) + bias
            else:
                hidden = torch.baddbmm(bias, hidden, weight)
        return hidden.view(models, self._maps, rows, -1)

    def _layer(self, bias: Tensor, hidden: Tensor, weight: Tensor) -> Tensor:
        if self._activation is not torch.tanh or hidden.device.type != "cpu":
            return self._activation(torch.baddbmm(bias, hidden, weight))
        if torch.compiler.is_compiling():
            # The bias is added where the sigmoid is computed; baddbmm would copy it first.
            return 2.0 * torch.sigmoid(2.0 * (torch.bmm(hidden, weight) + bias)) - 1.0
        value: Tensor = _TanhLayer.apply(bias, hidden, weight)  # type: ignore[no-untyped-call]
        return value


def without_inputs(parameters: Parameters, sees: Tensor) -> Parameters:
    """Parameters of an :class:`MLP`, or of several side by side, that makes nothing of the inputs it does not see.

    It says of any inputs what the one given says where those are zero. Shapes: ``sees (M, D)``, ones and zeros.
    """
    first = [name for name in parameters if name.endswith("weight0")]
    return parameters | {name: parameters[name] * sees[:, None, :, None] for name in first}


def _column(hidden: Tensor, weight: Tensor) -> Tensor:
    """``hidden @ weight`` for a weight of one column, which a batched product is slow at.

    These forms may round a row differently in another place of the batch: they are for training.
    """
    if torch.compiler.is_compiling() or hidden.numel() < MANY:
        row = weight.reshape(len(weight), 1, -1)  # not transposed: its gradient would come back laid otherwise
        return (hidden * row).sum(-1, keepdim=True)
    product: Tensor = _Column.apply(hidden, weight)  # type: ignore[no-untyped-call]
    return product
