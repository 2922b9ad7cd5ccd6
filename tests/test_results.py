"""The page of results says what the records say."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from nescio.benchmark.foreign_mean_tables import summary
from nescio.benchmark.tables import tables_of_files
from nescio.report.page_tables import fill_tables

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results.md"


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_every_table_of_the_page_is_the_one_that_its_records_make(page):
    files = sorted(set(re.findall(r"--csv (results/\w+\.csv)", page)))
    assert len(files) == 4
    assert fill_tables(page, tables_of_files(ROOT / file for file in files)) == page


def test_every_table_of_the_page_on_images_is_the_one_that_its_records_make():
    page = (ROOT / "docs" / "images.md").read_text(encoding="utf-8")
    files = sorted(set(re.findall(r"--csv (results/\w+\.csv)", page)))
    assert files == ["results/detection.csv", "results/images.csv"]
    assert fill_tables(page, tables_of_files(ROOT / file for file in files)) == page


def test_the_page_has_the_tables_of_both_protocols_and_of_the_ablations(page):
    tables = re.findall(r"<!-- table:(\S+) -->", page)
    assert {name.split("_")[0] for name in tables} == {"paper", "sound", "ablation"}
    assert len(tables) == len(set(tables))


def test_the_page_on_other_means_quotes_the_summary_of_its_records():
    def rows(name):
        with (ROOT / "results" / name).open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    rivals = [row for row in rows("uci_sound.csv") if row["method"] == "ngboost"]
    page = (ROOT / "docs" / "any-regressor.md").read_text(encoding="utf-8")
    assert summary(rows("foreign_mean.csv"), rivals)[0] in page
