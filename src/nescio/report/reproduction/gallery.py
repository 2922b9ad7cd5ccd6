"""The idea in two dimensions: a gallery of placements, and a descent that can be walked with a slider."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nescio.benchmark import gallery_runs
from nescio.benchmark.workshop import Workshop
from nescio.report.reproduction.piece import OURS, Drawn, Piece
from nescio.report.style import GREY, INK, MAP, METHOD_COLOURS, SMALL, dress, panels

__all__ = ["descent", "gallery"]

Arrays = Mapping[str, np.ndarray]
ORANGE = METHOD_COLOURS["vv"]


def gallery(workshop: Workshop) -> Piece:
    """Data, density, pseudo-inputs, knowledge and std, for each placement."""
    steps = workshop.steps()
    found = {
        name: workshop.arrays(
            "gallery_" + "".join(c if c.isalnum() else "_" for c in name),
            lambda name=name: gallery_runs.gallery_map(name, steps),  # type: ignore[misc]
        )
        for name in gallery_runs.PLACEMENTS
    }
    first = next(iter(found.values()))
    stds = {name: _off(each) for name, each in found.items()}
    said = ", ".join(f"{name} {value:.0%}" for name, value in stds.items())
    return Piece(
        OURS, f"Median distance of the std from the level, off the data: {said}.",
        ("Five hundred points on two arcs; the target rises along them, its noise too. One network, no anchor, one "
         "level outside: what differs is only where the pseudo-inputs lie.",
         "Placements that end at the rim, the printed descent and the level set, leave all that is farther out to the "
         "network, which goes where it likes. Far noise blurs the rim. Gaussian noise falls on the data too and lifts "
         "the std there. The default has points at every distance and none on the data."),
        (Drawn("data", _data(first), "The data, coloured by the target, and the density that the placements walk on.",
               "Two arcs of points coloured by the target, and the logarithm of their density."),
         Drawn("placements", _rows(found), "A row for each placement. Left: pseudo-inputs (orange) on the data (grey). "
               "Middle: knowledge, dark where the posterior is the prior. Right: the std, bright at the level. The "
               "best row is dark on the arcs in the right column and bright everywhere else.",
               "For six placements: pseudo-inputs, a map of knowledge and a map of the standard deviation.")),
    )  # fmt: skip


def _off(found: Arrays) -> float:
    """Median relative distance of the std from the level where the density is low."""
    away = found["log_density"] < np.quantile(found["log_density"], 0.7)
    return float(np.median(np.abs(found["std"][away] / float(found["level"]) - 1.0)))


def _data(found: Arrays) -> Figure:
    figure, grid = panels(1, 2, 2.8, share=False)
    x = found["x_data"]
    dots = grid[0][0].scatter(x[:, 0], x[:, 1], c=found["y_data"], cmap=MAP, s=5, linewidths=0)
    _bar(figure, dots, grid[0][0], "target")
    axis = found["axis"]
    height = np.maximum(found["log_density"], found["log_density"].max() - 25.0)
    shown = grid[0][1].pcolormesh(axis, axis, height, cmap=MAP, shading="gouraud", rasterized=True)
    _bar(figure, shown, grid[0][1], "log-density")
    for axes, title in zip(grid[0], ("data", "density"), strict=True):
        dress(axes, title)
        _square(axes, axis)
        _name(axes)
    return figure


def _rows(found: Mapping[str, Arrays]) -> Figure:
    figure, grid = panels(len(found), 3, 2.05, share=False, width=7.0)
    for row, (name, each) in enumerate(found.items()):
        axis, level = each["axis"], float(each["level"])
        left, middle, right = grid[row]
        left.plot(*each["x_data"].T, ".", color=GREY, markersize=1.5, rasterized=True)
        left.plot(*each["pseudo_inputs"].T, ".", color=ORANGE, markersize=2.2, rasterized=True)
        known = middle.pcolormesh(
            axis, axis, each["knowledge"], cmap=MAP, vmin=0, vmax=2.0, shading="gouraud", rasterized=True
        )
        spread = right.pcolormesh(
            axis, axis, each["std"] / level, cmap=MAP, vmin=0, vmax=1.5, shading="gouraud", rasterized=True
        )
        for axes, title in zip((left, middle, right), (name, "knowledge", "std"), strict=True):
            dress(axes, title)
            _square(axes, axis)
        _name(left)
        _bar(figure, known, middle, "nats")
        _bar(figure, spread, right, "of the level")
    return figure


def _bar(figure: Figure, shown: object, axes: object, words: str) -> None:
    bar = figure.colorbar(shown, ax=axes, shrink=0.8, pad=0.02)  # type: ignore[arg-type]
    bar.set_label(words, fontsize=SMALL - 1, color=INK)
    bar.ax.tick_params(labelsize=SMALL - 1.5)


def _name(axes: Axes) -> None:
    axes.set_xlabel("input 1", fontsize=SMALL, color=INK)
    axes.set_ylabel("input 2", fontsize=SMALL, color=INK)


def _square(axes: object, axis: np.ndarray) -> None:
    axes.set_aspect("equal")  # type: ignore[attr-defined]
    axes.set_xlim(axis[0], axis[-1])  # type: ignore[attr-defined]
    axes.set_ylim(axis[0], axis[-1])  # type: ignore[attr-defined]


def descent(workshop: Workshop) -> Piece:
    """The walk of pseudo-inputs down the density, step by step."""
    found = workshop.arrays("descent", gallery_runs.descent_path, trained=False)
    path, height = found["path"], found["log_density"]
    figure, grid = panels(1, 1, 4.2, width=5.2)
    axes = grid[0][0]
    dress(axes, "from the data (grey) downhill")
    axes.plot(*found["x_data"].T, ".", color=GREY, markersize=2.0)
    for place in range(path.shape[1]):
        axes.plot(*path[:, place].T, "-", color=ORANGE, linewidth=0.8, alpha=0.7)
    axes.plot(*path[-1].T, ".", color=ORANGE, markersize=5)
    _name(axes)
    _square(axes, np.array([-6.0, 6.0]))
    played = json.dumps(
        {
            "data": np.round(found["x_data"], 2).tolist(),
            "path": np.round(path, 2).tolist(),
            "height": np.round(height.mean(1), 2).tolist(),
            "reach": 6.0,
        },
        separators=(",", ":"),
    )
    return Piece(
        OURS, f"In {len(path) - 1} steps of 0.15 the mean log-density falls from {height[0].mean():.1f} to "
        f"{height[-1].mean():.1f}.",
        ("Unit steps down log p, as the authors ran it, with more and shorter steps so that one can follow. Points "
         "leave by the nearest way; some meet in the gap between the arcs, which is outside too, and where a model "
         "needs them most.",),
        (Drawn("descent", figure, "Each line is the way of one pseudo-input; the dots are where they end.",
               "Paths of eighty points from two arcs of data downhill on the density."),),
        played=played,
    )  # fmt: skip
