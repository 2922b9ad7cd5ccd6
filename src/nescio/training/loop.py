"""The one loop: M independent models, trained at once; what is trained and on what arrives as callables."""

from __future__ import annotations

import math
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from nescio._validation import InputError, NumericalError
from nescio.networks import Parameters
from nescio.training.sampling import Draw
from nescio.training.steppers import CompiledStepper, EagerStepper, GraphStepper, Losses, Stepper

__all__ = ["Criterion", "Draws", "Schedule", "Trained", "can_compile", "choose_stepper", "train"]

Criterion = Callable[[Parameters, Tensor], Tensor]
"""(parameters of A models, which of the M they are) -> what is to be small, ``(A,)``."""


class Draws(Protocol):
    """What the loop takes its batches from: a ``Sampler``, or another rule for what a batch is."""

    def take(self, steps: int, models: Tensor) -> list[Draw]:
        """The next ``steps`` draws for the models that are still in training."""
        ...


COMPILE_FROM = 100_000  # model-steps from which some twenty seconds of compiling pay for themselves


@dataclass(frozen=True)
class Schedule:
    """How long and how fast a phase trains; everything is counted in steps.

    The learning rate falls from ``learning_rate`` along a cosine to ``final_fraction`` of it (1 keeps it constant).
    The criterion is looked at every ``check_every`` steps; a model that has not improved for ``patience`` steps is
    finished. ``keep`` says which weights are the result: those of the ``"last"`` check, or of the ``"best"``. Best is
    the last one within ``tolerance`` of the lowest criterion so far: where validation cannot tell, the later weights
    are the smoother ones, since the learning rate has fallen.
    """

    max_steps: int = 2000
    batch_size: int = 256
    learning_rate: float = 3e-3
    final_fraction: float = 0.02
    weight_decay: float = 0.0
    check_every: int = 50
    patience: int | None = None
    keep: str = "best"
    tolerance: float = 0.0

    def rate(self, step: int) -> float:
        """Learning rate at a step."""
        cosine = 0.5 * (1.0 + math.cos(math.pi * step / self.max_steps))
        return self.learning_rate * (self.final_fraction + (1.0 - self.final_fraction) * cosine)


@dataclass(frozen=True)
class Trained:
    """What a phase leaves: parameters ``(M, ...)``, the lowest criterion ``(M,)`` and the step it was found at.

    With a tolerance the parameters may be those of a later check, whose criterion was close.
    """

    parameters: Parameters
    criterion: Tensor
    steps: Tensor


def can_compile() -> bool:
    """Whether there is a C++ compiler."""
    return any(shutil.which(name) is not None for name in ("g++", "clang++"))


def choose_stepper(mode: bool | str, device: torch.device, model_steps: int) -> Callable[..., Stepper]:
    """The way to step: a graph on CUDA; on CPU compiled where it pays and a C++ compiler is there, else eager.

    ``mode`` is ``compile="auto"``, True or False of the estimators. True compiles for all fits of the process.
    """
    if mode not in (True, False, "auto"):
        raise InputError(f"compile must be True, False or 'auto'; got {mode!r}.")
    if device.type == "cuda":
        return EagerStepper if mode is False else GraphStepper
    if mode is True:
        if not can_compile():
            raise InputError("compile=True needs a C++ compiler (g++ or clang++) on the path; use compile='auto'.")
        return partial(CompiledStepper, shared=True)
    return CompiledStepper if mode == "auto" and model_steps > COMPILE_FROM and can_compile() else EagerStepper


def train(
    parameters: Parameters,
    losses: Losses,
    sampler: Draws,
    schedule: Schedule,
    *,
    criterion: Criterion | None = None,
    compile: bool | str = "auto",
    progress: Callable[[int], object] | None = None,
) -> Trained:
    """Train a stack until every model is finished.

    Parameters
    ----------
    parameters
        Where each model starts, ``(M, ...)``; not changed.
    losses
        Per-point losses of the models in a draw; the loop alone averages them.
    sampler
        Draws of rows and pseudo-inputs.
    criterion
        What a model is judged by, smaller is better; without it the last weights are kept.
    compile
        ``"auto"``, True or False.
    progress
        Called with the number of steps just taken.

    A model finished by its patience keeps its best weights and leaves; the stack is compacted when half of it has
    left. Where shapes are fixed (steps compiled for one fit, CUDA graphs) it goes on, and what becomes of it is not
    looked at. A model whose loss or criterion is no longer finite goes back to its best weights and is finished; where
    it has none yet, the run stops with a ``NumericalError``.
    """
    first = next(iter(parameters.values()))
    count, device = len(first), first.device
    stepper: Stepper = choose_stepper(compile, device, count * schedule.max_steps)(
        parameters, losses, weight_decay=schedule.weight_decay
    )
    best = {name: value.detach().clone() for name, value in parameters.items()}
    best_value = torch.full((count,), math.inf, device=device, dtype=first.dtype)
    best_step = torch.zeros(count, dtype=torch.long, device=device)
    models = torch.arange(count, device=device)  # who is in the stepper
    active = torch.ones(count, dtype=torch.bool, device=device)  # who is still looked at

    step = 0
    while step < schedule.max_steps and bool(active.any()):
        chunk = min(schedule.check_every, schedule.max_steps - step)
        draws = sampler.take(chunk, models.cpu())
        rates = [schedule.rate(step + offset) for offset in range(chunk)]
        try:
            last = stepper.advance(draws, rates)
        except Exception as error:
            if step or compile != "auto" or not isinstance(stepper, CompiledStepper):
                raise
            warnings.warn(f"the step could not be compiled and runs eagerly: {error}", RuntimeWarning, stacklevel=2)
            stepper = EagerStepper(parameters, losses, weight_decay=schedule.weight_decay)
            last = stepper.advance(draws, rates)
        step += chunk
        with torch.no_grad():
            value = criterion(stepper.parameters, models) if criterion is not None else last.new_full(last.shape, -step)
        value = torch.where(torch.isfinite(last), value.to(best_value.dtype), math.nan)

        lost = ~torch.isfinite(value) & active[models]
        never = lost & ~torch.isfinite(best_value[models])
        if bool(never.any()):
            raise NumericalError(
                f"training left the finite numbers within its first {step} steps "
                f"(model {int(models[never][0])} of {count}): lower learning_rate (now {schedule.learning_rate:g}), "
                "or look for extreme values in X or y."
            )
        active[models[lost]] = False
        better = active[models] & (value < best_value[models])
        close = active[models] & (value <= best_value[models] + schedule.tolerance)
        stored = active[models] if schedule.keep == "last" else close
        for name, tensor in stepper.parameters.items():
            best[name][models[stored]] = tensor.detach()[stored]
        best_value[models[better]] = value[better]
        best_step[models[better]] = step
        if schedule.patience is not None:
            active &= step - best_step < schedule.patience

        here = active[models]
        if bool(here.any()) and int(here.sum()) * 2 <= len(models) and stepper.keep(here.nonzero()[:, 0]):
            models = models[here]
        if progress is not None:
            progress(chunk)
    return Trained(best, best_value, best_step)
