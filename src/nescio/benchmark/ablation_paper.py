"""Variants on the authors' trainer: another generator of pseudo-inputs, another number of them, another prior.

The joint phase is trained once for all variants of one prior, and a mixture is fitted once for all walks down it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from nescio.benchmark.paper import Rows, train_and_test
from nescio.benchmark.paper_settings import PaperSettings, paper_settings
from nescio.benchmark.paper_splits import authors_table, paper_trials
from nescio.benchmark.paper_training import NOISE_REPEATS
from nescio.datasets.uci import UCIData
from nescio.densities import Density
from nescio.pseudo_inputs import FarNoise, GaussianNoise, MixtureDescent

__all__ = ["run_paper_variants", "variant_pool", "variant_settings"]

MOST_BATCHES = 4  # mixtures per trial: half of the benchmark's, since more leave the law of the pool alone


def variant_settings(dataset: str, kind: str, variant: Mapping[str, Any]) -> PaperSettings:
    """The authors' configuration of d-VV with what the variant changes; of VV where it has no pseudo-inputs.

    A given informativity b is the prior's rate, and its shape is 1 + b / variance, so that the variance of the
    prediction that it stands for is that of their prior.
    """
    without = "placement" in variant and variant["placement"] is None
    settings = paper_settings(dataset, kind, "vv" if without else "d-vv")
    fields = {name: value for name, value in variant.items() if name not in ("placement", "pool", "informativity")}
    if "informativity" in variant:
        variance = settings.prior_rate / (settings.prior_concentration - 1.0)
        fields["prior_rate"] = variant["informativity"]
        fields["prior_concentration"] = 1.0 + variant["informativity"] / variance
    return replace(settings, **fields)


def variant_pool(
    points: Tensor,
    generator: torch.Generator,
    batch_size: int,
    variant: Mapping[str, Any],
    most_batches: int = MOST_BATCHES,
    densities: dict[Any, Density] | None = None,
) -> Tensor:
    """Pseudo-inputs of one trial from the batches of ``points (N, D)``, ``(K, D)``.

    Noise is in units of the spread of all entries of the table, as theirs was. ``densities`` keeps the mixtures of this
    trial for the next variant.
    """
    placement = variant.get("placement", MixtureDescent.as_run())
    order = torch.randperm(len(points), generator=generator)
    batches = points[order].split(batch_size)[:most_batches]
    share = None if variant.get("pool") is None else -(-variant["pool"] // len(batches))
    placed = []
    for place, batch in enumerate(batches):
        if isinstance(placement, MixtureDescent):
            seed = int(torch.randint(2**31, (), generator=generator))
            walk = replace(placement, seed=seed)
            known = {} if densities is None else densities
            key = (place, seed, walk.covariance_type, walk.bayesian, walk.n_components)
            if key not in known:
                known[key] = walk.fitted(batch).density  # type: ignore[assignment]
            walk = replace(walk, density=known[key])
            components = len(known[key].means)  # type: ignore[attr-defined]
            count = share or walk.pool_multiplier * components * (batch_size // components + 1)
            placed.append(walk(batch, count, [generator])[0])
            continue
        if isinstance(placement, GaussianNoise | FarNoise):
            own = replace(placement, scale=placement.scale * float(points.std()))
        else:
            own = placement
        placed.append(own(batch, share or NOISE_REPEATS * len(batch), [generator])[0])
    return torch.cat(placed)[: variant.get("pool")]


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
    runs = [run for run in paper_trials(X, kind, max(trials) + 1) if run.trial in trials]
    densities: list[dict[Any, Density]] = [{} for _ in runs]
    chosen = {
        name: replace(variant_settings(data.name, kind, variant), most_epochs=most_epochs)
        for name, variant in variants.items()
    }

    def pool(name: str, model: int, x: Tensor, generator: torch.Generator) -> Tensor:
        usual = {"placement": GaussianNoise()} if chosen[name].noise else {}
        variant = {**usual, **variants[name]}
        return variant_pool(x, generator, chosen[name].batch_size, variant, densities=densities[model])

    return train_and_test(X, y, runs, chosen, pool)
