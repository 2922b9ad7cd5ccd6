"""Variants on the authors' trainer: another generator of pseudo-inputs, another number of them, another prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from nescio.benchmark.paper import Rows, train_and_test
from nescio.benchmark.paper_settings import PaperSettings, paper_settings
from nescio.benchmark.paper_splits import authors_table, paper_trials
from nescio.datasets.uci import UCIData

__all__ = ["run_paper_variants", "variant_settings"]

MOST_BATCHES = 4  # half of the benchmark's, since more leave the law of the pool alone


def variant_settings(dataset: str, kind: str, variant: Mapping[str, Any]) -> PaperSettings:
    """The authors' configuration of d-VV with what the variant changes; of VV where its ``placement`` is None.

    A given informativity b is the prior's rate, and its shape is 1 + b / variance, so that the variance of the
    prediction that it stands for is that of their prior.
    """
    without = "placement" in variant and variant["placement"] is None
    settings = paper_settings(dataset, kind, "vv" if without else "d-vv")
    changed = {name: value for name, value in variant.items() if name != "informativity"}
    if without:
        del changed["placement"]
    if "informativity" in variant:
        variance = settings.prior_rate / (settings.prior_concentration - 1.0)
        changed["prior_rate"] = variant["informativity"]
        changed["prior_concentration"] = 1.0 + variant["informativity"] / variance
    return replace(settings, **changed)


def run_paper_variants(
    data: UCIData,
    kind: str,
    variants: Mapping[str, Mapping[str, Any]],
    trials: Sequence[int],
    *,
    most_epochs: int | None = None,
) -> dict[tuple[str, int], Rows]:
    """Train and test every variant on every trial; rows of region, metric and value by variant and trial.

    ``most_epochs`` cuts every phase short, for a quick look.
    """
    X, y = authors_table(data)
    chosen = {
        name: replace(variant_settings(data.name, kind, variant), most_epochs=most_epochs)
        for name, variant in variants.items()
    }
    return train_and_test(X, y, paper_trials(X, kind, trials), chosen, MOST_BATCHES, keep_mixtures=True)
