"""Ablations planned and carried out: which tasks there are, and how the variants of one split share their work."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nescio._random import child_seed
from nescio._validation import InputError, check_integer, join_names
from nescio.benchmark.ablations import ABLATIONS, Ablation, find_variant
from nescio.benchmark.evaluate import MOST_ROWS, evaluate
from nescio.benchmark.methods import make_method
from nescio.benchmark.names import DATASETS, FULL_DATASETS
from nescio.benchmark.plan import TRIALS, Request, Stack, Table, Task, paper_pieces, task_seed
from nescio.benchmark.store import Measurement
from nescio.datasets.benchmark_splits import Split, make_splits
from nescio.datasets.uci import UCIData
from nescio.estimators.base import DistributionRegressor
from nescio.estimators.together import fit_family

__all__ = ["ALL", "ablation_requests", "make_ablation_plan", "run_variants"]

ALL = "all"
NO_SETTINGS = ("method", "rows")  # of a variant, that are not the estimator's


def ablation_requests(
    names: Sequence[str], datasets: Sequence[str] | None = None, trials: int | None = None
) -> dict[str, Request]:
    """What each of the ablations needs, with every name checked; ``methods`` are its variants.

    The protocol of a request is that of the splits, sound or paper; the tasks are of protocol ablation.
    """
    for name in names:
        if name not in (*ABLATIONS, ALL):
            raise InputError(f"NAME must be one of {join_names((*ABLATIONS, ALL), 20)}; got '{name}'.")
    if trials is not None:
        check_integer("trials", trials, least=1)
    found = {}
    for name, ablation in ABLATIONS.items():
        if name in names or ALL in names:
            known = FULL_DATASETS if ablation.protocol == "paper" else DATASETS
            for dataset in datasets or ():
                if dataset not in known:
                    raise InputError(f"datasets of {name} must be among {join_names(known, 20)}; got '{dataset}'.")
            chosen = tuple(dataset for dataset in known if dataset in (datasets or ablation.datasets))
            found[name] = Request(
                ablation.protocol, chosen, tuple(ablation.variants), ablation.kinds, trials or ablation.trials
            )
    return found


def make_ablation_plan(requests: Mapping[str, Request], tables: Mapping[str, Mapping[str, Table]]) -> list[Stack]:
    """All stacks, those of large tables first; ``tables`` describes the data sets of each request.

    Variants of one split share a stack. On the authors' trainer the trials do as well, as in protocol paper.
    """
    planned: list[tuple[int, Stack]] = []
    for name, request in requests.items():
        for dataset in request.datasets:
            table = tables[name][dataset]
            for kind in request.kinds:
                trials = range(table.trials[kind])
                of_paper = request.protocol == "paper"
                for together in paper_pieces(table, len(trials)) if of_paper else [[trial] for trial in trials]:
                    tasks = [Task("ablation", dataset, kind, v, trial) for v in request.methods for trial in together]
                    planned.append((table.rows, Stack(tuple(tasks))))
    return [stack for _, stack in sorted(planned, key=lambda each: -each[0]) if stack.tasks]


def run_variants(tasks: Sequence[Task], data: UCIData) -> list[Measurement]:
    """Fit and measure the tasks of one stack, all of one ablation, data set and kind of split."""
    _, ablation = find_variant(tasks[0].method)
    return _paper(tasks, data, ablation) if ablation.protocol == "paper" else _sound(tasks, data, ablation)


def _paper(tasks: Sequence[Task], data: UCIData, ablation: Ablation) -> list[Measurement]:
    from nescio.benchmark.ablation_paper import run_paper_variants

    variants = {task.method: ablation.variants[task.method] for task in tasks}
    began = time.perf_counter()
    rows = run_paper_variants(data, tasks[0].kind, variants, sorted({task.trial for task in tasks}))
    share = (time.perf_counter() - began) / len(tasks)
    return [Measurement(task, rows[task.method, task.trial], share) for task in tasks]


def _sound(tasks: Sequence[Task], data: UCIData, ablation: Ablation) -> list[Measurement]:
    first = tasks[0]
    # Which features are cut depends on how many there may be, so that a trial means the same split as elsewhere.
    most = max(TRIALS["sound"][first.kind], first.trial + 1 if first.kind == "standard" else 0)
    (split,) = (
        split for split in make_splits(data.X, first.kind, protocol="sound", trials=most) if split.trial == first.trial
    )
    seed = task_seed(first)
    families: dict[tuple[float, int], list[tuple[Task, DistributionRegressor]]] = {}
    for task in tasks:
        variant = ablation.variants[task.method]
        model = _model(variant, seed)
        blocks = getattr(model, "n_blocks", _model({}, seed).n_blocks)
        families.setdefault((variant.get("rows", 1.0), blocks), []).append((task, model))
    measurements = []
    for (share, _), family in families.items():  # a family would take the largest number of blocks for all
        began = time.perf_counter()
        rows = _first_rows(split.train, share, seed)
        targets = data.y if data.y.shape[1] > 1 else data.y[:, 0]
        fitted = fit_family([model for _, model in family], data.X[rows], targets[rows])
        spent = (time.perf_counter() - began) / len(family)
        for (task, _), model in zip(family, fitted, strict=True):
            began = time.perf_counter()
            values = [*evaluate(model, data, split, seed), *_parts(model, data, split)]
            values.append(("all", "seconds", model.fit_seconds_))
            measurements.append(Measurement(task, values, spent + time.perf_counter() - began))
    return measurements


def _model(variant: Mapping[str, Any], seed: int) -> Any:
    settings = {name: value for name, value in variant.items() if name not in NO_SETTINGS}
    return make_method(variant.get("method", "d-vv"), seed=seed).set_params(**settings)


def _first_rows(train: np.ndarray, share: float, seed: int) -> np.ndarray:
    """A share of the rows; a smaller one is part of a larger."""
    order = np.random.default_rng(child_seed(seed, "share of rows")).permutation(len(train))
    return np.sort(train[order[: max(2, round(share * len(train)))]])


def _parts(model: DistributionRegressor, data: UCIData, split: Split) -> list[tuple[str, str, float]]:
    """What of the variance is not noise: its mean share and its mean std, over rows and outputs of each region.

    The part of the Student-t's tails and, of an ensemble, the spread of its means.
    """
    found = []
    for region, rows in split.test.items():
        mixture = model.predict_dist(data.X[rows[:MOST_ROWS]]).distribution
        epistemic = (mixture.epistemic_variance + mixture.mean_variance).numpy()
        found += [
            (region, "epistemic_share", float((epistemic / mixture.variance.numpy()).mean())),
            (region, "epistemic_std", float((np.sqrt(epistemic) / model.y_scale_).mean())),
        ]
    return found
