"""One module trained by the one loop: a stack of one, whose parameters are put in its place at each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from nescio._random import generators
from nescio._validation import NumericalError
from nescio.objectives import PointLosses
from nescio.training import Draw, Sampler, Schedule, train

__all__ = ["fit_module", "sampler_of"]

Step = Callable[[Callable[..., Any], Draw], PointLosses]
"""(the module, called with the parameters of this step; what the step sees) -> losses ``(1, B)``."""


def sampler_of(
    count: int,
    batch_size: int,
    noise: Sequence[int],
    seed: int,
    device: torch.device,
    *,
    pool: int = 0,
    pseudo: int = 0,
) -> Sampler:
    """Batches of ``count`` images, with noise ``(S, B, L)`` for their codes and ``pseudo`` places in a pool at a step.

    ``noise`` is ``(S, L)``.
    """
    *lead, n_latents = noise
    batch = min(batch_size, count)
    return Sampler(
        [torch.arange(count)],
        generators(seed, "batches", 1),
        batch,
        pool_size=pool,
        pseudo_batch_size=pseudo or None,
        noise_shape=(*lead, batch, n_latents),
        device=device,
    )


def fit_module(
    module: nn.Module,
    step: Step,
    sampler: Sampler,
    schedule: Schedule,
    *,
    compile: bool | str = "auto",
    progress: Callable[[int], object] | None = None,
) -> None:
    """Train all parameters of ``module`` that want a gradient, in place; the last weights are kept.

    Statistics of batch normalisation are buffers of the module itself and move with every step. On a CPU steps are
    eager: convolutions and large products gain nothing from a compiler.
    """
    start = {name: value.detach().unsqueeze(0) for name, value in module.named_parameters() if value.requires_grad}
    device = next(iter(start.values())).device

    def losses(parameters: dict[str, Tensor], draw: Draw) -> PointLosses:
        own = {name: value[0] for name, value in parameters.items()}
        return step(lambda *arguments: functional_call(module, own, arguments), draw)

    trained = train(
        start,
        losses,
        sampler,
        schedule,
        compile=compile if device.type == "cuda" else False,
        progress=progress,
    )
    if int(trained.steps[0]) < schedule.max_steps:
        raise NumericalError(
            f"training left the finite numbers after {int(trained.steps[0])} of {schedule.max_steps} steps: lower "
            f"learning_rate (now {schedule.learning_rate:g})."
        )
    with torch.no_grad():
        for name, value in module.named_parameters():
            if name in trained.parameters:
                value.copy_(trained.parameters[name][0])
