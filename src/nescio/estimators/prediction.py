"""What ``predict_dist`` returns: a distribution for each row and target, in the units of the target."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nescio._random import seed_from
from nescio._validation import InputError, check_fraction, check_integer, check_random_state, counted
from nescio.distributions import StudentT, StudentTMixture

__all__ = ["Prediction"]


class Prediction:
    """Predictive distributions of N rows: Student-t, or an even mixture of them where there are several members.

    Arrays come back as ``(N,)`` for one target and ``(N, P)`` for several, in the units of y. Index it to get some of
    the rows: ``prediction[3]``, ``prediction[10:20]``, ``prediction[mask]``.

    The variance is the sum of three parts: ``aleatoric_std**2`` (beta/alpha), ``epistemic_std**2``
    (beta/(alpha (alpha - 1))) and ``mean_std**2``, the spread of the members' means.
    """

    def __init__(self, mixture: StudentTMixture, single_target: bool) -> None:
        self._mixture = mixture
        self._single = single_target

    @property
    def distribution(self) -> StudentTMixture:
        """The same as a torch distribution of shape ``(N, P)``, in the units of y."""
        return self._mixture

    def _out(self, values: torch.Tensor) -> np.ndarray:
        array: np.ndarray = values.numpy()
        return array[..., 0] if self._single else array

    def _in(self, y: Any) -> torch.Tensor:
        values = np.asarray(y, dtype=np.float64)
        if self._single:
            if values.shape[-1:] != (len(self),) and values.ndim:
                raise InputError(
                    f"y must have one value for each of the {len(self)} rows; its shape is {values.shape}."
                )
            values = values[..., None]
        elif values.ndim and values.shape[-2:] != tuple(self._mixture.batch_shape):
            raise InputError(f"y must have the shape {tuple(self._mixture.batch_shape)}; its shape is {values.shape}.")
        return torch.as_tensor(values).expand(*values.shape[:-2], *self._mixture.batch_shape)

    @property
    def mean(self) -> np.ndarray:
        """Predicted mean."""
        return self._out(self._mixture.mean)

    @property
    def variance(self) -> np.ndarray:
        """Predictive variance; ``inf`` where it does not exist."""
        return self._out(self._mixture.variance)

    @property
    def std(self) -> np.ndarray:
        """Predictive standard deviation."""
        return np.sqrt(self.variance)

    @property
    def aleatoric_std(self) -> np.ndarray:
        """Square root of beta/alpha: the noise the model believes in."""
        return self._out(self._mixture.aleatoric_variance.sqrt())

    @property
    def epistemic_std(self) -> np.ndarray:
        """Square root of beta/(alpha (alpha - 1)): what not knowing the noise adds."""
        return self._out(self._mixture.epistemic_variance.sqrt())

    @property
    def mean_std(self) -> np.ndarray:
        """Spread of the members' means; zero for one member."""
        return self._out(self._mixture.mean_variance.sqrt())

    def interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper end of the central interval of this probability."""
        tail = 0.5 * (1.0 - check_fraction("level", level))
        return self.quantile(tail), self.quantile(1.0 - tail)

    def between(self, tail: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Quantiles at ``tail (N, P)`` and at one less it: a probability of its own for each row and target."""
        return self._out(self._mixture.icdf(tail)), self._out(self._mixture.icdf(1.0 - tail))

    def quantile(self, q: float | Any) -> np.ndarray:
        """Quantiles: ``(N,)`` for one probability, ``(Q, N)`` for Q of them (and a last axis for several targets)."""
        levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
        for value in levels:
            check_fraction("q", float(value))
        stacked = np.stack(
            [self._out(self._mixture.icdf(torch.tensor(value, dtype=torch.float64))) for value in levels]
        )
        return stacked[0] if np.ndim(q) == 0 else stacked

    def cdf(self, y: Any) -> np.ndarray:
        """Probability of a value up to ``y``."""
        return self._out(self._mixture.cdf(self._in(y)))

    def log_prob(self, y: Any) -> np.ndarray:
        """Logarithm of the density at ``y``, in nats."""
        return self._out(self._mixture.log_prob(self._in(y)))

    def crps(self, y: Any) -> np.ndarray:
        """Continuous ranked probability score, in units of y: smaller is better."""
        return self._out(self._mixture.crps(self._in(y)))

    def sample(self, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw ``n`` values for each row, ``(n, N)``."""
        count = check_integer("n", n, least=1)
        check_random_state(random_state)
        generator = torch.Generator().manual_seed(seed_from(random_state))
        return self._out(self._mixture.sample(torch.Size([count]), generator=generator))

    def __len__(self) -> int:
        return int(self._mixture.batch_shape[0])

    def __getitem__(self, rows: Any) -> Prediction:
        if isinstance(rows, (int, np.integer)):
            if not -len(self) <= rows < len(self):
                raise IndexError(f"row {rows} of a prediction of {len(self)} rows.")
            rows = slice(rows, rows + 1 or None)
        index = torch.as_tensor(np.arange(len(self))[rows].copy())
        parts = self._mixture.components
        chosen = StudentT(parts.df[:, index], parts.loc[:, index], parts.scale[:, index])
        return Prediction(StudentTMixture(chosen), self._single)

    def __iter__(self) -> Any:
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        shown = self[:5]
        lower, upper = shown.interval(0.9)
        mean, std = shown.mean, shown.std
        lines = [f"Prediction of {counted(len(self), 'row')}", "  mean ± std [90 % interval]"]
        for row in range(len(shown)):
            cells = zip(*(np.atleast_1d(part[row]) for part in (mean, std, lower, upper)), strict=True)
            lines.append("  " + "  ".join(f"{m:.4g} ± {s:.3g} [{lo:.4g}, {up:.4g}]" for m, s, lo, up in cells))
        if len(self) > len(shown):
            lines.append(f"  … and {len(self) - len(shown)} more")
        return "\n".join(lines)
