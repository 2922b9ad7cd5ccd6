"""The contract over data sets: fitted as the command line does, recorded line by line, ended by the right code."""

from __future__ import annotations

import csv

from nescio.benchmark import contract


def test_a_run_is_recorded_line_by_line_and_its_end_says_what_was_found(tmp_path, capsys):
    out = tmp_path / "contract.csv"
    code = contract.main(["--csv", str(out), "--datasets", "toy", "--max-steps", "30"])
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9
    assert {row["dataset"] for row in rows} == {"toy"}
    assert all(row["passed"] in ("True", "False") for row in rows)
    assert [row["passed"] for row in rows[:3]] == ["True"] * 3
    failed = any(row["passed"] == "False" for row in rows)
    assert code == failed
    assert ("BROKEN" in capsys.readouterr().out) == failed
    assert all(row["commit"] and row["versions"] for row in rows)


def test_a_set_that_is_not_there_is_one_sentence(tmp_path, capsys):
    assert contract.main(["--csv", str(tmp_path / "a.csv"), "--datasets", "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("contract: name must be one of")


def test_fresh_rows_of_the_toy_are_not_its_training_rows():
    X, _, fresh, _ = contract.rows_of("toy", 0)
    assert not set(X.ravel()) & set(fresh.ravel())
