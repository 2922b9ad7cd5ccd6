"""One look for all figures: colours, names, sizes, frames, and how a figure becomes a file.

Every property is set on the objects: no global state is read from pyplot or written to it.
"""

from __future__ import annotations

import io
import re

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend

__all__ = [
    "METHOD_COLOURS", "METHOD_NAMES", "dress", "figure_png", "figure_svg", "frame", "label",
    "legend_above", "note", "panels",
]  # fmt: skip

METHOD_COLOURS = {
    # Okabe and Ito's palette for those that are compared most: told apart by all common kinds of colour vision.
    "d-vv": "#0072B2", "vv": "#D55E00", "deep-ensemble": "#009E73", "mean-variance": "#CC79A7",
    "vv-no-prior": "#E69F00", "d-vv-one-prior": "#56B4E9",
    # Tol's muted palette for the others.
    "skafte": "#882255", "ncp": "#AA4499", "bbb": "#332288", "mc-dropout": "#999933", "gp": "#555555",
    "beta-nll": "#CC6677", "evidential": "#44AA99", "faithful": "#117733", "ngboost": "#88CCEE",
    "vv-vbem": "#A08820", "pseudo-count": "#661100", "d-vv-ensemble": "#004C78",
    "d-vv-as-run": "#3C6E8F", "vv-as-run": "#A65A2A",
}  # fmt: skip
METHOD_NAMES = {
    "d-vv": "d-VV", "d-vv-one-prior": "d-VV, one prior", "vv": "VV", "vv-no-prior": "VV, no prior",
    "mean-variance": "mean-variance network", "beta-nll": "β-NLL", "deep-ensemble": "deep ensemble",
    "mc-dropout": "MC dropout", "skafte": "Skafte et al.", "ncp": "noise contrastive priors",
    "bbb": "Bayes by backprop", "gp": "Gaussian process", "evidential": "evidential regression",
    "faithful": "faithful heteroscedastic", "ngboost": "NGBoost", "vv-vbem": "VV, VBEM prior",
    "pseudo-count": "pseudo-counts", "d-vv-ensemble": "d-VV, five members",
    "d-vv-as-run": "d-VV, their settings", "vv-as-run": "VV, their settings",
    "d-v3ae": "d-V3AE", "v3ae": "V3AE",
    "vae": "Gaussian VAE",
    "vae-gaussian": "VAE, Gaussian mean", "sigma-vae": "VAE, one variance", "bernoulli": "Bernoulli VAE",
    "bernoulli-entropy": "Bernoulli VAE with pseudo-inputs",
}  # fmt: skip
PART_COLOURS = {"aleatoric": "#B58900", "epistemic": "#3B2F5C"}  # yellow and dark, as in the paper
TRUTH = "#000000"
INK = "#333333"
GREY = "#8A8A8A"
PALE = "#E4E4E4"
MAP = "cividis"  # for heights over a plane: even to the eye, and the same to all kinds of colour vision

WIDTH = 6.0  # inches: small enough for letters that can be read on a phone
SMALL, NORMAL = 8.5, 10.0  # points
DPI = 150
STD_LABEL = "std (units of the target)"


def panels(
    rows: int, columns: int, height: float, *, width: float = WIDTH, share: bool = True
) -> tuple[Figure, list[list[Axes]]]:
    """A white figure with ``rows`` x ``columns`` axes, by default with scales in common."""
    figure = Figure(figsize=(width, height * rows + 0.4), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, sharex=share, sharey=share, squeeze=False)
    return figure, [list(line) for line in grid]


def dress(axes: Axes, title: str) -> None:
    """A frame of two sides and a title on the left."""
    axes.set_title(title, fontsize=NORMAL, color=INK, loc="left")
    frame(axes)


def frame(axes: Axes) -> None:
    """Ink for the letters, and two sides of a frame."""
    axes.tick_params(labelsize=SMALL, colors=INK)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)


def note(axes: Axes, text: str, place: tuple[float, float], *, ha: str, va: str) -> None:
    """A word inside the panel, at fractions of its width and height."""
    axes.annotate(text, place, xycoords="axes fraction", fontsize=SMALL, color=INK, ha=ha, va=va)


def label(axes: Axes, text: str, *, left: bool = True, bottom: bool = True, x: str = "x") -> None:
    """Label the axes on the rim of a grid; the others share them."""
    if left:
        axes.set_ylabel(text, fontsize=NORMAL, color=INK)
    if bottom:
        axes.set_xlabel(x, fontsize=NORMAL, color=INK)


def legend_above(figure: Figure, axes: Axes, columns: int) -> Legend:
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


def figure_png(figure: Figure) -> bytes:
    """The figure as PNG at 150 dots per inch."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


def figure_svg(figure: Figure, name: str, facecolor: str = "white") -> str:
    """The figure as SVG. Ids are ``name-1``, ``name-2``, ...: the same at each run, and unlike another figure's.

    Matplotlib's own ids are random and, for letters, the same in all figures: several in one page would clash.
    """
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", facecolor=facecolor, metadata=nothing)
    text = buffer.getvalue()
    names = {old: f"{name}-{n}" for n, old in enumerate(dict.fromkeys(re.findall(r' id="([^"]+)"', text)), start=1)}
    rename = lambda found: found.group(1) + names[found.group(2)]
    return re.sub(r'( id="|href="#|url\(#)([^")]+)', rename, text)
