"""Ensembles of d-VV: the mixture of the same models fitted singly, outside the data too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from nescio import DeepEnsembleRegressor, DissipativeRegressor
from nescio._random import child_seed
from nescio._validation import InputError

MEMBER: dict[str, Any] = {"max_steps": 10, "n_members": 1, "n_folds": 2, "n_blocks": 2, "n_pseudo_inputs": 300}


def make_table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal([7.0, -2.0], [2.0, 0.5], (70, 2))
    return X, 3.0 * X[:, 0] + rng.normal(0.0, 0.5, 70)


def assert_mixture_of_members_fitted_singly(member, X, y, points):
    """Moments of the ensemble against those of models that were each fitted with a member's seed."""
    ensemble = DeepEnsembleRegressor(n_members=3, member=member, random_state=4).fit(X, y)
    singles = [clone(member).set_params(random_state=child_seed(4, "ensemble", number)) for number in range(3)]
    means, stds = np.array([single.fit(X, y).predict(points, return_std=True) for single in singles]).swapaxes(0, 1)
    variance = (stds**2).mean(0) + means.var(0)
    mean, std = ensemble.predict(points, return_std=True)
    np.testing.assert_allclose(mean, means.mean(0), rtol=1e-6)
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-6)
    np.testing.assert_allclose(ensemble.predict(points), means.mean(0), rtol=1e-6)
    return stds


def test_an_ensemble_keeps_a_level_outside_that_is_a_function_of_x():
    X, y = make_table()
    far = X.mean(0) + np.array([[900.0], [-900.0]]) * X.std(0)
    member = DissipativeRegressor(**MEMBER, outside=lambda x: np.where(x[:, 0] > X[:, 0].mean(), 100.0, 1.0))
    stds = assert_mixture_of_members_fitted_singly(member, X, y, np.vstack([X, far]))
    np.testing.assert_allclose(stds[:, -2:], [[100.0, 1.0]] * 3, rtol=1e-5)


@pytest.mark.parametrize("outside_mean", ["extrapolate", "training"])
def test_an_ensemble_is_wide_at_a_level_never_seen(outside_mean):
    X, y = make_table()
    frame = pd.DataFrame({"kind": np.where(np.arange(len(X)) % 3 == 0, "a", "b"), "size": X[:, 0]})
    rows = pd.DataFrame({"kind": ["a", "never seen"], "size": X[:2, 0]})
    member = DissipativeRegressor(**MEMBER, outside=50.0, outside_mean=outside_mean)
    stds = assert_mixture_of_members_fitted_singly(member, frame, y, rows)
    np.testing.assert_allclose(stds[:, 1], 50.0, rtol=1e-5)
    assert (stds[:, 0] < 20.0).all()


def test_an_ensemble_refuses_what_it_does_not_carry_before_it_trains(monkeypatch):
    X, y = make_table()
    monkeypatch.setattr(DissipativeRegressor, "_fit_cores", lambda self, problems: pytest.fail("it trained"))
    for name, value in {"mean": LinearRegression(), "calibrate": "conformal"}.items():
        plain = DeepEnsembleRegressor(member=DissipativeRegressor(**{name: value}))
        for ensemble in (plain, DeepEnsembleRegressor(member=plain)):
            with pytest.raises(InputError, match=f"member must not set {name}, .*, or fit DissipativeRegressor alone"):
                ensemble.fit(X, y)
