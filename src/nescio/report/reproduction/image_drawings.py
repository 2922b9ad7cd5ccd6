"""Drawings of the models of images: maps over codes, sheets of images, paths of codes, densities of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nescio.report.style import INK, MAP, METHOD_COLOURS, METHOD_NAMES, NORMAL, SMALL, dress, label, panels

__all__ = ["entropies", "path_figure", "samples", "score_densities", "variance_maps"]

Arrays = Mapping[str, np.ndarray]
# Tol's "light" palette, ten classes: only to see that classes lie apart.
CLASSES = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00", "#DDDDDD", "#888888")
INSIDE, OUTSIDE = METHOD_COLOURS["d-vv"], METHOD_COLOURS["vv"]
RULES = {
    "none": "bound, no refit",
    "transductive": "bound, encoder refitted to all foreign images (the paper's)",
    "per-image": "gain of the bound by a refit of each image alone",
    "novelty": "our score, no refit",
}


def variance_maps(found: Arrays, methods: Sequence[str]) -> Figure:
    """The decoder's variance over the plane of codes with codes of test images; and images drawn there."""
    low, high = _ends(found, "variance", methods)
    titles = [METHOD_NAMES[method] for method in methods]
    norm = LogNorm(max(low, 1e-3), high)
    return _planes(found, "variance", methods, norm, titles, "variance, summed", "images drawn there")


def samples(found: Arrays, methods: Sequence[str]) -> Figure:
    """Test images, and sheets drawn from each model: at the codes of those images, and at fresh codes."""
    figure, grid = panels(1 + len(methods), 2, 2.75, share=False, width=5.6)
    _sheet(grid[0][0], found["data"], 6, "test images")
    grid[0][1].set_axis_off()
    for row, method in enumerate(methods, start=1):
        _sheet(grid[row][0], found[f"again/{method}"], 6, f"{METHOD_NAMES[method]}: the same, drawn")
        _sheet(grid[row][1], found[f"samples/{method}"], 6, f"{METHOD_NAMES[method]}: new")
    return figure


def path_figure(found: Arrays, methods: Sequence[str]) -> Figure:
    """Codes of foreign images on their way while the encoder is fitted to them, and what is drawn at both ends."""
    figure, grid = panels(len(methods), 2, 2.9, share=False)
    for row, method in enumerate(methods):
        axes = grid[row][0]
        variance = found[f"variance/{method}"]
        _map(axes, found[f"axis/{method}"], variance, LogNorm(max(float(variance.min()), 1e-6), float(variance.max())))
        _codes(axes, found[f"codes/{method}"], None)
        path = found[f"path/{method}"]
        for place in range(path.shape[1]):
            axes.plot(path[:, place, 0], path[:, place, 1], "-", color="#D55E00", linewidth=1.3)
            axes.plot(*path[0, place], "o", color="white", markeredgecolor="#D55E00", markersize=4)
            axes.plot(*path[-1, place], "o", color="#D55E00", markersize=4)
        reach = float(found[f"axis/{method}"][-1])
        axes.set_xlim(-reach, reach)
        axes.set_ylim(-reach, reach)
        dress(axes, METHOD_NAMES[method])
        label(axes, "code 2", bottom=row == len(methods) - 1, x="code 1")
        rows = [found["foreign"], found[f"before/{method}"], found[f"after/{method}"]]
        _sheet(grid[row][1], np.concatenate(rows), path.shape[1], "foreign; drawn before; drawn after")
    return figure


def score_range(inside: np.ndarray, foreign: np.ndarray) -> tuple[float, float]:
    """Ends of an axis: the whiskers of both box plots, at most three lengths of the ordinary ones beyond those."""
    (low, high), (lower, upper) = _whiskers(inside), _whiskers(foreign)
    room = 3.0 * (high - low)
    return max(min(low, lower), low - room), min(max(high, upper), high + room)


def _whiskers(values: np.ndarray) -> tuple[float, float]:
    lower, upper = np.quantile(values, [0.25, 0.75])
    reach = 1.5 * (upper - lower)
    return float(max(values.min(), lower - reach)), float(min(values.max(), upper + reach))


def score_densities(
    found: Arrays, methods: Sequence[str], aurocs: Mapping[tuple[str, str], float], outside: str
) -> Figure:
    """How scores of ordinary and of foreign images are spread, a row for each rule and a column for each model."""
    figure, grid = panels(len(RULES), len(methods), 1.6, share=False)
    for row, (rule, words) in enumerate(RULES.items()):
        for column, method in enumerate(methods):
            axes = grid[row][column]
            inside, foreign = (found[f"{rule}/{method}/{where}"] for where in ("inside", "outside"))
            low, high = score_range(inside, foreign)
            edges = np.linspace(low, high, 41).tolist()
            for values, colour, name in ((inside, INSIDE, "FashionMNIST"), (foreign, OUTSIDE, outside)):
                axes.hist(
                    np.clip(values, low, high), edges, density=True, color=colour, alpha=0.55, label=name, linewidth=0
                )
            dress(axes, f"{METHOD_NAMES[method]}: AUROC {aurocs[rule, method]:.3f}")
            axes.set_yticks([])
            axes.xaxis.set_major_locator(MaxNLocator(5))
            axes.spines["left"].set_visible(False)
            axes.set_xlabel(words if column == 0 else "", fontsize=SMALL, color=INK, loc="left")
    handles, names = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=2, fontsize=SMALL, frameon=False)
    return figure


def entropies(found: Arrays, methods: Sequence[str]) -> Figure:
    """The entropy of the mean image over the plane of codes, and mean images there."""
    titles = ("without pseudo-inputs", "with pseudo-inputs")
    norm = Normalize(*_ends(found, "entropy", methods))
    return _planes(found, "entropy", methods, norm, titles, "entropy (nats)", "mean images there")


def _ends(found: Arrays, name: str, methods: Sequence[str]) -> tuple[float, float]:
    maps = [found[f"{name}/{method}"] for method in methods]
    return min(float(each.min()) for each in maps), max(float(each.max()) for each in maps)


def _planes(
    found: Arrays, name: str, methods: Sequence[str], norm: Normalize, titles: Sequence[str], unit: str, there: str
) -> Figure:
    """A row for each model: values over the plane of codes on one scale, and images from a lattice of codes."""
    figure, grid = panels(len(methods), 2, 2.9, share=False)
    for row, (method, title) in enumerate(zip(methods, titles, strict=True)):
        axes = grid[row][0]
        shown = _map(axes, found[f"axis/{method}"], found[f"{name}/{method}"], norm)
        _codes(axes, found[f"codes/{method}"], found["labels"])
        dress(axes, title)
        label(axes, "code 2", bottom=row == len(methods) - 1, x="code 1")
        bar = figure.colorbar(shown, ax=axes, shrink=0.85, pad=0.02)
        bar.set_label(unit, fontsize=SMALL, color=INK)
        bar.ax.tick_params(labelsize=SMALL - 1)
        _sheet(grid[row][1], found[f"lattice/{method}"], 9, there)
    return figure


def _map(axes: Axes, axis: np.ndarray, values: np.ndarray, norm: Normalize) -> Any:
    shown = axes.pcolormesh(axis, axis, values, cmap=MAP, norm=norm, rasterized=True, shading="gouraud")
    axes.set_aspect("equal")
    return shown


def _codes(axes: Axes, codes: np.ndarray, labels: np.ndarray | None) -> None:
    colours = "#FFFFFF" if labels is None else [CLASSES[int(each) % 10] for each in labels]
    axes.scatter(codes[:, 0], codes[:, 1], s=2.0, c=colours, alpha=0.6, linewidths=0, rasterized=True)


def _sheet(axes: Axes, images: np.ndarray, columns: int, title: str) -> None:
    """Images ``(K, H, W)`` side by side, so many in a row."""
    height, width = images.shape[1:3]
    rows = -(-len(images) // columns)
    sheet = np.full((rows * (height + 1), columns * (width + 1)), 255, dtype=np.uint8)
    for place, image in enumerate(images):
        row, column = divmod(place, columns)
        top, left = row * (height + 1), column * (width + 1)
        sheet[top : top + height, left : left + width] = image
    axes.imshow(sheet, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    axes.set_axis_off()
    axes.set_title(title, fontsize=NORMAL, color=INK, loc="left")
