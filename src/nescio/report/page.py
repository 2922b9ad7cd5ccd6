"""The demo's page: one HTML file with its figures and its style inside, which loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp

from nescio.report.figures import METHOD_NAMES
from nescio.report.html import inline_svg, page_template
from nescio.report.statistics import LARGEST_DEVIATION, LARGEST_RMS_LOG, SMALLEST_RATIO, ToySummary

__all__ = ["Setting", "demo_page"]

# What each figure shows, for those who cannot see it.
DESCRIPTIONS = {
    "toy": "Four panels: data, mean and band of two standard deviations for d-VV and VV, on standard and shifted data.",
    "std": "Two panels: predictive standard deviation of d-VV and VV, the true one, and the level outside.",
    "split": "Two panels: total, aleatoric and epistemic standard deviation of d-VV.",
}


@dataclass(frozen=True)
class Setting:
    """What the fits were given: rows of each data set, seed, longest training (None: the default), version."""

    rows: Mapping[str, int]
    seed: int
    max_steps: int | None
    version: str


def demo_page(figures: Mapping[str, str], summaries: Sequence[ToySummary], setting: Setting) -> str:
    """The page from the SVG text of the figures ``toy``, ``std`` and ``split`` and the lines of the table."""
    template = page_template("demo.html.j2", percent=_percent, factor=exp)
    by_data: dict[str, dict[str, ToySummary]] = {}
    for summary in summaries:
        by_data.setdefault(summary.data, {})[summary.method] = summary
    return template.render(
        figures={name: inline_svg(svg, DESCRIPTIONS[name]) for name, svg in figures.items()},
        summaries=summaries,
        by_data=by_data,
        names=METHOD_NAMES,
        targets={"rms_log": LARGEST_RMS_LOG, "ratio": SMALLEST_RATIO, "deviation": LARGEST_DEVIATION},
        setting=setting,
    )


def _percent(share: float) -> str:
    """A share in per cent, with a decimal where it is small."""
    return f"{100.0 * share:.1f} %" if share < 0.1 else f"{100.0 * share:.0f} %"
