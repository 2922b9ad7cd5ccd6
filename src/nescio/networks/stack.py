"""Stacks of networks: M independent models, their parameters on one leading axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from nescio._validation import InputError, counted

__all__ = ["ModuleStack", "Network", "Parameters"]

Parameters = dict[str, Tensor]
"""Named tensors whose first axis is M, the models of the stack."""


class Network(Protocol):
    """A function of x that is trained in stacks. The parameters are kept outside of it."""

    @property
    def maps(self) -> int:
        """How many outputs of shape ``(B, P)`` each model gives."""
        ...

    def initialise(self, generators: Sequence[torch.Generator]) -> Parameters:
        """Draw fresh parameters, those of model m from its own generator alone."""
        ...

    def __call__(self, parameters: Parameters, x: Tensor) -> Tensor:
        """Map ``x (M, B, D)`` to ``(M, maps, B, P)``."""
        ...


class ModuleStack:
    """Any ``nn.Module`` as a stack: its state stacked, its forward pass vectorised with ``torch.func.vmap``.

    Parameters
    ----------
    factory
        Makes one module that maps ``(B, D)`` to ``(B, maps * P)``.
    maps
        How many outputs of width P the module gives side by side.
    n_outputs
        P, where it is known: a module of another width is refused.

    The module is in training mode where gradients are recorded and in evaluation mode elsewhere, so that dropout ends
    with the training. A single model is called directly, since ``vmap`` over one model costs twice a plain call.
    Modules with batch normalisation keep running statistics, which ``vmap`` cannot update: they train one at a time.
    """

    def __init__(self, factory: Callable[[], nn.Module], maps: int = 1, n_outputs: int | None = None) -> None:
        self._factory = factory
        self._maps = maps
        self._n_outputs = n_outputs
        with torch.random.fork_rng(devices=[]):  # a module draws its weights from the global generator
            self._module = factory()
        if not isinstance(self._module, nn.Module):
            raise InputError(
                f"the network factory must return a torch.nn.Module; it returned {type(self._module).__name__}."
            )
        self.has_statistics = any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in self._module.modules())

    @property
    def maps(self) -> int:
        """How many outputs of shape ``(B, P)`` each model gives."""
        return self._maps

    def initialise(self, generators: Sequence[torch.Generator]) -> Parameters:
        """Draw fresh parameters; the global random state is left untouched."""
        if self.has_statistics and len(generators) > 1:
            raise InputError(
                "a network with batch normalisation trains one at a time: ask for one member, "
                "or leave the normalisation out."
            )
        states = []
        for generator in generators:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(int(torch.randint(2**62, (), generator=generator)))
                states.append({name: value.detach() for name, value in self._factory().named_parameters()})
        return {name: torch.stack([state[name] for state in states]) for name in states[0]}

    def __call__(self, parameters: Parameters, x: Tensor) -> Tensor:
        """Map ``x (M, B, D)`` to ``(M, maps, B, P)``."""
        module = self._module.to(x.device).train(torch.is_grad_enabled())
        if x.shape[0] == 1:
            single = {name: value[0] for name, value in parameters.items()}
            out: Tensor = torch.func.functional_call(module, single, (x[0],)).unsqueeze(0)
        else:
            call = lambda values, inputs: torch.func.functional_call(module, values, (inputs,))
            out = torch.func.vmap(call, randomness="different")(parameters, x)
        models, rows, width = out.shape
        if width % self._maps or (self._n_outputs is not None and width != self._maps * self._n_outputs):
            wanted = f"a multiple of {self._maps}" if self._n_outputs is None else str(self._maps * self._n_outputs)
            raise InputError(
                f"the network gives {counted(width, 'column')} where {wanted} are needed; mind its last layer."
            )
        return out.view(models, rows, self._maps, width // self._maps).transpose(1, 2)
