"""No number in the README without a record."""

from __future__ import annotations

from pathlib import Path

from nescio.benchmark.readme import TABLES, fill

ROOT = Path(__file__).parents[2]


def test_the_figures_of_the_readme_are_those_of_the_records():
    page = (ROOT / "README.md").read_text()
    assert fill(page, ROOT / "results") == page
    for name in TABLES:
        assert page.count(f"<!-- figures:{name} -->") == 1


def test_an_edited_figure_would_be_found():
    page = (ROOT / "README.md").read_text()
    broken = page.replace("| concrete | ", "| concrete | 9", 1)
    assert broken != page
    assert fill(broken, ROOT / "results") == page
