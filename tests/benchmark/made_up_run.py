"""A benchmark whose methods are made up and cost nothing, run as a command of its own so that it can be killed.

``python made_up_run.py STORE LOG PAUSE [ENGINE [ADDRESS]]``: each stack notes in LOG that it began, waits PAUSE
seconds and measures numbers that depend on its tasks alone. Methods whose name holds ``broken`` fail on trial 1, those
whose name holds ``deadly`` kill their worker on it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple


def measure(stack: NamedTuple, log: str, pause: float) -> NamedTuple:
    """What ``run_stack`` does, on made-up numbers."""
    from nescio.benchmark.stack import Outcome
    from nescio.benchmark.store import Failure, Measurement

    with open(log, "a") as lines:  # one short line: appended in one go
        lines.write(f"{os.getpid()} {stack.tasks[0].dataset} {stack.methods[0]} {stack.tasks[0].trial}\n")
    time.sleep(pause)
    done, failed = [], []
    for task in stack.tasks:
        if "deadly" in task.method and task.trial == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if "broken" in task.method and task.trial == 1:
            failed.append(Failure(task, "ValueError: made to fail"))
            continue
        base = sum(ord(letter) for letter in "".join(map(str, task)))
        values = [("all", "rmse", base / 7.0), ("all", "log_likelihood", -base / 3.0), ("hole", "crps", float("nan"))]
        done.append(Measurement(task, [*values, ("all", "std_far", float("inf"))], pause))
    return Outcome(done, failed)


def plan(methods: tuple[str, ...] = ("d-vv", "vv", "gp")) -> list:
    """Two data sets, two kinds of split, three methods of which two are of one family."""
    from nescio.benchmark.plan import Request, Table, make_plan

    request = Request("sound", ("boston", "protein"), methods, ("standard", "gap"))
    tables = {name: Table(rows, 9, {"standard": 4, "gap": 3}) for name, rows in (("boston", 506), ("protein", 45_730))}
    return make_plan(request, tables)


def main() -> None:
    """Run the plan into the store."""
    from nescio.benchmark.run import run_plan
    from nescio.benchmark.store import Store

    path, log, pause, *engine = sys.argv[1:]
    options = dict(zip(("engine", "address"), engine, strict=False))
    options["jobs"] = int(os.environ.get("MADE_UP_JOBS", "2"))
    methods = tuple(os.environ.get("MADE_UP_METHODS", "d-vv,vv,gp").split(","))
    with Store(Path(path), create=True) as store:
        summary = run_plan(plan(methods), store, execute=partial(measure, log=log, pause=float(pause)), **options)
    print(summary.measured, summary.failed, summary.there)


if __name__ == "__main__":
    main()
