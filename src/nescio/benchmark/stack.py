"""One stack of a plan in one worker: fit together, measure each, and give up on no more than what fails."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from nescio._validation import InputError, join_names
from nescio.benchmark.ablation_runs import run_variants
from nescio.benchmark.evaluate import evaluate
from nescio.benchmark.memory import keep_memory
from nescio.benchmark.methods import check_installed, make_method
from nescio.benchmark.names import FAMILY, PARTIAL
from nescio.benchmark.plan import TRIALS, Request, Stack, Table, Task, splits_protocol, task_seed
from nescio.benchmark.records import provenance
from nescio.benchmark.store import Failure, Measurement
from nescio.datasets.benchmark_splits import Split, make_splits
from nescio.datasets.uci import UCIData, load_uci, uci_names
from nescio.estimators.base import DistributionRegressor
from nescio.estimators.core import CoreModel
from nescio.estimators.problem import SUPPORT
from nescio.estimators.together import fit_family, fit_stack

__all__ = ["Outcome", "check_stacks", "describe", "error_words", "keep_present", "run_stack", "stack_parts"]


class Outcome(NamedTuple):
    """What came of a stack."""

    measurements: list[Measurement]
    failures: list[Failure]
    apart: str = ""
    """Why it was run part by part, where it failed as a whole."""
    made: Mapping[str, str] | None = None
    """Commit, versions and hardware of the worker that ran it; None where none lived to tell."""


def keep_present(requests: Mapping[str, Request]) -> tuple[dict[str, Request], list[str]]:
    """The requests without the data sets that are not on this machine, and which those are; a sample is no loss.

    Requests of which nothing is left are not among them; refused where that is all.
    """
    here = uci_names()
    present = {
        key: request._replace(datasets=tuple(name for name in request.datasets if name in here))
        for key, request in requests.items()
    }
    kept = {key: request for key, request in present.items() if request.datasets}
    absent = sorted({name for request in requests.values() for name in request.datasets}.difference(here, PARTIAL))
    if not kept:
        raise InputError(f"of {join_names(absent, 20)} none is here; set NESCIO_DATA, or run: nescio data get NAME.")
    return kept, absent


def check_stacks(stacks: Iterable[Stack]) -> None:
    """Refuse stacks that need a library that is not here."""
    measured = [stack for stack in stacks if splits_protocol(stack.tasks[0]) == "sound"]  # by scoringrules
    if measured:
        check_installed(dict.fromkeys(method for stack in measured for method in stack.methods))


def describe(request: Request) -> dict[str, Table]:
    """Rows and numbers of trials of the data sets of a request; refuses sets that are not there."""
    tables = {}
    for dataset in request.datasets:
        data = load_uci(dataset)
        there = {
            kind: len(make_splits(data.X, kind, protocol=request.protocol, trials=TRIALS[request.protocol][kind]))
            for kind in request.kinds
        }
        trials = {kind: request.trials_of(kind, count) for kind, count in there.items()}
        rows, columns = data.X.shape
        tables[dataset] = Table(rows, columns, trials)
    return tables


def run_stack(stack: Stack) -> Outcome:
    """Run the tasks of a stack together and, where that fails, part by part. It raises nothing but an interrupt."""
    with _quiet_worker():
        parts, made = stack_parts(stack), provenance()
        try:
            return Outcome(_together(stack), [], made=made)
        except Exception as error:
            words = error_words(error)
            if len(parts) == 1:
                return Outcome([], [Failure(task, words) for task in stack.tasks], made=made)
        outcome = Outcome([], [], words, made)
        for part in parts:
            try:
                outcome.measurements.extend(_together(part))
            except Exception as error:
                outcome.failures.extend(Failure(task, error_words(error)) for task in part.tasks)
        return outcome


def stack_parts(stack: Stack) -> list[Stack]:
    """What can be tried again alone: each task; in protocol paper each method, with all its trials in the stack."""
    if stack.tasks[0].protocol != "paper":
        return [stack._replace(tasks=(task,)) for task in stack.tasks]
    return [
        stack._replace(tasks=tuple(task for task in stack.tasks if task.method == method)) for method in stack.methods
    ]


@contextmanager
def _quiet_worker() -> Iterator[None]:
    """One thread, since two on a shared core are slower than one, and no warnings across the progress bar.

    Memory is kept, also afterwards.
    """
    torch.set_num_threads(1)
    keep_memory()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def error_words(error: Exception) -> str:
    """The error and the place it came from, on one line."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{last.name}, line {last.lineno} of {last.filename.rpartition('/')[2]}"
    return f"{type(error).__name__}: {' '.join(str(error).split())} (in {place})"


_load = lru_cache(maxsize=1)(load_uci)


class _Known(NamedTuple):
    """What a worker knows of a split whatever the method: the support of its inputs, and how well that detects."""

    memo: dict[Any, Any]
    aurocs: dict[str, float]


@lru_cache(maxsize=32)  # the trials of one data set
def _known(dataset: str, kind: str, trial: int) -> _Known:
    """Empty at first; what is found goes into it."""
    return _Known({}, {})


def _together(stack: Stack) -> list[Measurement]:
    tasks = stack.tasks
    data = _load(tasks[0].dataset)
    if tasks[0].protocol == "paper":
        return _paper(tasks, data)
    if tasks[0].protocol == "ablation":
        return run_variants(tasks, data)
    check_installed(stack.methods)  # a worker elsewhere may lack what the measures need, which come last
    kind = tasks[0].kind
    trials = (
        max(TRIALS["sound"][kind], *(task.trial + 1 for task in tasks)) if kind == "standard" else TRIALS["sound"][kind]
    )
    splits = {split.trial: split for split in make_splits(data.X, kind, protocol="sound", trials=trials)}
    known = [_known(task.dataset, kind, task.trial) for task in tasks]
    memos = [dict(each.memo) for each in known]
    began = time.perf_counter()
    models = [make_method(task.method, seed=task_seed(task), compiled=stack.compiled) for task in tasks]
    family = all(task.method in FAMILY for task in tasks)
    if family:
        fitted = fit_family(models, *_rows(data, splits[tasks[0].trial]), memo=memos[0])
    else:
        fitted = fit_stack(models, [_rows(data, splits[task.trial]) for task in tasks], memos)
    share = (time.perf_counter() - began) / len(tasks)
    measurements: list[Measurement] = []
    found: list[tuple[DistributionRegressor, list[tuple[str, str, float]]]] = []
    for task, model, own, memo in zip(tasks, fitted, known, memos, strict=True):
        saved = own.memo[SUPPORT][1] if SUPPORT in own.memo else 0.0
        if SUPPORT in memo:
            own.memo[SUPPORT] = memo[SUPPORT]
        began = time.perf_counter()
        # Of a family: with the phases that it shares; of others: with the support, if it was there.
        alone = getattr(model, "fit_seconds_", share + saved)
        twin = next((values for each, values in found if family and _one_fit(each, model)), None)
        values = twin or evaluate(model, data, splits[task.trial], task_seed(task), own.aurocs)
        found.append((model, values))
        seconds = share + time.perf_counter() - began
        measurements.append(Measurement(task, [*values, ("all", "seconds", alone)], seconds))
    return measurements


def _one_fit(one: DistributionRegressor, other: DistributionRegressor) -> bool:
    """Whether two methods of a family came to one model: ``n_members`` is "auto" in one, and came to the other's."""
    settings = [repr(model.get_params(deep=False) | {"n_members": None}) for model in (one, other)]
    return (
        type(one) is type(other)
        and settings[0] == settings[1]
        and isinstance(one.core_, CoreModel)
        and isinstance(other.core_, CoreModel)
        and one.core_.members == other.core_.members
    )


def _rows(data: UCIData, split: Split) -> tuple[np.ndarray, np.ndarray]:
    targets = data.y if data.y.shape[1] > 1 else data.y[:, 0]
    return data.X[split.train], targets[split.train]


def _paper(tasks: Sequence[Task], data: UCIData) -> list[Measurement]:
    from nescio.benchmark.paper import run_paper

    began = time.perf_counter()
    methods = list(dict.fromkeys(task.method for task in tasks))
    results = run_paper(data, tasks[0].kind, methods, sorted({task.trial for task in tasks}))
    share = (time.perf_counter() - began) / len(tasks)
    return [Measurement(task, results[task.method, task.trial], share) for task in tasks]
