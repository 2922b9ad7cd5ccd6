"""The panels of a card: each figure with its title and what to see in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nescio.report.card_curves import curve_figure, map_figure
from nescio.report.card_figures import (
    accuracy_figure,
    coverage_figure,
    error_figure,
    pit_figure,
    reliability_figure,
    sharpness_figure,
)
from nescio.report.card_parts import Drawing
from nescio.report.card_probe import Curve, Map
from nescio.report.card_statistics import Judged, coverage, error_by_std, pit_histogram, reliability
from nescio.report.card_words import percent, short
from nescio.report.drawing import themed_svg
from nescio.report.html import inline_svg

__all__ = ["curve_drawings", "judged_drawings", "map_drawing"]


def judged_drawings(number: int, judged: Judged, level: float | None) -> list[Drawing]:
    """Accuracy and calibration in six figures."""
    lines = coverage(judged)
    conformal = [] if judged.calibrated is None else [line for line in lines if line.group == "all"]
    enough = [line for line in lines if line.rows >= 5 or line.group == "all"]
    figures = {
        "Predicted and actual": (
            accuracy_figure(judged),
            "Each mark is a row, its thin line the 90 % interval. Good marks lie on the dashed line, and nine lines in "
            "ten cross it.",
        ),
        "Error against std": (
            error_figure(judged, error_by_std(judged)),
            "Rows in bins by the std they were given. On the dashed line, the errors are as large as was said.",
        ),
        "Reliability": (
            reliability_figure(reliability(judged.pit), conformal),
            "Below the band, intervals hold too few values; above it, they are wider than they need be.",
        ),
        "Where values fell (PIT)": (
            pit_figure(pit_histogram(judged.pit)),
            "Level, if the distributions are right. A hump says too wide, a bowl too narrow, "
            "a slope that the means are off to one side.",
        ),
        "Sharpness": (
            sharpness_figure(judged, level),
            "How wide the answers are. Far left of the spread of the target, the model adds a lot to knowing nothing.",
        ),
        "Coverage inside and outside": (
            coverage_figure(enough),
            "Marks should lie on their grey bars, the range that chance allows. Fewer rows, longer bars; verdicts with "
            "fewer than five rows are left out.",
        ),
    }
    return [
        Drawing(title, inline_svg(themed_svg(figure, f"t{number}-{place}"), f"{title}: {caption}"), caption)
        for place, (title, (figure, caption)) in enumerate(figures.items())
    ]


def curve_drawings(model: Any, curves: Sequence[Curve], number: int, target: str) -> list[Drawing]:
    """A figure per column, for one target."""
    middle = (float(model.y_shift_[number]), float(model.y_scale_[number]))
    return [
        Drawing(
            curve.name,
            inline_svg(
                themed_svg(curve_figure(curve, number, target, middle), f"c{number}-{place}"),
                f"Mean and standard deviation of {short(target)} as {short(curve.name)} runs over and beyond its data.",
            ),
            "",
        )
        for place, curve in enumerate(curves)
    ]


def map_drawing(plan: Map, words: np.ndarray, edge: float, outside: float) -> Drawing:
    figure = map_figure(plan, words, edge, outside)
    shares = "" if plan.share == 1.0 else f"The two directions hold {percent(plan.share)} of the inputs' variation. "
    caption = (
        f"{shares}Blue ground: the model has seen the like. Orange: the edge. Red: outside. Each spot is answered for "
        "the nearest training rows, moved there; a row on blue may still be outside in directions that are not shown."
    )
    return Drawing("", inline_svg(themed_svg(figure, "map"), f"Map: {caption}"), caption)
