"""Carrying out a plan: interrupted or not, the same records; failures are told, and stop nothing."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pytest

from nescio._validation import InputError
from nescio.benchmark import run as run_module
from nescio.benchmark import stack as stack_module
from nescio.benchmark.engines import open_engine
from nescio.benchmark.exports import export_records, read_values
from nescio.benchmark.names import METRICS
from nescio.benchmark.plan import Request, Stack, Table, Task, make_plan
from nescio.benchmark.records import provenance
from nescio.benchmark.run import Summary, missing_stacks, run_plan, time_records
from nescio.benchmark.stack import Outcome, run_stack
from nescio.benchmark.store import Failure, Measurement, Store
from nescio.cli.bench_run import _account
from nescio.datasets.uci import UCIData
from nescio.estimators import DissipativeRegressor, VariationalVarianceRegressor

SCRIPT = Path(__file__).with_name("made_up_run.py")
_spec = importlib.util.spec_from_file_location("made_up_run", SCRIPT)
made_up = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(made_up)

QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error"}


def command(folder, name, pause, *engine):
    return [sys.executable, str(SCRIPT), str(folder / f"{name}.db"), str(folder / f"{name}.log"), str(pause), *engine]


def start(folder, name, pause, *engine, **variables):
    (folder / f"{name}.log").touch()
    out = folder / f"{name}.out"  # not a pipe: workers that outlive their coordinator would hold it open
    with out.open("w") as handle:
        process = subprocess.Popen(
            command(folder, name, pause, *engine),
            env=os.environ | QUIET | variables,
            stdout=handle,
            stderr=subprocess.STDOUT,
        )
    process.out = out
    STARTED.append(process)
    return process


STARTED = []


@pytest.fixture(autouse=True)
def _nothing_is_left_running():
    yield
    while STARTED:
        process = STARTED.pop()
        process.kill()
        process.wait()


def finish(process):
    assert process.wait(timeout=600) == 0, process.out.read_text()
    return tuple(int(part) for part in process.out.read_text().splitlines()[-1].split())


def begun(folder, name):
    """Process and first task of every stack that began, in order."""
    return [tuple(line.split(maxsplit=1)) for line in (folder / f"{name}.log").read_text().splitlines()]


def wait_for(condition, process, seconds=400.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.out.read_text()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def exported(folder, name):
    """The export as text, without the provenance."""
    with Store(folder / f"{name}.db") as store:
        export_records(store, folder / f"{name}.csv")
    return [line.rpartition(",")[0] for line in (folder / f"{name}.csv").read_text().splitlines()]


@pytest.fixture
def undisturbed(tmp_path):
    """The export of the whole made-up plan, run here in one go."""
    with Store(tmp_path / "whole.db", create=True) as store:
        run_plan(made_up.plan(), store, execute=partial(made_up.measure, log=os.devnull, pause=0.0), jobs=1)
    return exported(tmp_path, "whole")


def assert_all_there_once(folder, name):
    wanted = {task for stack in made_up.plan() for task in stack.tasks}
    tasks = [
        value[:5] for value in read_values(folder / f"{name}.csv") if (value.region, value.metric) == ("all", "rmse")
    ]
    assert len(tasks) == len(wanted)
    assert {Task(*task) for task in tasks} == wanted


@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_a_run_that_is_killed_and_started_again_has_the_records_of_an_undisturbed_one(tmp_path, undisturbed, jobs):
    process = start(tmp_path, "killed", 0.1, MADE_UP_JOBS=jobs)
    wait_for(lambda: len(begun(tmp_path, "killed")) >= 8, process)
    process.kill()
    process.wait()
    with Store(tmp_path / "killed.db") as store:
        there = store.done()
    planned = {task for stack in made_up.plan() for task in stack.tasks}
    assert there < planned
    measured, failed, before = finish(start(tmp_path, "killed", 0.0, MADE_UP_JOBS=jobs))
    assert failed == 0
    assert measured + before == len(planned)
    assert 0 < before <= len(there)
    assert exported(tmp_path, "killed") == undisturbed
    with Store(tmp_path / "killed.db", create=True) as store:
        assert missing_stacks(made_up.plan(), store) == []


def test_an_interrupt_keeps_what_is_finished(tmp_path):
    seen = []

    def execute(stack):
        if len(seen) == 5:
            raise KeyboardInterrupt
        seen.append(stack)
        return made_up.measure(stack, os.devnull, 0.0)

    with Store(tmp_path / "x.db", create=True) as store:
        with pytest.raises(KeyboardInterrupt):
            run_plan(made_up.plan(), store, execute=execute, jobs=1)
        assert store.done() == {task for stack in seen for task in stack.tasks}


def test_a_stack_of_which_a_task_is_missing_is_run_whole(tmp_path):
    plan = made_up.plan()
    family = next(stack for stack in plan if len(stack.methods) == 2)
    measure = partial(made_up.measure, log=os.devnull, pause=0.0)
    with Store(tmp_path / "x.db", create=True) as store:
        for stack in plan:
            outcome = measure(stack)
            store.add(outcome.measurements[1:] if stack == family else outcome.measurements)
        assert missing_stacks(plan, store) == [family]
        summary = run_plan(plan, store, execute=measure, jobs=1)
    assert (summary.measured, summary.there) == (2, 40)
    assert list(summary.shares) == ["d-vv", "vv"]


def test_records_of_a_cluster_tell_of_the_worker_and_others_of_the_run_as_it_began(tmp_path, monkeypatch):
    here, far = provenance(), {**provenance(), "hardware": "a machine far away, 64 cores"}

    lost = made_up.plan(("vv",))[1]

    def measure(stack):
        if stack == lost:  # with its worker: nobody tells where it was
            return Outcome([], [Failure(task, "gone") for task in stack.tasks])
        return Outcome([Measurement(task, [("all", "rmse", 1.0)], 1.0) for task in stack.tasks], [], made=far)

    @contextmanager
    def cluster(engine, jobs, address):
        yield lambda function, stacks: ((number, function(stack)) for number, stack in enumerate(stacks))

    monkeypatch.setattr(run_module, "open_engine", cluster)
    for address, made in (("tcp://a:1", far), (None, here)):
        with Store(tmp_path / f"{address is None}.db", create=True) as store:
            summary = run_plan(made_up.plan(("vv",)), store, execute=measure, address=address)
            assert {record.hardware for record in store.records()} == {made["hardware"]}
        (row,) = time_records(summary, "sound", 2)
        assert (row["protocol"], row["hardware"], row["commit"]) == ("sound", made["hardware"], made["commit"])
    (row,) = time_records(summary._replace(made=(here, far)), "sound", 2)
    assert row["hardware"] == f"{here['hardware']}; {far['hardware']}"
    assert row["commit"] == here["commit"]


def test_a_failed_trial_is_recorded_and_tried_again_and_stops_nothing(tmp_path):
    plan = made_up.plan(("broken", "gp"))
    measure = partial(made_up.measure, log=os.devnull, pause=0.0)
    with Store(tmp_path / "x.db", create=True) as store:
        first = run_plan(plan, store, execute=measure, jobs=1)
        assert {failure.task.trial for failure in store.failures()} == {1}
        assert {failure.error for failure in store.failures()} == {"ValueError: made to fail"}
        assert (first.measured, first.failed) == (24, 4)
        again = run_plan(plan, store, execute=measure, jobs=1)
        assert again.failed == 4
        assert len(store.done()) == 24


class Broken(RuntimeError):
    """A pool that has lost a worker."""


def fragile_pool(deadly, log):
    """An engine that breaks at any task in ``deadly``, losing the two results before it."""

    def pool(function, arguments):
        held = []
        for number, stack in enumerate(arguments):
            log.append(stack)
            if deadly & set(stack.tasks):
                raise Broken("a worker is gone")
            held.append((number, function(stack)))
            if len(held) > 2:
                yield held.pop(0)
        yield from held

    return pool


def test_a_task_that_no_worker_survives_is_found_and_left_behind(tmp_path, monkeypatch):
    from nescio.benchmark import run

    plan = made_up.plan()
    deadly = {plan[0].tasks[0], plan[7].tasks[-1]}
    log = []
    monkeypatch.setattr(run, "open_engine", lambda *_: _Open(fragile_pool(deadly, log)))
    with Store(tmp_path / "x.db", create=True) as store:
        summary = run_plan(plan, store, execute=partial(made_up.measure, log=os.devnull, pause=0.0))
        assert {failure.task for failure in store.failures()} == deadly
        assert all(failure.error == "no worker survived it (Broken: a worker is gone)" for failure in store.failures())
        assert len(store.done()) == summary.measured == 42 - 2
    assert summary.apart == {"Broken: a worker is gone": 2}
    assert len(log) < 4 * len(plan)


def test_a_pool_that_can_do_nothing_is_told_before_the_whole_plan_is_given_up(tmp_path, monkeypatch):
    from nescio.benchmark import run

    plan = made_up.plan()
    everything = {task for stack in plan for task in stack.tasks}
    monkeypatch.setattr(run, "open_engine", lambda *_: _Open(fragile_pool(everything, [])))
    with Store(tmp_path / "x.db", create=True) as store:
        with pytest.raises(InputError, match=r"3 stacks in a row came to nothing \(Broken: a worker is gone\); see"):
            run_plan(plan, store, execute=partial(made_up.measure, log=os.devnull, pause=0.0))
        assert len(store.failures()) == sum(len(stack.tasks) for stack in plan[:3])


class _Open:
    def __init__(self, pool):
        self.pool = pool

    def __enter__(self):
        return self.pool

    def __exit__(self, *_):
        pass


@pytest.mark.slow
def test_workers_of_this_machine_give_the_same_records_and_one_that_dies_is_replaced(tmp_path, undisturbed):
    process = start(tmp_path, "loky", 0.3, "local")
    wait_for(lambda: len({pid for pid, _ in begun(tmp_path, "loky")}) == 2, process)
    os.kill(int(begun(tmp_path, "loky")[0][0]), signal.SIGKILL)
    assert finish(process) == (42, 0, 0)
    assert exported(tmp_path, "loky") == undisturbed
    assert_all_there_once(tmp_path, "loky")


@pytest.mark.slow
def test_a_dask_cluster_that_loses_a_worker_has_every_trial_once(tmp_path, undisturbed):
    pytest.importorskip("distributed", reason="the extra 'dask' is not installed")
    port = _free_port()
    address = f"tcp://127.0.0.1:{port}"
    run = lambda *words: subprocess.Popen(
        [sys.executable, "-m", "dask", *words, "--no-dashboard"],
        env=os.environ | QUIET | {"PYTHONWARNINGS": "ignore"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    started = [run("scheduler", "--host", "127.0.0.1", "--port", str(port))]
    try:
        started += [run("worker", address, "--nthreads", "1", "--no-nanny") for _ in range(2)]
        process = start(tmp_path, "dask", 0.3, "dask", address)
        wait_for(lambda: len({pid for pid, _ in begun(tmp_path, "dask")}) == 2, process)
        started[1].kill()
        assert finish(process) == (42, 0, 0)
    finally:
        for each in started:
            each.kill()
            each.wait()
    pids = {pid for pid, _ in begun(tmp_path, "dask")}
    assert pids == {str(worker.pid) for worker in started[1:]}
    assert exported(tmp_path, "dask") == undisturbed
    assert_all_there_once(tmp_path, "dask")


@pytest.mark.slow
def test_a_ray_cluster_that_loses_a_worker_has_every_trial_once(tmp_path, undisturbed):
    pytest.importorskip("ray", reason="the extra 'ray' is not installed")
    process = start(tmp_path, "ray", 0.5, "ray")
    wait_for(lambda: len({pid for pid, _ in begun(tmp_path, "ray")}) == 2, process)
    os.kill(int(begun(tmp_path, "ray")[0][0]), signal.SIGKILL)
    assert finish(process) == (42, 0, 0)
    assert exported(tmp_path, "ray") == undisturbed
    assert_all_there_once(tmp_path, "ray")


def _free_port():
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def grown(size, kept=[]):  # noqa: B006 (what a worker keeps from call to call)
    kept.append(b"x" * size)
    time.sleep(1.1)  # memory is looked at once a second
    return os.getpid()


def test_a_worker_that_keeps_what_it_has_compiled_is_not_taken_for_a_leak():
    with open_engine("local", 2) as pool:
        workers = [worker for _, worker in pool(grown, [1, 1, *[400_000_000] * 2, 1, 1])]
    assert len(set(workers)) == 2


def test_engines_are_checked_before_anything_is_started():
    for engine, options, words in (
        ("slurm", {}, "engine must be one of"),
        ("local", {"jobs": 0}, "jobs must be a whole number"),
        ("local", {"address": "tcp://127.0.0.1:1"}, "an address needs a cluster"),
    ):
        with pytest.raises(ValueError, match=words), open_engine(engine, **options):
            pass


def test_a_stack_that_fails_is_run_again_task_by_task(monkeypatch):
    calls = []

    def together(stack):
        tasks = stack.tasks
        calls.append(len(tasks))
        if any(task.trial == 2 for task in tasks):
            raise ValueError("trial two\nis bad")
        return [f"measured {task.trial}" for task in tasks]

    monkeypatch.setattr(stack_module, "_together", together)
    tasks = tuple(Task("sound", "boston", "gap", "gp", trial) for trial in range(4))
    outcome = run_stack(Stack(tasks))
    assert calls == [4, 1, 1, 1, 1]
    assert outcome.measurements == ["measured 0", "measured 1", "measured 3"]
    assert outcome.apart.startswith("ValueError: trial two is bad (in together, line ")
    ((task, error),) = outcome.failures
    assert task.trial == 2
    assert error.startswith("ValueError: trial two is bad (in together, line ")


def test_what_a_stack_gives_tells_of_the_worker_that_ran_it_whole_or_in_parts(monkeypatch):
    here = {**provenance(), "hardware": "a machine far away, 64 cores"}
    tasks = tuple(Task("sound", "boston", "gap", "gp", trial) for trial in range(2))
    monkeypatch.setattr(stack_module, "provenance", lambda: here)
    monkeypatch.setattr(stack_module, "_together", lambda stack: [stack.tasks[0]])
    assert run_stack(Stack(tasks)).made == here

    def apart(stack):
        if len(stack.tasks) > 1:
            raise ValueError("no")
        return [stack.tasks[0]]

    monkeypatch.setattr(stack_module, "_together", apart)
    assert run_stack(Stack(tasks)) == Outcome(list(tasks), [], run_stack(Stack(tasks)).apart, here)


def test_a_method_of_the_paper_that_fails_fails_for_all_its_trials(monkeypatch):
    def together(stack):
        raise ArithmeticError("nothing finite")

    monkeypatch.setattr(stack_module, "_together", together)
    tasks = tuple(Task("paper", "boston", "gap", "vv", trial) for trial in range(3))
    outcome = run_stack(Stack(tasks))
    assert outcome == Outcome([], [Failure(task, outcome.failures[0].error) for task in tasks], made=provenance())


def test_methods_of_the_paper_run_together_and_are_tried_again_one_by_one(monkeypatch):
    calls = []

    def together(stack):
        tasks = stack.tasks
        calls.append({task.method for task in tasks})
        if any(task.method == "vv" for task in tasks):
            raise ArithmeticError("nothing finite")
        return list(tasks)

    monkeypatch.setattr(stack_module, "_together", together)
    tables = {"yacht": Table(308, 6, {"gap": 3})}
    (stack,) = make_plan(Request("paper", ("yacht",), ("vv", "d-vv"), ("gap",)), tables)
    outcome = run_stack(stack)
    assert calls == [{"vv", "d-vv"}, {"vv"}, {"d-vv"}] or calls == [{"vv", "d-vv"}, {"d-vv"}, {"vv"}]
    assert [task.method for task in outcome.measurements] == ["d-vv"] * 3
    assert [failure.task.method for failure in outcome.failures] == ["vv"] * 3


def test_the_paper_s_rows_become_one_measurement_per_trial(monkeypatch):
    from nescio.benchmark import paper

    def made_up_paper(data, kind, methods, trials):
        return {(m, t): [("all", "elbo", 0.5 * t), ("all", "seconds", 1.0)] for m in methods for t in trials}

    monkeypatch.setattr(paper, "run_paper", made_up_paper)
    monkeypatch.setattr(stack_module, "_load", lambda name: None)
    plan = make_plan(Request("paper", ("yacht",), ("vv", "d-vv"), ("gap",)), {"yacht": Table(308, 6, {"gap": 3})})
    measurements, failures, apart, _ = run_stack(plan[0])
    assert failures == []
    assert apart == ""
    assert len(measurements) == 6
    found = {(each.task.method, each.task.trial): each.values for each in measurements}
    assert found["vv", 2][0] == ("all", "elbo", 1.0)
    assert {metric for _, metric, _ in found["d-vv", 1]} == {"elbo", "seconds"} <= METRICS.keys()


def test_what_made_stacks_run_part_by_part_is_told(tmp_path):
    tasks = [Task("sound", "boston", "gap", "gp", trial) for trial in range(3)]
    words = {0: "", 1: "ValueError: no", 2: "ValueError: no"}
    with Store(tmp_path / "a.db", create=True) as store:
        run = lambda stack: Outcome([Measurement(stack.tasks[0], [], 1.0)], [], words[stack.tasks[0].trial])
        summary = run_plan([Stack((task,)) for task in tasks], store, execute=run, jobs=1)
    assert summary.apart == {"ValueError: no": 2}
    assert "2 stacks run part by part, since as a whole: ValueError: no" in _account(summary, []).splitlines()


def test_of_many_reasons_the_commonest_are_told():
    reasons = {f"ValueError: {number}": number for number in range(1, 13)}
    lines = _account(Summary(1, 0, 0, 1.0, {}, reasons), []).splitlines()[1:]
    assert len(lines) == 11
    assert lines[0] == "12 stacks run part by part, since as a whole: ValueError: 12"
    assert lines[-1] == "... and 2 more reasons."
    assert _account(Summary(1, 0, 0, 1.0, {}, {"A: b": 1}), []).endswith(
        "\n1 stack run part by part, since as a whole: A: b"
    )


@pytest.mark.parametrize("rows", [1_200, 300])
def test_methods_that_came_to_one_model_are_measured_once(monkeypatch, rows):
    rng = np.random.default_rng(rows)
    X = rng.normal(size=(rows, 4))
    table = UCIData("made-up", X, X[:, :1] + rng.normal(size=(rows, 1)), (), ())
    models = {
        "d-vv": DissipativeRegressor(max_steps=4),
        "d-vv-ensemble": DissipativeRegressor(max_steps=4, n_members=5),
        "d-vv-one-prior": DissipativeRegressor(max_steps=4, outside_prior="inside", anchor=False, distance_input=False),
        "vv": VariationalVarianceRegressor(max_steps=4),
        "vv-no-prior": VariationalVarianceRegressor(max_steps=4, prior=None),
    }
    name_of = {repr(model.get_params() | {"random_state": None}): name for name, model in models.items()}
    measured, kept = [], []

    def evaluate(model, *rest):
        measured.append(name_of[repr(model.get_params() | {"random_state": None})])
        return [("all", "rmse", float(len(measured)))]

    monkeypatch.setattr(stack_module, "_known", lru_cache(stack_module._known.__wrapped__))
    monkeypatch.setattr(stack_module, "_load", lambda name: table)
    monkeypatch.setattr(stack_module, "evaluate", evaluate)
    monkeypatch.setattr(stack_module, "keep_memory", lambda: kept.append(True))
    monkeypatch.setattr(
        stack_module, "make_method", lambda name, *, seed, compiled: models[name].set_params(random_state=seed)
    )
    outcome = run_stack(Stack(tuple(Task("sound", "made-up", "standard", name, 0) for name in models)))
    assert outcome.failures == []
    assert outcome.apart == ""
    assert kept == [True]
    twins = rows > 1_000  # five members either way
    assert sorted(measured) == sorted(models.keys() - ({"d-vv-ensemble"} if twins else set()))
    values = {each.task.method: each.values[0] for each in outcome.measurements}
    assert len(set(values.values())) == (4 if twins else 5)
    assert (values["d-vv"] == values["d-vv-ensemble"]) == twins
