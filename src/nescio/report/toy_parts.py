"""What the toy figures of the demo and of the reproduction are made of: bands, data, the true noise, the level."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nescio.benchmark.desiderata import ToyFit, within
from nescio.report.style import INK, PALE, PART_COLOURS, SMALL, TRUTH, dress, legend_above

__all__ = ["band", "dots", "level_line", "panel", "parts", "plain_legend", "truth"]

BEYOND = (-1e3, 1e3)  # what lies out of view need not be drawn to scale


def panel(axes: Axes, fit: ToyFit, title: str) -> None:
    """The frame, the title, the grid's limits, and the hole in the data."""
    dress(axes, title)
    axes.set_xlim(float(fit.x[0]), float(fit.x[-1]))
    if fit.hole is not None:
        axes.axvspan(*fit.hole, color=PALE, linewidth=0, zorder=0)


def band(axes: Axes, x: np.ndarray, mean: np.ndarray, std: np.ndarray, colour: str, every: int = 1) -> None:
    """The mean, and mean ± 2 std at every so many points of the grid, all ``(G,)``."""
    lower, upper = (np.clip(mean + side * std, *BEYOND)[::every] for side in (-2.0, 2.0))
    axes.fill_between(x[::every], lower, upper, color=colour, alpha=0.25, linewidth=0, label="mean ± 2 std")
    axes.plot(x, mean, color=colour, linewidth=1.4, label="mean")


def dots(axes: Axes, x: np.ndarray, y: np.ndarray, *, rasterized: bool = False) -> None:
    """The data, below the curves."""
    axes.plot(x, y, ".", color=INK, markersize=1.5, alpha=0.55, zorder=1.5, label="data", rasterized=rasterized)


def truth(axes: Axes, fit: ToyFit) -> None:
    """The std of the noise that was put in, from the first input to the last."""
    seen = within(fit.x, (float(fit.x_data.min()), float(fit.x_data.max())))
    axes.plot(fit.x[seen], fit.true_std[seen], color=TRUTH, linewidth=2.6, label="true std")


def parts(axes: Axes, fit: ToyFit, ending: str = "") -> None:
    """The aleatoric and the epistemic part of the std."""
    drawn = {"aleatoric": (fit.aleatoric_std, "-"), "epistemic": (fit.epistemic_std, (0, (4, 1.5)))}
    for name, (values, dashes) in drawn.items():
        axes.plot(fit.x, values, color=PART_COLOURS[name], linewidth=1.8, linestyle=dashes, label=name + ending)


def level_line(axes: Axes, x: float, level: float, words: str) -> None:
    """A dashed line at a level, with its number in words that begin at ``x``."""
    axes.axhline(level, color=INK, linewidth=1.0, linestyle="--")
    axes.annotate(
        f"{words} {level:.2f}", (x, level), xytext=(4, 4), textcoords="offset points", fontsize=SMALL, color=INK,
        va="bottom",
    )  # fmt: skip


def plain_legend(figure: Figure, axes: Axes, columns: int) -> None:
    """A legend above all panels without a method's colour: the titles say which method."""
    legend = legend_above(figure, axes, columns)
    for line in legend.get_lines():
        line.set_color(INK)
    for patch in legend.get_patches():
        patch.set_color(PALE)
