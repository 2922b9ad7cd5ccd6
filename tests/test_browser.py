"""The browser's measurements, on pages whose faults are known."""

from __future__ import annotations

import matplotlib.image
import pytest

from browser import DESKTOP, PHONE, needs_chromium, screenshot, visit

pytestmark = needs_chromium

HEAD = '<!doctype html><meta charset="utf-8"><title>t</title><body style="margin:0;font-size:16px">'
SVG = '<svg width="100%" viewBox="0 0 200 100">{text}</svg>'
TEXT = '<text x="0" y="50" font-size="{size}" transform="rotate(-90 9 50)">words</text>'


def shown(folder, body):
    page = folder / "page & more.html"
    page.write_text(HEAD + body, encoding="utf-8")
    return page


def test_a_good_page_is_silent_and_fits(tmp_path):
    seen = visit(shown(tmp_path, "<p>words</p>" + SVG.format(text=TEXT.format(size=8))))
    assert seen.messages == []
    for look, width in zip(seen.looks, (PHONE, DESKTOP), strict=True):
        assert (look.width, look.scroll_width, look.figures, look.empty_figures) == (width, width, 1, 0)
        assert look.smallest_text == pytest.approx(min(16.0, 8 * width / 200), rel=1e-3)
        assert (look.sticking_out, look.dark) == ([], False)


def test_faults_are_seen_and_named(tmp_path):
    policy = """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">"""
    wide = '<div id="{}" style="width:500px">a</div>'
    held = f'<div style="overflow-x:auto">{wide.format("held")}</div>'
    seen = visit(shown(tmp_path, f'{policy}{wide.format("wide")}{held}<img src="no.png">'), [PHONE])
    assert any("Content Security Policy" in message for message in seen.messages)
    look = seen.looks[0]
    assert (look.scroll_width, look.sticking_out) == (500, ["div#wide"])
    assert (look.figures, look.empty_figures) == (0, 1)


def test_the_dark_can_be_pictured(tmp_path):
    style = "<style>body{background:#fff}@media(prefers-color-scheme:dark){body{background:#102030}}</style>"
    screenshot(shown(tmp_path, style + "<p>words</p>"), tmp_path / "page.png", PHONE, height=300, dark=True)
    picture = matplotlib.image.imread(tmp_path / "page.png")
    assert picture.shape[:2] == (300, PHONE)
    assert (255 * picture[-1, -1, :3]).round().tolist() == [0x10, 0x20, 0x30]
