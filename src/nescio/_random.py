"""Seeds and generators: every model owns one stream, named by what it is for and never by who shares its stack."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch

__all__ = ["child_seed", "generators", "hashed_uniform", "seed_from", "seeded_scope"]

_MAX_SEED = 2**63 - 1


def seed_from(random_state: int | np.random.RandomState | np.random.Generator | None) -> int:
    """Turn a scikit-learn ``random_state`` into one integer; the global generators are left as they are."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(2, np.uint64)[0] & _MAX_SEED)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, _MAX_SEED))
    return int(random_state)


def child_seed(seed: int, *names: str | int) -> int:
    """A seed for the purpose ``names``, the same whatever else was drawn before it.

    >>> child_seed(0, "mean", 1) == child_seed(0, "mean", 1)
    True
    >>> child_seed(0, "mean", 1) == child_seed(0, "mean", 2)
    False
    """
    text = "/".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") & _MAX_SEED


def generators(seed: int, name: str, models: int | Sequence[int]) -> list[torch.Generator]:
    """One CPU generator per model; model ``m`` draws the same numbers in any stack."""
    indices = range(models) if isinstance(models, int) else models
    return [torch.Generator().manual_seed(child_seed(seed, name, index)) for index in indices]


@contextmanager
def seeded_scope(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's global generators inside and put them back afterwards, for modules that draw from nothing else."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


def hashed_uniform(rows: np.ndarray) -> np.ndarray:
    """One number in [0, 1) per row of ``(N, D)``, a pure function of the row's values.

    Ties are broken with it, so that a row's answer does not depend on the batch it came in.
    """
    bits = np.ascontiguousarray(rows, dtype=np.float64).view(np.uint64).reshape(len(rows), -1)
    state = np.full(len(rows), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in bits.T:  # splitmix64, one round per column
        state = (state ^ column) * np.uint64(0xBF58476D1CE4E5B9)
        state ^= state >> np.uint64(27)
        state *= np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53
