"""``--card`` of ``nescio fit`` and ``nescio predict``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from nescio.cli import app
from page_reader import Reader

FAST = ("--max-steps", "3", "--members", "1", "--device", "cpu")


@pytest.fixture(autouse=True)
def _inside_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    size = rng.normal(100.0, 20.0, 40)
    names = [f"house {n}" for n in range(40)]
    pl.DataFrame({"id": names, "size": size, "age": rng.integers(0, 90, 40), "price": 3 * size}).write_csv("t.csv")


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_fit_writes_a_card_of_a_second_fit_beside_the_same_model():
    plain = run("fit", "t.csv", "--target", "price", "--id", "id", "--out", "plain.nescio", *FAST)
    result = run("fit", "t.csv", "--target", "price", "--id", "id", "--out", "m.nescio", "--card", "c.html", *FAST)
    assert (plain.exit_code, result.exit_code) == (0, 0), result.output
    assert "Judged by a second fit without 8 rows. The card is in c.html." in result.stderr
    assert Path("m.nescio").read_bytes() == Path("plain.nescio").read_bytes()  # the card moves nothing
    reader = Reader(Path("c.html").read_text(encoding="utf-8"))
    assert reader.faults() == []
    for words in ("price", "learned from all 40 rows", "fitted once more on 32 of them", "the 8 rows", "house "):
        assert words in reader.text


def test_predict_writes_a_card_of_the_verdicts():
    assert run("fit", "t.csv", "--target", "price", "--ignore", "id", "--out", "m.nescio", *FAST).exit_code == 0
    result = run("predict", "m.nescio", "t.csv", "--out", "p.csv", "--card", "new.html")
    assert result.exit_code == 0, result.output
    assert "The card is in new.html." in result.stderr
    reader = Reader(Path("new.html").read_text(encoding="utf-8"))
    assert reader.faults() == []
    assert "The new rows" in reader.text


def test_the_card_of_new_rows_calls_them_by_the_ids_of_the_fit():
    assert run("fit", "t.csv", "--target", "price", "--id", "id", "--out", "m.nescio", *FAST).exit_code == 0
    new = pl.DataFrame({"id": ["a boat", "a house"], "size": [1e4, 100.0], "age": [900, 40]})
    new.write_csv("new.csv")
    new.drop("id").write_csv("nameless.csv")
    heads = {}
    for name in ("new", "nameless"):
        assert run("predict", "m.nescio", f"{name}.csv", "--out", "p.csv", "--card", "c.html").exit_code == 0
        heads[name] = re.findall(
            r'<tr><th scope="row">([^<]*)</th><td><span class="verdict', Path("c.html").read_text()
        )
    assert heads == {"new": ["a boat"], "nameless": ["1"]}


@pytest.mark.parametrize(
    ("card", "match"),
    [
        ("c.txt", "its name must end in .html; got 'c.txt'"),
        ("no/c.html", "there is no directory"),
        ("m.html", "--card and --out are both 'm.html'"),
        ("t.html", "--card is the input 't.html' itself"),
    ],
)
def test_a_card_that_cannot_be_written_is_refused_before_any_work(card, match):
    Path("t.csv").rename("t.html.csv") if card == "t.html" else None
    source = "t.csv"
    if card == "t.html":
        Path("t.html").symlink_to("t.html.csv")
        Path("t.csv").symlink_to("t.html.csv")
    before = set(Path().iterdir())
    out = "m.html" if card == "m.html" else "m.nescio"
    result = run("fit", source, "--target", "price", "--ignore", "id", "--out", out, "--card", card, *FAST)
    assert result.exit_code == 2
    assert match.replace("t.html' itself", "t.csv' itself") in result.stderr
    assert set(Path().iterdir()) == before


def test_a_card_without_its_packages_is_refused_before_any_work(monkeypatch):
    for name in ("nescio.report.card_page", "nescio.report.html"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = run("fit", "t.csv", "--target", "price", "--ignore", "id", "--out", "m", "--card", "c.html", *FAST)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "Error: --card needs jinja2: pip install 'nescio[cli]'.\n"
    assert [path.name for path in Path().iterdir()] == ["t.csv"]


def test_a_table_too_small_to_set_rows_aside_is_refused():
    pl.read_csv("t.csv")[:9].write_csv("small.csv")
    result = run(
        "fit", "small.csv", "--target", "price", "--ignore", "id", "--out", "m.nescio", "--card", "c.html", *FAST
    )
    assert result.exit_code == 2
    assert "needs at least 10; the table has 9" in result.stderr
