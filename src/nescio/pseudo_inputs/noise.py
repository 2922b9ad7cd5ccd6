"""Training rows moved by Gaussian noise: near, far, or at every scale between."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nescio._validation import InputError, check_positive
from nescio.pseudo_inputs.base import draw_normal, draw_rows, draw_uniform

__all__ = ["FarNoise", "GaussianNoise", "MultiScale"]


@dataclass(frozen=True)
class GaussianNoise:
    """A training row plus ``scale`` times standard normal noise. Paper: sec:appendix-pig-influence."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_positive("scale", self.scale)

    def __call__(self, points: Tensor, count: int, generators: Sequence[torch.Generator]) -> Tensor:
        rows = draw_rows(points, count, generators)
        return rows + self.scale * draw_normal(rows.shape[1:], generators, like=points)


@dataclass(frozen=True)
class FarNoise:
    """A training row plus noise of ``scale`` 15, far out for standardised inputs. Paper: tab:boundary-samples."""

    scale: float = 15.0

    def __post_init__(self) -> None:
        check_positive("scale", self.scale)

    def __call__(self, points: Tensor, count: int, generators: Sequence[torch.Generator]) -> Tensor:
        return GaussianNoise(self.scale)(points, count, generators)


@dataclass(frozen=True)
class MultiScale:
    r"""A training row plus noise whose scale is itself drawn, log-uniformly between two bounds.

    .. math:: \hat x = x + s\,\varepsilon, \; \log s \sim U(\log s_{min}, \log s_{max}),\; \varepsilon \sim N(0, I)

    A share ``one_input`` of the points is moved as far, but along one input alone, drawn anew for each: a cell beyond
    its range in a row that is otherwise as usual, which noise in all inputs at once hardly ever gives.

    Deviation: the paper places points on the rim of the data only; a trained network still extrapolates somewhere, and
    points at every distance leave it no room to.
    """

    smallest: float = 0.5
    largest: float = 8.0
    one_input: float = 0.0

    def __post_init__(self) -> None:
        check_positive("smallest", self.smallest)
        check_positive("largest", self.largest)
        if self.largest < self.smallest:
            raise InputError(f"largest must not be below smallest ({self.smallest:g}); got {self.largest:g}.")
        number = isinstance(self.one_input, (int, float)) and not isinstance(self.one_input, bool)
        if not number or not 0.0 <= self.one_input <= 1.0:
            raise InputError(f"one_input must be a share between 0 and 1; got {self.one_input!r}.")

    def __call__(self, points: Tensor, count: int, generators: Sequence[torch.Generator]) -> Tensor:
        rows = draw_rows(points, count, generators)
        place = draw_uniform((count, 1), generators, like=points)
        scale = self.smallest * torch.exp(place * math.log(self.largest / self.smallest))
        noise = draw_normal(rows.shape[1:], generators, like=points)
        if self.one_input > 0.0:
            noise = self._some_along_one(noise, generators)
        return rows + scale * noise

    def _some_along_one(self, noise: Tensor, generators: Sequence[torch.Generator]) -> Tensor:
        """``noise (M, count, D)`` with some of it turned into the direction of one input, as long as it was."""
        count, inputs = noise.shape[1:]
        lot = draw_uniform((count, 2), generators, like=noise)
        chosen = (lot[..., 1:] * inputs).long().clamp_max(inputs - 1)
        length = torch.linalg.vector_norm(noise, dim=-1, keepdim=True).copysign(noise.gather(-1, chosen))
        return torch.where(lot[..., :1] < self.one_input, torch.zeros_like(noise).scatter(-1, chosen, length), noise)
