"""The runs around gradient boosting: the band of the coverage, the tables, and what is not run twice."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

from nescio.benchmark import foreign_mean
from nescio.benchmark.foreign_mean_tables import summary
from nescio.calibration import coverage_band
from nescio.datasets.uci import UCIData


def record(**changes):
    base = {
        "dataset": "made up", "split": "standard", "trial": 0, "region": "all", "target": 0, "log_likelihood": 0.5,
        "inside_rows": 1_000, "covered": 900, "covered_fitted": 870, "width": 1.2, "width_fitted": 1.0,
        "calibration_rows": 300, "identical": True,
    }  # fmt: skip
    return {name: str(value) for name, value in (base | changes).items()}


def rival(region="all", split="standard", trial=0, value=0.4):
    return {
        "dataset": "made up", "split": split, "trial": str(trial), "region": region, "method": "ngboost",
        "metric": "log_likelihood", "value": str(value),
    }  # fmt: skip


RIVALS = [rival(), rival("inside", "gap"), rival("hole", "gap", value=-3.0)]
RECORDS = [
    record(),
    record(split="gap", region="inside", log_likelihood=0.4),
    record(split="gap", region="hole", log_likelihood=-2.0, covered=0),
]


def test_the_band_is_that_of_conformal_coverage_itself():
    rng = np.random.default_rng(0)
    trials, covered = [(60, 49), (45, 120)], []
    for _ in range(3_000):
        total = 0
        for tested, calibration in trials:
            scores = np.sort(rng.exponential(size=calibration))
            limit = scores[int(np.ceil((calibration + 1) * 0.9)) - 1]
            total += int((rng.exponential(size=tested) <= limit).sum())
        covered.append(total)
    low, high = coverage_band(trials, 0.9)
    share = np.mean([(low <= total) and (total <= high) for total in covered])
    assert 0.983 < share < 0.9985
    narrow = coverage_band([(60, 10**7), (45, 10**7)], 0.9)  # the wrong twin: as if the limit were known
    assert low < narrow[0]


def test_the_tables_say_what_holds():
    text, holds = summary(RECORDS, RIVALS)
    assert holds
    assert "inside: above NGBoost on 1 of 1 sets" in text
    assert "hole: above NGBoost on 1 of 1 sets" in text
    assert "identical to the booster's: yes" in text


@pytest.mark.parametrize(
    ("place", "changes", "words"),
    [
        (2, {"log_likelihood": -4.0}, "hole: above NGBoost on 0 of 1"),
        (0, {"log_likelihood": -4.0}, "inside: above NGBoost on 0 of 1"),
        (0, {"covered": 700}, "OUT"),
        (1, {"covered": 999}, "OUT"),
        (1, {"identical": False}, "identical to the booster's: NO"),
    ],
)
def test_the_tables_say_what_does_not_hold(place, changes, words):
    records = list(RECORDS)
    records[place] = {**records[place], **{name: str(value) for name, value in changes.items()}}
    text, holds = summary(records, RIVALS)
    assert not holds
    assert words in text


def test_a_run_measures_every_region_and_is_not_repeated(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3))
    y = np.column_stack([X[:, 0], X[:, 1] ** 2]) + 0.2 * rng.normal(size=(240, 2))
    table = UCIData("energy", X, y, ("a", "b", "c"), ("p", "q"))
    monkeypatch.setattr(foreign_mean, "load_uci", lambda name: table)
    monkeypatch.setattr(foreign_mean, "BOOSTING", GradientBoostingRegressor(n_estimators=5, random_state=0))
    sound = tmp_path / "sound.csv"
    with sound.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(RIVALS[0]))
        writer.writeheader()
        writer.writerows({**row, "dataset": "energy"} for row in RIVALS)
    arguments = ["--csv", str(tmp_path / "runs.csv"), "--sound", str(sound), "--datasets", "energy", "--trials", "1"]
    assert foreign_mean.main([*arguments, "--max-steps", "4"]) in (0, 1)
    with (tmp_path / "runs.csv").open(newline="") as lines:
        found = list(csv.DictReader(lines))
    assert [(r["split"], r["region"], r["target"]) for r in found] == [
        (split, region, target)
        for split, region in (("standard", "all"), ("gap", "inside"), ("gap", "hole"))
        for target in "01"
    ]
    assert {r["identical"] for r in found} == {"True"}
    assert all(0 < int(r["covered"]) <= int(r["inside_rows"]) for r in found if r["region"] != "hole")
    monkeypatch.setattr(foreign_mean, "measure", lambda *task, **settings: pytest.fail("it was there"))
    before = (tmp_path / "runs.csv").read_bytes()
    assert foreign_mean.main(arguments) in (0, 1)
    assert (tmp_path / "runs.csv").read_bytes() == before
    assert "NGBoost" in capsys.readouterr().out
