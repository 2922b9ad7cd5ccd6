"""What a benchmark runs: tasks, and their grouping into stacks as a pure function of the whole plan.

What is already in a store does not enter here, so that a resumed run trains the same stacks as an undisturbed one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from nescio._random import child_seed
from nescio._validation import InputError, check_integer, join_names
from nescio.benchmark.ablations import find_variant
from nescio.benchmark.names import DATASETS, FAMILY, FULL_DATASETS, KINDS, METHODS, PAPER_METHODS, PROTOCOLS

__all__ = [
    "TRIALS",
    "Request",
    "Stack",
    "Table",
    "Task",
    "check_request",
    "make_plan",
    "paper_pieces",
    "splits_protocol",
    "task_seed",
]

FIRST_PAPER_SEED = 2
LARGEST_STACK = 10  # trials, or one more than be left alone; more would not be faster, and would be lost together
LARGE_TABLE = 20_000  # rows, above which the tables of many trials crowd the memory of a worker
LARGEST_STACK_OF_LARGE = 2
MOST_CELLS = 2**24  # of tables side by side in protocol paper: 64 MiB in single precision
TRIALS = {
    "paper": {"standard": 3, "gap": 1_000},  # of the authors' VV and d-VV runs; a hole for each feature
    "sound": {"standard": 10, "gap": 10, "tail": 10},
}


class Task(NamedTuple):
    """One model on one split: ``kind`` is the kind of the split, and ``trial`` its number."""

    protocol: str
    dataset: str
    kind: str
    method: str
    trial: int


class Stack(NamedTuple):
    """Tasks that run together; all of one protocol, data set and kind of split."""

    tasks: tuple[Task, ...]
    compiled: bool = False
    """Whether its training steps are compiled; numbers then differ by rounding."""

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods in it, in order."""
        return tuple(dict.fromkeys(task.method for task in self.tasks))


class Table(NamedTuple):
    """What the plan must know of a data set: its size, and how many trials each kind of split has."""

    rows: int
    columns: int
    trials: Mapping[str, int]


class Request(NamedTuple):
    """What was asked for; ``trials`` is None for as many as the protocol has."""

    protocol: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    kinds: tuple[str, ...]
    trials: int | None = None
    compiled: bool = False

    def trials_of(self, kind: str, there: int) -> int:
        """How many trials of a kind of split to run, of ``there`` that the data have.

        Holes and tails are cut along as many features as there are, or ten of them; a smaller request takes the first
        of these, so that a trial's number means one split in any run.
        """
        if self.trials is None:
            return min(TRIALS[self.protocol][kind], there)
        return self.trials if kind == "standard" else min(self.trials, there)


def check_request(
    protocol: str,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    trials: int | None = None,
    compiled: bool = False,
) -> Request:
    """A request with every name checked and what was left open filled in, in the order of the names' own lists."""
    if protocol not in PROTOCOLS:
        raise InputError(f"protocol must be one of {join_names(PROTOCOLS)}; got '{protocol}'.")
    paper = protocol == "paper"
    possible = tuple(PAPER_METHODS) if paper else METHODS
    if trials is not None:
        check_integer("trials", trials, least=1)
    return Request(
        protocol,
        _chosen("datasets", datasets, FULL_DATASETS if paper else DATASETS, protocol),
        _chosen("methods", methods, possible, protocol),
        _chosen("split", kinds, KINDS[protocol], protocol),
        trials,
        compiled,
    )


def _chosen(what: str, wanted: Sequence[str] | None, known: Sequence[str], protocol: str) -> tuple[str, ...]:
    if not wanted:
        return tuple(known)
    for name in wanted:
        if name not in known:
            raise InputError(f"{what} of protocol {protocol} must be among {join_names(known, 20)}; got '{name}'.")
    return tuple(name for name in known if name in wanted)


def make_plan(request: Request, tables: Mapping[str, Table]) -> list[Stack]:
    """All stacks of a request, those of large tables first, so that no worker is left with one at the end.

    Methods of one family share a stack per trial. Any other method has the trials of one data set and kind of split in
    stacks of about ten, fewer where the table is large. Protocol paper runs all trials of all methods together, unless
    their tables are too large side by side. Where steps are compiled, one stack of each kind comes first.
    """
    stacks: list[Stack] = []
    for dataset in sorted(request.datasets, key=lambda name: -tables[name].rows):
        table = tables[dataset]
        for kind in request.kinds:
            trials = range(table.trials[kind])
            of = lambda method, numbers, dataset=dataset, kind=kind: tuple(
                Task(request.protocol, dataset, kind, method, trial) for trial in numbers
            )
            if request.protocol == "paper":
                methods = [method for method in request.methods if dataset in PAPER_METHODS[method]]
                pieces = paper_pieces(table, len(trials))
                stacks += [Stack(tuple(task for m in methods for task in of(m, piece))) for piece in pieces]
                continue
            family = [method for method in request.methods if method in FAMILY]
            if family:
                stacks += [Stack(tuple(task for method in family for task in of(method, [t]))) for t in trials]
            size = LARGEST_STACK_OF_LARGE if table.rows > LARGE_TABLE else LARGEST_STACK
            for method in request.methods:
                if method not in FAMILY:
                    stacks += [Stack(of(method, numbers)) for numbers in _dealt(trials, size)]
    stacks = [stack._replace(compiled=request.compiled) for stack in stacks if stack.tasks]
    return _apart(stacks) if request.compiled else stacks


def paper_pieces(table: Table, trials: int) -> list[range]:
    """The first ``trials`` as they run together in protocol paper: all of them, unless their tables are too large."""
    return _dealt(range(trials), max(MOST_CELLS // (table.rows * table.columns), 1))


def _dealt(trials: range, size: int) -> list[range]:
    """The trials, ``size`` at a time; a last one is not left alone, since steps of one model are compiled anew."""
    starts = [start for start in trials[::size] if start == 0 or len(trials) - start > 1]
    return [trials[start:end] for start, end in pairwise([*starts, len(trials)])]


def _apart(stacks: Sequence[Stack]) -> list[Stack]:
    """Of each data set one stack of each kind before all others: two workers seldom compile the same steps at once."""
    ordered: list[Stack] = []
    for _, group in groupby(stacks, key=lambda stack: stack.tasks[0].dataset):
        own = list(group)
        first = {stack.methods: stack for stack in reversed(own)}
        ordered += sorted(own, key=lambda stack, first=first: stack is not first[stack.methods])  # type: ignore[misc]
    return ordered


def splits_protocol(task: Task) -> str:
    """The protocol that a task's splits and measures are of: its own, or the one that its ablation varies."""
    return find_variant(task.method)[1].protocol if task.protocol == "ablation" else task.protocol


def task_seed(task: Task) -> int:
    """The seed of a task: of its split alone, so that methods are compared with equal luck.

    Protocol paper has the authors' seeds, 2 and up; an ablation has those of the protocol that it varies; models of
    images have the number of the trial.
    """
    if task.protocol.startswith(("images", "detection")):
        return task.trial
    if splits_protocol(task) == "paper":
        return FIRST_PAPER_SEED + task.trial
    return child_seed(0, "benchmark", task.dataset, task.kind, task.trial) % 1_000_000
