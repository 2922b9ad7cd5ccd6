"""Intervals that cover: their ranks, the rows they rest on, and what they say where they cannot."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge

import nescio
from nescio import DissipativeRegressor, VariationalVarianceRegressor
from nescio._validation import InputError
from nescio.calibration import Conformal, fit_support
from nescio.estimators import conformal
from nescio.estimators.conformal import fit_conformal
from nescio.estimators.state import from_state, to_state

QUICK = {"max_steps": 6, "hidden": (8,), "mean_hidden": (8,), "n_folds": 3, "n_blocks": 2, "random_state": 0}


def linear(n, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * [1.0, 30.0] + [4.0, -9.0]
    return X, 3.0 + 2.0 * X[:, 0] + noise * rng.standard_t(3, size=n)


@pytest.fixture(scope="module")
def model():
    return DissipativeRegressor(mean=Ridge(), calibrate="conformal", n_members=2, **QUICK).fit(*linear(900))


def naive_tail(scores, level):
    """The largest tail that leaves at least ceil((n + 1) level) of n scores at or above it."""
    wanted = math.ceil((len(scores) + 1) * level - 1e-9)
    return max(t for t in scores if np.sum(np.asarray(scores) >= t) >= wanted)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("count", [19, 20, 39, 100])
def test_the_tail_is_the_one_of_the_stated_rank(level, count):
    scores = np.sort(np.random.default_rng(count).uniform(size=(count, 1)), axis=0)
    calibration = Conformal(scores, np.empty((0, 1)))
    tail = calibration.tails(np.array(["inside"]), level)[0, 0]
    assert tail == naive_tail(scores[:, 0], level)
    for wrong in (math.ceil(count * level), math.floor((count + 1) * level)):  # twins of the rank
        if wrong != math.ceil((count + 1) * level - 1e-9):
            assert tail != scores[count - wrong, 0]


def test_coverage_of_uniform_scores_is_the_level():
    rng = np.random.default_rng(0)
    hits = []
    for _ in range(4_000):
        scores, fresh = np.sort(rng.uniform(size=(29, 1)), axis=0), rng.uniform()
        hits.append(fresh >= Conformal(scores, scores[:0]).tails(np.array(["inside"]), 0.9)[0, 0])
    assert abs(np.mean(hits) - 27 / 30) < 5 * np.sqrt(0.09 / len(hits))


def test_each_verdict_has_its_own_tail():
    inside, edge = np.linspace(0.2, 0.99, 99)[:, None], np.linspace(0.01, 0.5, 19)[:, None]
    words = np.array(["inside", "edge", "outside", "unknown"])
    tails = Conformal(inside, edge).tails(words, 0.9)[:, 0]
    np.testing.assert_array_equal(tails, [inside[9, 0], edge[1, 0], 1.0 - 0.9, min(inside[9, 0], 1.0 - 0.9)])
    assert Conformal(edge, edge).tails(words, 0.9)[3, 0] == edge[1, 0]  # wider than the stated one
    few = Conformal(inside, edge[:8])  # 9 are needed for 90 %: the wider of the two
    assert few.tails(words, 0.9)[1, 0] == min(inside[9, 0], 1.0 - 0.9)
    assert not few.enough("edge", 0.9)
    assert Conformal(inside, edge[:9]).enough("edge", 0.9)


@pytest.mark.parametrize(("count", "level"), [(8, 0.9), (18, 0.95), (98, 0.99), (0, 0.5)])
def test_one_row_too_few_gives_the_wider_of_the_stated_tail_and_the_smallest_seen(count, level):
    scores = np.linspace(0.001, 1.0, count)[:, None]
    assert not Conformal(scores, scores[:0]).enough("inside", level)
    tail = Conformal(scores, scores[:0]).tails(np.array(["inside"]), level)[0, 0]
    assert tail == min([1.0 - level, *scores[:1, 0]])
    more = np.linspace(0.001, 1.0, count + 1)[:, None]
    assert Conformal(more, scores[:0]).enough("inside", level)


def test_a_training_row_is_judged_as_if_it_had_not_been_there():
    X = np.random.default_rng(0).normal(size=(400, 3))
    support = fit_support(X)
    p = support.p_value_of_seen(X)
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert np.mean(support.p_value(X) <= 0.05) < 0.02  # the wrong twin: each row vouches for itself
    big = np.random.default_rng(1).normal(size=(150, 2))
    part = fit_support(big, max_rows=100)  # most rows are no reference rows, and are new to it anyway
    unseen = ~(big[:, None] == part.neighbours.reference.numpy()).all(-1).any(1)
    np.testing.assert_allclose(part.p_value_of_seen(big)[unseen], part.p_value(big)[unseen], rtol=1e-12)


def test_intervals_inside_cover_within_the_band_of_their_calibration(model):
    X, y = linear(4_000, seed=1)
    kinds = model.interval_kind(X)
    lower, upper = model.predict_interval(X, 0.9)
    inside = kinds == "inside"
    hits = ((lower <= y) & (y <= upper))[inside]
    n = len(model.conformal_.inside)
    rank = math.ceil((n + 1) * 0.9)
    low, high = stats.betabinom(len(hits), rank, n + 1 - rank).interval(0.99)
    assert low <= hits.sum() <= high
    assert set(kinds) <= {"inside", "edge", "outside level"}
    assert 0.92 < inside.mean() < 0.98


def test_a_distribution_that_is_too_narrow_is_made_to_cover(model):
    X, y = linear(2_000, seed=2)
    narrow = clone(model).fit(*linear(900))
    core = narrow.core_
    offset = core.offset.clone()
    offset[:, 0] = offset[:, 0] - 3.0  # the head's first raw map is the logarithm of the variance
    narrow.core_ = type(core)(**{**vars(core), "offset": offset})
    lower, upper = narrow.predict_dist(X).interval(0.9)
    assert np.mean((lower <= y) & (y <= upper)) < 0.7
    rows, targets = linear(900)
    residuals = ((targets - model.predict(rows)) / model.y_scale_)[:, None].astype(np.float32)
    x = (rows - model.x_shift_) / model.x_scale_
    held_out = [torch.arange(0, 900, 2), torch.arange(1, 900, 2)]
    narrow.conformal_ = fit_conformal(narrow.core_, x, torch.as_tensor(residuals), held_out, narrow.support_)
    lower, upper = narrow.predict_interval(X, 0.9)
    inside = narrow.interval_kind(X) == "inside"
    assert 0.87 < np.mean(((lower <= y) & (y <= upper))[inside]) < 0.93


def test_scores_come_from_the_members_that_held_the_row_out(model):
    X, y = linear(900)
    x = (X - model.x_shift_) / model.x_scale_
    residuals = torch.as_tensor(((y - model.predict(X)) / model.y_scale_)[:, None], dtype=torch.float32)
    found = fit_conformal(model.core_, x, residuals, [torch.arange(40), torch.arange(30, 60)], model.support_)
    q = model.core_.posterior_of_seen(torch.as_tensor(x[:60], dtype=torch.float32))
    alpha, beta = q.concentration.double().numpy()[:, :, 0], q.rate.double().numpy()[:, :, 0]
    size = residuals.double().numpy()[:60, 0]
    each = 2.0 * stats.t.sf(np.abs(size), 2 * alpha, scale=np.sqrt(beta / alpha))
    tails = np.concatenate([each[0, :30], each[:, 30:40].mean(0), each[1, 40:60]])
    words = model.support_.verdict(model.support_.p_value_of_seen(x[:60]), 1 / 20, 1 / 200)
    np.testing.assert_allclose(found.inside[:, 0], np.sort(tails[words == "inside"]), rtol=1e-6)
    np.testing.assert_allclose(found.edge[:, 0], np.sort(tails[words == "edge"]), rtol=1e-6)


def test_outside_rows_keep_the_outside_level_and_the_distribution_is_untouched(model):
    X, y = linear(900)
    plain = clone(model).set_params(calibrate=None).fit(X, y)
    far = np.concatenate([X[:5], 1e4 * X[:5]])
    assert model.interval_kind(far)[5:].tolist() == ["outside level"] * 5
    for mine, theirs in zip(model.predict_interval(far, 0.8), plain.predict_interval(far, 0.8), strict=True):
        np.testing.assert_allclose(mine[5:], theirs[5:], rtol=1e-9)
    np.testing.assert_array_equal(model.predict_dist(far).std, plain.predict_dist(far).std)
    assert plain.conformal_ is None
    assert set(plain.interval_kind(far)) == {"fitted"}


def test_a_level_that_there_are_too_few_rows_for_is_said_and_never_infinite():
    X, y = linear(60)
    small = VariationalVarianceRegressor(
        **{name: value for name, value in QUICK.items() if name != "n_blocks"}, calibrate="conformal"
    ).fit(X, y)
    with pytest.warns(UserWarning, match="rows to calibrate with are too few for a level of 0.99"):
        lower, upper = small.predict_interval(X, 0.99)
    assert np.isfinite(lower).all()
    assert (small.interval_kind(X, 0.99) == "fitted").all()
    own_lower, own_upper = small.predict_dist(X).interval(0.99)
    assert (upper - lower >= (own_upper - own_lower) * (1 - 1e-9)).all()


def test_a_row_of_unknown_verdict_has_the_fitted_interval_or_a_wider_one():
    X, y = linear(16)  # rows enough to calibrate 60 %, and too few for any verdict
    model = DissipativeRegressor(mean=Ridge(), calibrate="conformal", **QUICK).fit(X, y)
    assert model.conformal_.enough("inside", 0.6)
    rows = np.concatenate([X, 1e4 * X])
    with pytest.warns(UserWarning, match="too few to call a row outside"):
        assert set(model.verdict(rows)) == {"unknown"}
    assert set(model.interval_kind(rows, 0.6)) == {"fitted"}
    for scores in (model.conformal_.inside, 0.5 + 0.5 * model.conformal_.inside):  # the latter asks for narrow ones
        model.conformal_ = Conformal(scores, scores[:0])
        lower, upper = model.predict_interval(rows, 0.6)
        own_lower, own_upper = model.predict_dist(rows).interval(0.6)
        assert (upper - lower >= (own_upper - own_lower) * (1 - 1e-9)).all()


def test_a_level_close_to_one_is_not_rounded_in_the_warning(model):
    with pytest.warns(UserWarning, match=r"too few for a level of 0\.9999999:"):
        model.predict_interval(linear(3)[0], 0.9999999)


def test_several_targets_are_calibrated_each_on_its_own(tmp_path):
    X, y = linear(150)
    both = np.column_stack([y, 50.0 * np.random.default_rng(5).exponential(size=150)])
    model = DissipativeRegressor(mean=Ridge(), calibrate="conformal", n_members=2, **QUICK).fit(X, both)
    lower, upper = model.predict_interval(X, 0.8)
    assert lower.shape == upper.shape == (150, 2)
    tails = model.conformal_.tails(np.array(["inside"]), 0.8)[0]
    assert tails[0] != tails[1]
    nescio.save(model, tmp_path / "m")
    loaded = nescio.load(tmp_path / "m", mean=model.mean_)
    for first, second in zip(model.predict_interval(X, 0.8), loaded.predict_interval(X, 0.8), strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("change", [lambda a: a[::-1].copy(), lambda a: a + 1.0, lambda a: a - 1.0])
def test_scores_that_are_no_ascending_probabilities_are_refused(model, change):
    arrays, description = to_state(model)
    arrays["conformal_inside"] = change(arrays["conformal_inside"])
    with pytest.raises(InputError, match="the tensor 'conformal_inside' must hold ascending probabilities"):
        from_state(arrays, description, {"mean": model.mean_}, torch.device("cpu"))


def test_an_unknown_way_to_calibrate_is_refused():
    with pytest.raises(InputError, match="calibrate must be None or 'conformal'; got 'isotonic'"):
        DissipativeRegressor(calibrate="isotonic", **QUICK).fit(*linear(30))


def test_of_many_rows_some_are_spared_and_tell_how_fresh_rows_lie(monkeypatch):
    monkeypatch.setattr(conformal, "MANY_ROWS", 300)
    monkeypatch.setattr(conformal, "SPARED", 120)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(900, 4))
    y = X[:, 0] + 0.3 * rng.normal(size=900)
    model = DissipativeRegressor(calibrate="conformal", max_steps=60, n_members=2, random_state=0).fit(X[:400], y[:400])
    scores = model.conformal_
    assert len(scores.inside) + len(scores.edge) <= 120
    assert len(scores.inside) > 90
    # Spared rows are to the model what fresh rows are: their scores have the distribution of fresh ones.
    below = model.predict_dist(X[400:]).cdf(y[400:])
    fresh = 2.0 * np.minimum(below, 1.0 - below)
    assert stats.ks_2samp(scores.inside[:, 0], fresh).pvalue > 1e-3
    lower, upper = model.predict_interval(X[400:], 0.9)
    inside = model.verdict(X[400:]) == "inside"
    held = np.mean((lower <= y[400:]) & (y[400:] <= upper), where=inside)
    assert abs(held - 0.9) < 4.0 * np.sqrt(0.09 / 100 + 0.09 / 450)


def test_a_mean_of_yours_is_fitted_to_all_rows_whatever_their_number(monkeypatch):
    monkeypatch.setattr(conformal, "MANY_ROWS", 40)
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(80, 2)), rng.normal(size=80)
    model = DissipativeRegressor(
        mean=LinearRegression(), calibrate="conformal", max_steps=20, n_members=1, random_state=0
    ).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), LinearRegression().fit(X, y).predict(X))
