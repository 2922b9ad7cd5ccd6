"""What a model says beyond its data, as figures: one column at a time, and the map of ignorance."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nescio.report.card_probe import Curve, Map
from nescio.report.card_style import (
    VERDICT_COLOURS,
    VERDICT_MARKERS,
    WIDTH,
    bare_frame,
    label_axes,
    legend,
    limits,
    panel,
    some_rows,
    write_label,
)
from nescio.report.card_table import CATEGORY, DATE
from nescio.report.card_words import short, written
from nescio.report.drawing import BLUE, GREEN, INK, ORANGE, PALE, PINK, RED, SMALL

__all__ = ["curve_figure", "map_figure"]

REACH = 4.0  # levels above and below the training mean that a curve may show


def curve_figure(curve: Curve, output: int, target: str, spread: tuple[float, float]) -> Figure:
    """Mean and bands of one column above, the std below with the level outside; where there are data is unshaded.

    ``spread`` is the mean and the spread of the training targets, which set what is shown of a mean that runs away.
    """
    figure = Figure(figsize=(WIDTH, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    upper, lower = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [3, 2]})
    mean, noise, std = curve.mean[:, output], curve.aleatoric[:, output], curve.std[:, output]
    x = np.arange(len(curve.x)) if curve.kind == CATEGORY else curve.x
    if curve.kind == CATEGORY:
        _draw_categories(upper, lower, x, mean, noise, std)
    else:
        _draw_bands(upper, lower, x, mean, noise, std)
        first, last = curve.data.min(), curve.data.max()
        for axes in (upper, lower):
            axes.axvspan(x[0], first, color=PALE, alpha=0.55, linewidth=0, zorder=0)
            axes.axvspan(last, x[-1], color=PALE, alpha=0.55, linewidth=0, zorder=0)
        for place in (1 / 6, 5 / 6):
            upper.text(place, 0.02, "no data", transform=upper.transAxes, fontsize=SMALL, color=INK, ha="center")
        ticks = curve.data[some_rows(len(curve.data), 300)]
        lower.plot(
            ticks, np.full(len(ticks), 0.03), "|", color=INK, markersize=5, alpha=0.3,
            transform=lower.get_xaxis_transform(),
        )  # fmt: skip
        lower.set_xlim(x[0], x[-1])
    level = 0.0
    if curve.level is not None:
        levels = curve.level[:, output]
        level = float(levels.max())
        number = f" {written(level)}" if np.ptp(levels) <= 1e-6 * level else ""
        lower.plot(x, levels, color=RED, linewidth=1.3, linestyle="--", label=f"level outside{number}")
    room = REACH * max(spread[1], level)
    low, high = max(np.min(mean - 2.0 * std), spread[0] - room), min(np.max(mean + 2.0 * std), spread[0] + room)
    upper.set_ylim(*limits(np.array([low, high])))
    tallest = float(np.max(std, where=np.isfinite(std), initial=level))
    lower.set_ylim(0.0, 1.75 * (min(tallest, 3.0 * level) if level else tallest) or 1.0)
    for axes in (upper, lower):
        bare_frame(axes)
    upper.yaxis.set_major_locator(MaxNLocator(5))
    lower.yaxis.set_major_locator(MaxNLocator(4))
    if curve.kind == CATEGORY:
        words = [short(value, 12) for value in curve.x]
        lower.set_xticks(x, words, rotation=30, ha="right", rotation_mode="anchor")
        for label in lower.get_xticklabels():
            label.set_parse_math(False)
    elif curve.kind == DATE:
        ticks = x[len(x) // 8 :: len(x) // 4]
        unit = "D" if x[-1] - x[0] > np.timedelta64(8, "D") else "m"
        lower.set_xticks(ticks, [str(tick.astype(f"datetime64[{unit}]")).replace("T", "\n") for tick in ticks])
    else:
        lower.xaxis.set_major_locator(MaxNLocator(5))
    write_label(upper.set_ylabel, short(target, 26))
    write_label(lower.set_ylabel, "std")
    write_label(lower.set_xlabel, short(curve.name, 40))
    legend(upper, loc="upper center", columns=3)
    legend(lower, loc="upper center", columns=3)
    return figure


def _draw_bands(upper: Axes, lower: Axes, x: np.ndarray, mean: np.ndarray, noise: np.ndarray, std: np.ndarray) -> None:
    upper.fill_between(x, mean - 2 * std, mean + 2 * std, color=PINK, alpha=0.35, linewidth=0, label="± 2 std")
    upper.fill_between(x, mean - 2 * noise, mean + 2 * noise, color=GREEN, alpha=0.45, linewidth=0, label="noise alone")
    upper.plot(x, mean, color=INK, linewidth=1.6, label="mean")
    lower.plot(x, std, color=PINK, linewidth=1.8, label="std")
    lower.plot(x, noise, color=GREEN, linewidth=1.8, linestyle=(0, (4, 1.5)), label="noise")


def _draw_categories(
    upper: Axes, lower: Axes, x: np.ndarray, mean: np.ndarray, noise: np.ndarray, std: np.ndarray
) -> None:
    upper.errorbar(x, mean, yerr=2 * std, fmt="none", ecolor=PINK, elinewidth=7, alpha=0.5, label="± 2 std")
    upper.errorbar(x, mean, yerr=2 * noise, fmt="none", ecolor=GREEN, elinewidth=4, alpha=0.7, label="noise alone")
    upper.plot(x, mean, "o", color=INK, markersize=5, label="mean")
    lower.plot(x, std, "o", color=PINK, markersize=6, label="std")
    lower.plot(x, noise, "D", color=GREEN, markersize=5, label="noise")
    lower.set_xlim(-0.6, len(x) - 0.4)


def map_figure(found: Map, verdict: np.ndarray, edge: float, outside: float) -> Figure:
    """The plane of the data with the regions of the verdicts; rows of the data, and held-out rows by verdict."""
    figure, axes = panel(4.4)
    levels = [0.0, outside, edge, 1.0]
    axes.contourf(
        found.across, found.up, found.support, levels=levels, colors=[RED, ORANGE, BLUE], alpha=0.22, antialiased=True
    )
    axes.contour(found.across, found.up, found.support, levels=[outside, edge], colors=[RED, ORANGE], linewidths=1.1)
    rows = some_rows(len(found.rows), 600)
    axes.plot(*found.rows[rows].T, "o", color=INK, markersize=1.6, markeredgewidth=0, alpha=0.35, label="training rows")
    left = len(found.judged)
    for word, colour in VERDICT_COLOURS.items():
        chosen = np.flatnonzero(verdict[:left] == word)
        chosen = chosen[some_rows(len(chosen), 400)]
        if len(chosen):
            axes.plot(
                *found.judged[chosen].T, VERDICT_MARKERS[word], color=colour, markeredgewidth=0, alpha=0.9,
                markersize=5.0 if word == "outside" else 3.4, label=f"{word} rows",
            )  # fmt: skip
    axes.set_xlim(found.across[0], found.across[-1])
    axes.set_ylim(found.up[0], found.up[-1])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5))
    label_axes(axes, short(found.labels[0], 52), short(found.labels[1], 52))
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=SMALL, frameon=False,
        labelcolor=INK, handletextpad=0.3, columnspacing=1.0,
    )  # fmt: skip
    return figure
