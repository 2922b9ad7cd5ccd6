"""Accuracy, calibration and sharpness as figures: they draw what was computed elsewhere, small enough for a phone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nescio.report.card_statistics import Bins, Coverage, Histogram, Judged, Reliability
from nescio.report.card_style import (
    VERDICT_COLOURS,
    VERDICT_MARKERS,
    label_axes,
    legend,
    limits,
    number_ticks,
    panel,
    percent_ticks,
    some_rows,
)
from nescio.report.card_words import short
from nescio.report.drawing import BLUE, INK, PALE, RED

__all__ = [
    "accuracy_figure",
    "coverage_figure",
    "error_figure",
    "pit_figure",
    "reliability_figure",
    "sharpness_figure",
]


def accuracy_figure(judged: Judged) -> Figure:
    """What came against what was expected, by verdict, with the line of perfect means."""
    figure, axes = panel()
    rows = some_rows(len(judged.y))
    low, high = limits(np.concatenate([judged.y[rows], judged.mean[rows]]))
    axes.plot([low, high], [low, high], color=INK, linewidth=1.0, linestyle="--", label="perfect")
    for word, colour in VERDICT_COLOURS.items():
        chosen = rows[judged.verdict[rows] == word]
        if len(chosen):
            lower, upper = judged.intervals[0.9]
            spans = [judged.mean[chosen] - lower[chosen], upper[chosen] - judged.mean[chosen]]
            axes.errorbar(
                judged.mean[chosen], judged.y[chosen], xerr=np.maximum(spans, 0.0), fmt="none", ecolor=colour,
                elinewidth=0.6, alpha=0.18,
            )  # fmt: skip
            axes.plot(
                judged.mean[chosen], judged.y[chosen], VERDICT_MARKERS[word], color=colour, markersize=3.2,
                markeredgewidth=0, alpha=0.75, label=word,
            )  # fmt: skip
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    label_axes(axes, f"predicted {short(judged.name, 26)}", f"actual {short(judged.name, 26)}")
    legend(axes, loc="upper left")
    return figure


def reliability_figure(found: Reliability, intervals: Sequence[Coverage]) -> Figure:
    """Shares found in central intervals against the shares promised, with the band that chance allows."""
    figure, axes = panel()
    axes.fill_between(found.level, found.low, found.high, color=PALE, linewidth=0, label="within chance")
    axes.plot([0.0, 1.0], [0.0, 1.0], color=INK, linewidth=1.0, linestyle="--")
    axes.plot(found.level, found.found, "-o", color=BLUE, markersize=3.0, linewidth=1.6, label="fitted distribution")
    if intervals:
        axes.plot(
            [line.level for line in intervals], [line.share for line in intervals], "D", color=RED, markersize=5.0,
            markerfacecolor="none", markeredgewidth=1.4, label="predict_interval",
        )  # fmt: skip
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 1.0)
    percent_ticks(axes, x=True, y=True)
    label_axes(axes, "probability promised", "share of rows found in it")
    legend(axes, loc="upper left")
    return figure


def pit_figure(found: Histogram) -> Figure:
    """Where the values came in their predicted distributions."""
    figure, axes = panel()
    axes.axhspan(found.fewest, found.most, color=PALE, linewidth=0, label="within chance")
    axes.axhline(float(found.count.sum()) / len(found.count), color=INK, linewidth=1.0, linestyle="--", label="even")
    axes.bar(
        found.edges[:-1], found.count, width=np.diff(found.edges), align="edge", color=BLUE, alpha=0.75,
        edgecolor="none", label="rows",
    )  # fmt: skip
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 1.35 * max(float(found.count.max()), float(found.most)))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    label_axes(axes, "predicted probability of a value this low", "rows")
    legend(axes, loc="upper center", columns=3)
    return figure


def error_figure(judged: Judged, bins: Bins) -> Figure:
    """Errors against the std that was given for them: single rows, and bins of equal size."""
    figure, axes = panel()
    rows = some_rows(len(judged.y))
    size = np.abs(judged.error)
    axes.plot(
        judged.std[rows], size[rows], "o", color=INK, markersize=2.0, markeredgewidth=0, alpha=0.25, label="a row"
    )
    if len(bins.std):
        axes.fill_between(bins.std, bins.low, bins.high, color=BLUE, alpha=0.18, linewidth=0, label="within chance")
        axes.plot(bins.std, bins.std, color=INK, linewidth=1.0, linestyle="--", label="error = std")
        axes.plot(
            bins.std, bins.error, "-o", color=BLUE, markersize=4.0, linewidth=1.6, label=f"bins of {bins.rows[0]}"
        )
    positive = judged.std[(judged.std > 0) & np.isfinite(judged.std)]
    if len(positive) and positive.max() > 8.0 * positive.min():
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(0.02 * float(np.median(positive)), 6.0 * float(max(size.max(), positive.max())))
        number_ticks(axes.xaxis)
        number_ticks(axes.yaxis)
    else:
        axes.set_ylim(0.0, 1.35 * float(max(size.max(), bins.high.max() if len(bins.std) else 0.0)) or 1.0)
    label_axes(axes, "predicted standard deviation", "size of the error")
    legend(axes, loc="upper left", columns=2)
    return figure


def sharpness_figure(judged: Judged, level: float | None) -> Figure:
    """How wide the answers are: the std of each row, beside the spread of the target and the level outside."""
    figure, axes = panel()
    std = judged.std[np.isfinite(judged.std) & (judged.std > 0)]
    marks = {"spread of the target": judged.spread} | ({} if level is None else {"level outside": level})
    if len(std):
        low, high = min(std.min(), *marks.values()) / 1.15, max(std.max(), *marks.values()) * 1.15
        words = judged.verdict[np.isfinite(judged.std) & (judged.std > 0)]
        parts = {word: std[words == word] for word in VERDICT_COLOURS if np.any(words == word)}
        axes.hist(
            list(parts.values()), bins=np.geomspace(low, high, 32).tolist(), stacked=True, alpha=0.8, edgecolor="none",
            color=[VERDICT_COLOURS[word] for word in parts], label=list(parts),
        )  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlim(low, high)
    for (name, value), dashes in zip(marks.items(), (":", "--"), strict=False):
        axes.axvline(value, color=INK, linewidth=1.2, linestyle=dashes, label=name)
    top = axes.get_ylim()[1]
    axes.set_ylim(0.0, 1.45 * top)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    number_ticks(axes.xaxis)
    label_axes(axes, f"predicted std of {short(judged.name, 24)}", "rows")
    legend(axes, loc="upper left", columns=2)
    return figure


def coverage_figure(lines: Sequence[Coverage]) -> Figure:
    """Shares of rows in their intervals, in all and by verdict, with the range that chance allows."""
    figure, axes = panel()
    groups = list(dict.fromkeys(line.group for line in lines))
    levels = sorted({line.level for line in lines})
    places = {level: place for place, level in enumerate(levels)}
    step = 0.8 / len(groups)
    for number, group in enumerate(groups):
        chosen = [line for line in lines if line.group == group]
        x = np.array([places[line.level] for line in chosen]) + step * (number + 0.5) - 0.4
        colour = VERDICT_COLOURS.get(group, INK)
        for place, line in zip(x, chosen, strict=True):
            axes.plot(
                [place, place], [line.fewest / line.rows, line.most / line.rows], color=PALE, linewidth=7,
                solid_capstyle="butt", zorder=1,
            )  # fmt: skip
        axes.plot(
            x, [line.share for line in chosen], "s" if group == "all" else VERDICT_MARKERS[group], color=colour,
            markersize=5.0, markeredgewidth=0, zorder=3, label=f"{group} ({chosen[0].rows:,})",
        )  # fmt: skip
    for level, place in places.items():
        axes.plot([place - 0.45, place + 0.45], [level, level], color=INK, linewidth=1.0, linestyle="--", zorder=2)
    axes.set_xticks(list(places.values()), [f"{100 * level:g} %" for level in levels])
    axes.set_ylim(0.0, 1.03)
    percent_ticks(axes, x=False, y=True)
    label_axes(axes, "probability of the interval", "share of rows found in it")
    legend(axes, loc="lower right")
    return figure
