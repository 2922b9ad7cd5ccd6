"""The authors' rows, in the authors' order: seeds, cuts, validation rows and standardisation of protocol *paper*."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nescio._validation import check_one_of
from nescio.datasets.uci import UCIData

__all__ = ["PaperTrial", "authors_table", "paper_trials", "standardise"]

FIRST_SEED = 2  # trial t has the seed 2 + t
TEST_FRACTION, TRAIN_FRACTION = 0.1, 0.9  # of all rows, and of the others


class PaperTrial(NamedTuple):
    """Row numbers of one trial. The order of ``test`` matters: some metrics are averaged over batches of it.

    ``test`` has the region ``all``, and for a gap also ``inside`` and ``hole``. ``seen`` are the rows whose mean and
    standard deviation scale everything: all that are not in the random tenth, the hole too. ``generator`` is where
    the authors' random numbers stand when the networks are made.
    """

    trial: int
    seed: int
    feature: int | None
    train: np.ndarray
    validation: np.ndarray
    test: dict[str, np.ndarray]
    seen: np.ndarray
    generator: torch.Generator


def authors_table(data: UCIData) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets as the authors read them: they took Boston's first row for a header."""
    first = 1 if data.name == "boston" else 0
    return data.X[first:], data.y[first:]


def paper_trials(X: np.ndarray, kind: str, trials: Sequence[int]) -> list[PaperTrial]:
    """These trials of one table ``(N, D)``, standard or gap; for a gap each is the number of a feature.

    A tenth of the rows, chosen at random, is for testing. Of the others, for a gap, the middle third by position along
    the feature is tested too; a tenth of what is left validates. Equal rows may be on both sides. The rows are those of
    ``make_splits(..., protocol="paper")`` but for the first standard trial: its data the authors set up twice in a row,
    so that the second draw counts. With it the errors of their own runs on Boston come out trial by trial.
    """
    check_one_of("kind", kind, ("standard", "gap"))
    return [_trial(X, number, number if kind == "gap" else None) for number in trials]


def _trial(X: np.ndarray, number: int, feature: int | None) -> PaperTrial:
    seed = FIRST_SEED + number
    shuffle, generator = np.random.RandomState(seed), torch.Generator().manual_seed(seed)
    tested = int(TEST_FRACTION * len(X))
    for _ in range(2 if number == 0 and feature is None else 1):
        rows = shuffle.permutation(len(X))
        inside, rest = rows[:tested], rows[tested:]
        mixed = torch.randperm(len(rest), generator=generator).numpy()
    test, kept = {"all": inside}, rest
    if feature is not None:
        ordered = rest[np.argsort(X[rest, feature], kind="stable")]
        low, high = int(len(rest) / 3), int(2 * len(rest) / 3)
        hole, kept = ordered[low:high], np.concatenate([ordered[:low], ordered[high:]])
        test = {"all": np.concatenate([inside, hole]), "inside": inside, "hole": hole}
        mixed = torch.randperm(len(kept), generator=generator).numpy()
    cut = int(TRAIN_FRACTION * len(kept))
    return PaperTrial(number, seed, feature, kept[mixed[:cut]], kept[mixed[cut:]], test, rest, generator)


def standardise(table: np.ndarray, seen: np.ndarray) -> Tensor:
    """The table ``(N, *)`` by the mean and spread of its rows ``seen``; constant columns are only shifted."""
    scale = table[seen].std(axis=0)
    scale[np.ptp(table[seen], axis=0) == 0] = 1.0
    return torch.as_tensor((table - table[seen].mean(axis=0)) / scale, dtype=torch.float32)
