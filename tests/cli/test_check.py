"""``nescio check``: a table on stdout, one sentence on stderr, and the exit code that it deserves."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import nescio
from nescio.cli import app


def table(rows: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    size, rooms = rng.normal(120.0, 30.0, rows), rng.integers(1, 7, rows)
    town = pl.Series(rng.choice(["Aix", "Bonn", "Cork"], rows)).set(pl.Series(rng.random(rows) < 0.1), None)
    return pl.DataFrame({"size": size, "rooms": rooms, "price": 3.0 * size + 9.0 * rng.normal(size=rows), "town": town})


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["check", *(str(argument) for argument in arguments)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that keeps the contract, one that does not, and tables with levels and gaps."""
    place = tmp_path_factory.mktemp("models")
    train = table(300, 0)
    settings: dict[str, Any] = {"max_steps": 60, "n_members": 1, "n_folds": 3, "hidden": (24,), "random_state": 0}
    settings["precision_steps"] = 2.8  # of so few steps the usual share would leave the noise unlearned
    for name, kind in (("good", nescio.DissipativeRegressor), ("bad", nescio.VariationalVarianceRegressor)):
        model = kind(**settings).fit(train.drop("price"), train["price"])
        if name == "good":
            model.target_names_ = ["price"]
        nescio.save(model, place / f"{name}.nescio")
    plain = nescio.DissipativeRegressor(**settings).fit(train[["size", "rooms"]].to_numpy(), train["price"].to_numpy())
    nescio.save(plain, place / "plain.nescio")
    train.write_csv(place / "train.csv")
    table(200, 1).write_csv(place / "fresh.csv")
    table(200, 1).drop("town").write_csv(place / "numbers.csv")
    table(200, 1).drop("price").write_csv(place / "features.csv")
    table(200, 1).with_columns(pl.lit("dear").alias("price")).write_csv(place / "text.csv")
    return place


def test_a_model_that_keeps_the_contract_ends_with_zero(folder):
    result = run(folder / "good.nescio", folder / "fresh.csv")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["check", "found", "must", "be"]
    assert len(lines) == 10
    assert "FAILED" not in result.stdout
    assert result.stderr == "The contract holds: 9 checks passed, 0 not made.\n"


def test_a_model_that_breaks_it_ends_with_one(folder):
    result = run(folder / "bad.nescio", folder / "fresh.csv", "--target", "price")
    assert result.exit_code == 1
    assert "FAILED" in result.stdout
    assert result.stderr.startswith("The contract is broken: ")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "no rows were given"),
        (["features.csv"], "no targets were given"),
        (["train.csv"], "most of the rows given are training rows"),
    ],
)
def test_what_cannot_be_checked_is_said(folder, arguments, why):
    result = run(folder / "good.nescio", *(folder / name for name in arguments))
    assert result.exit_code == 0, result.output
    assert why in result.stdout
    assert "not made." in result.stderr


def test_a_table_without_the_target_is_noted(folder):
    table(200, 1).rename({"price": "cost"}).write_csv(folder / "renamed.csv")
    result = run(folder / "good.nescio", folder / "renamed.csv")
    note = f"Note: '{folder / 'renamed.csv'}' has no column 'price', so coverage was not checked; "
    assert [line for line in result.stderr.splitlines() if line.startswith(note)], result.stderr
    assert "Note" not in run(folder / "good.nescio", folder / "renamed.csv", "--target", "cost").stderr


def test_a_model_of_an_array_takes_the_columns_in_their_order(folder):
    result = run(folder / "plain.nescio", folder / "numbers.csv", "--target", "price")
    assert result.exit_code == 0, result.output
    assert "9 checks passed" in result.stderr


MISTAKES = [
    (["none.nescio"], "there is no file"),
    (["good.nescio", "none.csv"], "there is no file"),
    (["good.nescio", "--target", "price"], "--target names columns of DATA"),
    (["good.nescio", "fresh.csv", "--target", "prise"], "did you mean 'price'"),
    (["good.nescio", "fresh.csv", "--target", "price,rooms"], "must name the 1 target of the model; got 2"),
    (["good.nescio", "text.csv"], "a target must be numeric"),
    (["good.nescio", "fresh.csv", "--level", "2"], "--level must lie strictly between 0 and 1"),
]


@pytest.mark.parametrize(("arguments", "words"), MISTAKES)
def test_a_mistake_is_one_sentence(folder, monkeypatch, arguments, words):
    monkeypatch.chdir(folder)
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
