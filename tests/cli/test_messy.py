"""A long and messy CSV through the commands, each in a process of its own, with bounded memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import nescio

ROWS = 20_000
MOST_MEMORY = 1_500  # MiB; the libraries alone take 300


def messy(seed: int) -> pl.DataFrame:
    """Categories, dates, gaps, many levels, a constant, a copy and an empty column, under headers of many scripts."""
    rng = np.random.default_rng(seed)
    area = rng.normal(80.0, 20.0, ROWS).round(2)
    columns = {f"zahl_{number}": rng.normal(10.0 * number, 1.0 + number, ROWS).round(4) for number in range(8)}
    columns |= {
        "größe [m²]": area,
        "цвет": rng.choice(["красный", "синий", "белый"], ROWS, p=[0.6, 0.39, 0.01]),
        "城市": np.array([f"城{code:03}" for code in rng.integers(0, 200, ROWS)]),
        "flag": rng.random(ROWS) < 0.2,
        "same": np.full(ROWS, 7),
        "datum": (np.datetime64("2020-01-01") + rng.integers(0, 1500, ROWS).astype("timedelta64[D]")).astype(str),
        "copy": columns["zahl_0"],
        "preis": (0.5 * area + columns["zahl_2"] + rng.normal(0.0, 2.0, ROWS)).round(3),
    }
    frame = pl.DataFrame(columns)
    gaps = [
        pl.when(pl.Series(rng.random(ROWS) < share)).then(None).otherwise(pl.col(name)).alias(name)
        for name, share in {
            "zahl_1": 0.05,
            "zahl_4": 0.3,
            "цвет": 0.05,
            "flag": 0.05,
            "datum": 0.02,
            "preis": 0.01,
        }.items()
    ]
    return frame.with_columns(*gaps, leer=pl.lit(None, dtype=pl.String), id=pl.Series([f"r{n}" for n in range(ROWS)]))


def run(*arguments: str) -> str:
    source = str(Path(nescio.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", "from nescio.cli import main; main()", *arguments],
        env={**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_long_and_messy_table_goes_through_with_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    messy(0).write_csv("t.csv")
    messy(1).write_csv("u.csv")
    told = run(
        *("fit", "t.csv", "--target", "preis", "--id", "id", "--out", "m", "--max-steps", "30", "--members", "1"),
        *("--device", "cpu"),
    )
    assert "rows lack 'preis' and are left out" in told
    assert "which are left out: 'leer'" in told
    lines = [" ".join(line.split()) for line in told.splitlines()]
    assert "城市 many levels the average target of each of 200 levels" in lines
    assert "copy number as it is (the same as 'zahl_0')" in lines
    told = run("predict", "m", "u.csv", "--out", "p.csv", "--explain")
    assert "WARNING" not in told, "rows from the same source"
    found = pl.read_csv("p.csv")
    assert found.height == ROWS
    assert found.select("preis_mean", "preis_std", "support").null_count().sum_horizontal().item() == 0
    assert 0.03 < (found["verdict"] != "inside").mean() < 0.07
    assert (found.filter(pl.col("verdict") == "outside")["why"].str.len_chars() > 20).all()
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    assert peak < MOST_MEMORY
