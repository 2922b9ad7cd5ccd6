"""``nescio fit`` and ``nescio predict``: what they write, and every mistake in one sentence."""

from __future__ import annotations

import errno
import gzip
import importlib
import inspect
import os
import re
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

import nescio
from nescio._validation import NumericalError
from nescio.calibration import EDGE_RATE, OUTSIDE_RATE
from nescio.cli import app

FAST = ("--max-steps", "3", "--device", "cpu")
PARTS = ("mean", "std", "lower", "upper", "aleatoric_std", "epistemic_std")
LAST = ["support", "verdict", "interval"]


@pytest.fixture(autouse=True)
def _inside_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def table(rows: int = 24) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    size = rng.normal(120.0, 30.0, rows)
    return pl.DataFrame(
        {
            "id": [f"house {row}" for row in range(rows)],
            "size": size,
            "rooms": rng.integers(1, 7, rows),
            "garden": rng.random(rows) < 0.5,
            "price": 3.0 * size + rng.normal(0.0, 9.0, rows),
            "rent": 0.5 * size + rng.normal(0.0, 2.0, rows),
        }
    )


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def works(*arguments: Any) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    return str(result.stderr)


def fails(match: str, *arguments: Any) -> None:
    """Exit code 2, one sentence on stderr after what was noted, and not a file more or other than before."""
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = [line for line in result.stderr.strip().splitlines() if not line.startswith("Note: ")]
    assert len(lines) == 1, result.stderr
    assert re.search(match, lines[0]), lines[0]
    assert lines[0].startswith("Error: ")
    assert lines[0][-1] in ".?"
    assert not re.search(r"[.?!] [A-Z]", lines[0])
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> bytes:
    """A model of the price."""
    folder = tmp_path_factory.mktemp("model")
    table().write_csv(folder / "t.csv")
    out = folder / "m"
    arguments = ["fit", folder / "t.csv", "--target", "price", "--id", "id", "--ignore", "rent", *FAST, "--out", out]
    assert run(*arguments).exit_code == 0
    return out.read_bytes()


@pytest.fixture
def ready(saved) -> None:
    Path("m").write_bytes(saved)
    table().write_csv("t.csv")


# What works


def test_predictions_are_those_of_the_library_with_all_else_carried_through():
    table().write_csv("t.csv")
    told = works(
        "fit", "t.csv", "--target", "price", "--ignore", "rent", "--id", "id", "--outside", 500, *FAST, "--out", "m"
    )
    assert "24 rows and 3 features ('size', 'rooms', 'garden')" in told
    assert re.search(r"price: standard deviation about [\d.]+ inside the data, 500 far outside", told)
    assert re.search(r"in \d+\.\d s", told)
    told = works("predict", "m", "t.csv", "--out", "p.csv", "--level", 0.8)
    assert re.search(r"Predicted 24 rows: \d+ inside", told)
    assert "Note: 24 distinct training rows are too few" in told

    model, found = nescio.load("m"), pl.read_csv("p.csv")
    assert found.columns == ["id", "price", "rent", *(f"price_{part}" for part in PARTS), *LAST]
    assert_frame_equal(found.select("id", "price", "rent"), table().select("id", "price", "rent"))
    x = table().select("size", "rooms", "garden").cast(pl.Float64)
    prediction = model.predict_dist(x)
    for name, values in zip(PARTS[2:4], model.predict_interval(x, 0.8), strict=True):
        np.testing.assert_allclose(found[f"price_{name}"], values, rtol=1e-12)
    for name in ("mean", "std", "aleatoric_std"):
        np.testing.assert_allclose(found[f"price_{name}"], getattr(prediction, name), rtol=1e-12)
    noise, rest = found["price_aleatoric_std"].to_numpy(), found["price_epistemic_std"].to_numpy()
    np.testing.assert_allclose(np.hypot(noise, rest), prediction.std, rtol=1e-9)  # the members' disagreement included
    assert (rest > prediction.epistemic_std).all()
    np.testing.assert_allclose(found["support"], model.support(x), rtol=1e-12)
    assert set(found["verdict"]) <= {"inside", "edge", "outside", "unknown"}
    assert found["interval"].to_list() == model.interval_kind(x, 0.8).tolist()
    assert model.calibrate == "conformal"
    assert model.outside == 500.0
    assert model.target_names_ == ["price"]
    assert model.verbose is False


def test_calibration_can_be_left_out():
    table().write_csv("t.csv")
    works("fit", "t.csv", "--target", "price", "--ignore", "rent,id", "--no-conformal", *FAST, "--out", "m")
    works("predict", "m", "t.csv", "--out", "p.csv")
    model, found = nescio.load("m"), pl.read_csv("p.csv")
    assert set(found["interval"]) == {"fitted"}
    x = table().select(model.feature_names_in_.tolist()).cast(pl.Float64)
    np.testing.assert_allclose(found["price_lower"], model.predict_dist(x).interval(0.9)[0], rtol=1e-12)


def test_two_targets_two_levels_and_parquet():
    table().write_parquet("t.parquet")
    told = works(
        *("fit", "t.parquet", "--target", "price,rent", "--outside", "500,70", "--id", "id", "--seed", 3),
        *("--members", 2, *FAST, "--out", "m"),
    )
    assert "500 far outside" in told
    assert "70 far outside" in told
    works("predict", "m", "t.parquet", "--out", "p.parquet")
    found = pl.read_parquet("p.parquet")
    assert found.columns == [
        *("id", "price", "rent", *(f"price_{part}" for part in PARTS), *(f"rent_{part}" for part in PARTS)),
        *LAST,
    ]
    model = nescio.load("m")
    assert (model.n_members, model.random_state) == (2, 3)
    x = table().select("size", "rooms", "garden").cast(pl.Float64)
    np.testing.assert_array_equal(found.select("price_mean", "rent_mean").to_numpy(), model.predict_dist(x).mean)
    assert (found["price_lower"] < found["price_upper"]).all()


def test_the_same_seed_gives_the_same_file():
    table().write_csv("t.csv")
    for out in ("a", "b"):
        works("fit", "t.csv", "--target", "price", "--ignore", "id", *FAST, "--out", out)
    assert Path("a").read_bytes() == Path("b").read_bytes()


def test_the_order_of_columns_and_rows_is_the_tables(ready):
    works("predict", "m", "t.csv", "--out", "p.csv")
    table().select("garden", "id", "rooms", "size").reverse().write_csv("u.csv")
    works("predict", "m", "u.csv", "--out", "q.csv")
    first, second = pl.read_csv("p.csv"), pl.read_csv("q.csv")
    assert second["id"].to_list() == table()["id"].reverse().to_list()
    assert_frame_equal(first.drop("price", "rent"), second.reverse())


def test_packed_tables_are_read_and_written(ready):
    with gzip.open("t.csv.gz", "wb") as packed:
        packed.write(Path("t.csv").read_bytes())
    works("predict", "m", "t.csv.gz", "--out", "p.csv.gz")
    works("predict", "m", "t.csv", "--out", "p.csv")
    assert gzip.decompress(Path("p.csv.gz").read_bytes()) == Path("p.csv").read_bytes()


def test_a_table_with_features_only_is_enough(ready):
    table().select("size", "rooms", "garden").write_csv("t.csv")
    works("predict", "m", "t.csv", "--out", "p.csv")
    assert pl.read_csv("p.csv").columns[0] == "price_mean"


def test_names_with_commas_spaces_marks_and_a_byte_order_mark():
    odd = table().rename({"price": "price, €", "size": "size [m²]*"})
    odd.write_csv("t[1].csv", include_bom=True)
    works("fit", "t[1].csv", "--target", "price, €", "--ignore", "id", "--ignore", "rent", *FAST, "--out", "m")
    works("predict", "m", "t[1].csv", "--out", "p.csv")
    assert "price, €_mean" in pl.read_csv("p.csv").columns


def test_an_older_output_is_replaced(ready):
    Path("p.csv").write_text("old")
    works("predict", "m", "t.csv", "--out", "p.csv")
    assert pl.read_csv("p.csv").height == 24


def test_constant_columns_are_legal():
    table().with_columns(rooms=pl.lit(3)).write_csv("t.csv")
    works("fit", "t.csv", "--target", "price", "--ignore", "id", *FAST, "--out", "m")


def test_a_model_without_names_takes_columns_in_their_order():
    x = table().select("size", "rooms").to_numpy()
    settings: dict[str, Any] = {"max_steps": 3, "random_state": 0, "device": "cpu"}
    model = nescio.DissipativeRegressor(**settings).fit(x, table().select("price", "rent").to_numpy())
    nescio.save(model, "m")
    table().select("size", "rooms").write_csv("t.csv")
    works("predict", "m", "t.csv", "--out", "p.csv")
    found = pl.read_csv("p.csv")
    np.testing.assert_allclose(found.select("y0_mean", "y1_mean").to_numpy(), model.predict(x), rtol=1e-12)
    table().select("id", "size", "rooms").write_csv("t.csv")
    fails("2 columns without names and 't.csv' has 3; leave only", "predict", "m", "t.csv", "--out", "q.csv")


def test_version_and_help():
    assert run("--version").stdout.strip() == nescio.__version__
    for command in ("fit", "predict"):
        assert command in run("--help").stdout
        assert "--out" in run(command, "--help").stdout


# Mistakes at fit


def fit_fails(match: str, *arguments: Any, data: str = "t.csv", target: str = "price", out: str = "m") -> None:
    fails(match, "fit", data, "--target", target, "--out", out, *FAST, *arguments)


def test_unknown_columns_are_named_with_a_guess():
    table().write_csv("t.csv")
    fit_fails("--target names 'pricce', which 't.csv' does not have; did you mean 'price'?", target="pricce")
    fit_fails("did you mean 'price'?", target="PRICE")
    fit_fails("its columns are 'id', 'size', 'rooms', 'garden', 'price', 'rent'", target="zzz")
    fit_fails("--ignore or --id names 'ident'", "--ignore", "ident")
    fit_fails("--ignore or --id names 'sise', .* did you mean 'size'?", "--id", "id,sise")


def test_a_table_with_another_separator_is_recognised():
    for separator, words in {";": "semicolons", "\t": "tabs", "|": "vertical bars"}.items():
        table().write_csv("t.csv", separator=separator, decimal_comma=separator == ";")
        fit_fails(f"'t.csv' has {words} between its cells; write it with commas there, and with points in decimal")


def test_files_that_are_missing_empty_or_of_another_kind():
    fit_fails("there is no file 'none.csv'", data="none.csv")
    fit_fails(r"must be a table in one of the forms \.csv, \.csv\.gz, \.parquet", data="t.xlsx")
    Path("folder.csv").mkdir()
    fit_fails("'folder.csv' is a directory; give a table", data="folder.csv")
    for text in ("", "\n\n"):
        Path("t.csv").write_text(text)
        fit_fails("'t.csv' is empty; it needs a header and rows")
    Path("t.csv").write_text("size,price\n")
    fit_fails("'t.csv' has no rows")
    table()[:3].write_csv("t.csv")
    fit_fails("'t.csv' has 3 rows; at least 4 are needed to fit", "--ignore", "id")


def test_files_that_cannot_be_read():
    Path("t.csv").write_bytes(b"size,price\n1,\xff\xfe\n" * 9)
    fit_fails("'t.csv' cannot be read as csv")
    Path("t.csv").write_text('size,price\n"1\n ",2\n1,2,3\n')
    fit_fails("line 4 of 't.csv' has 3 cells and the header 2; give each row a cell for each column, in quotes where")
    for rows in ("1,2,3\n4,5\n6,7,8\n", "1,2,3\n4,,\n6,7", "1,2,3\n\n6\n"):
        Path("t.csv").write_text(f"size,rooms,price\n{rows}")
        fit_fails(r"line \d of 't.csv' has [12] cells and the header 3; give each row a cell")
    Path("t.csv").write_text(f"size,price{'e' * 200_000}\n1,2\n")
    fit_fails("'t.csv' cannot be read as csv: field larger than field limit")
    Path("t.parquet").write_bytes(b"PAR1 but not really")
    fit_fails("'t.parquet' cannot be read as parquet", data="t.parquet")
    table().write_parquet("u.parquet")
    Path("t.parquet").write_bytes(Path("u.parquet").read_bytes()[:-9])
    fit_fails("'t.parquet' cannot be read as parquet", data="t.parquet")
    Path("t.csv.gz").write_bytes(b"no gzip")
    fit_fails("'t.csv.gz' cannot be read as csv.gz", data="t.csv.gz")
    Path("t.csv.gz").write_bytes(gzip.compress(table().write_csv().encode())[:-20])
    fit_fails("'t.csv.gz' cannot be read as csv.gz", data="t.csv.gz")


def test_columns_without_a_name_or_with_the_same_name():
    Path("t.csv").write_text("size,size,price\n1,2,3\n4,5,6\n")
    fit_fails("'t.csv' has more than one column called 'size'; rename or drop the others")
    Path("t.csv").write_text(",size,price\n1,2,3\n4,5,6\n")
    fit_fails("column 1 of 't.csv' has no name")


def test_columns_that_cannot_be_used_are_named():
    table().write_csv("t.csv")
    fit_fails(r"column 'id' holds text that is nearly always another one \(24 different .*--ignore or --id")
    texts = table().drop("id").with_columns(pl.col("size").cast(pl.String))
    texts = texts.with_columns(size=pl.when(pl.int_range(pl.len()) == 5).then(pl.lit("large")).otherwise("size"))
    texts.write_csv("t.csv")
    fit_fails(r"column 'size' holds text among numbers \('large' in data row 6\); leave such cells empty")
    texts.with_columns(rent=pl.when(pl.int_range(pl.len()) > 2).then("rent")).write_csv("t.csv")
    fit_fails(r"\('large' in data row 6\)")  # also where the first rows have no target and are left out
    table().drop("id").with_columns(list=pl.concat_list("size", "rent")).write_parquet("t.parquet")
    fit_fails("column 'list' holds values of type List", data="t.parquet")
    table().drop("id").with_columns(size=pl.lit(float("inf"))).write_csv("t.csv")
    fit_fails(r"X contains infinity in column 'size' \(24 rows, the first is data row 1\)")


def test_targets_must_be_numbers_and_finite():
    table().write_csv("t.csv")
    fit_fails(r"column 'id' holds text \('house 0' in data row 1\), not numbers; a target must be numeric", target="id")
    table().drop("id").with_columns(price=pl.lit(None)).write_csv("t.csv")
    fit_fails("column 'price' is empty in every row; a target must be numeric")
    holes = pl.when(pl.int_range(pl.len()) == 4).then(float("inf")).otherwise("price").alias("price")
    table().drop("id").with_columns(holes).write_csv("t.csv")
    fit_fails(r"column 'price' has gaps in 1 of 24 rows \(.* the first is data row 5\); fill them or drop")
    table().drop("id").with_columns(day=pl.lit(date(2024, 5, 1))).write_parquet("t.parquet")
    fit_fails("column 'day' holds dates or times, not numbers", data="t.parquet", target="day")
    kept = pl.when(pl.int_range(pl.len()) < 3).then("price").alias("price")
    table().drop("id").with_columns(kept).write_csv("t.csv")
    fit_fails("'t.csv' has 3 rows with a target; at least 4 are needed")


@pytest.mark.parametrize("gap", [None, float("nan")])
def test_rows_without_a_target_are_left_out_with_a_note(gap):
    rows = pl.int_range(pl.len())
    holes = pl.when(rows.is_in([4, 9])).then(pl.lit(gap)).otherwise(pl.col("price")).alias("price")
    table().drop("id").with_columns(holes).write_csv("t.csv")
    told = works("fit", "t.csv", "--target", "price", *FAST, "--out", "m")
    assert "Note: 2 of 24 rows lack 'price' and are left out." in told
    assert "Learned from 22 rows" in told


def test_rows_keep_the_numbers_of_the_file_where_some_are_left_out():
    rows = pl.int_range(pl.len())
    holes = pl.when(rows % 3 == 0).then(None).otherwise(pl.col("price")).alias("price")
    full = table(30).select("size", "price").with_columns(holes)
    full.write_csv("t.csv")
    works("fit", "t.csv", "--target", "price", *FAST, "--out", "m", "--card", "c.html")
    page = Path("c.html").read_text(encoding="utf-8")
    shown = re.findall(r'<tr><th scope="row">(\d+)</th><td><span class="verdict.*?<td>[^<]*</td>\n</tr>', page, re.S)
    sizes = re.findall(r'<tr><th scope="row">\d+</th><td><span class="verdict.*?<td>([^<]*)</td>\n</tr>', page, re.S)
    assert sizes == [f"{full['size'][int(row) - 1]:.6g}" for row in shown]
    assert len(shown) >= 4
    full.filter(pl.col("price").is_not_null()).with_columns(pl.col("size") + 1e4).write_csv("new.csv")
    works("predict", "m", "new.csv", "--out", "p.csv", "--explain")
    for why in pl.read_csv("p.csv")["why"]:
        row, size = re.search(r"nearest: training row (\d+): size = ([\d.]+)", why).groups()
        assert f"{full['size'][int(row) - 1]:.6g}" == size
    full.with_columns(pl.when(rows == 16).then(float("inf")).otherwise(holes).alias("price")).write_csv("t.csv")
    fit_fails("the first is data row 17")
    full.with_columns(pl.when(rows == 16).then(pl.lit("dear")).otherwise(holes).alias("price")).write_csv("t.csv")
    fit_fails("'dear' in data row 17")


def test_one_thing_is_not_told_as_many():
    table().select("size", "garden", "price").write_csv("t.csv")
    told = works("fit", "t.csv", "--target", "price", *FAST, "--out", "m")
    assert "  and 1 number as it is\n" in told
    table().select("size", "price").write_csv("t.csv")
    told = works("fit", "t.csv", "--target", "price", *FAST, "--out", "m")
    assert "Learned from 24 rows and 1 feature ('size')" in told
    table(1).select("size", "price").write_csv("t.csv")
    assert "Predicted 1 row: " in works("predict", "m", "t.csv", "--out", "p.csv", "--card", "c.html")
    assert "learned from 24 rows and 1 column." in Path("c.html").read_text(encoding="utf-8")
    fit_fails("'t.csv' has 1 row; at least 4 are needed")


def messy(rows: int = 260) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    return table(rows).with_columns(
        pl.Series("größe [m²]", rng.normal(50.0, 5.0, rows)),
        pl.Series("colour", rng.choice(["red", "green"], rows)),
        pl.Series("day", [f"2024-{1 + row % 12:02}-{1 + row % 28:02}" for row in range(rows)]),
        pl.Series("gappy", [None if row % 7 == 0 else row / 5 for row in range(rows)]),
        pl.Series("same", [1] * rows),
        pl.Series("empty", [None] * rows),
    )


def test_a_messy_table_goes_through_and_says_what_it_did(monkeypatch):
    messy().write_csv("t.csv")
    told = works("fit", "t.csv", "--target", "price", "--id", "id", *FAST, "--out", "m")
    assert "Note: X has columns without a single value, which are left out: 'empty'." in told
    lines = [" ".join(line.split()) for line in told.splitlines()]
    assert "Columns:" in lines
    assert "colour category a column for each level: 'green', 'red'" in lines
    assert "day date in days since 2024-01-01" in lines
    assert "gappy number as it is, gaps are 25.9 and marked" in lines
    assert "same number as it is (constant)" in lines
    assert "garden boolean as 0 and 1" in lines
    assert "and 4 numbers as they are" in lines
    new = messy(40).with_columns(
        colour=pl.when(pl.int_range(pl.len()) == 3).then(pl.lit("mauve")).otherwise("colour"),
        size=pl.when(pl.int_range(pl.len()) == 5).then(9e5).otherwise("size"),
    )
    new.select(sorted(new.columns)).write_csv("u.csv")
    told = works("predict", "m", "u.csv", "--out", "p.csv", "--explain")
    found = pl.read_csv("p.csv")
    assert found.columns[-1] == "why"
    assert found["verdict"][3] == found["verdict"][5] == "outside"
    assert found["why"][3].startswith("outside: no training row has colour = 'mauve'")
    assert found["why"][5].startswith("outside: size = 900000, above every training row (max ")
    inside = found.filter(pl.col("verdict") == "inside")
    assert inside.height > 25
    assert (inside["why"] == "").all()
    assert "Not used by the model and carried through: 'id', 'price'." in told
    monkeypatch.setattr(sys.modules["nescio.cli.predict"], "BLOCK", 16)  # the whole is the sum of its blocks
    works("predict", "m", "u.csv", "--out", "q.csv", "--explain")
    assert Path("q.csv").read_bytes() == Path("p.csv").read_bytes()


def test_strange_tables_are_announced_loudly_and_usual_ones_calmly(ready):
    messy().write_csv("t.csv")
    works("fit", "t.csv", "--target", "price", "--id", "id", "--ignore", "empty", *FAST, "--out", "m")
    told = works("predict", "m", "t.csv", "--out", "p.csv")
    assert "rows like those in training would give about 5.0%." in told
    assert "WARNING" not in told
    messy().with_columns(pl.col("size") * 5.0).write_csv("u.csv")
    told = works("predict", "m", "u.csv", "--out", "p.csv")
    assert re.search(r"WARNING: \d+ of 260 rows \(\d+\.\d%\) are at the edge or outside", told)
    told = works("predict", "m", "t.csv", "--out", "p.csv", "--rates", "0.2,0.1")
    assert "would give about 20.0%" in told
    found = pl.read_csv("p.csv")
    assert ((found["support"] <= 0.1) == (found["verdict"] == "outside")).all()


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ("0.05", "--rates must be two numbers with a comma"),
        ("a,b", "--rates must be two numbers"),
        ("0.05,2", "--rates must lie strictly between 0 and 1; got 2.0"),
        ("5,0.005", "--rates must lie strictly between 0 and 1; got 5.0"),
        ("0.01,0.05", "--rates must not have more false alarms outside than at the edge"),
    ],
)
def test_rates_that_make_no_sense(ready, rates, words):
    predict_fails(words, "--rates", rates)


def test_the_rates_are_by_default_those_of_the_library():
    default = inspect.signature(sys.modules["nescio.cli.predict"].predict).parameters["rates"].default
    assert [float(part) for part in default.split(",")] == [EDGE_RATE, OUTSIDE_RATE]


def test_targets_that_contradict_the_rest():
    table().write_csv("t.csv")
    fit_fails("column 'price' is a target and also in --ignore or --id", "--ignore", "price,id")
    fit_fails("column 'price' is a target and also in --ignore or --id", "--id", "price")
    fit_fails("--target names 'price' twice", target="price,price")
    fit_fails("no feature column is left", "--ignore", "id,size,rooms,garden,rent")
    table().drop("id").rename({"price": "a", "rent": "a_aleatoric"}).write_csv("t.csv")
    fit_fails("two output columns called 'a_aleatoric_std'", target="a,a_aleatoric")


@pytest.mark.parametrize("level", ["-3", "0", "nan", "inf", "5,-1"])
def test_levels_that_are_not_positive(level):
    table().write_csv("t.csv")
    fit_fails("--outside must be positive", "--outside", level, target="price,rent")


def test_the_level_outside_may_be_a_word():
    table().write_csv("t.csv")
    words = ("auto", "target", "residual")
    for word in words:
        works("fit", "t.csv", "--target", "price,rent", "--id", "id", "--outside", word, *FAST, "--out", word)
    works("fit", "t.csv", "--target", "price,rent", "--id", "id", *FAST, "--out", "default")
    level = {word: nescio.load(word).outside_std_ for word in (*words, "default")}
    np.testing.assert_allclose(level["target"], [table()[name].std(ddof=0) for name in ("price", "rent")], rtol=1e-6)
    np.testing.assert_array_equal(level["auto"], level["default"])
    assert len({tuple(level[word]) for word in words}) == 3


def test_levels_that_are_no_numbers_or_too_many():
    table().write_csv("t.csv")
    fit_fails("--outside must be a number.*'auto', 'target', 'residual'", "--outside", "much", "--ignore", "id")
    fit_fails("--outside must be a number", "--outside", "3,auto", "--ignore", "id")
    fit_fails("--outside has 2 levels for 1 target;", "--outside", "3,4", "--ignore", "id")


def test_places_that_cannot_be_written():
    table().write_csv("t.csv")
    fit_fails("--out is the input 't.csv' itself", out="t.csv")
    os.symlink("t.csv", "link")
    fit_fails("--out is the input 't.csv' itself", out="link")
    fit_fails("there is no directory .*; create it first", out="no/m")
    fit_fails("is a directory; give the name of a file", out=".")
    fit_fails("'/proc/m' cannot be written: .*; choose another place", out="/proc/m")
    fit_fails("'/dev/null' is not an ordinary file; give another name", out="/dev/null")


def test_a_device_that_is_not_there():
    table().write_csv("t.csv")
    for device in ("abacus", "meta"):
        fails("device must be 'auto'", "fit", "t.csv", "--target", "price", "--out", "m", "--device", device)


def test_packages_that_are_not_installed_are_named(ready, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    fit_fails(r"tables need polars: pip install 'nescio\[cli\]'", "--ignore", "id")
    predict_fails(r"tables need polars: pip install 'nescio\[cli\]'")
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "nescio.cli")
    with pytest.raises(SystemExit, match=r"The command line needs typer and polars: pip install 'nescio\[cli\]'"):
        importlib.import_module("nescio.cli")


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "t.csv", "--out", "m"],
        ["fit", "t.csv", "--target", "price"],
        ["fit", "--target", "price", "--out", "m"],
        ["fit", "t.csv", "--target", "price", "--out", "m", "--members", "0"],
        ["fit", "t.csv", "--target", "price", "--out", "m", "--max-steps", "few"],
        ["fit", "t.csv", "--target", "price", "--out", "m", "--seed", "-1"],
        ["predict", "m", "--out", "p.csv"],
        ["predict", "m", "t.csv"],
        ["predict", "m", "t.csv", "--out", "p.csv", "--level", "high"],
        ["foretell"],
    ],
)
def test_wrong_usage_ends_with_code_2_and_says_so(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Error" in result.stderr
    assert "Traceback" not in result.output


# Mistakes at predict


def predict_fails(match: str, *arguments: Any, model: str = "m", data: str = "t.csv", out: str = "p.csv") -> None:
    Path(out).write_text("old") if out == "p.csv" else None
    fails(match, "predict", model, data, "--out", out, *arguments)


def test_models_that_cannot_be_loaded(ready, saved):
    predict_fails("there is no file 'none'", model="none")
    predict_fails("'t.csv' is not a saved model", model="t.csv", data="u.csv")
    predict_fails(r"'\.' is a directory; give the file that save wrote", model=".")
    predict_fails("'/dev/null' is not an ordinary file; give the file that save wrote", model="/dev/null")
    Path("m").write_bytes(saved[:-7])
    predict_fails("'m' is truncated")
    Path("m").write_bytes(saved.replace(b'"tanh"', b'"tahn"'))
    predict_fails("'m' is damaged")


def test_tables_that_do_not_fit_the_model(ready):
    table().drop("rooms", "garden").write_csv("t.csv")
    predict_fails("the model needs 'rooms', 'garden', which 't.csv' does not have; its columns are 'id', 'size'")
    table().rename({"size": "sizes"}).write_csv("t.csv")
    predict_fails("the model needs 'size', which 't.csv' does not have; did you mean 'sizes'?")
    table().with_columns(rooms=pl.lit("many")).write_csv("t.csv")
    predict_fails(r"column 'rooms' holds text, 'many' in row 0, but was a number in training; convert it first")
    Path("t.csv").write_text("size,rooms,garden\n")
    predict_fails("'t.csv' has no rows")
    predict_fails("there is no file 'u.csv'", data="u.csv")


def test_carried_columns_that_collide_with_predictions(ready):
    for name in ("price_std", "verdict", "support"):
        table().with_columns(pl.lit(1).alias(name)).write_csv("t.csv")
        predict_fails(f"column '{name}' of 't.csv' has the name of an output column; rename or drop it")


@pytest.mark.parametrize("level", ["0", "1", "-0.5", "90", "nan"])
def test_levels_outside_the_unit_interval(ready, level):
    predict_fails("--level must lie strictly between 0 and 1", "--level", level)


def test_outputs_that_cannot_be_written(ready):
    predict_fails("--out is the input 't.csv' itself", out="t.csv")
    Path("m.csv").write_bytes(Path("m").read_bytes())
    predict_fails("--out is the input 'm.csv' itself", model="m.csv", out="m.csv")
    predict_fails("must be a table in one of the forms", out="p.xlsx")
    predict_fails("there is no directory", out="no/p.csv")
    predict_fails("'/proc/p.csv' cannot be written", out="/proc/p.csv")


def test_a_table_that_csv_cannot_hold(ready):
    table().with_columns(list=pl.concat_list("size", "rent")).write_parquet("t.parquet")
    predict_fails(r"'p.csv' cannot hold this table: .*; write \.parquet instead", data="t.parquet")


# What goes wrong while it works


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_a_full_disk_is_a_sentence_and_leaves_the_old_file(ready, command, monkeypatch):
    Path("out.csv").write_text("old")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    arguments = ["t.csv", "--target", "price", "--ignore", "id", *FAST] if command == "fit" else ["m", "t.csv"]
    result = run(command, *arguments, "--out", "out.csv")
    assert result.exit_code == 2
    assert "Error: No space left on device; no file was left half-written." in result.stderr
    assert Path("out.csv").read_text() == "old"
    assert sorted(os.listdir()) == ["m", "out.csv", "t.csv"]


def test_an_interrupt_ends_with_130_and_leaves_nothing(ready, monkeypatch):
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    result = run("predict", "m", "t.csv", "--out", "p.csv")
    assert result.exit_code == 130
    assert "Interrupted; no file was left half-written." in result.stderr
    assert sorted(os.listdir()) == ["m", "t.csv"]


@pytest.mark.parametrize(
    ("fault", "words"),
    [(MemoryError(), "Error: there is not enough memory"), (NumericalError("it diverged."), "Error: it diverged.")],
)
def test_faults_that_are_no_mistake_end_with_code_1(ready, fault, words, monkeypatch):
    def fail(*_: Any, **__: Any) -> None:
        raise fault

    monkeypatch.setattr(nescio.DissipativeRegressor, "fit", fail)
    result = run("fit", "t.csv", "--target", "price", "--ignore", "id", "--out", "new")
    assert result.exit_code == 1
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert not Path("new").exists()


def start(*arguments: str) -> subprocess.Popen[str]:
    source = str(Path(nescio.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    script = "from nescio.cli import main; print('ready', flush=True); main()"
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )


def test_a_real_process_works_and_fails_without_a_traceback(ready):
    process = start("predict", "m", "t.csv", "--out", "p.csv")
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, "ready\n")
    assert "Written to p.csv." in err
    process = start("predict", "t.csv", "t.csv", "--out", "q.csv")
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (2, "ready\n")
    assert err == "Error: 't.csv' is not a saved model: it is not a zip archive.\n"


def test_a_real_interrupt_during_training_leaves_nothing():
    table(400).drop("id").write_csv("t.csv")
    process = start("fit", "t.csv", "--target", "price", "--max-steps", "1000000", "--device", "cpu", "--out", "m")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(3.0)  # the table is read in a fraction of a second; training would take hours
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, ""), err
    assert err == "Interrupted; no file was left half-written.\n"
    assert os.listdir() == ["t.csv"]
