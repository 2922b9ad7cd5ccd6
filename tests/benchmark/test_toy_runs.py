"""The four wishes on made-up curves, and the runs that fill the toy records."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nescio import VariationalVarianceRegressor
from nescio._validation import InputError
from nescio.benchmark import toy_runs
from nescio.benchmark.desiderata import Desiderata, toy_desiderata
from nescio.benchmark.toy_runs import fit_toy, load_curves, main, measure, measure_family, read_toy, save_curves
from nescio.datasets.toy import toy_regression, toy_std

GRID = np.linspace(-25.0, 35.0, 601)


def curve(seed=3):
    """A std and a divergence with no symmetry, off the truth by known random factors."""
    rng = np.random.default_rng(seed)
    std = toy_std(GRID) * np.exp(0.2 * rng.standard_normal(601) + 0.03)
    return std, rng.exponential(0.05, 601)


@pytest.mark.parametrize("hole", [None, (4.0, 7.0)])
def test_each_wish_is_what_its_words_say_by_a_naive_loop(hole):
    std, kl = curve()
    found = toy_desiderata(GRID, std, toy_std(GRID), kl, hole)
    squares, ratios, outside, inside, seen, near_prior = [], [], [], [], [], []
    for x, s, true, divergence in zip(GRID, std, toy_std(GRID), kl, strict=True):
        if 0.0 <= x <= 10.0:
            inside.append(s)
            ratios.append(s / true)
            if hole is None or not hole[0] < x < hole[1]:
                squares.append(math.log(s / true) ** 2)
                seen.append(s)
        if x <= -5.0 or x >= 15.0:
            outside.append(s)
        if x <= -10.0 or x >= 20.0:
            near_prior.append(divergence <= 0.1)
    assert found.rms_log == pytest.approx(math.sqrt(sum(squares) / len(squares)), rel=1e-12)
    assert found.ratio == pytest.approx(min(outside) / max(inside), rel=1e-12)
    below = sum(ratio < found.low_ratio for ratio in ratios) / len(ratios)
    assert below == pytest.approx(0.05, abs=0.01)
    assert found.kl_share == pytest.approx(sum(near_prior) / len(near_prior), rel=1e-12)
    assert found.seen_ratio == pytest.approx(min(outside) / max(seen), rel=1e-12)


def test_a_wish_is_met_up_to_its_threshold_and_not_beyond():
    assert Desiderata(0.25, 1.0, 0.8, 0.95).met == (True, True, True, True)
    assert Desiderata(0.251, 0.999, 0.799, 0.949).met == (False, False, False, False)
    assert Desiderata(math.nan, math.nan, math.nan, math.nan).met == (False, False, False, False)
    assert not Desiderata(0.1, 2.0, 0.9, math.nan).has_prior


def test_underestimation_in_the_hole_counts_and_noise_there_does_not():
    std = toy_std(GRID).copy()
    std[(GRID > 4.0) & (GRID < 7.0)] *= 0.1
    found = toy_desiderata(GRID, std, toy_std(GRID), None, (4.0, 7.0))
    assert found.rms_log == pytest.approx(0.0, abs=1e-12)
    assert found.seen_ratio == found.ratio
    assert found.low_ratio == pytest.approx(0.1)
    assert math.isnan(found.kl_share)


def test_grids_that_miss_a_region_are_refused():
    with pytest.raises(InputError, match="of one length"):
        toy_desiderata(GRID, np.ones(600), toy_std(GRID), None)
    with pytest.raises(InputError, match="must rise from -25"):
        toy_desiderata(GRID[100:], np.ones(501), np.ones(501), None)


def test_a_fit_of_the_toy_is_the_estimator_s_own_prediction():
    fit = fit_toy("shifted", "vv", 3, max_steps=5)
    toy = toy_regression(seed=3, hole=(4.0, 7.0))
    model = VariationalVarianceRegressor(max_steps=5, random_state=3).fit(toy.x, toy.y)
    found = model.predict_dist(GRID[:, None])
    np.testing.assert_array_equal(fit.std, found.std)
    np.testing.assert_array_equal(fit.mean, found.mean)
    np.testing.assert_array_equal(fit.kl, model.knowledge(GRID[:, None]))
    assert fit.hole == (4.0, 7.0)


@pytest.mark.parametrize("method", ["deep-ensemble", "d-vv-ensemble", "mc-dropout", "ncp", "bbb", "evidential"])
def test_the_length_of_training_reaches_every_method_and_the_members_of_an_ensemble(method):
    assert np.isfinite(fit_toy("standard", method, 0, max_steps=3).std).all()


def test_a_family_fitted_together_is_what_its_members_are_alone():
    together = measure_family("shifted", ("d-vv", "vv"), 3, max_steps=5)
    assert [record["method"] for record, _ in together] == ["d-vv", "vv"]
    for record, fit in together:
        alone = fit_toy("shifted", record["method"], 3, max_steps=5)
        np.testing.assert_allclose(fit.std, alone.std, rtol=1e-3)  # the stack of the means has other mates
        np.testing.assert_allclose(fit.mean, alone.mean, rtol=1e-3, atol=1e-3)
        assert float(record["cpu_seconds"]) > 0.0


def test_methods_that_share_phases_are_fitted_as_one_task():
    tasks = [("standard", method, 0) for method in ("d-vv", "gp", "vv")] + [("shifted", "vv", 0)]
    assert toy_runs._grouped(tasks) == [
        ("standard", ("d-vv", "vv"), 0), ("standard", ("gp",), 0), ("shifted", ("vv",), 0),
    ]  # fmt: skip


def test_a_method_without_a_prior_has_no_divergence():
    assert fit_toy("standard", "mean-variance", 0, max_steps=3).kl is None
    with pytest.raises(InputError, match="data must be"):
        fit_toy("moved", "vv", 0)


def test_curves_come_back_as_they_were_to_single_precision(tmp_path):
    fits = {"a": fit_toy("standard", "vv", 1, max_steps=3), "b": fit_toy("shifted", "mean-variance", 1, max_steps=3)}
    save_curves(tmp_path / "c.npz", fits)
    again = load_curves(tmp_path / "c.npz")
    assert list(again) == ["a", "b"]
    for name, fit in fits.items():
        np.testing.assert_allclose(again[name].std, fit.std, rtol=1e-6)
        assert (again[name].data, again[name].method, again[name].hole) == (fit.data, fit.method, fit.hole)
    assert again["a"].level == fits["a"].level
    assert again["b"].kl is None
    assert load_curves(tmp_path / "none.npz") == {}


def test_a_second_run_fits_only_what_is_missing(tmp_path, monkeypatch):
    asked = []

    def quick(data, method, seed, **parameters):
        asked.append((data, method, seed))
        return measure(data, method, seed, max_steps=2)

    monkeypatch.setattr(toy_runs, "measure", quick)
    csv, npz = tmp_path / "toy.csv", tmp_path / "toy.npz"
    common = ["--csv", str(csv), "--methods", "mean-variance", "--data", "standard", "--jobs", "1"]
    assert main([*common, "--seeds", "1"]) == 0
    first = csv.read_text()
    assert main([*common, "--seeds", "2"]) == 0
    assert [seed for *_, seed in asked] == [0, 1]
    assert csv.read_text().startswith(first)
    assert main([*common, "--seeds", "2", "--curves", str(npz)]) == 0
    assert [seed for *_, seed in asked] == [0, 1, 0]
    assert list(load_curves(npz)) == ["standard/mean-variance"]
    records = read_toy(csv)
    assert [record["seed"] for record in records] == ["0", "1"]
    assert not Desiderata.of_record(records[0]).has_prior
