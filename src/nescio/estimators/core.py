"""A fitted model in standardised units: networks, head and anchor, from rows to locations and Gamma posteriors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from nescio.distributions import Gamma, StudentT
from nescio.networks import Anchor, Head, Network, Parameters

__all__ = ["Bag", "CoreModel", "Elsewhere", "Mean", "NetworkCore", "padded_chunks"]

CHUNK = 1_024
"""Rows in one forward pass. Every pass has this many, the last one padded: a product of matrices may round
differently for another number of rows, and a row's prediction must not depend on its batch."""


def padded_chunks(x: Tensor, device: torch.device) -> list[Tensor]:
    """``x (N, D)`` in chunks of ``CHUNK`` rows each, the last one filled up with zeros."""
    x = x.to(device)
    missing = -len(x) % CHUNK
    if missing:
        x = torch.cat([x, x.new_zeros(missing, x.shape[1])])
    return list(x.split(CHUNK))


def _joined(parts: list[Tensor], count: int) -> Tensor:
    """Answers ``(M, CHUNK, P)`` to chunks, side by side and without the padding, ``(M, N, P)``."""
    return torch.cat(parts, dim=1)[:, :count].cpu()


def _joined_gamma(parts: list[Gamma], count: int) -> Gamma:
    return Gamma(_joined([q.concentration for q in parts], count), _joined([q.rate for q in parts], count))


@dataclass(frozen=True)
class NetworkCore:
    """M networks whose raw maps ``(M, maps, B, P)`` a function reads as predictive distributions ``(M, B, P)``."""

    network: Network
    parameters: Parameters
    read: Callable[[Tensor], StudentT]

    def locations(self, x: Tensor) -> Tensor:
        """Means of the members at ``x (N, D)``, ``(M, N, P)``."""
        return self.predictive(x).loc

    @torch.no_grad()
    def predictive(self, x: Tensor) -> StudentT:
        """Predictive distributions of the members at ``x (N, D)``, ``(M, N, P)``."""
        first = next(iter(self.parameters.values()))
        parts = [
            self.read(self.network(self.parameters, chunk.expand(len(first), *chunk.shape)))
            for chunk in padded_chunks(x, first.device)
        ]
        df, loc, scale = (_joined([getattr(part, name) for part in parts], len(x)) for name in ("df", "loc", "scale"))
        return StudentT(df, loc, scale)


class Mean(Protocol):
    """Where the members' distributions lie."""

    def __call__(self, x: Tensor, members: int) -> Tensor:
        """Means of the members at ``x (N, D)``, ``(M, N, P)``."""
        ...

    def to(self, device: torch.device) -> Mean:
        """The same on another device."""
        ...


@dataclass(frozen=True)
class Bag:
    """B >= M networks, ``(B, ...)``: a member's mean is the average over every M-th of them."""

    network: Network
    parameters: Parameters

    def __call__(self, x: Tensor, members: int) -> Tensor:
        """Means of the members at ``x (N, D)``, ``(M, N, P)``."""
        each = self.network(self.parameters, x.expand(len(self), *x.shape))[:, 0]
        return torch.stack([each[member::members].mean(0) for member in range(members)])

    def __len__(self) -> int:
        return len(next(iter(self.parameters.values())))

    def to(self, device: torch.device) -> Bag:
        """The same on another device."""
        return Bag(self.network, {name: value.to(device) for name, value in self.parameters.items()})


@dataclass(frozen=True)
class Elsewhere:
    """A mean that is not ours and sees rows as they came: from standardised ones nothing but zero can be told."""

    outputs: int

    def __call__(self, x: Tensor, members: int) -> Tensor:
        """Zeros, ``(M, N, P)``: the mean of the training targets."""
        return x.new_zeros(members, len(x), self.outputs)

    def to(self, device: torch.device) -> Elsewhere:
        """The same."""
        return self


@dataclass(frozen=True)
class CoreModel:
    """M members, each a mean and a posterior over the precision, with the anchor around them."""

    takes_outside: ClassVar[bool] = True
    """Whether it takes which rows count as outside, and their level there, besides the rows."""

    mean: Mean
    precision_network: Network
    precision_parameters: Parameters
    head: Head
    offset: Tensor
    reference_prior: Gamma | None
    """What knowledge is measured against, ``(P,)``: the outside prior, or the only one there is."""
    anchor: Anchor | None = None
    anchor_variance: bool = True
    fade_mean: bool = False
    distance_input: bool = False
    """Whether the precision networks see the distance from the data as one more input."""

    @property
    def members(self) -> int:
        """M."""
        return len(self.offset)

    def to(self, device: torch.device) -> CoreModel:
        """The same model on another device."""
        prior, anchor = self.reference_prior, self.anchor
        if prior is not None:
            prior = Gamma(prior.concentration.to(device), prior.rate.to(device))
        if anchor is not None:
            anchor = replace(anchor, centres=anchor.centres.to(device))
        return CoreModel(
            self.mean.to(device),
            self.precision_network,
            {name: value.to(device) for name, value in self.precision_parameters.items()},
            self.head,
            self.offset.to(device),
            prior,
            anchor,
            self.anchor_variance,
            self.fade_mean,
            self.distance_input,
        )

    @torch.no_grad()
    def locations(self, x: Tensor, strange: Tensor | None = None, level: Tensor | None = None) -> Tensor:
        """Means of the members at ``x (N, D)``, ``(M, N, P)``; for ``strange`` see :meth:`posterior`."""
        moved = self.fade_mean or self.members > 1  # else the anchor leaves the mean alone
        parts = [
            self._location(chunk, self._weight(self._distance(chunk), far) if moved else None)
            for chunk, far in self._chunks(x, strange)
        ]
        return _joined(parts, len(x))

    def predictive(self, x: Tensor, strange: Tensor | None = None, level: Tensor | None = None) -> StudentT:
        """Predictive distributions of the members at ``x (N, D)``, ``(M, N, P)``, in double precision."""
        loc, q = self.posterior(x, strange, level)
        return StudentT.from_gamma(loc.double(), Gamma(q.concentration.double(), q.rate.double()))

    @torch.no_grad()
    def posterior(self, x: Tensor, strange: Tensor | None = None, level: Tensor | None = None) -> tuple[Tensor, Gamma]:
        """Means and posteriors of the members at ``x (N, D)``, each ``(M, N, P)``.

        Rows that are ``strange (N,)`` count as far away wherever they are: the anchor takes over in full. It leads to
        ``level (N, P)`` where the level outside is a function of x, else to that of the reference prior.
        """
        locations, posteriors = [], []
        levels = padded_chunks(x[:, :0] if level is None else level, self.offset.device)
        for (chunk, far), there in zip(self._chunks(x, strange), levels, strict=True):
            distance = self._distance(chunk)
            weight = self._weight(distance, far)
            locations.append(self._location(chunk, weight))
            posteriors.append(self._posterior(chunk, distance, weight, None if level is None else there))
        return _joined(locations, len(x)), _joined_gamma(posteriors, len(x))

    @torch.no_grad()
    def posterior_of_seen(self, x: Tensor) -> Gamma:
        """Posteriors at training rows ``x (N, D)``, ``(M, N, P)``, at their distances from the other rows."""
        parts = []
        for chunk in padded_chunks(x, self.offset.device):
            distance = None if self.anchor is None else self.anchor.distance_to_others(chunk)
            parts.append(self._posterior(chunk, distance, self._weight(distance, None)))
        return _joined_gamma(parts, len(x))

    def prior_at(self, level: Tensor | None) -> Gamma | None:
        """The reference prior, ``(P,)``, or one of its shape at this ``level (N, P)``."""
        prior = self.reference_prior
        if prior is None or level is None:
            return prior
        return Gamma(prior.concentration.expand_as(level), (prior.concentration - 1.0) * level.square())

    def _posterior(
        self, x: Tensor, distance: Tensor | None, weight: Tensor | None, level: Tensor | None = None
    ) -> Gamma:
        seen = x
        if self.distance_input and self.anchor is not None and distance is not None:
            seen = self.anchor.append(x, distance)
        q = self.head(self.precision_network(self.precision_parameters, self._stacked(seen)) + self.offset)
        prior = self.prior_at(level)
        if weight is not None and self.anchor_variance and prior is not None:
            q = Anchor.blend(q, prior, weight)
        return q

    @torch.no_grad()
    def fading(self, x: Tensor, strange: Tensor | None = None, level: Tensor | None = None) -> Tensor:
        """How far the mean has faded to that of the training targets at ``x (N, D)``, in [0, 1], ``(N, 1)``."""
        weights = [self._weight(self._distance(chunk), far) for chunk, far in self._chunks(x, strange)]
        if not self.fade_mean or any(weight is None for weight in weights):
            return torch.zeros(len(x), 1, dtype=torch.float64)
        return _joined([weight for weight in weights if weight is not None], len(x))[0].double()

    def _stacked(self, x: Tensor) -> Tensor:
        return x.unsqueeze(0).expand(self.members, *x.shape)

    def _distance(self, x: Tensor) -> Tensor | None:
        return None if self.anchor is None else self.anchor.distance(x)

    def _chunks(self, x: Tensor, strange: Tensor | None) -> Iterator[tuple[Tensor, Tensor | None]]:
        chunks = padded_chunks(x, self.offset.device)
        if strange is None:
            return ((chunk, None) for chunk in chunks)
        return zip(chunks, padded_chunks(strange.to(x.dtype).unsqueeze(1), self.offset.device), strict=True)

    def _weight(self, distance: Tensor | None, far: Tensor | None) -> Tensor | None:
        if self.anchor is None or distance is None:
            return None
        weight = self.anchor.weight(distance).view(1, -1, 1)
        return weight if far is None else torch.maximum(weight, far.unsqueeze(0))

    def _location(self, x: Tensor, weight: Tensor | None) -> Tensor:
        loc = self.mean(x, self.members)
        if weight is None:
            return loc
        if self.fade_mean:
            return loc * (1.0 - weight)  # zero is the mean of the training targets
        if self.members > 1 and self.anchor_variance:
            # The outside level already stands for all that is not known there, the members' disagreement included.
            return torch.lerp(loc, loc.mean(0, keepdim=True).expand_as(loc), weight)
        return loc
