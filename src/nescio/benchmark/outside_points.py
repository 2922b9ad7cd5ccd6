"""Points that are not data, one beside each test row: what a model should know that it does not know.

All in standardised inputs, mean zero and standard deviation one on the training rows. Shapes: ``(N, D)`` to ``(N, D)``.
"""

from __future__ import annotations

import numpy as np

from nescio._random import child_seed
from nescio._validation import InputError

__all__ = ["box", "far", "near", "outside_points", "push"]


def outside_points(x: np.ndarray, train: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """The four kinds by name, for test rows ``x`` and training rows ``train``; each kind has a stream of its own."""
    stream = lambda name: np.random.default_rng(child_seed(seed, "outside points", name))
    return {
        "near": near(x, stream("near")),
        "far": far(x, stream("far")),
        "box": box(x, stream("box")),
        "push": push(x, train, stream("push")),
    }


def near(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each row moved by N(0, I): one standard deviation in every input at once. Few end up on data."""
    return x + rng.normal(size=x.shape)


def far(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each row moved by N(0, 9 I)."""
    return x + 3.0 * rng.normal(size=x.shape)


def box(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Uniform in a box about the mean of ``x``, its half width in each column the range times the standard deviation.

    Paper: tab:uci_benchmarks_noise_kl (the points at which the authors' code takes the divergence from the prior).
    """
    half_width = (x.max(0) - x.min(0)) * x.std(0)
    return np.asarray(x.mean(0) + rng.uniform(-1.0, 1.0, size=x.shape) * half_width)


def push(x: np.ndarray, train: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each row with one input, drawn anew for each, pushed 1 to 2 training ranges beyond its training range.

    Down or up with equal chance; inputs that are constant in ``train`` have no range and are not drawn. All other
    inputs stay as they are, so this is the kind that a distance over many inputs sees least.
    """
    low, high = train.min(0), train.max(0)
    varying = np.flatnonzero(high > low)
    if not len(varying):
        raise InputError("train must have a column that varies, so that a row can be pushed beyond its range.")
    rows, column = np.arange(len(x)), rng.choice(varying, len(x))
    distance = rng.uniform(1.0, 2.0, len(x)) * (high - low)[column]
    up = rng.random(len(x)) < 0.5
    pushed = np.array(x, dtype=np.float64)
    pushed[rows, column] = np.where(up, high[column] + distance, low[column] - distance)
    return pushed
