"""The locality sampler: batches of neighbours, so that a variance is learned from rows that share it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from nescio.training import Draw
from nescio.training.sampling import mean_weight

__all__ = ["Locality", "LocalitySampler"]


class Locality:
    r"""Neighbourhoods of one model's rows, and how likely each row is to be in a batch.

    ``primaries`` rows are drawn with replacement, and for each of them ``secondaries`` of its ``neighbours`` nearest
    rows (itself included) without; the batch is the set of all rows drawn. Row i is drawn by one primary with
    probability :math:`p_i = (c_i / N)(m / M)`, with :math:`c_i` the number of rows that have i among their M
    neighbours, and is in the batch with :math:`1 - (1 - p_i)^k`.

    Source: skafte2019, Section 3.1. There it is :math:`k p_i`: the same for one primary, the first order for more.
    """

    def __init__(self, x: np.ndarray, primaries: int, secondaries: int, neighbours: int) -> None:
        count = min(neighbours, len(x))
        self.primaries = primaries
        self.secondaries = min(secondaries, count)
        found = NearestNeighbors(n_neighbors=count).fit(x).kneighbors(x, return_distance=False)
        self.neighbours = torch.as_tensor(found)  # (N, M)
        popularity = np.bincount(found.ravel(), minlength=len(x)) / len(x)
        once = popularity * self.secondaries / count
        self.inclusion = torch.as_tensor(1.0 - (1.0 - once) ** primaries, dtype=torch.float32)

    def draw(self, steps: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Rows ``(steps, primaries x secondaries)`` and whether each is the first of its kind in its batch."""
        count, width = self.neighbours.shape
        chosen = self.neighbours[torch.randint(count, (steps, self.primaries), generator=generator)]
        if self.secondaries < width:
            order = torch.rand(steps, self.primaries, width, generator=generator).argsort(-1)
            chosen = chosen.gather(-1, order[..., : self.secondaries])
        rows = chosen.flatten(1)
        same = rows.unsqueeze(2) == rows.unsqueeze(1)
        return rows, ~same.tril(-1).any(-1)


class LocalitySampler:
    """Batches for M models, each the rows of several samplers side by side, with weights that undo the sampling.

    The weight of a row is 1/(N times its probability of being in the batch): the weighted sum over the batch is then,
    on average, the mean over all rows (Horvitz and Thompson), or their weighted mean where they have weights. Copies of
    a row and padding weigh nothing.

    Parameters
    ----------
    rows
        For each model the rows of the table it trains on.
    localities
        For each model its samplers, in the order of ``widths``.
    widths
        How many places each sampler has in a batch.
    """

    def __init__(
        self,
        rows: Sequence[Tensor],
        localities: Sequence[Sequence[Locality]],
        widths: Sequence[int],
        generators: Sequence[torch.Generator],
        sample_weight: Tensor | None,
        device: torch.device,
    ) -> None:
        self._rows = [part.cpu() for part in rows]
        self._localities = localities
        self._widths = list(widths)
        self._generators = list(generators)
        self._sample_weight = sample_weight
        self._mean_weights = [mean_weight(sample_weight, part) for part in self._rows]
        self._device = device

    @property
    def batch_size(self) -> int:
        """Width of a batch, padding included."""
        return sum(self._widths)

    def take(self, steps: int, models: Tensor) -> list[Draw]:
        """The next ``steps`` draws for the models that are still in training."""
        alive = models.tolist()
        rows = torch.zeros(steps, len(alive), self.batch_size, dtype=torch.long)
        weights = torch.zeros(steps, len(alive), self.batch_size)
        for place, model in enumerate(alive):
            own, start = self._rows[model], 0
            for locality, width in zip(self._localities[model], self._widths, strict=True):
                chosen, first = locality.draw(steps, self._generators[model])
                used = slice(start, start + chosen.shape[1])
                rows[:, place, start : start + width] = own[chosen[:, :1]]
                rows[:, place, used] = own[chosen]
                heft = first / (len(own) * locality.inclusion[chosen])
                if self._sample_weight is not None:
                    heft = heft * self._sample_weight[own[chosen]] / self._mean_weights[model]
                weights[:, place, used] = heft
                start += width
        rows, weights, models = rows.to(self._device), weights.to(self._device), models.to(self._device)
        return [Draw(models, rows[step], weights[step], None) for step in range(steps)]
