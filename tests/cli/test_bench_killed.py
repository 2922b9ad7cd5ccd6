"""``nescio bench uci`` killed in the middle and started again, with real methods: the table of an undisturbed run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from nescio._validation import InputError
from nescio.benchmark.exports import read_values
from nescio.benchmark.store import Store


@pytest.fixture
def world(data_folder):
    """The environment of a process that finds one table of 80 rows, called yacht."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(80, 3)) * [1.0, 30.0, 0.2] + [5.0, 0.0, -7.0]
    rows = np.c_[x, 40.0 * x[:, 0] + x[:, 1] + rng.normal(size=80)]
    folder = data_folder("yacht", "\n".join(["a,b,c,t", *(",".join(f"{value:.6f}" for value in row) for row in rows)]))
    return os.environ | {"NESCIO_DATA": str(folder), "NESCIO_CACHE": str(folder / "cache")}


def start(folder, environment, name, methods):
    options = ["--protocol", "sound", "--split", "gap", "--methods", methods]
    files = ["--store", str(folder / f"{name}.db"), "--csv", str(folder / f"{name}.csv")]
    return subprocess.Popen(
        [sys.executable, "-c", "from nescio.cli import main; main()", "bench", "uci", *options, *files],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that a kill takes the workers too, as a power cut does
    )


def finished_tasks(path):
    try:
        with Store(path) as store:
            return len(store.done())
    except InputError:  # not begun yet
        return 0


def measured(path):
    """All values but the seconds, which no two runs have in common."""
    return [value for value in read_values(path) if value.metric != "seconds"]


@pytest.mark.slow
def test_a_killed_run_of_real_methods_that_is_started_again_measures_what_an_undisturbed_one_does(tmp_path, world):
    methods, trials = "gp,mean-variance,faithful", 3 * 3
    first = start(tmp_path, world, "killed", methods)
    deadline = time.monotonic() + 300.0
    while not finished_tasks(tmp_path / "killed.db") and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    ended = first.poll() is not None
    if not ended:
        os.killpg(first.pid, signal.SIGKILL)
    told = first.communicate()[1]
    assert not ended, told
    there = finished_tasks(tmp_path / "killed.db")
    assert 0 < there < trials

    for name, before in (("killed", there), ("whole", 0)):
        again = start(tmp_path, world, name, methods)
        told = again.communicate(timeout=300)[1]
        assert again.returncode == 0, told
        assert f"{trials - before} trials measured" in told
        assert f"{before} were there before; 0 failed." in told
    assert measured(tmp_path / "killed.csv") == measured(tmp_path / "whole.csv")
    assert len({value[:5] for value in measured(tmp_path / "whole.csv")}) == trials
