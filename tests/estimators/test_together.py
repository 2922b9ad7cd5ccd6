"""Methods and tables that are fitted together learn what they would learn alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nescio import DissipativeRegressor, VariationalVarianceRegressor
from nescio._validation import InputError
from nescio.estimators import anchoring, dissipative, means, precision, split
from nescio.estimators.problem import SUPPORT
from nescio.estimators.together import fit_family, fit_stack


def table(seed: int, rows: int = 80) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3)) * [1.0, 4.0, 0.3] + [2.0, -1.0, 5.0]
    return X, 3.0 + np.sin(X[:, 0]) + 0.2 * rng.normal(size=rows)


@pytest.fixture
def trained(monkeypatch) -> list[int]:
    """How many posteriors each call has trained."""
    calls: list[int] = []

    def counted(*arguments, **named):
        calls.append(len(named["streams"]))
        return precision.fit_precision(*arguments, **named)

    monkeypatch.setattr(split, "fit_precision", counted)
    return calls


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
        if isinstance(alone, DissipativeRegressor):
            assert shared.core_.anchor.start == alone.core_.anchor.start


def test_a_family_places_its_anchor_once(monkeypatch):
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return anchoring.place_anchor(*arguments)

    monkeypatch.setattr(dissipative, "place_anchor", counted)
    X, y = table(4)
    settings = {"max_steps": 10, "random_state": 3, "n_members": 2}
    one_prior = {"outside_prior": "inside", "anchor": False, "distance_input": False}
    models = [
        DissipativeRegressor(**settings, n_pseudo_inputs=100),
        DissipativeRegressor(**settings, n_pseudo_inputs=100, **one_prior),
        DissipativeRegressor(**settings, n_pseudo_inputs=120),  # other pools: an anchor of its own
    ]
    shared = fit_family(models, X, y)
    assert len(calls) == 2
    for alone, model in zip(models, shared, strict=True):
        assert model.core_.anchor.start == alone.fit(X, y).core_.anchor.start


def test_members_so_many_that_the_folds_are_dealt_again_share_no_posterior_with_fewer():
    X, y = table(7)
    settings = {"max_steps": 10, "random_state": 3, "n_pseudo_inputs": 100, "n_folds": 2}
    models = [DissipativeRegressor(**settings, n_members=count) for count in (5, 1)]  # residuals of three deals, of two
    for alone, shared in zip(models, fit_family(models, X, y), strict=True):
        np.testing.assert_allclose(shared.predict_dist(X).std, alone.fit(X, y).predict_dist(X).std, rtol=2e-3)


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


def test_five_members_asked_for_are_those_of_the_default(trained):
    settings = {"max_steps": 5, "random_state": 0, "n_pseudo_inputs": 50}
    fit_family([DissipativeRegressor(**settings), DissipativeRegressor(**settings, n_members=5)], *table(3))
    assert trained == [5]


def test_five_members_asked_for_are_the_first_of_ten(trained):
    settings = {"max_steps": 5, "random_state": 0, "n_pseudo_inputs": 50}
    X, y = table(3)
    wide = np.concatenate([X, X**2, X**3, X**4], axis=1)
    ten, five = fit_family([DissipativeRegressor(**settings), DissipativeRegressor(**settings, n_members=5)], wide, y)
    assert trained == [10]
    assert (ten.core_.members, five.core_.members) == (10, 5)
    alone = DissipativeRegressor(**settings, n_members=5).fit(wide, y)
    np.testing.assert_allclose(five.predict_dist(wide).std, alone.predict_dist(wide).std, rtol=1e-4)


def test_a_member_of_an_ensemble_is_not_trained_again_alone(trained):
    X, y = table(2)
    settings = {"max_steps": 10, "random_state": 0, "n_pseudo_inputs": 100}
    models = [
        DissipativeRegressor(**settings, n_members=1),
        DissipativeRegressor(**settings, n_members=3),
        DissipativeRegressor(**settings, n_members=1, anchor=False),
    ]
    single, several, other = fit_family(models, X, y)
    assert trained == [3, 1]
    assert [model.n_members for model in (single, several, other)] == [1, 3, 1]
    for name, value in single.core_.precision_parameters.items():
        torch.testing.assert_close(value, several.core_.precision_parameters[name][:1], rtol=0, atol=0)
    assert single.fit_seconds_ > 0


def test_one_that_sees_the_distance_because_it_is_alone_is_not_the_first_of_several(trained):
    X, y = table(2, rows=1_000)
    wide = np.concatenate([X, X[:, :1] ** 2], axis=1)
    settings = {"max_steps": 5, "n_folds": 2, "random_state": 0, "n_pseudo_inputs": 50}
    models = [DissipativeRegressor(**settings, n_members=count) for count in (1, 2)]
    single, _ = fit_family(models, wide, y)
    assert trained == [2, 1]
    alone = models[0].fit(wide, y)
    np.testing.assert_allclose(single.predict_dist(wide).std, alone.predict_dist(wide).std, rtol=1e-4)


def test_a_stack_keeps_tables_apart():
    tables = [table(2), table(3, rows=60)]
    models = [VariationalVarianceRegressor(max_steps=20, random_state=seed) for seed in (5, 6)]
    for alone, shared, (X, y) in zip(models, fit_stack(models, tables), tables, strict=True):
        np.testing.assert_allclose(shared.predict(X), alone.fit(X, y).predict(X), rtol=1e-4)


def test_a_support_that_is_known_is_not_found_again(monkeypatch):
    tables, memos = [table(2), table(3, rows=60)], [{}, {}]
    models = [VariationalVarianceRegressor(max_steps=5, random_state=seed) for seed in (5, 6)]
    first = fit_stack(models, tables, memos)
    monkeypatch.setattr("nescio.estimators.problem.fit_support", None)
    supports = [{SUPPORT: memo[SUPPORT]} for memo in memos]
    again = [*fit_stack(models, tables, supports), *fit_family(models[:1], *tables[0], memo=dict(supports[0]))]
    for model, other in zip(again, [*first, first[0]], strict=True):
        assert model.support_ is other.support_


def test_what_cannot_be_fitted_together_is_refused():
    X, y = table(4)
    seeds = [VariationalVarianceRegressor(random_state=seed) for seed in (0, 1)]
    with pytest.raises(InputError, match="same random_state"):
        fit_family(seeds, X, y)
    with pytest.raises(InputError, match="differ in random_state alone"):
        fit_stack([seeds[0], VariationalVarianceRegressor(max_steps=3)], [(X, y)] * 2)
    with pytest.raises(InputError, match="as many"):
        fit_stack(seeds, [(X, y)])


def test_the_mean_is_the_average_of_the_bag_and_members_share_it_out():
    X, y = table(5)
    settings = {"max_steps": 20, "random_state": 1, "n_folds": 3}
    one, two = (VariationalVarianceRegressor(n_members=count, **settings).fit(X, y) for count in (1, 2))
    core = one.core_
    x = torch.as_tensor((X - one.x_shift_) / one.x_scale_, dtype=torch.float32)
    each = core.mean.network(core.mean.parameters, x.expand(6, *x.shape))[:, 0].detach().double().numpy()
    np.testing.assert_allclose(one.predict(X), each.mean(0)[:, 0] * one.y_scale_ + one.y_shift_, rtol=1e-5)
    np.testing.assert_allclose(two.core_.locations(x)[0].numpy(), each[::2].mean(0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(two.predict(X), one.predict(X), rtol=1e-5)


def test_residuals_come_from_networks_that_did_not_see_the_row():
    X, y = table(6, rows=40)
    y = y.copy()
    y[7] += 50.0  # no network that has not seen it can know
    fitted = []

    def kept(*arguments, **named):
        fitted.append(means.fit_means(*arguments, **named))
        return fitted[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split, "fit_means", kept)
        model = VariationalVarianceRegressor(max_steps=400, random_state=0, n_folds=4).fit(X, y)
    scaled = (y[7] - model.y_shift_[0]) / model.y_scale_[0]
    assert float(fitted[0].residuals[7, 0]) > 0.8 * scaled
