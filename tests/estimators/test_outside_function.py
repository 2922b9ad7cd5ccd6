"""The level outside as a function of x: kept far away, seen by pseudo-inputs, given back at load."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import nescio
from nescio import DissipativeRegressor
from nescio._validation import InputError
from nescio.estimators.state import from_state, to_state
from nescio.testing import check_extrapolation

QUICK: dict[str, Any] = {
    "max_steps": 20,
    "n_folds": 2,
    "n_blocks": 2,
    "n_pseudo_inputs": 500,
    "n_members": 1,
    "random_state": 0,
}


def level(x: np.ndarray) -> np.ndarray:
    return np.where(x[:, 0] > 7.0, 40.0, 5.0)


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal([7.0, -2.0], [2.0, 0.5], (150, 2))
    return X, 3.0 * X[:, 0] + rng.normal(0.0, 0.5, 150)


@pytest.fixture(scope="module")
def model() -> DissipativeRegressor:
    return DissipativeRegressor(**QUICK, outside=level).fit(*table())


FAR = np.array([[700.0, -2.0], [-700.0, -2.0], [8.0, 300.0], [6.0, 300.0]])


def test_far_away_the_std_is_the_level_at_that_point(model):
    np.testing.assert_allclose(model.predict_dist(FAR).std, level(FAR), rtol=1e-5)
    np.testing.assert_allclose(model.knowledge(FAR), 0.0, atol=1e-5)
    assert 5.0 < model.outside_std_[0] < 40.0
    X, _ = table()
    np.testing.assert_allclose(model.outside_std_[0], np.exp(np.log(level(X)).mean()), rtol=1e-6)


def test_a_constant_function_is_a_number():
    X, y = table()
    same = DissipativeRegressor(**QUICK, outside=lambda x: np.full(len(x), 12.0)).fit(X, y)
    plain = DissipativeRegressor(**QUICK, outside=12.0).fit(X, y)
    points = np.vstack([X, X + 3.0, FAR])
    np.testing.assert_allclose(same.predict_dist(points).std, plain.predict_dist(points).std, rtol=1e-5)
    np.testing.assert_allclose(same.knowledge(points), plain.knowledge(points), rtol=1e-4, atol=1e-6)


def test_pseudo_inputs_are_pulled_to_the_level_at_their_place():
    X, y = table()
    settings = {**QUICK, "max_steps": 300, "n_pseudo_inputs": 2_000, "outside_prior": "constant", "anchor": False}
    model = DissipativeRegressor(**settings, outside=level).fit(X, y)
    near = np.array([[11.0, 1.0], [11.0, -5.0], [3.0, 1.0], [3.0, -5.0]])  # the networks alone answer here
    std = model.predict_dist(near).std
    assert std[:2].min() > 2.0 * std[2:].max()


def test_each_target_may_have_its_own():
    X, y = table()
    both = lambda x: np.stack([level(x), 2.0 * level(x)], axis=1)
    model = DissipativeRegressor(**QUICK, outside=both).fit(X, np.stack([y, -5.0 * y], axis=1))
    np.testing.assert_allclose(model.predict_dist(FAR).std, both(FAR), rtol=1e-5)


def test_frames_are_given_to_it_as_they_are_encoded():
    X, y = table()
    frame = pd.DataFrame({"kind": np.where(X[:, 1] > -2.0, "a", "b"), "size": X[:, 0]})
    seen: list[np.ndarray] = []

    def asked(x: np.ndarray) -> np.ndarray:
        seen.append(x)
        return np.where(x[:, 0] == 1.0, 30.0, 10.0)

    model = DissipativeRegressor(**QUICK, outside=asked).fit(frame, y)
    assert model.encoded_names_ == ["kind=a", "kind=b", "size"]
    rows = pd.DataFrame({"kind": ["a", "b", "c"], "size": [9e4, 9e4, 7.0]})
    np.testing.assert_allclose(model.predict_dist(rows).std, [30.0, 10.0, 10.0], rtol=1e-5)
    np.testing.assert_array_equal(seen[-1], [[1.0, 0.0, 9e4], [0.0, 1.0, 9e4], [0.0, 0.0, 7.0]])


def test_the_contract_is_held_to_the_function(model):
    report = check_extrapolation(model)
    assert all(check.passed is not False for check in report.checks if "level" in check.name), report.table()


def test_it_is_given_back_at_load(model, tmp_path):
    nescio.save(model, tmp_path / "m")
    again = nescio.load(tmp_path / "m", outside=level)
    points = np.vstack([table()[0], FAR])
    np.testing.assert_array_equal(again.predict_dist(points).std, model.predict_dist(points).std)
    assert again.outside is level
    with pytest.raises(InputError, match=r"its level outside is a function of yours .* load\(path, outside=\.\.\.\)"):
        nescio.load(tmp_path / "m")
    with pytest.raises(InputError, match="does not give the predictions that were stored with it"):
        nescio.load(tmp_path / "m", outside=lambda x: np.full(len(x), 3.0))
    with pytest.raises(InputError, match="outside must be a function of x; got 3"):
        nescio.load(tmp_path / "m", outside=3.0)
    X, y = table()
    nescio.save(DissipativeRegressor(**{**QUICK, "max_steps": 3}).fit(X, y), tmp_path / "n")
    with pytest.raises(InputError, match="level outside is no function; leave outside out of load"):
        nescio.load(tmp_path / "n", outside=level)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: 3.0, "must return one number per row"),
        (lambda x: np.ones((len(x), 3)), r"it returned the shape \(150, 3\)"),
        (lambda x: np.zeros(len(x)), "finite, positive numbers"),
        (lambda x: np.full(len(x), np.nan), "finite, positive numbers"),
        (lambda x: ["much"] * len(x), "failed on rows of shape"),
        (lambda x: x @ np.ones(5), "failed on rows of shape"),
    ],
)
def test_bad_returns_are_refused_in_one_sentence(function, words):
    with pytest.raises(InputError, match=words):
        DissipativeRegressor(**{**QUICK, "max_steps": 2}, outside=function).fit(*table())


def test_it_has_no_effect_where_the_single_prior_has_none():
    X, y = table()
    settings = {**QUICK, "max_steps": 3, "outside_prior": "inside"}
    model = DissipativeRegressor(**settings, outside=level).fit(X, y)
    np.testing.assert_allclose(model.predict_dist(FAR).std, model.inside_std_[0], rtol=1e-4)


@pytest.mark.parametrize("after_the_fit", [level, 3.0])
@pytest.mark.parametrize("outside_prior", ["inside", "constant"])
def test_it_is_given_back_where_the_fit_used_it_and_nowhere_else(outside_prior, after_the_fit, tmp_path):
    X, y = table()
    settings = {**QUICK, "max_steps": 3, "outside_prior": outside_prior}
    model = DissipativeRegressor(**settings, outside=level).fit(X, y).set_params(outside=after_the_fit)
    nescio.save(model, tmp_path / "m")
    used = {} if outside_prior == "inside" else {"outside": level}
    again = nescio.load(tmp_path / "m", **used)
    np.testing.assert_array_equal(again.predict_dist(FAR).std, model.predict_dist(FAR).std)
    assert (again.level_ is None) is (outside_prior == "inside")
    again.fit(X, y)
    with pytest.raises(InputError, match="leave outside out of load" if not used else "give it back"):
        nescio.load(tmp_path / "m", **({} if used else {"outside": level}))


def test_a_file_that_does_not_say_whether_the_level_is_a_function_is_read(model):
    arrays, description = to_state(model)
    assert description["fitted"].pop("level_function") is True
    again = from_state(arrays, description, {"outside": level}, torch.device("cpu"))
    np.testing.assert_array_equal(again.predict_dist(FAR).std, model.predict_dist(FAR).std)
    with pytest.raises(InputError, match="its level outside is a function of yours"):
        from_state(arrays, description, {}, torch.device("cpu"))
    plain = DissipativeRegressor(**{**QUICK, "max_steps": 3}).fit(*table())
    arrays, description = to_state(plain)
    assert description["fitted"].pop("level_function") is False
    assert from_state(arrays, description, {}, torch.device("cpu")).level_ is None
