"""``nescio bench``: runs, resumes and shows tables; every mistake in one sentence with exit code 2."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from nescio._validation import InputError
from nescio.benchmark import energy, methods, records, stack
from nescio.benchmark import evaluate as evaluate_module
from nescio.benchmark import run as runs
from nescio.benchmark.energy import Energy
from nescio.benchmark.exports import read_values
from nescio.benchmark.names import METHODS, METRICS
from nescio.benchmark.plan import Request, Stack, Table, Task
from nescio.benchmark.run import Summary
from nescio.benchmark.store import Store
from nescio.cli import app
from nescio.cli.bench_run import without_absent
from nescio.datasets.uci import UCIData
from nescio.estimators.problem import SUPPORT
from nescio.estimators.variational_variance import VariationalVarianceRegressor


@pytest.fixture(autouse=True)
def _small_world(tmp_path, monkeypatch):
    """Data of 90 rows and methods of a few steps, in this process."""
    monkeypatch.chdir(tmp_path)

    def load(name, root=None):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(90, 2)) * [1.0, 20.0] + [0.0, 7.0]
        y = 30.0 * X[:, :1] + rng.normal(size=(90, 1)) + 500.0
        return UCIData(name, X, np.c_[y, -y] if name == "energy" else y, ("a", "b"), ("y",))

    made = methods.make_method

    def quick(name, *, seed, compiled):
        assert not compiled
        if name == "ngboost":
            raise ValueError("does not like this table")
        if name == "gp":
            return VariationalVarianceRegressor(random_state=seed, max_steps=3, hidden=(4,), n_folds=2)
        return made(name, seed=seed).set_params(max_steps=3, hidden=(4,), mean_hidden=(4,), n_folds=2)

    monkeypatch.setattr(stack, "_known", lru_cache(stack._known.__wrapped__))
    monkeypatch.setattr(stack, "load_uci", load)
    monkeypatch.setattr(stack, "_load", load)
    monkeypatch.setattr(stack, "make_method", quick)
    monkeypatch.setattr(evaluate_module, "MOST_ROWS", 25)
    monkeypatch.setattr(methods, "PEERS", ())
    monkeypatch.setattr(stack, "uci_names", lambda: ["boston", "energy"])


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


def uci(*arguments: Any) -> Any:
    return run("uci", "--protocol", "sound", "--jobs", "1", "--store", "records.db", *arguments)


def test_a_run_measures_every_metric_and_the_same_command_does_nothing():
    options = ("--datasets", "energy", "--methods", "d-vv,vv,vv-no-prior,gp", "--split", "gap", "--csv", "out.csv")
    first = uci(*options)
    assert first.exit_code == 0, first.output
    assert "8 trials measured in 0 min" in first.stderr
    assert "Share of the workers' time: " in first.stderr
    again = uci(*options)
    assert "0 trials measured" in again.stderr
    assert "8 were there before; 0 failed." in again.stderr

    values = read_values(Path("out.csv"))
    assert {value.metric for value in values} == {name for name in METRICS if not name.endswith("_tail")}
    of = lambda method: {(v.region, v.metric): v.value for v in values if (v.method, v.trial) == (method, 0)}
    ours = of("d-vv")
    assert {region for region, _ in ours} == {"all", "inside", "hole"}
    assert all(np.isfinite(value) for value in ours.values())
    assert ("all", "elbo") not in of("vv-no-prior")
    assert ("all", "kl_ood_outside") not in of("vv")
    scale = ours["hole", "log_likelihood"] - ours["hole", "log_likelihood_raw"]
    assert scale == pytest.approx(np.log(30.0), abs=0.5)
    assert ours["all", "rmse"] == pytest.approx(of("vv")["all", "rmse"], rel=1e-4)  # one mean, trained once


def test_where_the_time_went_is_written_and_a_run_with_nothing_to_do_leaves_it():
    options = ("--datasets", "boston", "--methods", "vv,vv-no-prior", "--split", "standard", "--trials", "2")
    first = uci(*options, "--times", "times.csv")
    assert first.exit_code == 0, first.output
    with Path("times.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} == {"vv", "vv-no-prior"}
    assert all(
        (row["jobs"], row["measured"], row["failed"], row["there_before"]) == ("1", "4", "0", "0") for row in rows
    )
    assert sum(float(row["share"]) for row in rows) == pytest.approx(1.0, abs=1e-3)
    assert len({row["run_seconds"] for row in rows}) == 1
    assert all(row["commit"] and row["versions"] and row["hardware"] and row["date"] for row in rows)
    assert "kilograms_co2" not in rows[0]
    assert rows[0]["protocol"] == "sound"
    before = Path("times.csv").read_bytes()
    assert uci(*options, "--times", "times.csv").exit_code == 0
    assert Path("times.csv").read_bytes() == before


def test_the_energy_of_a_run_is_in_the_record_of_its_times(monkeypatch):
    @contextmanager
    def measured():
        yield Energy(0.002, 0.0007, "Iceland")

    monkeypatch.setattr(energy, "measured_energy", measured)
    options = ("--datasets", "boston", "--methods", "vv", "--split", "standard", "--trials", "1")
    result = uci(*options, "--times", "times.csv", "--energy")
    assert result.exit_code == 0, result.output
    assert "0.002 kWh" in result.stderr
    with Path("times.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["kilowatt_hours"], row["kilograms_co2"], row["place"]) == ("0.002", "0.0007", "Iceland")


def test_a_failed_trial_is_told_and_the_rest_is_there():
    result = uci("--datasets", "boston", "--methods", "vv,ngboost", "--split", "standard", "--trials", "2")
    assert result.exit_code == 1
    assert "2 trials measured" in result.stderr
    assert "2 failed." in result.stderr
    assert (
        "Failed: sound boston standard ngboost 0: ValueError: does not like this table (in quick, line" in result.stderr
    )


def test_where_every_trial_fails_an_export_does_not_hide_it():
    result = uci(
        "--datasets", "boston", "--methods", "ngboost", "--split", "standard", "--trials", "1", "--csv", "out.csv"
    )
    assert result.exit_code == 1
    assert "0 trials measured" in result.stderr
    assert "Failed: sound boston standard ngboost 0: ValueError: does not like this table" in result.stderr
    assert not Path("out.csv").exists()


def test_where_every_trial_of_a_protocol_fails_records_of_another_are_not_written(monkeypatch):
    def broken(tasks, data):
        raise ArithmeticError("nothing finite")

    options = ("--datasets", "boston", "--split", "standard", "--trials", "1")
    assert uci("--methods", "gp", *options).exit_code == 0
    monkeypatch.setattr(stack, "_paper", broken)
    paper = (
        "uci",
        "--protocol",
        "paper",
        "--jobs",
        "1",
        "--store",
        "records.db",
        "--methods",
        "vv",
        "--csv",
        "out.csv",
    )
    result = run(*paper, *options)
    assert result.exit_code == 1
    assert "Failed: paper boston standard vv 0: ArithmeticError: nothing finite" in result.stderr
    assert not Path("out.csv").exists()


def test_what_git_says_is_asked_before_the_run(monkeypatch):
    calls = []
    monkeypatch.setattr(records, "provenance", lambda: calls.append("asked"))
    monkeypatch.setattr(runs, "run_plan", lambda *_, **__: calls.append("ran") or Summary(0, 0, 1, 0.0, {}, {}))
    assert uci("--datasets", "boston", "--methods", "gp", "--split", "standard", "--trials", "1").exit_code == 0
    assert calls == ["asked", "ran"]


def test_sets_that_are_not_here_are_left_out_and_told_where_nobody_named_them(monkeypatch):
    options = ("--methods", "gp", "--split", "standard", "--trials", "1")
    result = uci(*options)
    assert result.exit_code == 0, result.output
    assert "2 trials measured" in result.stderr
    left_out = (
        "Not run, since not on this machine: carbon, ccpp, concrete, kin8nm, naval, protein, superconductivity, "
        "wine_red, wine_white, yacht (see nescio data list).\n"
    )
    assert result.stderr.startswith(left_out)
    assert "Not run" not in uci(*options, "--datasets", "boston").stderr
    monkeypatch.setattr(stack, "uci_names", list)
    none = uci(*options)
    assert none.exit_code == 2
    assert none.stderr.startswith("Error: of 'boston', 'carbon', ")
    assert none.stderr.endswith("none is here; set NESCIO_DATA, or run: nescio data get NAME.\n")


def test_an_ablation_without_its_sets_is_left_out_and_refused_only_where_it_is_alone(monkeypatch, capsys):
    request = Request("sound", ("carbon", "boston"), ("a", "b"), ("gap",))
    alone = request._replace(datasets=("carbon", "superconductivity_partial"))
    kept = {"x": request._replace(datasets=("boston",))}
    asked = {"z": alone, "x": request, "y": alone, "a": alone}
    assert stack.keep_present(asked) == (kept, ["carbon"])
    with pytest.raises(InputError, match="of 'carbon' none is here; set NESCIO_DATA"):
        stack.keep_present({"y": alone})
    assert without_absent(asked) == kept
    assert capsys.readouterr().err == (
        "Not run, since not on this machine: carbon (see nescio data list); so nothing is left of z, y, a.\n"
    )
    monkeypatch.setattr(stack, "uci_names", lambda: ["energy"])
    refused = run("ablation", "n-steps", "--trials", "1")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "none is here" in refused.stderr


def test_what_is_not_installed_is_told_before_anything_is_trained(monkeypatch, tmp_path):
    monkeypatch.setattr(methods, "PEERS", ("gp",))  # there is no library of that name
    peer = uci("--datasets", "boston", "--methods", "vv,gp")
    assert peer.exit_code == 2
    assert "the method 'gp' needs the library of that name, which is not installed" in peer.stderr
    assert "nescio[peers]" in peer.stderr
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    measures = uci("--datasets", "boston", "--methods", "vv")
    assert measures.exit_code == 2
    assert "the measures need scoringrules" in measures.stderr
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(stack, "make_method", None)  # a worker elsewhere asks for itself, before it trains
    outcome = stack.run_stack(Stack((Task("sound", "boston", "standard", "vv", 0),)))
    assert "the measures need scoringrules" in outcome.failures[0].error


def test_a_method_that_is_not_installed_is_left_out_where_nobody_named_it(monkeypatch):
    monkeypatch.setattr(methods, "PEERS", ("gp",))
    result = uci("--datasets", "boston", "--split", "standard", "--trials", "1")
    assert result.stderr.startswith("Not run, since not installed: gp (pip install 'nescio[peers]').\n")
    with Store(Path("records.db")) as store:
        tried = {task.method for task in store.done()} | {failure.task.method for failure in store.failures()}
    assert tried == set(METHODS) - {"gp"}  # most fail in this small world


def test_a_store_that_lacks_nothing_needs_no_library(monkeypatch):
    options = ("--datasets", "boston", "--methods", "gp", "--split", "standard", "--trials", "1", "--csv", "out.csv")
    assert uci(*options).exit_code == 0
    Path("out.csv").unlink()
    monkeypatch.setattr(methods, "PEERS", ("gp",))
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    again = uci(*options)
    assert again.exit_code == 0, again.output
    assert "1 were there before" in again.stderr
    assert Path("out.csv").exists()
    more = uci(*options, "--trials", "2")
    assert more.exit_code == 2
    assert "the measures need scoringrules" in more.stderr


def test_an_empty_file_becomes_a_store():
    Path("records.db").touch()
    result = uci("--datasets", "boston", "--methods", "gp", "--split", "standard", "--trials", "1")
    assert result.exit_code == 0, result.output


def test_a_data_set_is_described_by_its_rows_columns_and_trials():
    request = Request("sound", ("boston",), ("vv",), ("standard", "gap"), 3)
    assert stack.describe(request) == {"boston": Table(90, 2, {"standard": 3, "gap": 2})}


def test_an_interrupt_says_how_to_go_on(monkeypatch):
    def stopped(stack):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs.run_plan, "__kwdefaults__", {**runs.run_plan.__kwdefaults__, "execute": stopped})
    result = uci("--datasets", "boston", "--methods", "vv", "--split", "standard", "--trials", "1")
    assert result.exit_code == 130
    assert result.stderr.endswith("Interrupted; what was finished is in records.db, and the same command goes on.\n")


@pytest.mark.parametrize("form", ["text", "md", "csv", "json", "html"])
def test_tables_come_from_the_store_and_from_the_csv_alike(form):
    done = uci(
        "--datasets", "boston,yacht", "--methods", "vv,gp", "--split", "standard", "--trials", "2", "--csv", "out.csv"
    )
    assert done.exit_code == 0, done.output
    from_store = run("table", "--store", "records.db", "--format", form)
    from_csv = run("table", "--csv", "out.csv", "--format", form, "--out", "table.txt")
    assert (from_store.exit_code, from_csv.exit_code) == (0, 0)
    assert "log_likelihood" in from_store.stdout
    with open("table.txt", encoding="utf-8") as file:
        written = file.read()
    if form in ("text", "md", "html"):  # the others show all digits, of which a CSV has nine
        assert written.rstrip() == from_store.stdout.rstrip()
    if form == "json":
        assert {table["name"] for table in json.loads(written)} >= {"sound_ranks", "sound_counts"}


def test_a_page_has_emissions_where_a_record_of_times_is_given_too():
    columns = "protocol,dataset,split,method,trial,region,metric,value,seed,provenance"
    with gzip.open("paper.csv.gz", "wt") as file:
        file.write(f"{columns}\npaper,boston,standard,d-vv,0,all,seconds,2.0,2,1\n")
    facts = "0.006,0123,2026-11-19,300.0"
    times = f"protocol,method,worker_seconds,kilograms_co2,commit,date,run_seconds\npaper,d-vv,600.0,{facts}\n"
    Path("times.csv").write_text(times)
    Path("page.md").write_text("<!-- table:paper_times -->\n<!-- end of table -->\n")
    for given, cell in ((("--csv", "times.csv"), " 2.0e-05 "), ((), "  ")):
        result = run("page", "page.md", "--csv", "paper.csv.gz", *given)
        assert result.exit_code == 0, result.output
        assert f"| boston | 0.000064 | 16.0 |{cell}| 2.0 |  |" in Path("page.md").read_text()


CLUSTER = ("--engine", "dask", "--address", "tcp://a:1")
SWAPPED = ("--methods", "d-vv-swapped", "--datasets", "boston")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("uci", "--protocol", "sound", "--store", "no/where.db"), "there is no directory"),
        (("uci", "--protocol", "sound", "--store", "x.db", "--times", "no/where.csv"), "there is no directory"),
        (("uci", "--protocol", "sound", "--store", "x.db", "--datasets", "bostn"), "got 'bostn'"),
        (("uci", "--protocol", "paper", "--store", "x.db", "--split", "tail"), "split of protocol paper"),
        (("uci", "--protocol", "sound", "--store", "x.db", "--trials", "0"), "trials must be a whole number"),
        (("uci", "--protocol", "sound", "--store", "x.db", "--jobs", "0"), "--jobs must be"),
        (("uci", "--protocol", "sound", "--store", "x.db", "--address", "tcp://a:1"), "--address is that of a cluster"),
        (("uci", "--protocol", "paper", "--store", "x.db", "--compile"), "--compile is for protocol sound"),
        (("uci", "--protocol", "paper", "--store", "x.db", "--energy", "--datasets", "boston"), "needs codecarbon"),
        (("uci", "--protocol", "sound", "--store", "x.db", "--energy", *CLUSTER), "--energy measures this machine"),
        (("uci", "--protocol", "paper", "--store", "x.db", *SWAPPED), "there is nothing to run"),
        (("uci", "--protocol", "sound", "--store", "text.csv", "--datasets", "boston"), "not a store"),
        (("table",), "by --store or by --csv"),
        (("table", "--store", "missing.db"), "there is no store 'missing.db'"),
        (("table", "--csv", "text.csv"), "not an export"),
        (("table", "--csv", "text.csv", "--store", "x.db"), "one of them"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing_behind(arguments, words, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "codecarbon", None)
    (tmp_path / "text.csv").write_text("a,b\n1,2\n" * 400)
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.csv"]


def test_metrics_and_the_method_to_compare_with_can_be_chosen():
    done = uci("--datasets", "boston", "--methods", "vv,gp", "--split", "standard", "--trials", "2")
    assert done.exit_code == 0, done.output
    result = run("table", "--store", "records.db", "--metrics", "aurc,std_far", "--against", "gp")
    assert "gp against each method: aurc" in result.stdout
    assert "Means: std_far" in result.stdout
    assert "log_likelihood" not in result.stdout
    wrong = run("table", "--store", "records.db", "--metrics", "aurk")
    assert (wrong.exit_code, wrong.stderr.count("\n")) == (2, 1)


def test_a_store_without_the_protocol_says_so():
    assert uci("--datasets", "boston", "--methods", "vv", "--split", "standard", "--trials", "1").exit_code == 0
    result = run("table", "--store", "records.db", "--protocol", "paper")
    assert result.exit_code == 2
    assert "has no records of protocol paper" in result.stderr


def test_what_a_worker_knows_of_a_split_is_told_of_no_other_and_counted_as_time():
    def measured(*tasks):
        found = stack.run_stack(Stack(tuple(Task("sound", "boston", *task) for task in tasks))).measurements
        return [{(region, name): value for region, name, value in each.values} for each in found]

    of_support = lambda values: {key: value for key, value in values.items() if key[1].startswith("auroc_support")}
    stacks = [[("gap", "gp", 0), ("gap", "gp", 1)], [("tail", "gp", 0), ("tail", "gp", 1)], [("gap", "d-vv", 0)]]
    alone = []
    for tasks in stacks:
        stack._known.cache_clear()
        alone.append(measured(*tasks))
    stack._known.cache_clear()
    for _ in range(2):
        assert [list(map(of_support, each)) for each in alone] == [
            list(map(of_support, measured(*tasks))) for tasks in stacks
        ]
    assert of_support(alone[0][0]) != of_support(alone[0][1])

    known = stack._known("boston", "gap", 0)
    known.memo[SUPPORT] = (known.memo[SUPPORT][0], 1_000.0)
    for tasks in (stacks[0], stacks[2]):
        assert measured(*tasks)[0]["all", "seconds"] > 1_000.0
