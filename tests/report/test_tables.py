"""Tables drawn in five forms: every number, mark and note is there, and nothing that is not."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from html.parser import HTMLParser

import pytest

from nescio._validation import InputError
from nescio.benchmark.cells import EMPTY, Cell, Table
from nescio.report.tables import FORMATS, render

NOTE, OTHER = "The target was among the inputs.", "Measured on <training> rows | all."
TABLES = [
    Table(
        "first",
        "A title & more",
        ("split", "data", "ours", "published"),
        (
            (Cell("gap"), Cell("boston"), Cell(-0.6142, 0.33, best=True), Cell(1.5, 0.25, notes=(OTHER,))),
            (Cell("gap"), Cell("yacht"), EMPTY, Cell(1e11, 3.16e11, notes=(NOTE, OTHER))),
        ),
        ("Mean ± standard deviation.",),
        labels=2,
    ),
    Table(
        "second",
        "Differences",
        ("method", "boston", "yacht"),
        (
            (Cell("vv"), Cell(0.12345, interval=(-0.1, 0.35)), Cell(math.nan)),
            (Cell("gp"), Cell(3.0, second=16), Cell(math.inf, math.nan)),
        ),
        digits=3,
    ),
]


class Page(HTMLParser):
    """Rows of cells as text, and all the rest of the words."""

    def __init__(self):
        super().__init__()
        self.rows, self.words, self.cell = [], [], False

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.cell = True

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.cell = False

    def handle_data(self, data):
        if self.cell:
            self.rows[-1][-1] += data
        else:
            self.words.append(data.strip())


def test_text_aligns_columns_marks_the_best_and_explains_letters():
    text = render(TABLES, "text")
    lines = text.splitlines()
    assert "-0.61 ± 0.33*" in text
    assert "1.0e+11 ± 3.2e+11 (ba)" in text
    assert f"(a) {OTHER}" in lines
    assert f"(b) {NOTE}" in lines
    assert "0.123 [-0.100, 0.350]" in text
    assert "3.000 / 16" in text
    rows = [line for line in lines if line.startswith("gap")]
    assert len({line.index("boston" if "boston" in line else "yacht") for line in rows}) == 1


def test_markdown_has_one_row_per_row_and_no_stray_bars():
    lines = [line for line in render(TABLES, "md").splitlines() if line.startswith("|")]
    counts = [len(re.findall(r"(?<!\\)\|", line)) for line in lines]
    assert counts == [5] * 4 + [4] * 4
    assert "**-0.61 ± 0.33**" in lines[2]
    assert "<sup>ba</sup>" in lines[3]


def test_csv_is_long_and_exact():
    rows = list(csv.DictReader(io.StringIO(render(TABLES, "csv"))))
    assert len(rows) == 3 + 4
    assert rows[0] == {
        "table": "first", "row": "gap / boston", "column": "ours", "value": "-0.6142", "spread": "0.33", "low": "",
        "high": "", "second": "", "best": "1", "notes": "",
    }  # fmt: skip
    assert rows[2]["notes"] == f"{NOTE} {OTHER}"
    assert (rows[3]["low"], rows[3]["high"], rows[5]["second"]) == ("-0.1", "0.35", "16")


def test_json_is_standard_and_exact():
    first, second = json.loads(render(TABLES, "json"), parse_constant=pytest.fail)
    assert first["rows"][0][2] == {"value": -0.6142, "spread": 0.33, "best": True}
    assert first["rows"][1][2] == {}
    assert second["rows"][0][1]["interval"] == [-0.1, 0.35]
    assert second["rows"][0][2] == {"value": "nan"}
    assert second["rows"][1][2] == {"value": "inf", "spread": "nan"}
    assert (first["labels"], second["columns"]) == (2, ["method", "boston", "yacht"])


def test_the_page_is_self_contained_and_escapes_what_it_shows():
    text = render(TABLES, "html")
    page = Page()
    page.feed(text)
    assert page.rows[1] == ["gap", "boston", "-0.61 ± 0.33", "1.50 ± 0.25a"]
    assert page.rows[2] == ["gap", "yacht", "", "1.0e+11 ± 3.2e+11ba"]
    assert f"(a) {OTHER}" in page.words
    assert "<training>" not in text
    assert not re.search(r"(src|href)=\"(?!#)", text)
    assert '<td class="best">-0.61' in text


def test_there_are_five_forms_and_a_sixth_is_refused():
    assert list(FORMATS) == ["text", "md", "csv", "json", "html"]
    with pytest.raises(InputError, match="format must be one of"):
        render(TABLES, "pdf")
