"""Reasons for a verdict, the nearest training rows, and the watch over a whole table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom

import nescio
from nescio import DissipativeRegressor
from nescio._validation import InputError
from nescio.calibration import Support, fit_support
from nescio.estimators.watch import watch_rows

QUICK: dict[str, Any] = {"max_steps": 3, "n_folds": 2, "n_blocks": 2, "n_pseudo_inputs": 200, "random_state": 0}


def table(rows: int = 500) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.uniform(10.0, 90.0, rows)
    water = rng.uniform(100.0, 200.0, rows)
    return pd.DataFrame(
        {
            "cement": rng.uniform(100.0, 540.0, rows),
            "age": age,
            "pressure": 2.0 * age + rng.normal(0.0, 3.0, rows),
            "water": water + 100.0 * (water > 150.0),
            "colour": rng.choice(["red", "blue"], rows),
            "plant": ["north"] * (rows - 2) + ["south"] * 2,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, rows), unit="D"),
            "gappy": np.where(rng.random(rows) < 0.3, np.nan, rng.normal(size=rows)),
            "town": [f"t{number:02}" for number in rng.integers(0, 25, rows)],
        }
    )


@pytest.fixture(scope="module")
def model() -> DissipativeRegressor:
    X = table()
    return DissipativeRegressor(**QUICK).fit(X, X["cement"].to_numpy())


def usual(**changed: Any) -> pd.DataFrame:
    row = {
        **{"cement": 320.0, "age": 50.0, "pressure": 100.0, "water": 130.0, "colour": "red", "plant": "north"},
        **{"day": pd.Timestamp("2024-05-01"), "gappy": 0.1, "town": "t03"},
    }
    return pd.DataFrame([{**row, **changed}])


def explained(model: DissipativeRegressor, **changed: Any) -> nescio.Explanation:
    return model.explain(usual(**changed), edge=0.5, outside=0.1)[0]


def test_a_usual_row_has_no_reasons(model):
    found = model.explain(usual())[0]
    assert (found.verdict, found.reasons, found.columns, found.nearest) == ("inside", (), (), ())
    assert str(found) == "inside"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"cement": 812.0}, r"cement = 812, above every training row \(max 53\d\.\d+\)"),
        ({"cement": -3.0}, r"cement = -3, below every training row \(min 10\d\.\d+\)"),
        ({"day": pd.Timestamp("2031-02-03 06:00")}, r"day = 2031-02-03 06:00, above every training row \(max 2024-10-"),
        ({"colour": "mauve"}, "no training row has colour = 'mauve'"),
        ({"town": "Atlantis"}, "no training row has town = 'Atlantis'"),
        ({"cement": None}, "cement is missing, which it is in no training row"),
        ({"plant": "south"}, "plant = 'south', as in only 2 of 500 training rows looked at"),
        ({"gappy": 7.0}, r"gappy = 7, above every training row"),
    ],
)
def test_the_column_that_takes_a_row_out_is_named_first(model, changed, words):
    found = explained(model, **changed)
    assert found.verdict in ("edge", "outside")
    assert found.columns[0] == next(iter(changed))
    assert pd.Series([found.reasons[0]]).str.fullmatch(words + ".*").all(), found.reasons[0]
    assert str(found).startswith(f"{found.verdict}: {found.reasons[0]}")


def test_a_combination_that_no_column_shows_is_said_to_be_one(model):
    found = explained(model, age=30.0, pressure=150.0)
    assert set(found.columns[:2]) == {"age", "pressure"}
    assert "together: each is usual, hardly a training row is near both" in found.reasons[0]
    assert "age = 30" in found.reasons[0]
    assert "pressure = 150" in found.reasons[0]


def test_a_hole_in_one_column_is_named_with_its_ends():
    X = table()[["water", "age"]]
    found = DissipativeRegressor(**QUICK).fit(X, X["age"]).explain(pd.DataFrame({"water": [200.0], "age": [50.0]}))[0]
    assert found.columns == ("water",)
    low, high = X["water"][X["water"] < 200.0].max(), X["water"][X["water"] > 200.0].min()
    assert found.reasons == (f"water = 200, between {low:.6g} and {high:.6g}, where no training row is",)


def test_columns_are_ranked_by_their_part_of_the_distance(model):
    far = explained(model, cement=900.0, age=2000.0)
    assert far.columns[0] == "age"
    farther = explained(model, cement=90_000.0, age=2000.0)
    assert farther.columns[0] == "cement"


def test_the_nearest_rows_are_those_of_the_table_that_was_given(model):
    X = table()
    found = explained(model, cement=812.0)
    assert len(found.nearest) == 3
    for neighbour in found.nearest:
        there = X.iloc[neighbour.row]
        assert float(neighbour.values["cement"]) == pytest.approx(there["cement"], rel=1e-5)
        assert neighbour.values["colour"] == f"'{there['colour']}'"
        assert neighbour.values["gappy"] == "missing" or float(neighbour.values["gappy"]) == pytest.approx(
            there["gappy"], rel=1e-5
        )
        assert neighbour.values["day"] == str(there["day"])[:10]
    distances = [neighbour.distance for neighbour in found.nearest]
    assert distances == sorted(distances)
    # An independent search among all rows.
    z = (model.columns_.transform(X).values - model.x_shift_) / model.x_scale_
    own = (model.columns_.transform(usual(cement=812.0)).values - model.x_shift_) / model.x_scale_
    exact = np.linalg.norm(model.support_.neighbours.reference.numpy() - own, axis=1)
    assert distances[0] == pytest.approx(exact.min(), rel=1e-9)
    assert z.shape[1] == len(model.x_shift_)


def test_arrays_have_numbers_for_names_and_rows_keep_their_batch():
    rng = np.random.default_rng(1)
    X = rng.normal(5.0, 2.0, (300, 2))
    model = DissipativeRegressor(**QUICK).fit(X, X[:, 0])
    rows = np.array([[5.0, 5.0], [5.0, 40.0], [3e12, 5.0]])
    found = model.explain(rows)
    assert [one.verdict for one in found] == ["inside", "outside", "outside"]
    assert found[1].reasons[0].startswith("column 1 = 40, above every training row")
    assert found[2].reasons[0].startswith("column 0 = 3000000000000, above every training row")
    assert model.explain(rows[1:2])[0] == found[1]


def test_a_loaded_model_explains_the_same(model, tmp_path):
    nescio.save(model, tmp_path / "m")
    again = nescio.load(tmp_path / "m")
    rows = pd.concat([usual(cement=812.0), usual(colour="mauve"), usual(age=30.0, pressure=150.0)])
    assert again.explain(rows) == model.explain(rows)
    assert again.explain(pl.from_pandas(rows)) == model.explain(rows)


def test_too_few_rows_give_no_reasons_but_those_of_cells():
    X = table(16)[["cement", "colour"]]
    model = DissipativeRegressor(**QUICK).fit(X, X["cement"])
    rows = pd.DataFrame({"cement": [300.0, 9e9], "colour": ["mauve", "red"]})
    with pytest.warns(UserWarning, match="too few"):
        found = model.explain(rows)
    assert found[0].reasons == ("no training row has colour = 'mauve'",)
    assert (found[1].verdict, found[1].reasons) == ("unknown", ())


def test_bad_rates_are_refused(model):
    for method in (model.explain, model.watch, model.verdict):
        with pytest.raises(InputError, match="outside must not exceed edge"):
            method(usual(), edge=0.01, outside=0.1)
        with pytest.raises(InputError, match="edge must lie strictly between 0 and 1"):
            method(usual(), edge=1.5)


# The watch


def test_the_watch_is_exact_where_the_calibration_is_large():
    scores = np.sort(np.random.default_rng(0).random(200_000))
    support = Support(fit_support(np.random.default_rng(1).normal(size=(50, 2))).neighbours, scores)
    p = np.concatenate([np.full(12, 0.01), np.full(88, 0.9)])
    found = watch_rows(p, support, 0.05, 0.001)
    assert (found.n_rows, found.n_edge, found.n_outside) == (100, 12, 0)
    assert found.p_value == pytest.approx(2.0 * binom.sf(11, 100, 0.05), rel=5e-3)
    assert not watch_rows(np.full(100, 0.9), support, 0.05, 0.001).alarm


def test_the_watch_rarely_barks_at_rows_from_inside():
    rng = np.random.default_rng(0)
    small = []
    for _ in range(150):
        X = rng.normal(size=(700, 2))
        support = fit_support(X[:300])
        small.append(watch_rows(support.p_value(X[300:]), support, 0.05, 0.005).p_value)
    assert binom.sf((np.array(small) < 0.01).sum() - 1, 150, 0.01) > 1e-3
    # A wrong twin: the plain binomial forgets that 300 calibration rows settle the rate only roughly.
    X = np.random.default_rng(3).normal(size=(100_000, 2))
    support = fit_support(X[:300])
    p = support.p_value(X[300:])
    assert watch_rows(p, support, 0.05, 0.005).p_value > 1e-3
    plain = [
        min(binom.sf((p <= rate).sum() - 1, len(p), rate), binom.cdf((p <= rate).sum(), len(p), rate))
        for rate in (0.05, 0.005)
    ]
    assert min(plain) < 1e-6


def test_the_watch_barks_at_rows_that_have_moved(model):
    X = table()
    calm = model.watch(X)
    assert not calm.alarm
    assert str(calm).endswith("rows like those in training would give about 5.0%.")
    moved = model.watch(X.assign(cement=X["cement"] + 400.0))
    assert moved.alarm
    assert str(moved).startswith("WARNING: ")
    assert "look at them before you use the predictions" in str(moved)
    unseen = model.watch(X.head(40).assign(colour="mauve"))
    assert unseen.alarm
    assert unseen.n_outside == 40


def test_the_watch_says_where_it_cannot_tell():
    X = table(10)[["cement"]]
    found = DissipativeRegressor(**QUICK).fit(X, X["cement"]).watch(X)
    assert np.isnan(found.p_value)
    assert not found.alarm
    assert "too few" in str(found)


@pytest.mark.parametrize("rows", [10, 60, 300])  # enough for no threshold, for the edge, and for both
def test_the_watch_counts_what_the_verdicts_say(rows):
    X = table(rows)[["cement", "colour"]]
    model = DissipativeRegressor(**QUICK).fit(X, X["cement"])
    new = pd.DataFrame({"cement": [300.0, 1e4, 1e5, 300.0], "colour": ["red", "red", "blue", "mauve"]})
    words = model._words(model._read(new)).tolist()
    found = model.watch(new)
    assert (found.n_outside, found.n_edge - found.n_outside) == (words.count("outside"), words.count("edge"))
    assert found.n_outside == (3 if rows == 300 else 1)
