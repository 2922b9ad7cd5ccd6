"""The demo's page: everything is in it, and nothing is fetched."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from nescio.report.figures import figure_svg, split_figure, std_figure, toy_figure
from nescio.report.page import Setting, demo_page
from nescio.report.statistics import summarise

SETTING = Setting({"standard": 80, "shifted": 57}, seed=11, max_steps=123, version="9.8.7")
VOID = {"meta", "br", "link", "img", "input", "hr"}


class Reader(HTMLParser):
    """Collects tags, ids and text, and checks that elements are closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.attributes, self.ids, self.words = [], [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)


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
    reader = Reader(page)
    assert not {"script", "link", "img", "iframe", "object"} & set(reader.tags)
    loading = [(t, n, v) for t, n, v in reader.attributes if n in ("src", "href", "xlink:href", "srcset", "data")]
    assert all(value.startswith("#") for _, _, value in loading)
    assert "@import" not in page
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]+)\)", page))
    addresses = set(re.findall(r"https?://[^\"' <>]+", page))
    assert addresses <= {"http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"}  # names, never loaded
    assert "default-src 'none'" in page


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
