"""The look of a card's figures: their size, the colours and marks of the verdicts, labels, legends and ticks."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from nescio.report.drawing import BLUE, INK, NORMAL, ORANGE, RED, SMALL
from nescio.report.style import frame

__all__ = [
    "HEIGHT",
    "VERDICT_COLOURS",
    "VERDICT_MARKERS",
    "WIDTH",
    "bare_frame",
    "label_axes",
    "legend",
    "limits",
    "number_ticks",
    "panel",
    "percent_ticks",
    "some_rows",
    "write_label",
]

WIDTH, HEIGHT = 4.1, 3.2  # inches: at a phone's width the small letters are 10 pixels high
VERDICT_COLOURS = {"inside": BLUE, "edge": ORANGE, "outside": RED, "unknown": INK}
VERDICT_MARKERS = {"inside": "o", "edge": "^", "outside": "X", "unknown": "o"}
MOST_POINTS = 600  # of a scatter: more are a blot, and a heavy page


def panel(height: float = HEIGHT) -> tuple[Figure, Axes]:
    """A figure of a card's width with one pair of axes."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    bare_frame(axes)
    return figure, axes


def bare_frame(axes: Axes) -> None:
    """Two sides of a frame, on the page's own ground."""
    frame(axes)
    axes.set_facecolor("none")


def label_axes(axes: Axes, x: str, y: str) -> None:
    """Words below and beside the axes."""
    write_label(axes.set_xlabel, x)
    write_label(axes.set_ylabel, y)


def write_label(setter: Any, text: str) -> None:
    """A label as it is: a dollar in a column's name begins no formula."""
    setter(text, fontsize=NORMAL - 0.5, color=INK).set_parse_math(False)


def legend(axes: Axes, loc: Any, columns: int = 1) -> None:
    """The words of these axes, without a frame."""
    words = axes.legend(
        loc=loc, ncols=columns, fontsize=SMALL, frameon=False, labelcolor=INK, handlelength=1.3, handletextpad=0.5,
        columnspacing=0.9, borderaxespad=0.2, labelspacing=0.3,
    )  # fmt: skip
    for line in words.get_lines():
        line.set_alpha(1.0)


def percent_ticks(axes: Axes, *, x: bool, y: bool) -> None:
    """Quarters, in per cent."""
    for wanted, axis in ((x, axes.xaxis), (y, axes.yaxis)):
        if wanted:
            axis.set_ticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])


def number_ticks(axis: Axis) -> None:
    """Round numbers on a logarithmic axis, written out."""
    low, high = axis.get_view_interval()
    if not low > 0.0:
        return
    steps = (1.0, 2.0, 5.0) if high / low < 50.0 else (1.0,)
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def some_rows(count: int, most: int = MOST_POINTS) -> np.ndarray:
    """Numbers of at most ``most`` rows, the same ones each time."""
    return np.arange(count) if count <= most else np.sort(np.random.default_rng(0).permutation(count)[:most])


def limits(values: np.ndarray) -> tuple[float, float]:
    """From the least to the largest value, with a little room."""
    low, high = float(np.min(values)), float(np.max(values))
    room = 0.05 * (high - low) or 1.0
    return low - room, high + room
