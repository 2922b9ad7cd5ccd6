"""The demo's page: everything is in it, and nothing is fetched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nescio.report.figures import figure_svg, split_figure, std_figure, toy_figure
from nescio.report.page import Setting, demo_page
from nescio.report.statistics import summarise
from page_reader import Reader

SETTING = Setting({"standard": 80, "shifted": 57}, seed=11, max_steps=123, version="9.8.7")


@pytest.fixture
def page(fits):
    return demo_page(drawings(fits), summarise(fits), SETTING)


def drawings(fits):
    drawn = {"toy": toy_figure(fits), "std": std_figure(fits), "split": split_figure(fits)}
    return {name: figure_svg(figure, name) for name, figure in drawn.items()}


def test_the_page_is_well_formed_and_holds_the_three_figures_with_captions_and_descriptions(page):
    reader = Reader(page)
    assert reader.open == []
    assert reader.tags.count("svg") == reader.tags.count("figcaption") == 3
    labels = [value for tag, name, value in reader.attributes if (tag, name) == ("svg", "aria-label")]
    assert len(set(labels)) == 3
    assert page.count("<?xml") == page.count("<!DOCTYPE svg") == 0


def test_ids_of_the_three_figures_do_not_clash(page):
    reader = Reader(page)
    assert len(reader.ids) == len(set(reader.ids)) > 100


def test_the_page_loads_nothing(page):
    assert Reader(page).faults() == []


def test_the_page_says_the_numbers_and_calls_a_miss_a_miss(page, fits):
    text = " ".join(" ".join(Reader(page).words).split())
    lines = summarise(fits)
    for line in lines:
        verdicts = [line.statistics.rms_log_met, line.statistics.ratio_met, line.statistics.deviation_met]
        numbers = [f"{line.statistics.rms_log:.2f}", f"{line.statistics.ratio:.2f}", None]
        for number, met in zip(numbers, verdicts, strict=True):
            assert number is None or f"{number} {'met' if met else 'missed'}" in text
    assert "81 % missed" in text  # 0.8 against 4.2
    assert "seed 11" in text
    assert "123 steps" in text
    assert "version 9.8.7" in text
    for word in ("DissipativeRegressor(outside=15.0", "nescio fit table.csv", "nescio predict price.nescio"):
        assert word in text


def test_the_page_says_so_when_training_was_as_long_as_by_default(fits):
    page = demo_page(drawings(fits), summarise(fits), replace(SETTING, max_steps=None))
    assert "default parameters" in page
    assert "None" not in page


def test_text_from_outside_is_escaped(fits):
    page = demo_page(drawings(fits), summarise(fits), replace(SETTING, version="<script>alert(1)</script>"))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_the_page_follows_the_reader_to_the_dark_to_the_phone_and_to_paper(page):
    assert "prefers-color-scheme: dark" in page
    assert "width=device-width" in page
    assert "@media print" in page


def test_same_fits_same_page(fits, page):
    assert demo_page(drawings(fits), summarise(fits), SETTING) == page
