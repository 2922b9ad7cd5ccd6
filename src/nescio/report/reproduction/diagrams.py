"""The two graphical models, drawn: circles for what is random, grey for what is seen, boxes for what repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from nescio.report.style import GREY, INK, METHOD_COLOURS, NORMAL, PALE, panels

__all__ = ["regression_model", "v3ae_model"]

RADIUS = 0.36
Place = tuple[float, float]


def regression_model() -> Figure:
    """x and the precision give y; the posterior of the precision sees x alone. Paper: fig:vv_pgm_regression."""
    nodes = {"x": (0.0, 0.0, "$x$", True), "precision": (1.6, 1.3, r"$\lambda$", False), "y": (3.2, 0.0, "$y$", True)}
    return _diagram(
        nodes,
        solid=[("x", "y"), ("precision", "y")],
        dashed=[("x", "precision")],
        notes={"a, b": (1.6, 2.5, "precision"), r"$\mu_\theta$": (1.6, -0.32, None),
               r"$\alpha_\phi, \beta_\phi$": (0.1, 0.95, None)},
        size=(4.2, 2.7),
        limits=(-0.7, 3.9, -0.75, 2.7),
    )  # fmt: skip


def v3ae_model() -> Figure:
    """A code gives an image's mean and precision; dashed: encoder and posterior. Paper: fig:vv_pgm_v3ae."""
    nodes = {
        "z": (0.0, 1.3, "$z$", False),
        "precision": (3.2, 1.3, r"$\lambda$", False),
        "x": (1.6, 0.0, r"$\mathrm{x}$", True),
    }
    return _diagram(
        nodes,
        solid=[("z", "x"), ("precision", "x")],
        dashed=[("x", "z"), ("z", "precision")],
        notes={"N(0, I)": (0.0, 2.5, "z"), "a, b": (3.2, 2.5, "precision"), r"$\mu_\theta$": (0.55, 0.4, None),
               r"$q_\phi(z | \mathrm{x})$": (1.45, 0.93, None), r"$\alpha_\phi, \beta_\phi$": (1.6, 1.52, None)},
        size=(4.2, 2.7),
        limits=(-0.7, 3.9, -0.75, 2.7),
    )  # fmt: skip


def _diagram(
    nodes: Mapping[str, tuple[float, float, str, bool]],
    solid: Sequence[tuple[str, str]],
    dashed: Sequence[tuple[str, str]],
    notes: Mapping[str, tuple[float, float, str | None]],
    size: Place,
    limits: tuple[float, float, float, float],
) -> Figure:
    figure, grid = panels(1, 1, size[1], width=size[0])
    axes = grid[0][0]
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_xlim(limits[0], limits[1])
    axes.set_ylim(limits[2], limits[3])
    left, right = min(n[0] for n in nodes.values()) - 0.6, max(n[0] for n in nodes.values()) + 0.6
    axes.add_patch(
        FancyBboxPatch((left, -0.65), right - left, 2.5, boxstyle="round,pad=0.02", fill=False, edgecolor=GREY)
    )
    axes.annotate("N", (right - 0.08, -0.6), ha="right", va="bottom", fontsize=NORMAL, color=INK)
    for name, (x, y, text, seen) in nodes.items():
        axes.add_patch(Circle((x, y), RADIUS, facecolor=PALE if seen else "white", edgecolor=INK, linewidth=1.3))
        axes.annotate(text, (x, y), ha="center", va="center", fontsize=15, color=INK, gid=name)
    for pairs, style, colour, bend in ((solid, "-", INK, 0.0), (dashed, (0, (4, 2)), METHOD_COLOURS["d-vv"], 0.22)):
        for start, end in pairs:
            back = (end, start) in solid or (end, start) in dashed
            _arrow(axes, nodes[start][:2], nodes[end][:2], style, colour, bend if back else 0.0)
    for text, (x, y, below) in notes.items():
        axes.annotate(text, (x, y), ha="center", va="center", fontsize=NORMAL, color=INK)
        if below is not None:
            _arrow(axes, (x, y + RADIUS - 0.18), nodes[below][:2], "-", INK, 0.0)
    return figure


def _arrow(axes: object, start: Place, end: Place, style: object, colour: str, bend: float) -> None:
    axes.add_patch(  # type: ignore[attr-defined]
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=13, linestyle=style, color=colour, linewidth=1.3,
            connectionstyle=f"arc3,rad={bend}", shrinkA=27, shrinkB=27,
        )
    )  # fmt: skip
