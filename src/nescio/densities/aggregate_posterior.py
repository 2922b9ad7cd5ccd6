"""Where the data are in a latent space: the mixture of all posteriors that an encoder gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from nescio._validation import InputError
from nescio.distributions.gaussian_gamma import LOG_2PI

__all__ = ["AggregatePosterior"]

# Entries of one block of products, points x posteriors: 32 MiB of float64.
_BLOCK = 4_194_304


class AggregatePosterior(Distribution):
    r"""The mixture of N Gaussians with means ``loc (N, L)`` and standard deviations ``scale (N, L)``, all alike.

    .. math:: q(z) = \tfrac1N \sum_{n=1}^N N(z; \mu_n, \mathrm{diag}\,\sigma_n^2)

    Paper: sec:generative_models.  Shapes: ``z (*, L)`` gives ``log_prob (*)`` and ``score (*, L)`` in the dtype of
    ``z``. A point costs one row of a matrix product with N columns, in blocks, so a whole data set is affordable.

    Deviation: the paper prints a product of the posteriors; a mixture is what is meant, and what was run. The authors
    took the mixture of ten batches at a time.

    Squares are expanded into products, in float64 about the mean of ``loc``: the exponents are good to about 1e-15
    times the squared spread over the smallest scale.
    """

    arg_constraints: dict[str, constraints.Constraint] = {}  # noqa: RUF012  (torch declares it as a plain attribute)
    has_rsample = False

    def __init__(self, loc: Tensor, scale: Tensor) -> None:
        if loc.ndim != 2 or loc.shape[0] < 1 or loc.shape[1] < 1 or loc.shape != scale.shape:
            raise InputError(
                "loc and scale must be tables (N, L) of one shape with at least 1 row; "
                f"got {tuple(loc.shape)} and {tuple(scale.shape)}."
            )
        if not bool((torch.isfinite(loc) & torch.isfinite(scale) & (scale > 0)).all()):
            raise InputError("loc must be finite and scale positive and finite.")
        self.loc, self.scale = loc, scale
        means = loc.double()
        self._centre = means.mean(dim=0)
        means = means - self._centre
        self._precision = scale.double().square().reciprocal()
        self._weighted = means * self._precision
        # log N(z; mu, sigma^2) = constant + z @ (mu / sigma^2) - z^2 @ (1 / (2 sigma^2))
        self._constant = (
            -0.5 * (means * self._weighted).sum(1)
            - scale.double().log().sum(1)
            - 0.5 * loc.shape[1] * LOG_2PI
            - math.log(len(loc))
        )
        self._factors = torch.cat([self._weighted, -0.5 * self._precision], dim=1).T.contiguous()
        super().__init__(event_shape=loc.shape[1:], validate_args=False)

    @property
    def mean(self) -> Tensor:
        """The mean of the mixture, ``(L,)``."""
        return self._centre.to(self.loc.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """log q(z), ``(*)``."""
        return self._in_blocks(value, lambda z: self._exponents(z).logsumexp(dim=-1)).reshape(value.shape[:-1])

    def score(self, x: Tensor) -> Tensor:
        r"""The gradient of log q(z), ``(*, L)``: the mean of :math:`(\mu_n - z)/\sigma_n^2` by responsibilities."""
        return self._in_blocks(x, self._score).reshape(x.shape)

    def sample(self, sample_shape: Any = (), generator: torch.Generator | None = None) -> Tensor:
        """Independent draws ``(*sample_shape, L)``; the global generator is left alone when one is given."""
        shape = torch.Size(sample_shape)
        device = self.loc.device if generator is None else generator.device
        size = (shape.numel(), self.loc.shape[1])
        picked = torch.randint(len(self.loc), size[:1], generator=generator, device=device).to(self.loc.device)
        noise = torch.randn(size, generator=generator, device=device, dtype=torch.float64).to(self.loc)
        return (self.loc[picked] + self.scale[picked] * noise).reshape(*shape, size[1])

    def _exponents(self, z: Tensor) -> Tensor:
        return torch.addmm(self._constant, torch.cat([z, z.square()], dim=1), self._factors)

    def _score(self, z: Tensor) -> Tensor:
        responsibilities = self._exponents(z).softmax(dim=-1)
        return responsibilities @ self._weighted - z * (responsibilities @ self._precision)

    def _in_blocks(self, value: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        if value.shape[-1] != self.loc.shape[1]:
            raise InputError(f"points must have {self.loc.shape[1]} coordinates; got {value.shape[-1]}.")
        flat = value.reshape(-1, self.loc.shape[1]).double() - self._centre
        rows = max(1, _BLOCK // len(self.loc))
        return torch.cat([function(part) for part in torch.split(flat, rows)]).to(value.dtype)
