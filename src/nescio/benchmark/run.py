"""A plan carried out: what is missing is run, what is finished is stored at once, what fails is told and left."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tqdm import tqdm

from nescio._validation import InputError
from nescio.benchmark.engines import Engine, open_engine
from nescio.benchmark.plan import Stack
from nescio.benchmark.records import provenance
from nescio.benchmark.stack import Outcome, run_stack, stack_parts
from nescio.benchmark.store import Failure, Store

__all__ = ["Summary", "missing_stacks", "run_plan", "time_records"]

MOST_LOST = 3  # stacks in a row that break every pool: a machine set up wrongly, not a method at fault


class Summary(NamedTuple):
    """How a run went: trials measured and failed now, trials that were there before, and where the time went."""

    measured: int
    failed: int
    there: int
    seconds: float
    spent: dict[str, float]  # method -> seconds of the workers, the most first
    apart: dict[str, int]  # error -> stacks that were run part by part because of it, which takes longer
    made: tuple[Mapping[str, str], ...] = ()  # provenance of the run, or of a cluster's workers

    @property
    def shares(self) -> dict[str, float]:
        """Each method's share of the workers' time."""
        whole = sum(self.spent.values()) or 1.0
        return {method: seconds / whole for method, seconds in self.spent.items()}


def time_records(
    summary: Summary, protocol: str, jobs: int, energy: Mapping[str, object] | None = None
) -> list[dict[str, object]]:
    """Records of where the time of a run went: a row for each method, and what is said of the run in every row.

    ``worker_seconds`` and ``share`` are the method's; ``run_seconds``, from the first stack to the last, the run's, and
    so is the ``energy``, where it was measured.
    """
    makers = [dict(each) for each in summary.made]
    run = {
        "protocol": protocol,
        "jobs": jobs,
        "run_seconds": round(summary.seconds, 1),
        "measured": summary.measured,
        "failed": summary.failed,
        "there_before": summary.there,
        **(energy or {}),
        **{fact: "; ".join(dict.fromkeys(each[fact] for each in makers)) for fact in (makers or [{}])[0]},
    }
    return [
        {"method": method, "worker_seconds": round(seconds, 1), "share": round(summary.shares[method], 4), **run}
        for method, seconds in summary.spent.items()
    ]


def missing_stacks(stacks: Sequence[Stack], store: Store) -> list[Stack]:
    """Stacks of which any task has no records; they are run whole, as they would have been in one go."""
    done = store.done()
    return [stack for stack in stacks if not done.issuperset(stack.tasks)]


def run_plan(
    stacks: Sequence[Stack],
    store: Store,
    *,
    execute: Callable[[Stack], Outcome] = run_stack,
    engine: str = "local",
    jobs: int = 2,
    address: str | None = None,
) -> Summary:
    """Run the stacks that are missing in the store, with a progress bar where there is a terminal.

    A record has the provenance of this process, asked for once; at the ``address`` of a cluster, its worker's.
    """
    began = time.perf_counter()
    missing = missing_stacks(stacks, store)
    there = sum(len(stack.tasks) for stack in stacks) - sum(len(stack.tasks) for stack in missing)
    spent: dict[str, float] = {}
    counts: Counter[str] = Counter()
    apart: Counter[str] = Counter()
    makers: list[Mapping[str, str]] = []
    total = sum(len(stack.tasks) for stack in missing)
    with tqdm(total=total, unit="trial", smoothing=0.0, disable=None if total else True) as bar:

        def finish(stack: Stack, outcome: Outcome) -> None:
            made = provenance() if address is None or outcome.made is None else outcome.made
            store.add(outcome.measurements, outcome.failures, made)
            if outcome.measurements and made not in makers:
                makers.append(made)
            for measurement in outcome.measurements:
                spent[measurement.task.method] = spent.get(measurement.task.method, 0.0) + measurement.seconds
            counts.update(measured=len(outcome.measurements), failed=len(outcome.failures))
            apart.update([outcome.apart] if outcome.apart else [])
            bar.set_postfix_str(f"{stack.tasks[0].dataset}, {counts['failed']} failed")
            bar.update(len(stack.tasks))

        if missing:
            with open_engine(engine, jobs, address) as pool:
                _carry_out(missing, pool, execute, finish, apart)
    ordered = dict(sorted(spent.items(), key=lambda each: -each[1]))
    seconds = time.perf_counter() - began
    return Summary(counts["measured"], counts["failed"], there, seconds, ordered, dict(apart), tuple(makers))


def _carry_out(
    stacks: Sequence[Stack],
    pool: Engine,
    execute: Callable[[Stack], Outcome],
    finish: Callable[[Stack, Outcome], None],
    apart: Counter[str],
) -> None:
    """Run all stacks, whatever becomes of single workers.

    A worker that dies takes the whole pool with it, and its stack cannot be told from those beside it. So the rest is
    tried again; where that gets nowhere, the first of them is run alone, then all others together again. Where several
    in a row come to nothing even so, it is the pool that is at fault.
    """
    left, lost = list(stacks), 0
    while left:
        unfinished, broken = _attempt(left, pool, execute, finish)
        if len(unfinished) < len(left):
            lost = 0
        elif broken is not None:
            first, *unfinished = unfinished
            lost = 0 if _alone(first, pool, execute, finish, apart) else lost + 1
            if lost == MOST_LOST:
                raise InputError(
                    f"{lost} stacks in a row came to nothing ({_words(broken)}); see to the workers, then run it again."
                )
        left = unfinished


def _attempt(
    stacks: Sequence[Stack],
    pool: Engine,
    execute: Callable[[Stack], Outcome],
    finish: Callable[[Stack, Outcome], None],
) -> tuple[list[Stack], Exception | None]:
    """Run the stacks until all are finished or the pool breaks; those that are left, and what broke it."""
    left = dict(enumerate(stacks))
    results = pool(execute, stacks)
    while True:
        try:
            number, outcome = next(results)
        except StopIteration:
            return [], None
        except Exception as error:
            return list(left.values()), error
        finish(left.pop(number), outcome)


def _alone(
    stack: Stack,
    pool: Engine,
    execute: Callable[[Stack], Outcome],
    finish: Callable[[Stack, Outcome], None],
    apart: Counter[str],
) -> bool:
    """Run a stack with nothing beside it, and if it breaks the pool, part by part; whether anything came of it.

    What breaks the pool again is recorded as a failure; why a stack was run part by part is counted in ``apart``.
    """
    whole = _attempt([stack], pool, execute, finish)[1]
    if whole is None:
        return True
    if len(stack_parts(stack)) > 1:
        apart[_words(whole)] += 1
    useful = False
    for part in stack_parts(stack):
        broken = _attempt([part], pool, execute, finish)[1]
        useful |= broken is None
        if broken is not None:
            words = f"no worker survived it ({_words(broken)})"
            finish(part, Outcome([], [Failure(task, words) for task in part.tasks]))
    return useful


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
