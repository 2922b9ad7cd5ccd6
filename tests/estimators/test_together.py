"""Methods and tables that are fitted together learn what they would learn alone."""

from __future__ import annotations

import numpy as np
import pytest

from nescio import DissipativeRegressor, VariationalVarianceRegressor
from nescio._validation import InputError
from nescio.estimators import means, split
from nescio.estimators.together import fit_family, fit_stack


def table(seed: int, rows: int = 80) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3)) * [1.0, 4.0, 0.3] + [2.0, -1.0, 5.0]
    return X, 3.0 + np.sin(X[:, 0]) + 0.2 * rng.normal(size=rows)


def test_a_family_learns_what_each_method_learns_alone():
    X, y = table(0)
    models = [
        VariationalVarianceRegressor(max_steps=40, random_state=3),
        DissipativeRegressor(max_steps=40, random_state=3, n_pseudo_inputs=300),
        DissipativeRegressor(max_steps=40, random_state=3, n_pseudo_inputs=300, n_members=2),
    ]
    for alone, shared in zip(models, fit_family(models, X, y), strict=True):
        expected, found = alone.fit(X, y).predict(X, return_std=True), shared.predict(X, return_std=True)
        np.testing.assert_allclose(found, expected, rtol=2e-3)
        np.testing.assert_array_equal(shared.support(X), alone.support(X))


def test_a_family_trains_its_means_once(monkeypatch):
    calls = []

    def counted(*arguments, **named):
        calls.append((named["n_blocks"], named["n_repeats"]))
        return means.fit_means(*arguments, **named)

    monkeypatch.setattr(split, "fit_means", counted)
    X, y = table(1)
    models = [
        VariationalVarianceRegressor(max_steps=10, random_state=0),
        VariationalVarianceRegressor(prior=None, max_steps=10, random_state=0),
        DissipativeRegressor(max_steps=10, random_state=0, n_pseudo_inputs=100, n_blocks=4, n_members=3),
    ]
    fit_family(models, X, y)
    assert calls == [(4, 2)]


def test_a_stack_keeps_tables_apart():
    tables = [table(2), table(3, rows=60)]
    models = [VariationalVarianceRegressor(max_steps=20, random_state=seed) for seed in (5, 6)]
    for alone, shared, (X, y) in zip(models, fit_stack(models, tables), tables, strict=True):
        np.testing.assert_allclose(shared.predict(X), alone.fit(X, y).predict(X), rtol=1e-4)


def test_what_cannot_be_fitted_together_is_refused():
    X, y = table(4)
    seeds = [VariationalVarianceRegressor(random_state=seed) for seed in (0, 1)]
    with pytest.raises(InputError, match="same random_state"):
        fit_family(seeds, X, y)
    with pytest.raises(InputError, match="differ in random_state alone"):
        fit_stack([seeds[0], VariationalVarianceRegressor(max_steps=3)], [(X, y)] * 2)
    with pytest.raises(InputError, match="as many"):
        fit_stack(seeds, [(X, y)])
