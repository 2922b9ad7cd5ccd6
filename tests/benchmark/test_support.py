"""The record of support on fresh rows, and the measurement behind it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from scipy.stats import binom, ks_2samp

from nescio.benchmark.support import RATES, SEEDS, SETS, measure
from nescio.calibration import fit_support

RECORD = Path(__file__).resolve().parents[2] / "results" / "support.csv"


def records() -> list[dict[str, str]]:
    with RECORD.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def large() -> list[dict[str, str]]:
    return [record for record in records() if int(record["reference_rows"]) > 400]


def test_scores_of_fresh_rows_are_those_of_the_reference():
    runs = large()
    assert len(runs) == len(SETS) * SEEDS == 60
    assert {record["data"] for record in runs} == set(SETS)
    assert sum(float(record["ks_p_value"]) < 0.01 for record in runs) <= 3


def test_false_alarms_keep_their_rates():
    runs = large()
    over = sum(int(record[f"{kind}_alarms"]) > int(record[f"{kind}_most"]) for record in runs for kind in RATES)
    assert binom.sf(over - 1, len(RATES) * len(runs), 0.01) > 0.01
    for kind, rate in RATES.items():
        for name in SETS:
            own = [record for record in runs if record["data"] == name]
            found = sum(int(record[f"{kind}_alarms"]) for record in own)
            assert found / sum(int(record["fresh_rows"]) for record in own) < 1.15 * rate


def test_where_rows_are_too_few_for_a_rate_it_says_so():
    small = [record for record in records() if int(record["reference_rows"]) < 199]
    assert len(small) == len(SETS)
    assert all(record["outside_alarms"] == "too few rows" for record in small)
    assert all(record["edge_alarms"].isdigit() for record in small)


def test_the_measurement_has_force():
    X = np.random.default_rng(0).normal([3.0, -1.0, 0.0], [1.0, 5.0, 0.1], (1_400, 3))
    honest = measure(X, 1)
    assert honest["ks_p_value"] > 0.001
    assert honest["outside_alarms"] <= honest["outside_most"]
    # Wrong twins: rows scored against themselves, and rows from elsewhere.
    support = fit_support(X[:700])
    assert ks_2samp(support.score(X[:700]), support.scores).pvalue < 1e-6
    assert ks_2samp(support.score(1.2 * X[700:]), support.scores).pvalue < 1e-4
