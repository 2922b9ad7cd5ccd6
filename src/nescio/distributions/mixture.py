"""An equally weighted mixture of Student-t distributions: what an ensemble says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Distribution, constraints

from nescio._validation import InputError
from nescio.distributions.gamma import check_no_outer_product
from nescio.distributions.mixture_numerics import gaussian_crps, integrated_crps, invert_cdf
from nescio.distributions.student_t import StudentT, standard_quantile

__all__ = ["StudentTMixture"]

_FloatArray = NDArray[np.float64]


class StudentTMixture(Distribution):
    """Mixture of ``M`` Student-t distributions with equal weights.

    Parameters
    ----------
    components
        A :class:`StudentT` with the members on its first axis, ``(M, *)``. The mixture has shape ``*``.
    """

    arg_constraints: dict[str, constraints.Constraint] = {}  # noqa: RUF012 (PyTorch's class attribute)
    support = constraints.real

    def __init__(self, components: StudentT, validate_args: bool | None = False) -> None:
        if not components.batch_shape or components.batch_shape[0] == 0:
            raise InputError(
                "components must have the members on the first axis, at least one; "
                f"got the shape {tuple(components.batch_shape)}."
            )
        self.components = components
        super().__init__(components.batch_shape[1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """Mean of the members' means; members that agree give exactly what they say.  Shapes: ``*``."""
        means = self.components.mean
        return means[0] + (means - means[0]).mean(0)

    @property
    def aleatoric_variance(self) -> Tensor:
        """Mean of the members' aleatoric variances.  Shapes: ``*``."""
        return self.components.aleatoric_variance.mean(0)

    @property
    def epistemic_variance(self) -> Tensor:
        """Mean of the members' epistemic variances; infinite where one of them is.  Shapes: ``*``."""
        return self.components.epistemic_variance.mean(0)

    @property
    def mean_variance(self) -> Tensor:
        """Spread of the members' means (over ``M``, not ``M - 1``: they are the whole mixture).  Shapes: ``*``."""
        return self.components.mean.var(0, correction=0)

    @property
    def variance(self) -> Tensor:
        """Law of total variance: the sum of the three parts.  Shapes: ``*``."""
        return self.aleatoric_variance + self.epistemic_variance + self.mean_variance

    def log_prob(self, value: Tensor) -> Tensor:
        """Log of the mean of the members' densities.  Shapes: ``*`` to ``*``."""
        check_no_outer_product(value=value, loc=self.components.loc[0])
        members, values = self._aligned(value)
        return torch.logsumexp(members.log_prob(values), 0) - math.log(len(values))

    def cdf(self, value: Tensor) -> Tensor:
        """Mean of the members' distribution functions.  Shapes: ``*`` to ``*``; not differentiable."""
        check_no_outer_product(value=value, loc=self.components.loc[0])
        members, values = self._aligned(value)
        return members.cdf(values).mean(0)

    def icdf(self, value: Tensor | float) -> Tensor:
        """Quantile at probability ``value``, to the last digits.  Shapes: ``*`` to ``*``; not differentiable.

        The quantile lies between the smallest and the largest of the members' quantiles. Newton's method inside that
        bracket, which shrinks at every step; a step that would leave it becomes a bisection.
        """
        like = self.components.loc
        probability = torch.as_tensor(value, dtype=torch.float64, device=like.device)
        check_no_outer_product(value=probability, loc=like[0])
        members, probabilities = self._aligned(probability)
        df, loc, scale = _arrays(members)
        p = probabilities[0].cpu().numpy()
        quantiles = loc + scale * standard_quantile(df, p)
        return torch.as_tensor(invert_cdf(df, loc, scale, p, quantiles)).to(dtype=like.dtype, device=like.device)

    def crps(self, y: Tensor) -> Tensor:
        r"""Continuous ranked probability score of ``y``, in the units of ``y``, not reduced; smaller is better.

        .. math:: \int_{-\infty}^{y} F(x)^2 dx + \int_y^\infty (1 - F(x))^2 dx

        Shapes: ``*`` to ``*``. One member, or all members Gaussian: the closed form. Else: Gauss-Legendre quadrature
        on panels that are graded geometrically around every member, so members of very different widths are all
        resolved; relative error about 1e-11. The cost grows with the square of ``M``. Needs ``df`` above one, else nan.
        """
        like = self.components.loc
        check_no_outer_product(y=y, loc=like[0])
        if len(like) == 1:
            return StudentT(self.components.df[0], like[0], self.components.scale[0]).crps(y)
        members, values = self._aligned(y)
        target = values[0].detach().double().cpu().numpy()
        df, loc, scale = (np.broadcast_to(part, values.shape).reshape(len(like), -1) for part in _arrays(members))
        score, gaussian = np.empty(target.size), np.isinf(df).all(0)
        for where, function in ((gaussian, gaussian_crps), (~gaussian, integrated_crps)):
            if where.any():
                score[where] = function(df[:, where], loc[:, where], scale[:, where], target.reshape(-1)[where])
        return torch.as_tensor(score.reshape(target.shape)).to(dtype=like.dtype, device=like.device)

    def sample(self, sample_shape: Any = (), generator: torch.Generator | None = None) -> Tensor:
        """Samples ``(*sample_shape, *)``, the member drawn anew for each; a ``generator`` spares the global one."""
        shape = self._extended_shape(torch.Size(sample_shape))
        like = self.components.loc
        device = like.device if generator is None else generator.device
        member = torch.randint(len(like), shape, device=device, generator=generator).to(like.device)
        rows = member.reshape(-1, self.batch_shape.numel())
        df, loc, scale = (
            part.reshape(len(like), -1).gather(0, rows).reshape(shape)
            for part in (self.components.df, like, self.components.scale)
        )
        return StudentT(df, loc, scale).sample((), generator)

    def _aligned(self, value: Tensor) -> tuple[StudentT, Tensor]:
        """The members with room for the sample axes of ``value``, and ``value`` once for each: ``(M, S, *)``."""
        count, batch = len(self.components.loc), self.batch_shape
        room = (count, *(1 for _ in range(value.ndim - len(batch))), *batch)
        members = StudentT(
            self.components.df.reshape(room), self.components.loc.reshape(room), self.components.scale.reshape(room)
        )
        return members, value.expand(count, *(value.shape if value.ndim > len(batch) else batch))


def _arrays(members: StudentT) -> tuple[_FloatArray, _FloatArray, _FloatArray]:
    """Parameters of the members as double-precision arrays."""
    df, loc, scale = (part.detach().double().cpu().numpy() for part in (members.df, members.loc, members.scale))
    return df, loc, scale
