"""The store: whole stacks or nothing, nothing twice, and files that are no stores told apart in one sentence."""

from __future__ import annotations

import csv
import gzip
import math
import shutil
import sqlite3

import pytest

from nescio._validation import InputError
from nescio.benchmark.exports import COLUMNS, export_records, provenance_path, read_values, stored_values
from nescio.benchmark.plan import Task, task_seed
from nescio.benchmark.records import provenance
from nescio.benchmark.store import Failure, Measurement, Store

TASK = Task("sound", "boston", "gap", "vv", 3)


def measurement(task=TASK, value=0.1 + 0.2, seconds=1.5):
    return Measurement(
        task, [("hole", "rmse", value), ("all", "std_far", math.inf), ("all", "ence", math.nan)], seconds
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.db"


def test_records_come_back_as_they_went_in_with_all_that_made_them(path):
    with Store(path, create=True) as store:
        store.add([measurement()])
    with Store(path) as store:
        first, second, third = store.records()
        assert store.done() == {TASK}
    assert [(record.region, record.metric) for record in (first, second, third)] == [
        ("all", "ence"), ("all", "std_far"), ("hole", "rmse"),
    ]  # fmt: skip
    assert math.isnan(first.value)
    assert second.value == math.inf
    assert third.value == 0.1 + 0.2
    facts = provenance()
    assert third[:5] == TASK
    assert (third.seed, third.seconds) == (task_seed(TASK), 1.5)
    assert (third.commit, third.versions, third.hardware, third.date) == (
        facts["commit"], facts["versions"], facts["hardware"], facts["date"],
    )  # fmt: skip


def test_records_tell_of_the_worker_that_made_them(path):
    made = {**provenance(), "commit": "feedfacecafe", "hardware": "a machine far away, 64 cores"}
    with Store(path, create=True) as store:
        store.add([measurement()], made=made)
        (record, *_) = store.records()
    assert (record.commit, record.hardware) == ("feedfacecafe", "a machine far away, 64 cores")


def test_a_task_that_is_run_again_replaces_its_records_and_its_failure(path):
    with Store(path, create=True) as store:
        store.add([], [Failure(TASK, "ValueError: no")])
        assert [failure.error for failure in store.failures()] == ["ValueError: no"]
        assert store.done() == set()
        store.add([measurement(value=1.0)])
        store.add([Measurement(TASK, [("all", "rmse", 2.0)], 1.0)])
        assert store.failures() == []
        assert [(record.region, record.value) for record in store.records()] == [("all", 2.0)]
        store.add([], [Failure(TASK, "now it fails")])
        assert (store.done(), list(store.records())) == (set(), [])


def test_a_stack_is_written_whole_or_not_at_all(path):
    twice = Measurement(TASK._replace(trial=4), [("all", "rmse", 1.0), ("all", "rmse", 2.0)], 1.0)
    with Store(path, create=True) as store:
        store.add([measurement(TASK._replace(trial=1))])
        with pytest.raises(InputError):
            store.add([measurement(), twice])
        assert {task.trial for task in store.done()} == {1}
        store.add([measurement()])
        assert {task.trial for task in store.done()} == {1, 3}


def test_a_reader_sees_what_is_finished_while_another_writes(path):
    with Store(path, create=True) as writer:
        writer.add([measurement()])
        with Store(path) as reader:
            assert reader.done() == {TASK}
            writer.add([measurement(TASK._replace(trial=9))])
            assert len(reader.done()) == 2
            with pytest.raises(InputError, match="cannot be used"):
                reader.add([measurement()])


def foreign(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE cats (name TEXT)")
    connection.close()


def newer(path):
    with Store(path, create=True) as store:
        store.add([measurement()])
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def torn(path):
    with Store(path, create=True) as store:
        for trial in range(200):
            store.add([measurement(TASK._replace(trial=trial))])
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\x55" * (len(content) - 4096))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.write_text("not a database at all " * 50), "not a store .* or is damaged"),
        (foreign, "is not a store of benchmark records"),
        (newer, "written by a newer nescio .form 99"),
        (torn, "damaged"),
    ],
)
@pytest.mark.parametrize("create", [True, False])
def test_a_file_that_is_no_store_is_one_sentence_and_stays_as_it_was(path, make, words, create):
    make(path)
    before = path.read_bytes()
    with pytest.raises(InputError, match=words) as caught, Store(path, create=create) as store:
        list(store.records())
    assert str(caught.value).count("\n") == 0
    assert path.read_bytes() == before


def test_a_store_that_is_not_there_is_one_sentence_and_is_not_made(path):
    with pytest.raises(InputError, match="there is no store"):
        Store(path)
    assert not path.exists()
    with pytest.raises(InputError, match="cannot be used"):
        Store(path / "below" / "nothing.db", create=True)


def test_a_folder_that_cannot_be_written_can_be_read(path, tmp_path):
    with Store(path, create=True) as store:
        store.add([measurement()])
    closed = tmp_path / "closed"
    closed.mkdir()
    shutil.copy(path, closed / "records.db")
    closed.chmod(0o500)
    try:
        with Store(closed / "records.db") as store:
            assert store.done() == {TASK}
    finally:
        closed.chmod(0o700)


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz"])
def test_an_export_is_long_sorted_and_readable_again(path, tmp_path, name):
    out = tmp_path / name
    tasks = [TASK._replace(method=method, trial=trial) for method in ("vv", "d-vv") for trial in (10, 2)]
    with Store(path, create=True) as store:
        store.add([measurement(task) for task in tasks])
        assert export_records(store, out, "sound") == 12
        values = stored_values(store)
        with pytest.raises(InputError, match="no records"):
            export_records(store, tmp_path / "other.csv", "paper")
    again = read_values(out)
    assert [value[:7] for value in again] == [value[:7] for value in values] == sorted(value[:7] for value in values)
    assert again[2].value == pytest.approx(0.3, rel=1e-9)
    assert math.isnan(again[0].value)
    assert again[1].value == math.inf
    assert read_values(out, "paper") == []
    if name == "out.csv":
        assert tuple(out.read_text().splitlines()[0].split(",")) == COLUMNS
        (run,) = csv.DictReader(provenance_path(out).read_text().splitlines())
        assert (run["provenance"], run["commit"]) == ("1", provenance()["commit"])
        assert provenance_path(out).name == "out_provenance.csv"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "no column 'protocol'"),
        (",".join(COLUMNS) + "\nsound,boston,gap,vv,three,all,rmse,1,1,1\n", "line 2 .* is not a record"),
        (",".join(COLUMNS) + "\nsound,boston\n", "line 2"),
        ("", "no column"),
    ],
)
def test_a_csv_that_is_no_export_is_one_sentence(tmp_path, text, words):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        read_values(tmp_path / "x.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_values(tmp_path / "missing.csv")
    (tmp_path / "damaged.csv.gz").write_bytes(gzip.compress(text.encode())[:10] + b"\xff" * 20)
    with pytest.raises(InputError, match=r"damaged\.csv\.gz' cannot be read"):
        read_values(tmp_path / "damaged.csv.gz")
