"""The benchmarks measure what they say: known answers for their measures, one tiny run of each."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import torch

from nescio.benchmark import quality, scaling, speed
from nescio.benchmark.records import provenance, write_records
from nescio.datasets.uci import UCIData
from nescio.training.steppers import EagerStepper


def made_up(name, root=None):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = np.c_[X.sum(1), X[:, 0] * 50.0] + rng.normal(size=(120, 2))
    return UCIData(name, X, y if name == "two" else y[:, :1], ["a", "b"], ["y"])


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_record_of_quality_has_every_field(monkeypatch, name):
    monkeypatch.setattr(quality, "load_uci", made_up)
    records = [quality.evaluate(name, method, 0, max_steps=5, hidden=(8,)) for method in ("d-vv", "vv")]
    for record in records:
        assert {"dataset", "method", "seed", *quality.COLUMNS} <= record.keys()
        assert all(np.isfinite(record[column]) for column in quality.COLUMNS)
    assert records[0]["rmse"] == pytest.approx(records[1]["rmse"], rel=1e-5)  # one mean, two posteriors
    assert records[0]["shape"] == records[1]["shape"]
    assert records[0]["std_far_ratio"] == pytest.approx(1.0, rel=1e-4)
    text = quality.summary(records)
    assert "paired difference" in text
    assert json.loads(json.dumps(records)) == records


def test_quality_without_data_is_one_sentence(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("NESCIO_DATA", raising=False)
    monkeypatch.setenv("NESCIO_CACHE", str(tmp_path))
    assert quality.main(["--csv", str(tmp_path / "q.csv")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "q.csv").exists()


def test_the_loops_that_are_timed_train_the_same_problem():
    x, y, pool = speed.make_data()
    assert x.shape == pool.shape == (speed.ROWS, speed.COLUMNS)
    assert y.shape == (speed.ROWS, 1)
    steppers = []

    def watched(start, losses, weight_decay=0.0):
        steppers.append((EagerStepper(start, losses, weight_decay), start))
        return steppers[-1][0]

    speed.stacked_loop("1x50", 3, watched)(2)
    stepper, start = steppers[0]
    for name, value in stepper.parameters.items():
        assert torch.isfinite(value).all()
        assert not torch.equal(value, start[name]), name
    with torch.random.fork_rng(devices=[]):
        for loader in (True, False):
            speed.plain_loop("1x50", loader=loader)(2)


def test_a_record_of_scaling_has_time_and_memory():
    record = scaling.measure(300, 2)
    assert record["rows"] == 300
    assert record["seconds"] > 0
    assert record["fit_mib"] >= 0


def test_records_carry_what_made_them_and_replace_the_old_file_at_once(tmp_path):
    path = tmp_path / "results" / "r.csv"
    for value in (1, 2):
        write_records(path, [{"value": value} | provenance()])
    with path.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["value"] == "2"
    assert "torch" in row["versions"]
    assert {"commit", "hardware", "date"} <= row.keys()
    assert [child.name for child in path.parent.iterdir()] == ["r.csv"]
