"""The toy figures: what is drawn, with which words, in which colours, and what is left untouched."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex

from nescio.report.figures import METHOD_COLOURS, figure_png, figure_svg, split_figure, std_figure, toy_figure
from nescio.report.style import PART_COLOURS

FIGURES = {"toy": (toy_figure, 4), "std": (std_figure, 2), "split": (split_figure, 2)}


def lines(axes, x):
    """Lines drawn over the whole grid, by label."""
    return {line.get_label(): line for line in axes.get_lines() if len(line.get_xdata()) == len(x)}


def words(axes):
    return [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("name", FIGURES)
def test_every_panel_is_titled_and_the_rim_is_labelled_with_units(name, fits):
    draw, count = FIGURES[name]
    panels = draw(fits).axes
    assert len(panels) == count
    assert all(axes.get_title(loc="left") for axes in panels)
    assert {axes.get_xlabel() for axes in panels} - {""} == {"x"}
    assert all("units of the target" in label for label in {axes.get_ylabel() for axes in panels} - {""})
    rows = count // 2 if name == "toy" else count
    assert sum(bool(axes.get_ylabel()) for axes in panels) == rows
    assert sum(bool(axes.get_xlabel()) for axes in panels) == count // rows


def test_the_toy_figure_draws_data_mean_and_a_band_of_two_std(fits):
    figure = toy_figure(fits)
    for axes, fit in zip(figure.axes, fits, strict=True):
        mean, data = axes.get_lines()
        np.testing.assert_array_equal(mean.get_ydata(), fit.mean)
        np.testing.assert_array_equal(data.get_ydata(), fit.y_data)
        assert to_hex(mean.get_color()).upper() == METHOD_COLOURS[fit.method]
        (band,) = axes.collections
        corners = {tuple(point) for point in band.get_paths()[0].vertices.round(9)}
        for sign in (-2, 2):
            edge = zip(fit.x.round(9), (fit.mean + sign * fit.std).round(9), strict=True)
            assert set(edge) <= corners


def test_the_toy_figure_keeps_all_data_in_view_and_says_when_the_mean_leaves_it(fits):
    far = [replace(fit, mean=-40.0 * np.maximum(fit.x - 10.0, 0.0)) for fit in fits]
    for axes, fit in zip(toy_figure(far).axes, far, strict=True):
        low, high = axes.get_ylim()
        assert low < fit.y_data.min() < fit.y_data.max() < high
        assert low > fit.y_data.min() - 10 * fit.level
        assert any("out" in word for word in words(axes))
    near = [replace(fit, mean=np.zeros_like(fit.x)) for fit in fits]
    assert not any("out" in word for axes in toy_figure(near).axes for word in words(axes))


def test_the_std_figure_sets_both_methods_against_the_truth_and_marks_the_level(fits):
    for axes, pair in zip(std_figure(fits).axes, (fits[:2], fits[2:]), strict=True):
        curves = lines(axes, pair[0].x)
        assert list(curves) == ["d-VV", "VV"]
        for fit, curve in zip(pair, curves.values(), strict=True):
            np.testing.assert_array_equal(curve.get_ydata(), fit.std)
            assert to_hex(curve.get_color()).upper() == METHOD_COLOURS[fit.method]
        truth = next(line for line in axes.get_lines() if line.get_label() == "true std")
        assert truth.get_xdata().min() >= pair[0].x_data.min()
        assert truth.get_xdata().max() <= pair[0].x_data.max()
        level = next(line for line in axes.get_lines() if line.get_linestyle() == "--")
        assert set(level.get_ydata()) == {pair[0].level}
        assert f"outside level {pair[0].level:.2f}" in words(axes)


def test_the_split_figure_shows_total_and_parts_of_one_method_only(fits):
    for axes, fit in zip(split_figure(fits).axes, (fits[0], fits[2]), strict=True):
        curves = lines(axes, fit.x)
        assert list(curves) == ["total std", "aleatoric std", "epistemic std"]
        np.testing.assert_array_equal(curves["aleatoric std"].get_ydata(), fit.aleatoric_std)
        np.testing.assert_array_equal(curves["epistemic std"].get_ydata(), fit.epistemic_std)
        assert to_hex(curves["epistemic std"].get_color()).upper() == PART_COLOURS["epistemic"]


@pytest.mark.parametrize("name", FIGURES)
def test_the_hole_is_shaded_where_there_is_one_and_nowhere_else(name, fits):
    panels = FIGURES[name][0](fits).axes
    half = len(panels) // 2
    assert not any(axes.patches for axes in panels[:half])
    for axes in panels[half:]:
        (shade,) = axes.patches
        assert shade.get_extents().transformed(axes.transData.inverted()).intervalx == pytest.approx((4.0, 7.0))
        assert "hole" in words(axes)


def test_an_endless_std_does_not_blow_up_the_axis(fits):
    wild = [replace(fit, std=np.where(fit.x > 30, np.inf, 1e9)) for fit in fits]
    assert std_figure(wild).axes[0].get_ylim()[1] < 5 * 4.2


def test_no_two_colours_are_the_same():
    colours = [*METHOD_COLOURS.values(), *PART_COLOURS.values()]
    assert len(set(colours)) == len(colours)


@pytest.mark.parametrize("name", FIGURES)
def test_svg_is_the_same_twice_and_its_references_hold(name, fits):
    def text():
        figure = FIGURES[name][0](fits)
        figure_png(figure)
        return figure_svg(figure, name)

    svg = text()
    assert svg == text()
    ElementTree.fromstring(svg)
    ids = re.findall(r' id="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(rf"{name}-\d+", one) for one in ids)
    used = set(re.findall(r'href="#([^"]+)"', svg)) | set(re.findall(r"url\(#([^)]+)\)", svg))
    assert used
    assert used <= set(ids)


def test_png_has_the_size_of_150_dots_per_inch(fits):
    figure = std_figure(fits)
    png = figure_png(figure)
    assert png.startswith(b"\x89PNG")
    width, height = (int.from_bytes(png[start : start + 4], "big") for start in (16, 20))
    assert (width, height) == pytest.approx(figure.get_size_inches() * 150, abs=1)


def test_drawing_leaves_the_settings_of_matplotlib_alone(fits):
    before = dict(mpl.rcParams)
    for draw, _ in FIGURES.values():
        figure = draw(fits)
        figure_png(figure)
        figure_svg(figure, "x")
    assert dict(mpl.rcParams) == before


def test_pyplot_is_not_imported_and_the_package_needs_no_drawing():
    script = (
        "import sys, nescio; heavy = {'matplotlib', 'jinja2', 'typer'} & set(sys.modules); assert not heavy, heavy; "
        "import nescio.report.figures; assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
