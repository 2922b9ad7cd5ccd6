"""Which rows and pseudo-inputs each model sees at each step: indices only, one generator per model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Draw", "Sampler", "mean_weight"]


class Draw(NamedTuple):
    """What one step of a stack is computed on. A models are in training, of the M the stack began with."""

    models: Tensor
    """Which of the M models these are, ``(A,)``."""
    rows: Tensor
    """Rows of the table, ``(A, B)``."""
    weights: Tensor | None
    """What each row counts in the sum over the batch, ``(A, B)``; zero for padding; None: ``1 / B`` each."""
    pseudo: Tensor | None
    """Places in each model's pool of pseudo-inputs, ``(A, B)``."""
    noise: Tensor | None = None
    """Standard normal numbers for dropout or noisy weights, ``(A, *)``."""


class Sampler:
    r"""Mini-batches for M models, each from its own rows in its own order.

    Parameters
    ----------
    rows
        For each model the rows of the table it trains on; the lengths may differ.
    generators
        One per model. Model m's batches depend on its rows and its generator, not on the stack.
    batch_size
        Largest number of rows in a batch. A model with fewer rows sees all of them at every step, in order.
    sample_weight
        Weights of the rows of the table, ``(N,)``.
    pool_size
        Number of pseudo-inputs in each model's pool; 0 for none.
    noise_shape
        Shape of the standard normal numbers that each model is given at each step; None for none.

    Each epoch is a fresh permutation; a batch may span two epochs, so that all batches have one size. Where models
    have fewer rows than the largest batch, the remainder is padding of weight zero.

    A row of weight :math:`w_i` counts :math:`w_i / (b \bar w)` in a batch of b rows, with the mean :math:`\bar w` over
    all of the model's rows: each place holds each row equally often, so the sum over a batch is, on average, the
    weighted mean over the rows. Divided by the weights of the batch at hand, heavy rows would count too little.
    """

    def __init__(
        self,
        rows: Sequence[Tensor],
        generators: Sequence[torch.Generator],
        batch_size: int,
        *,
        sample_weight: Tensor | None = None,
        pool_size: int = 0,
        pseudo_batch_size: int | None = None,
        noise_shape: Sequence[int] | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self._rows = [part.cpu() for part in rows]
        self._generators = list(generators)
        self._sizes = [min(batch_size, len(part)) for part in self._rows]
        self._width = max(self._sizes)
        self._left = [part[:0] for part in self._rows]
        self._sample_weight = None if sample_weight is None else sample_weight.cpu()
        self._totals = [size * mean_weight(sample_weight, part) for size, part in zip(self._sizes, rows, strict=True)]
        self._pool_size = pool_size
        self._pseudo_width = min(pseudo_batch_size or batch_size, pool_size)
        self._noise_shape = None if noise_shape is None else tuple(noise_shape)
        self._device = torch.device(device)

    @property
    def batch_size(self) -> int:
        """Width of a batch, padding included."""
        return self._width

    def _next_rows(self, model: int, count: int) -> Tensor:
        rows, size = self._rows[model], self._sizes[model]
        if size == len(rows):  # the whole of it: the order does not matter
            return rows.expand(count, size)
        left, wanted = self._left[model], count * size
        orders = [
            torch.randperm(len(rows), generator=self._generators[model])
            for _ in range(-(-max(wanted - len(left), 0) // len(rows)))
        ]
        ahead = torch.cat([left, rows[torch.cat(orders)]]) if orders else left
        self._left[model] = ahead[wanted:].clone()  # a view would hold on to all of it
        return ahead[:wanted].view(count, size)

    def take(self, steps: int, models: Tensor) -> list[Draw]:
        """The next ``steps`` draws for the models that are still in training."""
        alive = models.tolist()
        rows = torch.zeros(steps, len(alive), self._width, dtype=torch.long)
        padded = any(self._sizes[model] < self._width for model in alive)
        weights = torch.zeros(steps, len(alive), self._width) if padded or self._sample_weight is not None else None
        pseudo = torch.zeros(steps, len(alive), self._pseudo_width, dtype=torch.long) if self._pool_size else None
        noise = None if self._noise_shape is None else torch.zeros(steps, len(alive), *self._noise_shape)
        for place, model in enumerate(alive):
            size = self._sizes[model]
            chosen = self._next_rows(model, steps)
            rows[:, place, :size] = chosen
            rows[:, place, size:] = chosen[:, :1]
            if weights is not None:
                heft = torch.ones(()) if self._sample_weight is None else self._sample_weight[chosen]
                weights[:, place, :size] = heft / self._totals[model]
            if pseudo is not None:
                shape = (steps, self._pseudo_width)
                if self._pseudo_width == self._pool_size:
                    pseudo[:, place] = torch.arange(self._pool_size)
                else:
                    pseudo[:, place] = torch.randint(self._pool_size, shape, generator=self._generators[model])
            if noise is not None:
                noise[:, place] = torch.randn(noise[:, place].shape, generator=self._generators[model])
        rows = rows.to(self._device)
        weights = None if weights is None else weights.to(self._device)
        pseudo = None if pseudo is None else pseudo.to(self._device)
        noise = None if noise is None else noise.to(self._device)
        models = models.to(self._device)
        return [Draw(models, rows[t], _at(weights, t), _at(pseudo, t), _at(noise, t)) for t in range(steps)]


def mean_weight(sample_weight: Tensor | None, rows: Tensor) -> float:
    """Mean weight of a model's ``rows``; one where there are no weights, or where they are all too small to count."""
    return 1.0 if sample_weight is None else float(sample_weight.cpu()[rows.cpu()].double().mean()) or 1.0


def _at(parts: Tensor | None, step: int) -> Tensor | None:
    return None if parts is None else parts[step]
