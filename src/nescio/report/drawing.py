"""Figures that take their colours and letters from the page they lie in, and follow it into the dark."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib
from matplotlib.figure import Figure

from nescio.report.style import INK, NORMAL, PALE, SMALL, figure_svg

__all__ = ["BLUE", "GREEN", "INK", "NORMAL", "ORANGE", "PALE", "PINK", "RED", "SMALL", "themed_svg"]

# Okabe and Ito's palette: told apart by all common kinds of colour vision.
BLUE, RED, GREEN, PINK, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"
THEME = {INK: "ink", PALE: "pale", BLUE: "blue", RED: "red", GREEN: "green", PINK: "pink", ORANGE: "orange"}
"""Names of the colours in a page's style, ``--figure-ink`` and so on: in the dark the page gives them other values."""


def themed_svg(figure: Figure, name: str) -> str:
    """The figure as SVG without a ground, whose colours and letters are the page's.

    Words stay words, so that they can be searched and read aloud, in any script that the reader's machine has.
    """
    with _plain_letters():
        text = figure_svg(figure, name, facecolor="none")
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"font-family: [^;\"]*", "font-family: system-ui, sans-serif", text)
    text = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag.group()), text)  # a hundredth of a point
    for colour, word in THEME.items():
        text = re.sub(f"(?i){colour}", f"var(--figure-{word}, {colour})", text)
    return text


@contextmanager
def _plain_letters() -> Iterator[None]:
    """Write letters as text, whose glyphs the reader's machine supplies: matplotlib's font need not have them."""
    with warnings.catch_warnings(), matplotlib.rc_context({"svg.fonttype": "none"}):
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield
