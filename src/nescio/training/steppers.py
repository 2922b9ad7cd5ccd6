"""One optimisation step of a stack, three ways: eagerly, compiled whole, and as a captured CUDA graph.

All three compute the same: the sum over models of each model's own mean loss, its gradient, and AdamW. The sum (and
not a mean over models) keeps a model's step independent of who shares its stack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import FunctionType
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.fx.experimental import _config as shape_config

from nescio.networks import Parameters
from nescio.objectives import PointLosses
from nescio.training.sampling import Draw

__all__ = ["CompiledStepper", "EagerStepper", "GraphStepper", "Losses", "Stepper", "per_model"]

Losses = Callable[[Parameters, Draw], PointLosses]

BETAS = (0.9, 0.999)  # Adam's published defaults
EPSILON = 1e-8


def per_model(losses: PointLosses, weights: Tensor | None) -> Tensor:
    """Average the points of each model, ``(A,)``: rows summed by their weights, pseudo-inputs evenly.

    Paper: sec:appendix-number-pseudo-inputs (each term is a mean over its own set).
    """
    total = losses.inside.mean(1) if weights is None else (losses.inside * weights).sum(1)
    if losses.outside is not None:
        total = total + losses.outside.mean(1)
    if losses.penalty is not None:
        total = total + losses.penalty
    return total


class Stepper(Protocol):
    """Holds the parameters of the models in training and moves them."""

    parameters: Parameters

    def __init__(self, parameters: Parameters, losses: Losses, weight_decay: float = 0.0) -> None: ...

    def advance(self, draws: Sequence[Draw], learning_rates: Sequence[float]) -> Tensor:
        """Take one step per draw; the losses of the last one, ``(A,)``."""
        ...

    def keep(self, places: Tensor) -> bool:
        """Drop all models but those at ``places``; False where the stack cannot shrink."""
        ...


class EagerStepper:
    """Autograd and torch's fused AdamW."""

    def __init__(self, parameters: Parameters, losses: Losses, weight_decay: float = 0.0) -> None:
        self.parameters = {name: value.detach().clone().requires_grad_() for name, value in parameters.items()}
        self._losses = losses
        self._weight_decay = weight_decay
        self._optimiser = self._make_optimiser()

    def _make_optimiser(self) -> torch.optim.AdamW:
        return torch.optim.AdamW(
            self.parameters.values(), betas=BETAS, eps=EPSILON, weight_decay=self._weight_decay, fused=True
        )

    def advance(self, draws: Sequence[Draw], learning_rates: Sequence[float]) -> Tensor:
        """Take one step per draw; the losses of the last one, ``(A,)``."""
        values = torch.empty(0)
        for draw, rate in zip(draws, learning_rates, strict=True):
            values = per_model(self._losses(self.parameters, draw), draw.weights)
            leaves = list(self.parameters.values())
            for leaf, gradient in zip(leaves, torch.autograd.grad(values.sum(), leaves), strict=True):
                # The fused kernel reads memory as it lies: a gradient must lie as its parameter does.
                same = gradient.stride() == leaf.stride()
                leaf.grad = gradient if same else torch.empty_like(leaf).copy_(gradient)
            self._optimiser.param_groups[0]["lr"] = rate
            self._optimiser.step()
        return values.detach()

    def keep(self, places: Tensor) -> bool:
        """Drop all models but those at ``places``, with their moments."""
        states = {name: self._optimiser.state[value] for name, value in self.parameters.items()}
        self.parameters = {
            name: value.detach()[places].clone().requires_grad_() for name, value in self.parameters.items()
        }
        self._optimiser = self._make_optimiser()
        for name, value in self.parameters.items():
            old = states[name]
            self._optimiser.state[value] = {
                "step": old["step"],
                "exp_avg": old["exp_avg"][places].clone(),
                "exp_avg_sq": old["exp_avg_sq"][places].clone(),
            }
        return True


def _pace(rate: float, count: int, decay: float) -> tuple[float, float, float]:
    """Of the step with this number: the length of a move, the root of the second moment's bias, and what is kept.

    The length is the rate over the first moment's bias; ``1 - rate * decay`` of a parameter is kept.

    Not computed in the compiled step, where the powers would be taken anew for every sixteen parameters.
    """
    return rate / (1.0 - BETAS[0] ** count), (1.0 - BETAS[1] ** count) ** 0.5, 1.0 - rate * decay


def _step(
    losses: Losses,
    values: Parameters,
    first: Parameters,
    second: Parameters,
    draw: Draw,
    pace: tuple[Tensor, Tensor, Tensor],
) -> tuple[Parameters, Parameters, Parameters, Tensor]:
    """One step of AdamW: the new parameters, moments and losses ``(A,)``; ``pace`` is :func:`_pace` in tensors."""
    length, bias, kept = pace

    def total(values: Parameters, draw: Draw) -> tuple[Tensor, Tensor]:
        each = per_model(losses(values, draw), draw.weights)
        return each.sum(), each

    gradients, each = torch.func.grad(total, has_aux=True)(values, draw)
    new_values, new_first, new_second = {}, {}, {}
    for name, gradient in gradients.items():
        m = BETAS[0] * first[name] + (1.0 - BETAS[0]) * gradient
        v = BETAS[1] * second[name] + (1.0 - BETAS[1]) * gradient.square()
        new_values[name] = values[name] * kept - length * m / (v.sqrt() / bias + EPSILON)
        new_first[name], new_second[name] = m, v
    return new_values, new_first, new_second, each


_SHARED: dict[Any, Callable[..., Any]] = {}


def _compile(dynamic: bool) -> Callable[..., Any]:
    """A step of its own code object: the compiler counts graphs by it and gives up after eight."""
    own = FunctionType(_step.__code__.replace(), globals())
    return torch.compile(own, fullgraph=True, dynamic=dynamic)


def _shared(losses: Losses, parameters: Parameters, draw: Draw) -> Callable[..., Any]:
    """The step for losses with this code, whatever tensors they close over and however large these are.

    What the compiler would make another graph for has another key.
    """
    tensors = [*parameters.values(), *(part for part in draw if part is not None)]
    ones = tuple(size == 1 for tensor in tensors for size in tensor.shape)  # the compiler builds on a size of one
    key = (getattr(losses, "__code__", losses), *parameters, *(part is None for part in draw), ones)
    if key not in _SHARED:
        _SHARED[key] = _compile(dynamic=True)
    return _SHARED[key]


def _any_sizes() -> AbstractContextManager[None]:
    """While a step is compiled: sizes that happen to be equal in the first table are not taken to be so in others."""
    scope: AbstractContextManager[None] = shape_config.patch(use_duck_shape=False)  # type: ignore[attr-defined]
    return scope


def _owned(draw: Draw) -> Draw:
    """A copy of a draw in memory of its own."""
    return Draw(*(None if part is None else part.clone() for part in draw))  # type: ignore[arg-type]


class CompiledStepper:
    """Loss, gradient and AdamW in one ``torch.compile`` graph; compiling the loss alone gains far less.

    A ``shared`` step is compiled once in a process, for stacks and tables of any size. That takes longer than for the
    sizes at hand, and pays where many models are fitted.
    """

    def __init__(
        self, parameters: Parameters, losses: Losses, weight_decay: float = 0.0, *, shared: bool = False
    ) -> None:
        self.parameters = {name: value.detach().clone() for name, value in parameters.items()}
        self._first = {name: torch.zeros_like(value) for name, value in self.parameters.items()}
        self._second = {name: torch.zeros_like(value) for name, value in self.parameters.items()}
        self._count = 0
        self._losses = losses
        self._decay = weight_decay
        self._step = None if shared else _compile(dynamic=False)

    def advance(self, draws: Sequence[Draw], learning_rates: Sequence[float]) -> Tensor:
        """Take one step per draw; the losses of the last one, ``(A,)``."""
        values = torch.empty(0)
        like = next(iter(self.parameters.values()))
        step = self._step or _shared(self._losses, self.parameters, draws[0])
        # Draws are views of all that were drawn with them: as such their number would be compiled for.
        for place, (draw, rate) in enumerate(zip(draws, learning_rates, strict=True)):
            self._count += 1
            with _any_sizes() if place == 0 else nullcontext():  # all draws of a call are alike
                self.parameters, self._first, self._second, values = step(
                    self._losses,
                    self.parameters,
                    self._first,
                    self._second,
                    _owned(draw),
                    tuple(like.new_tensor(_pace(rate, self._count, self._decay)).unbind()),
                )
        return values

    def keep(self, places: Tensor) -> bool:
        """Drop all models but those at ``places``; refuse where another number of models is another compilation."""
        if self._step is not None or len(places) == 1:
            return False
        self.parameters, self._first, self._second = (
            {name: value[places] for name, value in part.items()}
            for part in (self.parameters, self._first, self._second)
        )
        return True


class GraphStepper:
    """The eager step captured once as a CUDA graph and replayed: no launch overhead, no host synchronisation."""

    WARM_UP = 3  # steps taken on a side stream before the capture, as torch's notes on CUDA graphs ask for

    def __init__(self, parameters: Parameters, losses: Losses, weight_decay: float = 0.0) -> None:
        self.parameters = {name: value.detach().clone().requires_grad_() for name, value in parameters.items()}
        self._losses = losses
        device = next(iter(self.parameters.values())).device
        self._rate = torch.zeros((), device=device)
        self._optimiser = torch.optim.AdamW(
            self.parameters.values(),
            lr=self._rate,
            betas=BETAS,
            eps=EPSILON,
            weight_decay=weight_decay,
            fused=True,
            capturable=True,
        )
        self._graph: torch.cuda.CUDAGraph | None = None
        self._draw: Draw | None = None
        self._values = torch.empty(0)

    def _step(self, draw: Draw) -> Tensor:
        self._optimiser.zero_grad(set_to_none=True)
        values = per_model(self._losses(self.parameters, draw), draw.weights)
        values.sum().backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        return values.detach()

    def _load(self, draw: Draw, rate: float) -> Draw:
        if self._draw is None:
            self._draw = _owned(draw)
        for static, fresh in zip(self._draw, draw, strict=True):
            if static is not None and fresh is not None:
                static.copy_(fresh)
        self._rate.fill_(rate)
        return self._draw

    def advance(self, draws: Sequence[Draw], learning_rates: Sequence[float]) -> Tensor:
        """Take one step per draw; the losses of the last one, ``(A,)``."""
        with torch.cuda.device(self._rate.device):  # a graph is captured on the current device
            return self._advance(list(zip(draws, learning_rates, strict=True)))

    def _advance(self, pairs: list[tuple[Draw, float]]) -> Tensor:
        if self._graph is None:
            stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for draw, rate in pairs[: self.WARM_UP]:
                    self._values = self._step(self._load(draw, rate))
            torch.cuda.current_stream().wait_stream(stream)
            pairs = pairs[self.WARM_UP :]
            if not pairs:
                return self._values
            static = self._load(*pairs[0])
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._values = self._step(static)
            self._graph = graph
        for draw, rate in pairs:
            self._load(draw, rate)
            self._graph.replay()
        return self._values

    def keep(self, places: Tensor) -> bool:
        """Refuse: the captured graph has one shape."""
        return False
