"""One-dimensional problems whose true mean and spread are known everywhere."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nescio._validation import InputError, check_integer

__all__ = ["ToyData", "toy_mean", "toy_regression", "toy_std", "toy_symmetrical", "toy_symmetrical_std"]


class ToyData(NamedTuple):
    """Inputs ``x (N, 1)``, targets ``y (N,)``, and the truth behind them: ``mean (N,)`` and ``std (N,)``."""

    x: np.ndarray
    y: np.ndarray
    mean: np.ndarray
    std: np.ndarray


def toy_mean(x: np.ndarray) -> np.ndarray:
    """The mean x sin x, at any ``x``."""
    x = np.asarray(x, dtype=np.float64)
    return np.asarray(x * np.sin(x))


def toy_std(x: np.ndarray) -> np.ndarray:
    """The noise level 0.3 sqrt(1 + x^2), at any ``x``: two independent noises, one of them proportional to x."""
    return np.asarray(0.3 * np.sqrt(1.0 + np.square(np.asarray(x, dtype=np.float64))))


def toy_regression(
    n: int = 625, seed: int = 0, shifted: bool = False, hole: tuple[float, float] | None = None
) -> ToyData:
    r"""Draw the toy problem of the paper's figures.

    .. math:: x \sim U(0, 10), \quad y = x \sin x + 0.3 \varepsilon_1 + 0.3 x \varepsilon_2

    Paper: fig:toy_result. Rows with ``low < x < high`` are taken out for ``hole=(low, high)``, so fewer than ``n``
    remain and the others keep their values; ``shifted=True`` is the hole (4, 7).

    Deviation: the shifted figure of the paper removes balls around random training points; ours is one fixed hole, so
    that the figure's gap is the same for every seed.
    """
    check_integer("n", n, least=1)
    if hole is None and shifted:
        hole = (4.0, 7.0)
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 10.0, n)
    noise = rng.standard_normal((2, n))
    y = toy_mean(x) + 0.3 * noise[0] + 0.3 * x * noise[1]
    if hole is not None:
        low, high = hole
        if not low < high:
            raise InputError(f"hole must be (low, high) with low < high; got {hole!r}.")
        kept = (x <= low) | (x >= high)
        x, y = x[kept], y[kept]
    return ToyData(x[:, None], y, toy_mean(x), toy_std(x))


def toy_symmetrical_std(x: np.ndarray) -> np.ndarray:
    """The noise level 6 N(x; 5, 1.5^2), at any ``x``: largest (1.596) in the middle of the data."""
    z = (np.asarray(x, dtype=np.float64) - 5.0) / 1.5
    return np.asarray(6.0 * np.exp(-0.5 * z * z) / (1.5 * np.sqrt(2.0 * np.pi)))


def toy_symmetrical(n: int = 625, seed: int = 0) -> ToyData:
    """Draw x ~ U(0, 10), y ~ N(1, std(x)^2) with the most noise in the middle of the data. Paper: fig:pi_placement."""
    check_integer("n", n, least=1)
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 10.0, n)
    std = toy_symmetrical_std(x)
    return ToyData(x[:, None], 1.0 + std * rng.standard_normal(n), np.ones(n), std)
