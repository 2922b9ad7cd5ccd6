"""Drawings of the toy regression: from arrays to figures, nothing computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from nescio.benchmark.desiderata import LARGEST_KL, ToyFit
from nescio.datasets.toy import toy_mean
from nescio.report.style import (
    GREY,
    INK,
    METHOD_COLOURS,
    METHOD_NAMES,
    PALE,
    SMALL,
    STD_LABEL,
    TRUTH,
    dress,
    label,
    legend_above,
    panels,
)
from nescio.report.toy_parts import band, dots, level_line, panel, parts, plain_legend, truth

__all__ = ["bands", "divergences", "ncp", "placements", "priors", "sketch", "split", "stds"]

Arrays = Mapping[str, np.ndarray]
VIEW = (-32.0, 32.0)  # of y: the data, and bands of some levels around them
WORDS = {"standard": "all data", "shifted": "with a hole"}
Y_LABEL = "y (units of the target)"


def bands(fits: Sequence[Sequence[ToyFit]]) -> Figure:
    """Mean ± 2 std: a row for each method, a column for each data set. Paper: fig:toy_result."""
    figure, grid = panels(len(fits), len(fits[0]), 1.75)
    for row, pair in enumerate(fits):
        for column, fit in enumerate(pair):
            axes = grid[row][column]
            panel(axes, fit, f"{METHOD_NAMES[fit.method]}, {WORDS[fit.data]}")
            band(axes, fit.x, fit.mean, fit.std, METHOD_COLOURS[fit.method], every=2)
            dots(axes, fit.x_data, fit.y_data, rasterized=True)
            axes.set_ylim(*VIEW)
            label(axes, "y", left=column == 0, bottom=row == len(fits) - 1)
    plain_legend(figure, grid[0][0], columns=3)
    return figure


def stds(fits: Sequence[Sequence[ToyFit]], levels: Sequence[float]) -> Figure:
    """Predictive std of each method against the true one, a row for each data set. Paper: fig:toy_result."""
    figure, grid = panels(len(fits[0]), 1, 2.4)
    for row in range(len(fits[0])):
        axes, first = grid[row][0], fits[0][row]
        panel(axes, first, WORDS[first.data])
        truth(axes, first)
        for pair in fits:
            fit = pair[row]
            axes.plot(fit.x, fit.std, color=METHOD_COLOURS[fit.method], linewidth=1.6, label=METHOD_NAMES[fit.method])
        level_line(axes, float(first.x[0]), levels[row], "level of d-VV,")
        axes.set_ylim(0.0, 2.0 * max(levels))
        label(axes, STD_LABEL, bottom=row == len(fits[0]) - 1)
    legend_above(figure, grid[0][0], columns=3)
    return figure


def divergences(fits: Sequence[Sequence[ToyFit]]) -> Figure:
    """Divergence of each posterior from its prior, on a scale of powers of ten. Paper: fig:toy_result."""
    figure, grid = panels(len(fits[0]), 1, 2.2)
    for row in range(len(fits[0])):
        axes, first = grid[row][0], fits[0][row]
        panel(axes, first, WORDS[first.data])
        for pair in fits:
            fit = pair[row]
            if fit.kl is not None:
                drawn = np.maximum(fit.kl, 1e-6)
                axes.semilogy(
                    fit.x, drawn, color=METHOD_COLOURS[fit.method], linewidth=1.6, label=METHOD_NAMES[fit.method]
                )
        axes.axhline(LARGEST_KL, color=INK, linewidth=1.0, linestyle="--", label="0.1 nat")
        axes.set_ylim(1e-5, 1e3)
        label(axes, "KL to the prior (nats)", bottom=row == len(fits[0]) - 1)
    legend_above(figure, grid[0][0], columns=4)
    return figure


def split(fits: Sequence[ToyFit]) -> Figure:
    """The aleatoric and the epistemic part of one method's std. Paper: fig:aleatoric_epistemic_split_toy."""
    figure, grid = panels(len(fits), 1, 2.3)
    for row, fit in enumerate(fits):
        axes = grid[row][0]
        panel(axes, fit, f"{METHOD_NAMES[fit.method]}, {WORDS[fit.data]}")
        truth(axes, fit)
        parts(axes, fit)
        axes.set_ylim(0.0, 1.5 * fit.level)
        label(axes, STD_LABEL, bottom=row == len(fits) - 1)
    legend_above(figure, grid[0][0], columns=3)
    return figure


def sketch(found: Arrays) -> Figure:
    """Data, the density of their inputs, pseudo-inputs beside them, and the prior they are trained towards."""
    figure, grid = panels(1, 1, 3.4)
    axes = grid[0][0]
    dress(axes, "")
    x, level = found["x"], float(found["level"])
    floor = -26.0
    density = found["density"] / found["density"].max()
    axes.fill_between(x, floor, floor + 5.0 * density, color=PALE, linewidth=0, label="density of the inputs")
    mean, std = found["mean"], found["std"]
    band(axes, x, mean, std, METHOD_COLOURS["d-vv"])
    placed = found["pseudo_inputs"]
    outer = placed[(placed < found["x_data"].min()) | (placed > found["x_data"].max())]
    axes.plot(placed, np.full(len(placed), floor + 0.8), "|", color=METHOD_COLOURS["vv"], markersize=11,
              markeredgewidth=1.5, label="pseudo-inputs")  # fmt: skip
    y = np.linspace(-3.0 * level, 3.0 * level, 101)
    for place in np.unique([outer.min(), outer.max()]):
        middle = np.interp(place, x, mean)
        bell = np.exp(-0.5 * np.square(y / level))
        axes.fill_betweenx(
            middle + y, place, place + np.sign(place - 5.0) * 3.0 * bell, color=GREY, alpha=0.55, linewidth=0,
            label="prior" if place == outer.min() else None,
        )  # fmt: skip
    axes.plot(found["x_data"], found["y_data"], ".", color=INK, markersize=3.0, label="data")
    axes.set_ylim(floor, 20.0)
    axes.set_xlim(float(x[0]), float(x[-1]))
    label(axes, Y_LABEL)
    legend_above(figure, axes, columns=3)
    return figure


def ncp(found: Arrays) -> Figure:
    """Noise contrastive priors with growing weight, and d-VV: the band widens, and the mean flattens."""
    names = [*(f"{weight:g}" for weight in found["weights"]), "d-vv"]
    figure, grid = panels(len(names), 1, 1.55)
    for row, name in enumerate(names):
        axes = grid[row][0]
        colour = METHOD_COLOURS["d-vv" if name == "d-vv" else "ncp"]
        what = "d-VV" if name == "d-vv" else f"noise contrastive priors, weight {name}"
        dress(axes, f"{what}: error of the mean inside {float(found[f'rmse/{name}']):.2f}")
        band(axes, found["x"], found[f"mean/{name}"], found[f"std/{name}"], colour)
        inside = found["x"][(found["x"] >= 0) & (found["x"] <= 10)]
        axes.plot(inside, toy_mean(inside), color=TRUTH, linewidth=1.0, linestyle="--", label="true mean")
        dots(axes, found["x_data"], found["y_data"], rasterized=True)
        axes.set_ylim(-22.0, 22.0)
        axes.set_xlim(float(found["x"][0]), float(found["x"][-1]))
        label(axes, "y", bottom=row == len(names) - 1)
    legend = legend_above(figure, grid[0][0], columns=4)
    for patch in legend.get_patches():
        patch.set_color(PALE)
    return figure


def placements(found: Arrays) -> Figure:
    """Std without, with close and with far pseudo-inputs: near the data, and as far as the far ones lie."""
    figure, grid = panels(3, 2, 1.7, share=False)
    words = {"no": "no pseudo-inputs", "close": "close pseudo-inputs", "far": "far pseudo-inputs"}
    level = float(found["level"])
    for row, (name, title) in enumerate(words.items()):
        colour = METHOD_COLOURS["vv" if name == "no" else "d-vv"]
        for column, (low, high) in enumerate(((-8.0, 18.0), (-200.0, 210.0))):
            axes = grid[row][column]
            dress(axes, title if column == 0 else "farther away")
            axes.axhline(level, color=INK, linewidth=1.0, linestyle="--", label="prior")
            axes.plot(found["inside"], found["true_inside"], color=TRUTH, linewidth=2.4, label="true std")
            axes.plot(found["x"], found[f"std/{name}"], color=colour, linewidth=1.6, label="predictive std")
            for start, end in found.get(f"intervals/{name}", ()):
                axes.axvspan(start, end, color=METHOD_COLOURS["vv"], alpha=0.18, linewidth=0)
            axes.set_xlim(low, high)
            axes.set_ylim(0.0, 2.4 * level)
            label(axes, "std", left=column == 0, bottom=row == 2)
    legend = legend_above(figure, grid[0][0], columns=3)
    legend.get_lines()[-1].set_color(INK)
    return figure


def priors(found: Arrays) -> Figure:
    """Two priors of one variance: their densities, the best posterior's divergence, and the std that it gives."""
    figure, grid = panels(1, 3, 2.5, share=False, width=8.0)
    colours = ("#009E73", "#D55E00")
    words = [f"rate {rate:g}" for rate in found["rates"]]
    for number, (colour, word) in enumerate(zip(colours, words, strict=True)):
        grid[0][0].semilogx(found["precision"], found[f"density/{number}"], color=colour, linewidth=1.8, label=word)
        grid[0][1].semilogy(found["x"], found[f"kl/{number}"], color=colour, linewidth=1.8)
        grid[0][2].plot(found["x"], found[f"std/{number}"], color=colour, linewidth=1.8)
    grid[0][2].plot(found["x"], found["true_std"], color=TRUTH, linewidth=1.2, linestyle="--", label="true std")
    titles = (("the priors", "density of log λ", "precision λ"), ("divergence", "KL to the prior (nats)", "x"),
              ("what is predicted", STD_LABEL, "x"))  # fmt: skip
    for axes, (title, y, x) in zip(grid[0], titles, strict=True):
        dress(axes, title)
        label(axes, y, x=x)
    grid[0][2].set_ylim(0.0, None)
    grid[0][2].legend(fontsize=SMALL, frameon=False, loc="lower right")
    legend_above(figure, grid[0][0], columns=2)
    return figure
