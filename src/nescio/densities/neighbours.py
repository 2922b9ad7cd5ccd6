"""How far a point is from the nearest known rows: a measure of emptiness that works in any dimension."""

from __future__ import annotations

import torch
from torch import Tensor

from nescio._validation import InputError, check_integer

__all__ = ["NeighbourDistance", "distinct_rows", "fit_neighbours", "subsample_rows"]

# Entries of one block of products, points x rows: 2 MiB of float64, which a core's cache holds.
BLOCK = 262_144


class NeighbourDistance:
    r"""Mean Euclidean distance to the ``k`` nearest of the reference rows ``(R, D)``.

    .. math:: d(x) = \tfrac1k \sum_{j=1}^k \|x - r_{(j)}\|

    Not a probability: ``log_prob`` is the unnormalised -D log d(x), the shape of a nearest-neighbour density estimate,
    so that it can stand where a density is wanted. Shapes: ``x (*, D)``; the result is ``(*)``, in the dtype and on the
    device of ``x``. With ``k > R`` the ``R`` rows that exist are used.

    Winners are found by matrix products in float64 about the mean of the reference and their distances are taken from
    differences: the plain expansion ``|x|^2 + |r|^2 - 2 x.r`` alone loses all digits of distances below 1e-8 times the
    spread of the data. Rows whose distances differ by less than that may change places; the distance given for a row is
    accurate to rounding.
    """

    def __init__(self, reference: Tensor, k: int = 1) -> None:
        if reference.ndim != 2 or reference.shape[0] < 1 or reference.shape[1] < 1:
            raise InputError(f"reference must be a table (R, D) with at least 1 row; got {tuple(reference.shape)}.")
        self.k = check_integer("k", k, least=1)
        self.reference = reference
        rows = reference.double()
        self._centre = rows.mean(dim=0)
        self._rows = rows - self._centre
        self._transposed = self._rows.T.contiguous()
        self._half_norms = 0.5 * self._rows.square().sum(dim=1)

    def __repr__(self) -> str:
        rows, features = self.reference.shape
        return f"NeighbourDistance(reference=({rows}, {features}), k={self.k})"

    def distance(self, x: Tensor) -> Tensor:
        """The mean distance to the k nearest reference rows, ``(*)``."""
        flat = self._flatten(x)
        winners = self._winners(flat, self.k)
        return self._distances(flat, winners).mean(dim=-1).to(x.dtype).reshape(x.shape[:-1])

    def nearest(self, x: Tensor) -> Tensor:
        """Row number of the nearest reference row, ``(*)`` of int64."""
        return self._winners(self._flatten(x), 1)[:, 0].reshape(x.shape[:-1])

    def nearest_rows(self, x: Tensor, k: int) -> Tensor:
        """Row numbers of the ``k`` nearest reference rows, the nearest first, ``(*, k)`` of int64."""
        winners = self._winners(self._flatten(x), k)
        return winners.reshape(*x.shape[:-1], winners.shape[-1])

    def leave_one_out(self) -> Tensor:
        """Distance of each reference row to the others, ``(R,)``; infinite when there is no other row."""
        count = len(self._rows)
        if count == 1:
            return torch.full((1,), torch.inf, dtype=self.reference.dtype, device=self.reference.device)
        winners = self._winners(self._rows, min(self.k, count - 1), skip_self=True)
        return self._distances(self._rows, winners).mean(dim=-1).to(self.reference.dtype)

    def log_prob(self, x: Tensor) -> Tensor:
        """-D log d(x), without a normalising constant; +inf on a reference row when k = 1."""
        return -x.shape[-1] * self.distance(x).log()

    def score(self, x: Tensor) -> Tensor:
        r"""The gradient of ``log_prob``, ``(*, D)``: -D / d(x) times the mean unit vector from the k nearest rows.

        On a reference row, where the distance has a kink, that row's unit vector is taken as zero.
        """
        flat = self._flatten(x)
        difference = flat[:, None, :] - self._rows[self._winners(flat, self.k)]
        distance = torch.linalg.vector_norm(difference, dim=-1, keepdim=True)
        direction = torch.where(distance > 0, difference / distance, 0.0).mean(dim=1)
        mean_distance = distance.mean(dim=1)
        score = torch.where(mean_distance > 0, -x.shape[-1] * direction / mean_distance, 0.0)
        return score.to(x.dtype).reshape(x.shape)

    def _flatten(self, x: Tensor) -> Tensor:
        if x.ndim < 1 or x.shape[-1] != self._rows.shape[1]:
            raise InputError(f"x must have {self._rows.shape[1]} features on its last axis; got {tuple(x.shape)}.")
        return x.reshape(-1, x.shape[-1]).double() - self._centre

    @torch.no_grad()
    def _winners(self, flat: Tensor, k: int, skip_self: bool = False) -> Tensor:
        """Row numbers ``(N, k)`` of the nearest rows: the largest r.x - |r|^2 / 2."""
        count = len(self._rows)
        k = min(k, count)
        step = max(BLOCK // count, 1)
        found = []
        space = flat.new_empty(
            (min(step, len(flat)), count)
        )  # one block for all: fresh memory costs more than the product
        for start in range(0, len(flat), step):
            block = flat[start : start + step]
            closeness = torch.addmm(self._half_norms, block, self._transposed, beta=-1.0, out=space[: len(block)])
            if skip_self:
                own = torch.arange(len(block), device=block.device)
                closeness[own, own + start] = -torch.inf
            found.append(_largest(closeness) if k == 1 else closeness.topk(k, dim=1).indices)
        return torch.cat(found) if found else torch.empty((0, k), dtype=torch.long, device=flat.device)

    def _distances(self, flat: Tensor, winners: Tensor) -> Tensor:
        step = max(BLOCK // (winners.shape[1] * flat.shape[1]), 1)
        found = [
            torch.linalg.vector_norm(
                flat[start : start + step, None] - self._rows[winners[start : start + step]], dim=-1
            )
            for start in range(0, len(flat), step)
        ]
        return torch.cat(found) if found else flat.new_empty((0, winners.shape[1]))


def _largest(table: Tensor) -> Tensor:
    """Where the largest of each row of ``table (N, R)`` is, ``(N, 1)``; NumPy needs a sixth of the time of torch."""
    if table.device.type != "cpu":
        return table.argmax(dim=1, keepdim=True)
    return torch.from_numpy(table.numpy().argmax(axis=1, keepdims=True))


def fit_neighbours(
    x: Tensor, k: int = 1, max_rows: int = 10_000, seed: int = 0, distinct: bool = True
) -> NeighbourDistance:
    """The neighbour distance to a random subsample of at most ``max_rows`` rows of ``x (N, D)``.

    With ``distinct`` the repeats among the sampled rows are dropped: a table full of duplicates would otherwise have
    leave-one-out distances of zero.
    """
    rows = subsample_rows(x, max_rows, seed)
    return NeighbourDistance(distinct_rows(rows) if distinct else rows, k)


def subsample_rows(x: Tensor, max_rows: int, seed: int) -> Tensor:
    """At most ``max_rows`` rows of ``x (N, D)``, drawn without replacement and kept in order."""
    check_integer("max_rows", max_rows, least=1)
    if x.ndim != 2 or x.shape[0] < 1 or x.shape[1] < 1:
        raise InputError(f"x must be a table (N, D) with at least 1 row; got shape {tuple(x.shape)}.")
    if len(x) <= max_rows:
        return x
    generator = torch.Generator().manual_seed(seed)
    kept = torch.randperm(len(x), generator=generator)[:max_rows].sort().values
    return x[kept.to(x.device)]


def distinct_rows(x: Tensor) -> Tensor:
    """The rows of ``x (N, D)`` without repeats, each where it first appears."""
    _, inverse = torch.unique(x, dim=0, return_inverse=True)
    places = torch.arange(len(x), device=x.device)
    first = places.new_full((int(inverse.max()) + 1,), len(x)).scatter_reduce_(0, inverse, places, "amin")
    return x[first.sort().values]
