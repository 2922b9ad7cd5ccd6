"""The toy figures. Every property is set on the objects: no global state is read from pyplot or written to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nescio.report.statistics import ToyFit
from nescio.report.style import (
    INK,
    METHOD_COLOURS,
    METHOD_NAMES,
    STD_LABEL,
    figure_png,
    figure_svg,
    label,
    legend_above,
    note,
    panels,
)
from nescio.report.toy_parts import band, dots, level_line, panel, parts, plain_legend, truth

__all__ = ["METHOD_COLOURS", "METHOD_NAMES", "figure_png", "figure_svg", "split_figure", "std_figure", "toy_figure"]

VIEW = 6.0  # levels above and below the data that are shown at most: a mean may run off much farther


def toy_figure(fits: Sequence[ToyFit]) -> Figure:
    """Mean and mean ± 2 std with the data: a row per data set, a column per method. Paper: fig:toy_result."""
    rows, columns = _names(fits)
    figure, grid = panels(len(rows), len(columns), 2.5)
    by_name = {(fit.data, fit.method): fit for fit in fits}
    low, high = _view(fits)
    for row, data in enumerate(rows):
        for column, method in enumerate(columns):
            axes, fit = grid[row][column], by_name[data, method]
            _panel(axes, fit, f"{METHOD_NAMES[method]}, {data} data", hole_word="bottom")
            band(axes, fit.x, fit.mean, fit.std, METHOD_COLOURS[method])
            dots(axes, fit.x_data, fit.y_data)
            axes.set_ylim(low, high)
            if not low <= fit.mean[-1] <= high:
                note(axes, "the mean\nruns out\nof view", (0.97, 0.04), ha="right", va="bottom")
            label(axes, "y (units of the target)", left=column == 0, bottom=row == len(rows) - 1)
    plain_legend(figure, grid[0][0], columns=3)
    return figure


def std_figure(fits: Sequence[ToyFit]) -> Figure:
    """Predictive std of each method against the true one, a row per data set; the level outside is marked."""
    rows, columns = _names(fits)
    figure, grid = panels(len(rows), 1, 2.3)
    by_name = {(fit.data, fit.method): fit for fit in fits}
    for row, data in enumerate(rows):
        axes, first = grid[row][0], by_name[data, columns[0]]
        _panel(axes, first, f"{data} data")
        truth(axes, first)
        for method in columns:
            fit = by_name[data, method]
            axes.plot(fit.x, fit.std, color=METHOD_COLOURS[method], linewidth=1.8, label=METHOD_NAMES[method])
        _mark_level(axes, first)
        label(axes, STD_LABEL, left=True, bottom=row == len(rows) - 1)
    grid[0][0].set_ylim(0.0, _top(fits))
    legend_above(figure, grid[0][0], columns=4)
    return figure


def split_figure(fits: Sequence[ToyFit], method: str = "d-vv") -> Figure:
    """The two factors of one method's std: the noise it believes in, and what not knowing the noise adds."""
    chosen = [fit for fit in fits if fit.method == method]
    figure, grid = panels(len(chosen), 1, 2.3)
    for row, fit in enumerate(chosen):
        axes = grid[row][0]
        _panel(axes, fit, f"{METHOD_NAMES[method]}, {fit.data} data")
        axes.plot(fit.x, fit.std, color=METHOD_COLOURS[method], linewidth=1.8, label="total std")
        parts(axes, fit, " std")
        _mark_level(axes, fit)
        label(axes, STD_LABEL, left=True, bottom=row == len(chosen) - 1)
    grid[0][0].set_ylim(0.0, _top(chosen))
    legend_above(figure, grid[0][0], columns=4)
    return figure


def _names(fits: Sequence[ToyFit]) -> tuple[list[str], list[str]]:
    """Data sets and methods in the order in which they first come."""
    return list(dict.fromkeys(fit.data for fit in fits)), list(dict.fromkeys(fit.method for fit in fits))


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


def _panel(axes: Axes, fit: ToyFit, title: str, hole_word: str = "top") -> None:
    """A panel with a word in the hole of the data."""
    panel(axes, fit, title)
    if fit.hole is not None:
        low, high = axes.get_xlim()
        middle = (0.5 * sum(fit.hole) - low) / (high - low)
        note(axes, "hole", (middle, 0.97 if hole_word == "top" else 0.04), ha="center", va=hole_word)


def _mark_level(axes: Axes, fit: ToyFit) -> None:
    """The level that holds outside, and a tick for each input of the data."""
    level_line(axes, float(fit.x[0]), fit.level, "outside level")
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
