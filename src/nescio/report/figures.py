"""The toy figures. Every property is set on the objects: no global state is read from pyplot or written to it."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from nescio.report.statistics import ToyFit

__all__ = ["METHOD_COLOURS", "METHOD_NAMES", "figure_png", "figure_svg", "split_figure", "std_figure", "toy_figure"]

# Okabe and Ito's palette: told apart by all common kinds of colour vision.
METHOD_COLOURS = {"d-vv": "#0072B2", "vv": "#D55E00"}
METHOD_NAMES = {"d-vv": "d-VV", "vv": "VV"}
PART_COLOURS = {"aleatoric": "#009E73", "epistemic": "#CC79A7"}
TRUTH = "#000000"
INK = "#333333"
PALE = "#E4E4E4"

WIDTH = 6.0  # inches: small enough for letters that can be read on a phone
SMALL, NORMAL = 8.5, 10.0  # points
DPI = 150
VIEW = 6.0  # levels above and below the data that are shown at most: a mean may run off much farther
STD_LABEL = "std (units of the target)"


def toy_figure(fits: Sequence[ToyFit]) -> Figure:
    """Mean and mean ± 2 std with the data: a row per data set, a column per method. Paper: fig:toy_result."""
    rows, columns = _names(fits)
    figure, grid = _panels(len(rows), len(columns), 2.5)
    by_name = {(fit.data, fit.method): fit for fit in fits}
    low, high = _view(fits)
    for row, data in enumerate(rows):
        for column, method in enumerate(columns):
            axes, fit = grid[row][column], by_name[data, method]
            colour = METHOD_COLOURS[method]
            _dress(axes, fit, f"{METHOD_NAMES[method]}, {data} data", hole_word="bottom")
            axes.fill_between(
                fit.x,
                fit.mean - 2.0 * fit.std,
                fit.mean + 2.0 * fit.std,
                color=colour,
                alpha=0.25,
                linewidth=0,
                label="mean ± 2 std",
            )
            axes.plot(fit.x, fit.mean, color=colour, linewidth=1.4, label="mean")
            axes.plot(fit.x_data, fit.y_data, ".", color=INK, markersize=1.6, alpha=0.6, zorder=1.5, label="data")
            axes.set_ylim(low, high)
            if not low <= fit.mean[-1] <= high:
                _note(axes, "the mean\nruns out\nof view", (0.97, 0.04), ha="right", va="bottom")
            _label(axes, "y (units of the target)", left=column == 0, bottom=row == len(rows) - 1)
    legend = _legend(figure, grid[0][0], columns=3)
    for line in legend.get_lines():
        line.set_color(INK)  # the titles say which method
    for patch in legend.get_patches():
        patch.set_color(PALE)
    return figure


def std_figure(fits: Sequence[ToyFit]) -> Figure:
    """Predictive std of each method against the true one, a row per data set; the level outside is marked."""
    rows, columns = _names(fits)
    figure, grid = _panels(len(rows), 1, 2.3)
    by_name = {(fit.data, fit.method): fit for fit in fits}
    for row, data in enumerate(rows):
        axes, first = grid[row][0], by_name[data, columns[0]]
        _dress(axes, first, f"{data} data")
        seen = (first.x >= first.x_data.min()) & (first.x <= first.x_data.max())
        axes.plot(first.x[seen], first.true_std[seen], color=TRUTH, linewidth=2.6, label="true std")
        for method in columns:
            fit = by_name[data, method]
            axes.plot(fit.x, fit.std, color=METHOD_COLOURS[method], linewidth=1.8, label=METHOD_NAMES[method])
        _mark_level(axes, first)
        _label(axes, STD_LABEL, left=True, bottom=row == len(rows) - 1)
    grid[0][0].set_ylim(0.0, _top(fits))
    _legend(figure, grid[0][0], columns=4)
    return figure


def split_figure(fits: Sequence[ToyFit], method: str = "d-vv") -> Figure:
    """The two factors of one method's std: the noise it believes in, and what not knowing the noise adds."""
    chosen = [fit for fit in fits if fit.method == method]
    figure, grid = _panels(len(chosen), 1, 2.3)
    for row, fit in enumerate(chosen):
        axes = grid[row][0]
        _dress(axes, fit, f"{METHOD_NAMES[method]}, {fit.data} data")
        parts = {"aleatoric": (fit.aleatoric_std, "-"), "epistemic": (fit.epistemic_std, (0, (4, 1.5)))}
        axes.plot(fit.x, fit.std, color=METHOD_COLOURS[method], linewidth=1.8, label="total std")
        for name, (values, dashes) in parts.items():
            axes.plot(fit.x, values, color=PART_COLOURS[name], linewidth=1.8, linestyle=dashes, label=f"{name} std")
        _mark_level(axes, fit)
        _label(axes, STD_LABEL, left=True, bottom=row == len(chosen) - 1)
    grid[0][0].set_ylim(0.0, _top(chosen))
    _legend(figure, grid[0][0], columns=4)
    return figure


def figure_png(figure: Figure) -> bytes:
    """The figure as PNG at 150 dots per inch."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


def figure_svg(figure: Figure, name: str) -> str:
    """The figure as SVG. Ids are ``name-1``, ``name-2``, ...: the same at each run, and unlike another figure's.

    Matplotlib's own ids are random and, for letters, the same in all figures: several in one page would clash.
    """
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", facecolor="white", metadata=nothing)
    text = buffer.getvalue()
    names = {old: f"{name}-{n}" for n, old in enumerate(dict.fromkeys(re.findall(r' id="([^"]+)"', text)), start=1)}
    rename = lambda found: found.group(1) + names[found.group(2)]
    return re.sub(r'( id="|href="#|url\(#)([^")]+)', rename, text)


def _names(fits: Sequence[ToyFit]) -> tuple[list[str], list[str]]:
    """Data sets and methods in the order in which they first come."""
    return list(dict.fromkeys(fit.data for fit in fits)), list(dict.fromkeys(fit.method for fit in fits))


def _panels(rows: int, columns: int, height: float) -> tuple[Figure, list[list[Axes]]]:
    """A white figure with ``rows`` x ``columns`` axes that share their scales."""
    figure = Figure(figsize=(WIDTH, height * rows + 0.4), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    return figure, [list(line) for line in grid]


def _view(fits: Sequence[ToyFit]) -> tuple[float, float]:
    """Limits of y that hold the data and as much of the bands as lies within some levels of them."""
    low, high = min(float(fit.y_data.min()) for fit in fits), max(float(fit.y_data.max()) for fit in fits)
    reach = VIEW * max(fit.level for fit in fits)
    lowest = min(float(np.min(fit.mean - 2.0 * fit.std)) for fit in fits)
    highest = max(float(np.max(fit.mean + 2.0 * fit.std)) for fit in fits)
    room = 0.05 * (high - low)
    return min(low, max(lowest, low - reach)) - room, max(high, min(highest, high + reach)) + room


def _top(fits: Sequence[ToyFit]) -> float:
    """Upper limit of std: somewhat above the curves, at most three levels."""
    level = max(fit.level for fit in fits)
    finite = [float(np.max(fit.std, where=np.isfinite(fit.std), initial=0.0)) for fit in fits]
    return 1.2 * min(max(level, *finite), 3.0 * level)


def _dress(axes: Axes, fit: ToyFit, title: str, hole_word: str = "top") -> None:
    """What all panels share: the frame, the title, and the hole in the data."""
    axes.set_title(title, fontsize=NORMAL, color=INK, loc="left")
    axes.set_xlim(float(fit.x[0]), float(fit.x[-1]))
    axes.tick_params(labelsize=SMALL, colors=INK)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)
    if fit.hole is not None:
        axes.axvspan(*fit.hole, color=PALE, linewidth=0, zorder=0)
        low, high = axes.get_xlim()
        middle = (0.5 * sum(fit.hole) - low) / (high - low)
        _note(axes, "hole", (middle, 0.97 if hole_word == "top" else 0.04), ha="center", va=hole_word)


def _mark_level(axes: Axes, fit: ToyFit) -> None:
    """The level that holds outside as a dashed line with its number, and a tick for each input of the data."""
    axes.axhline(fit.level, color=INK, linewidth=1.0, linestyle="--")
    axes.annotate(
        f"outside level {fit.level:.2f}",
        (float(fit.x[0]), fit.level),
        xytext=(4, 4),
        textcoords="offset points",
        fontsize=SMALL,
        color=INK,
        va="bottom",
    )
    axes.plot(
        fit.x_data,
        np.full(len(fit.x_data), 0.02),
        "|",
        color=INK,
        markersize=5,
        alpha=0.25,
        label="inputs",
        transform=axes.get_xaxis_transform(),
    )


def _note(axes: Axes, text: str, place: tuple[float, float], *, ha: str, va: str) -> None:
    """A word inside the panel, at fractions of its width and height."""
    axes.annotate(text, place, xycoords="axes fraction", fontsize=SMALL, color=INK, ha=ha, va=va)


def _label(axes: Axes, text: str, *, left: bool, bottom: bool) -> None:
    """Label the axes on the rim of the grid; the others share them."""
    if left:
        axes.set_ylabel(text, fontsize=NORMAL, color=INK)
    if bottom:
        axes.set_xlabel("x", fontsize=NORMAL, color=INK)


def _legend(figure: Figure, axes: Axes, columns: int) -> Legend:
    """One legend above all panels, with the words of the first."""
    handles, labels = axes.get_legend_handles_labels()
    legend = figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=columns,
        fontsize=SMALL,
        frameon=False,
        labelcolor=INK,
        handlelength=1.6,
        columnspacing=1.4,
    )
    for handle in legend.get_lines():
        handle.set_alpha(1.0)
    return legend
