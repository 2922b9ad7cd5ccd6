"""The toy statistics on curves whose numbers can be said beforehand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nescio._validation import InputError
from nescio.report.statistics import ToyFit, hole_rise, summarise, toy_statistics

LEVEL = 3.7
GRID = np.linspace(-25.0, 35.0, 601)


def true_std(x):
    return 0.4 + 0.15 * x


def made_up(inside=true_std, between=2.5, outside=3.7, far=3.7):
    """A std in four pieces: on [0, 10]; up to 5 beyond; up to 10 beyond; farther."""
    beyond = np.maximum(np.maximum(-GRID, GRID - 10.0), 0.0)
    near = beyond < 5.0 - 1e-9
    return np.where(beyond == 0, inside(GRID), np.where(near, between, np.where(beyond < 10.0 - 1e-9, outside, far)))


def measure(std, **others):
    return toy_statistics(GRID, std, np.abs(true_std(GRID)), LEVEL, **others)


def test_an_ideal_curve_meets_all_targets():
    result = measure(made_up())
    assert result.rms_log == pytest.approx(0.0, abs=1e-12)
    assert result.ratio == pytest.approx(LEVEL / true_std(10.0), rel=1e-12)
    assert result.deviation == pytest.approx(0.0, abs=1e-12)
    assert result.rms_log_met
    assert result.ratio_met
    assert result.deviation_met


@pytest.mark.parametrize(("factor", "met"), [(0.75, False), (0.8, True), (1.28, True), (1.3, False)])
def test_a_constant_factor_inside_is_its_own_logarithm_and_too_small_counts_like_too_large(factor, met):
    result = measure(made_up(inside=lambda x: factor * true_std(x)))
    assert result.rms_log == pytest.approx(abs(np.log(factor)), rel=1e-12)
    assert result.rms_log_met is met


def test_errors_inside_do_not_cancel():
    wavy = made_up(inside=lambda x: true_std(x) * np.where(np.arange(len(x)) % 2, 2.0, 0.5))
    assert measure(wavy).rms_log == pytest.approx(np.log(2.0), rel=1e-12)


def test_the_ratio_takes_the_smallest_on_either_side_and_leaves_out_the_strip_next_to_the_data():
    std = made_up(between=0.01)
    assert measure(std).ratio_met
    for place in (-25.0, -5.0, 15.0, 35.0):
        dented = std.copy()
        dented[np.argmin(np.abs(GRID - place))] = 0.5
        result = measure(dented)
        assert result.ratio == pytest.approx(0.5 / true_std(10.0), rel=1e-12)
        assert not result.ratio_met


def test_one_sure_point_inside_does_not_hide_an_unsure_one():
    std = made_up(inside=lambda x: np.where(np.isclose(x, 9.0), 5.0, true_std(x)))
    assert measure(std).ratio == pytest.approx(LEVEL / 5.0, rel=1e-12)


@pytest.mark.parametrize(("far", "met"), [(0.89, False), (0.91, True), (1.09, True), (1.11, False)])
def test_the_deviation_is_relative_to_the_level_on_both_sides(far, met):
    result = measure(made_up(far=far * LEVEL))
    assert result.deviation == pytest.approx(abs(far - 1.0), rel=1e-9)
    assert result.deviation_met is met


def test_the_deviation_does_not_look_nearer_than_a_data_range():
    assert measure(made_up(outside=9.0)).deviation == pytest.approx(0.0, abs=1e-12)


def test_the_hole_is_open_at_its_ends_and_left_out_of_the_inside_only_when_it_is_named():
    std = made_up(inside=lambda x: np.where((x > 4.0) & (x < 7.0), 2.2, true_std(x)))
    whole, holed = measure(std), measure(std, hole=(4.0, 7.0))
    assert whole.hole_std == holed.hole_std == pytest.approx(2.2, rel=1e-12)
    assert holed.rms_log == pytest.approx(0.0, abs=1e-12)
    assert whole.rms_log > 0.2


def test_the_largest_std_inside_counts_the_hole():
    std = made_up(inside=lambda x: np.where((x > 4.0) & (x < 7.0), 7.4, true_std(x)))
    assert measure(std, hole=(4.0, 7.0)).ratio == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("piece", ["inside", "outside", "far"])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_not_finite_never_meets_the_target_it_spoils(piece, value):
    pieces = {"inside": lambda x: np.full_like(x, value)} if piece == "inside" else {piece: value}
    result = measure(made_up(**pieces))
    if piece == "inside":
        assert not result.rms_log_met
        assert not result.ratio_met
    elif piece == "far":
        assert not result.deviation_met
    else:
        assert result.ratio_met is (value == np.inf)  # an endless std 15 away is unsure enough; no number is not


@given(st.floats(1e-3, 1e3))
def test_units_do_not_matter_except_to_the_std_in_the_hole(unit):
    std = made_up(inside=lambda x: 1.1 * true_std(x), far=4.0)
    plain = measure(std)
    scaled = toy_statistics(GRID, unit * std, unit * np.abs(true_std(GRID)), unit * LEVEL)
    assert scaled.rms_log == pytest.approx(plain.rms_log, rel=1e-9)
    assert scaled.ratio == pytest.approx(plain.ratio, rel=1e-9)
    assert scaled.deviation == pytest.approx(plain.deviation, rel=1e-9)
    assert scaled.hole_std == pytest.approx(unit * plain.hole_std, rel=1e-9)


def test_shapes_that_would_broadcast_are_refused():
    with pytest.raises(InputError, match=r"one length; got \(601,\) and \(601, 1\) and \(601,\)"):
        toy_statistics(GRID, made_up()[:, None], np.ones(601), LEVEL)


@pytest.mark.parametrize("grid", [GRID[::-1], GRID[5:], GRID[:-5], np.array([])])
def test_a_grid_that_does_not_rise_over_the_whole_range_is_refused(grid):
    with pytest.raises(InputError, match="x must rise from -25 or less to 35 or more"):
        toy_statistics(grid, np.ones(len(grid)), np.ones(len(grid)), LEVEL)


def test_a_grid_with_nothing_inside_is_refused():
    with pytest.raises(InputError, match="must have points inside the data"):
        toy_statistics(np.array([-25.0, 35.0]), np.ones(2), np.ones(2), LEVEL)
    with pytest.raises(InputError, match="must have points in the hole, from 4 to 7"):
        toy_statistics(np.array([-25.0, 1.0, 35.0]), np.ones(3), np.ones(3), LEVEL)


def test_the_rise_compares_a_hole_with_the_same_method_without_it():
    def fit(data, method, inside, hole=None):
        std = made_up(inside=lambda x: inside * true_std(x))
        rows = np.arange(3.0)
        return ToyFit(data, method, rows, rows, GRID, std, std, std, std, np.abs(true_std(GRID)), LEVEL, hole)

    fits = [
        fit("standard", "d-vv", 1.0), fit("standard", "vv", 2.0),
        fit("shifted", "d-vv", 1.5, (4.0, 7.0)), fit("shifted", "vv", 1.0, (4.0, 7.0)),
    ]  # fmt: skip
    lines = summarise(fits)
    assert [(line.data, line.method) for line in lines] == [(fit.data, fit.method) for fit in fits]
    assert [line.rise for line in lines] == [None, None, pytest.approx(1.5), pytest.approx(0.5)]
    assert hole_rise(lines[0].statistics, lines[2].statistics) == pytest.approx(1.5)
    assert summarise(fits[2:])[0].rise is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        lines[0].level = 1.0
