"""What a CSV says is what is read: categories as at fit time, and columns that the model does not use, cell by cell."""

from __future__ import annotations

import csv
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import nescio
from nescio.cli import app
from nescio.cli.check import _rows
from nescio.cli.tables import read_table

FAST = ("--max-steps", "3", "--members", "1", "--device", "cpu", "--no-conformal")


@pytest.fixture(autouse=True)
def _inside_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def works(*arguments: Any) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return str(result.stderr)


def fails(*arguments: Any) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 2, result.output
    return str(result.stderr)


def write(path: str, header: str, lines: list[str]) -> None:
    Path(path).write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")


def cells(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


CODES, ANSWERS = ("01", "02", "1A", "3.0"), ("True", "False", "maybe")


def coded(rows: int = 48) -> list[str]:
    """Lines of a size, two columns of levels that look like numbers or booleans one by one, a flag, and a price."""
    sizes = np.random.default_rng(2).normal(50.0, 9.0, rows).round(2)
    return [
        f"{size},{CODES[row % 4]},{ANSWERS[row % 3]},{('TRUE', 'FALSE')[row % 2]},{3 * size:.1f}"
        for row, size in enumerate(sizes)
    ]


HEADER = "size,code,answer,flag,price"


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> bytes:
    folder = tmp_path_factory.mktemp("model")
    write(str(folder / "t.csv"), HEADER, coded())
    works("fit", folder / "t.csv", "--target", "price", *FAST, "--out", folder / "m")
    return (folder / "m").read_bytes()


@pytest.fixture
def model(saved) -> None:
    Path("m").write_bytes(saved)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("answer", ANSWERS)
def test_training_rows_are_known_whatever_else_is_in_the_file(model, code, answer):
    write("n.csv", HEADER, [line for line in coded() if f",{code},{answer}," in line])
    works("predict", "m", "n.csv", "--out", "p.csv", "--explain")
    found = cells("p.csv")
    assert len(found) == 4
    assert not any("no training row has" in row["why"] for row in found)
    x, y = _rows(nescio.load(Path("m")), Path("n.csv"), None)
    assert x["code"].to_list() == [code] * 4
    assert x["answer"].to_list() == [answer] * 4
    assert y.tolist() == [float(row["price"]) for row in cells("n.csv")]


def test_a_level_that_differs_in_its_letters_only_is_another_one(model):
    write("n.csv", HEADER, ["50.0,1,maybe,TRUE,0", "50.0,3,maybe,TRUE,0", "50.0,01,true,TRUE,0"])
    works("predict", "m", "n.csv", "--out", "p.csv", "--explain")
    found = [row["why"] for row in cells("p.csv")]
    for why, end in zip(found, ["code = '1'", "code = '3'", "answer = 'true'"], strict=True):
        assert f"no training row has {end}" in why


@pytest.mark.parametrize(("cell", "reason"), [(",FALSE,", "flag = 'odd' is not a"), ("60.3,", "size = 'odd' is not a")])
def test_one_odd_cell_is_explained_and_leaves_the_others_readable(model, cell, reason):
    lines = coded()[:6]
    assert cell in lines[5]
    write("n.csv", HEADER, [*lines[:5], lines[5].replace(cell.strip(","), "odd")])
    works("predict", "m", "n.csv", "--out", "p.csv", "--explain")
    assert [reason in row["why"] for row in cells("p.csv")] == [False] * 5 + [True]


CARRIED = ["0012", "1e5", "True", "3.10", "", "NA", "12345678901234567890123", "+7", '"a, b"', "-0"]


@pytest.mark.parametrize("out", ["p.csv", "p.parquet"])
def test_columns_that_are_carried_through_come_out_as_they_went_in(model, out):
    lines = coded()[: len(CARRIED)]
    for column in [CARRIED, *([cell] * len(CARRIED) for cell in ("0012", "1e5", "True"))]:
        write("n.csv", f"id,{HEADER}", [f"{cell},{line}" for cell, line in zip(column, lines, strict=True)])
        works("predict", "m", "n.csv", "--out", out)
        before = cells("n.csv")
        after = cells(out) if out.endswith(".csv") else pl.read_parquet(out).fill_null("").to_dicts()
        assert [row["id"] for row in after] == [row["id"] for row in before]
        assert [row["price"] for row in after] == [row["price"] for row in before], "the target too"


def test_ids_are_as_they_are_written_at_fit_time(monkeypatch):
    command = importlib.import_module("nescio.cli.fit")
    seen: list[Any] = []
    monkeypatch.setattr(command, "write_fit_card", lambda *arguments: seen.append(arguments[4]) or 1)
    write("t.csv", f"id,{HEADER}", [f"{row:04},{line}" for row, line in enumerate(coded())])
    works("fit", "t.csv", "--target", "price", "--id", "id", *FAST, "--out", "m", "--card", "c.html")
    assert seen[0][:2] == ["0000", "0001"]


def test_numbers_are_those_that_python_reads():
    rng = np.random.default_rng(3)
    texts = [repr(value) for value in (rng.normal(size=500) * 10.0 ** rng.uniform(-300, 300, 500)).tolist()]
    write("t.csv", "a,b", [f"{text},{row}" for row, text in enumerate([*texts, "", '""', "5.", ".5", "-3", "1E3"])])
    frame = read_table(Path("t.csv"))
    expected = [float(text) for text in texts] + [None, None, 5.0, 0.5, -3.0, 1000.0]
    assert frame["a"].to_list() == expected
    assert frame["b"].dtype == pl.Float64


WORDS = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null")


def test_words_for_gaps_are_gaps_and_a_note_says_where():
    lines = [f"{row}.5,{('red', 'blue')[row % 2]},{('true', 'false')[row % 2]},{row}" for row in range(40)]
    lines += [f"{word},{word},{word},50" for word in WORDS]
    write("t.csv", "size,colour,flag,price", [*lines, "7.5,red,true,NA"])
    told = works("fit", "t.csv", "--target", "price", *FAST, "--out", "m")
    listed = "9 in 'size', 9 in 'colour', 9 in 'flag', 1 in 'price'"
    assert f"Note: cells that hold '#N/A', '<NA>', 'N/A', 'NA', 'NULL' and 4 more are taken as gaps ({listed})." in told
    assert "Note: 1 of 50 rows lack 'price' and are left out." in told
    columns = nescio.load(Path("m")).columns_.columns
    assert [column.kind for column in columns] == ["number", "category", "boolean"]
    assert all(column.gaps for column in columns)
    assert columns[1].levels == ("blue", "red")
    write("n.csv", "note,size,colour,flag", ["NA,null,n/a,NaN"])
    told = works("predict", "m", "n.csv", "--out", "p.csv", "--explain")
    assert "hold 'NaN', 'n/a', 'null' are taken as gaps (1 in 'size', 1 in 'colour', 1 in 'flag')." in told
    assert cells("p.csv")[0]["note"] == "NA", "it is not used, and not the program's to change"
    assert "which it is in no training row" not in cells("p.csv")[0]["why"]


def test_a_level_that_the_model_knows_is_no_gap():
    frame = pl.DataFrame({"land": ["NA", "DE"] * 12, "size": np.arange(24.0)})
    model = nescio.DissipativeRegressor(max_steps=3, n_members=1).fit(frame, np.arange(24.0))
    assert model.columns_.columns[0].levels == ("DE", "NA")
    nescio.save(model, Path("m"))
    frame.filter(pl.col("land") == "NA").write_csv("n.csv")
    told = works("predict", "m", "n.csv", "--out", "p.csv", "--explain")
    assert "gaps" not in told
    assert not any("land" in row["why"] for row in cells("p.csv"))


def test_blank_lines_are_no_rows_and_gaps_at_the_end_of_a_row_are_gaps():
    Path("t.csv").write_text('a,b\r\n1,2\r\n\r\n3,\r\n,\r\n5,"x\n\ny"\r\n\r\n', encoding="utf-8")
    assert read_table(Path("t.csv")).rows() == [(1.0, "2"), (3.0, None), (None, None), (5.0, "x\n\ny")]
    Path("t.csv").write_text("a\n1\n\n3\n", encoding="utf-8")
    assert read_table(Path("t.csv"))["a"].to_list() == [1.0, None, 3.0]


def postal(rows: int = 60) -> list[str]:
    """Lines of a postal code with a zero in front, one without, a code of a single figure, a padded price."""
    codes, groups = ("01067", "10115", "04109", "80331", "99084", "20095", "01099"), (1, 2, 3, 4, 5, 6, 7, 8)
    return [f"{codes[row % 7]},{1000 + row % 9},{groups[row % 8]},{row * 7 % 31},{50 + row:05}" for row in range(rows)]


POSTAL = "plz,year,group,size,price"


def test_codes_with_zeros_in_front_are_categories_and_others_by_request():
    write("t.csv", POSTAL, postal())
    told = works("fit", "t.csv", "--target", "price", "--category", "group", *FAST, "--out", "m")
    assert "Note: column 'plz' holds codes such as '01067' and is read as categories; where they are" in told
    columns = {column.name: column for column in nescio.load(Path("m")).columns_.columns}
    assert {name: column.kind for name, column in columns.items()} == {
        "plz": "category",
        "year": "number",
        "group": "category",
        "size": "number",
    }
    assert columns["plz"].levels == ("01067", "01099", "04109", "10115", "20095", "80331", "99084")
    assert columns["group"].levels == tuple("12345678")
    write("n.csv", POSTAL, ["10115,1003,3,5,1", "1067,1003,03,5,1"])
    works("predict", "m", "n.csv", "--out", "p.csv", "--explain")
    known, other = (row["why"] for row in cells("p.csv"))
    assert "no training row has" not in known
    assert "no training row has plz = '1067'" in other
    assert "no training row has group = '03'" in other


def test_zeros_in_front_of_what_the_model_knows_as_a_number_are_nothing():
    write("t.csv", POSTAL, [line.replace("01067", "1067").replace(",1000,", ",0.5,") for line in postal()])
    works("fit", "t.csv", "--target", "price", "--ignore", "plz", *FAST, "--out", "m")
    write("n.csv", POSTAL, ["10115,01003,03,05,1"])
    works("predict", "m", "n.csv", "--out", "p.csv")
    write("o.csv", POSTAL, ["10115,1003,3,5,1"])
    works("predict", "m", "o.csv", "--out", "q.csv")
    assert cells("p.csv")[0]["price_mean"] == cells("q.csv")[0]["price_mean"]


def test_categories_of_a_typed_table_are_known_again_whatever_their_type():
    frame = pl.DataFrame({"whole": [1, 2, 3, 4, 5, 6, 7] * 8, "real": [1.0, 2.5] * 28, "yes": [True, False] * 28})
    frame = frame.with_columns(price=pl.Series(np.arange(56.0)), day=pl.lit("2024-05-01").str.to_date())
    frame.write_parquet("t.parquet")
    fit = ("fit", "t.parquet", "--target", "price", *FAST, "--out", "m", "--category")
    works(*fit, "whole,real,yes")
    assert [column.kind for column in nescio.load(Path("m")).columns_.columns] == ["category"] * 3 + ["date"]
    frame.drop("price").write_parquet("n.parquet")
    works("predict", "m", "n.parquet", "--out", "p.csv", "--explain")
    assert not any("no training row has" in row["why"] for row in cells("p.csv"))
    assert "column 'day' holds a date, no category; take it out of --category." in fails(*fit, "day")
    assert "column 'price' is in --category and no feature; take it" in fails(*fit, "price")
    assert "--category names 'hole', which 't.parquet' does not have; did you mean 'whole'?" in fails(*fit, "hole")
