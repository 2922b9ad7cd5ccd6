"""Frames at the door of a regressor: the same numbers as an array, and a word where a row was never seen."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

import nescio
from nescio import DeepEnsembleRegressor, DissipativeRegressor, MeanVarianceRegressor, VariationalVarianceRegressor
from nescio._validation import InputError
from nescio.calibration import Conformal
from nescio.estimators.state import from_state, to_state

QUICK: dict[str, Any] = {"max_steps": 20, "n_folds": 2, "n_blocks": 2, "n_pseudo_inputs": 500, "random_state": 0}


def messy(rows: int = 240, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "größe": rng.normal(50.0, 9.0, rows),
            "colour": rng.choice(["red", "green", "blue"], rows),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, rows), unit="D"),
            "flag": rng.random(rows) < 0.4,
            "gappy": np.where(rng.random(rows) < 0.2, np.nan, rng.normal(3.0, 1.0, rows)),
            "town": [f"town {number:02}" for number in rng.integers(0, 24, rows)],
            "same": 1.0,
        }
    )
    frame["y"] = frame["größe"] * 0.3 + (frame["colour"] == "red") * 4.0 + rng.normal(0.0, 1.0, rows)
    return frame


@pytest.fixture(scope="module")
def model() -> DissipativeRegressor:
    frame = messy()
    return DissipativeRegressor(**QUICK, outside=30.0).fit(frame.drop(columns="y"), frame["y"])


def fresh(rows: int = 40) -> pd.DataFrame:
    return messy(rows, 1).drop(columns="y")


def test_a_frame_of_numbers_is_the_same_as_an_array():
    rng = np.random.default_rng(2)
    X, y = rng.normal(3.0, 2.0, (60, 3)), rng.normal(size=60)
    plain = DissipativeRegressor(**QUICK).fit(X, y)
    for frame in (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc"))):
        named = DissipativeRegressor(**QUICK).fit(frame, y)
        np.testing.assert_array_equal(named.predict_dist(frame).std, plain.predict_dist(X).std)
        np.testing.assert_array_equal(named.support(frame), plain.support(X))
        assert named.encoded_names_ == ["a", "b", "c"]
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            np.testing.assert_array_equal(named.predict(X), plain.predict(X))
    assert plain.columns_ is None
    assert plain.encoded_names_ == ["0", "1", "2"]


def test_a_messy_frame_goes_through(model):
    rows = fresh()
    assert model.n_features_in_ == 7
    assert list(model.feature_names_in_) == list(rows.columns)
    assert len(model.encoded_names_) == len(model.x_shift_) == 1 + 3 + 1 + 1 + 2 + 1 + 1
    assert [record["kind"] for record in model.columns_.describe()] == [
        *("number", "category", "date", "boolean", "number", "many levels", "number"),
    ]
    mean, std = model.predict(rows, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    np.testing.assert_allclose(model.predict(rows), mean, rtol=1e-12)
    np.testing.assert_allclose(model.predict(pl.from_pandas(rows)), mean, rtol=1e-12)
    assert (model.verdict(rows) == "inside").mean() > 0.8


def test_the_order_of_columns_is_free_and_extra_ones_are_announced(model):
    rows = fresh()
    turned = rows[rows.columns[::-1]]
    np.testing.assert_array_equal(model.support(turned), model.support(rows))
    with pytest.warns(UserWarning, match="columns that the model does not use: 'id'"):
        np.testing.assert_array_equal(model.predict(turned.assign(id=1)), model.predict(rows))
    with pytest.raises(InputError, match="X lacks 'day', which the model was fitted with"):
        model.predict(rows.drop(columns="day"))


def test_what_was_never_seen_counts_as_outside_at_the_level_asked_for(model):
    rows = fresh()
    usual = model.predict_dist(rows)
    strange = rows.copy()
    strange.loc[3, "colour"] = "mauve"
    strange.loc[5, "größe"] = np.nan
    strange.loc[8, "town"] = "Atlantis"
    there = np.isin(np.arange(len(rows)), [3, 5, 8])
    dist = model.predict_dist(strange)
    np.testing.assert_allclose(dist.std[there], 30.0, rtol=1e-5)
    assert (model.verdict(strange)[there] == "outside").all()
    assert (model.support(strange)[there] == 0.0).all()
    np.testing.assert_allclose(model.knowledge(strange)[there], 0.0, atol=1e-5)
    np.testing.assert_array_equal(dist.std[~there], usual.std[~there])
    np.testing.assert_array_equal(model.support(strange)[~there], model.support(rows)[~there])
    np.testing.assert_allclose(model.predict(strange), dist.mean, rtol=1e-12)
    assert np.abs(dist.mean[8] - usual.mean[8]) < 20.0, "the mean still uses the other columns"
    # A row's answer does not depend on its batch.
    np.testing.assert_array_equal(model.predict_dist(strange.iloc[[3]]).std, dist.std[[3]])


def test_an_unseen_level_is_outside_even_where_rows_are_few():
    frame = messy(30)
    model = DissipativeRegressor(**QUICK).fit(frame[["größe", "colour"]], frame["y"])
    rows = frame[["größe", "colour"]].head(2).assign(colour=["mauve", "red"])
    with pytest.warns(UserWarning, match="too few to call a row outside"):
        assert model.verdict(rows)[0] == "outside"


@pytest.mark.filterwarnings("ignore:.*are too few to call a row outside:UserWarning")
@pytest.mark.parametrize("rows", [150, 15])  # too few for "outside" by distance, and for any word
def test_the_interval_of_what_was_never_seen_is_that_of_its_verdict(rows):
    frame = messy(rows)[["größe", "colour", "y"]]
    model = DissipativeRegressor(**QUICK, n_members=1).fit(frame[["größe", "colour"]], frame["y"])
    wide = np.full((99, 1), 1e-4)
    model.conformal_ = Conformal(wide, wide)  # inside and at the edge, the tail to leave out is 1e-4 at any level
    new = pd.DataFrame({"größe": [50.0, 50.0, np.nan], "colour": ["red", "mauve", "red"]})
    assert model.verdict(new)[1:].tolist() == ["outside", "outside"]
    usual = "inside" if rows == 150 else "fitted"
    assert model.interval_kind(new).tolist() == [usual, "outside level", "outside level"]
    for level in (0.5, 0.9):
        for end, own in zip(model.predict_interval(new, level), model.predict_dist(new).interval(level), strict=True):
            np.testing.assert_allclose(end[1:], own[1:], rtol=1e-9)
            assert abs(end[0] - model.predict(new)[0]) > 1.5 * abs(own[0] - model.predict(new)[0])


def test_the_mean_fades_for_strange_rows_where_it_fades_at_all():
    frame = messy(60)
    model = DissipativeRegressor(**QUICK, outside_mean="training").fit(frame[["größe", "colour"]], frame["y"])
    rows = frame[["größe", "colour"]].head(2).assign(colour=["mauve", "red"])
    np.testing.assert_allclose(model.predict(rows)[0], frame["y"].mean(), rtol=1e-6)
    np.testing.assert_allclose(model.predict(rows), model.predict_dist(rows).mean, rtol=1e-12)


def test_methods_without_an_outside_say_so_too():
    frame = messy(220)
    rows = frame[["größe", "colour"]].head(3).assign(colour=["mauve", "red", None])
    for method in (
        VariationalVarianceRegressor(max_steps=5, n_folds=2, random_state=0),
        MeanVarianceRegressor(max_steps=5, random_state=0),
        DeepEnsembleRegressor(member=MeanVarianceRegressor(max_steps=5), n_members=2, random_state=0),
    ):
        model = method.fit(frame[["größe", "colour"]], frame["y"])
        assert np.isfinite(model.predict_dist(rows).std).all()
        verdict = model.verdict(rows)
        assert (verdict[0], verdict[2]) == ("outside", "outside")


def test_weights_of_zero_leave_rows_out_of_the_encoder_too():
    frame = messy(60)
    frame.loc[7, "colour"] = "mauve"
    weights = np.ones(60)
    weights[7] = 0.0
    X = frame[["größe", "colour"]]
    model = DissipativeRegressor(**QUICK).fit(X, frame["y"], sample_weight=weights)
    assert "mauve" not in model.columns_.columns[1].levels
    assert 7 not in model.support_.rows
    np.testing.assert_allclose(
        model.support_.neighbours.reference[:, 0] * model.x_scale_[0] + model.x_shift_[0],
        X["größe"].to_numpy()[model.support_.rows],
        rtol=1e-12,
    )


def test_columns_without_a_value_are_left_out_with_a_note():
    frame = messy(40)[["größe", "y"]].assign(empty=np.nan)
    with pytest.warns(UserWarning, match="without a single value, which are left out: 'empty'"):
        model = DissipativeRegressor(**QUICK).fit(frame[["größe", "empty"]], frame["y"])
    assert len(model.x_shift_) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(frame[["größe", "empty"]])


def test_bare_numbers_are_refused_where_they_would_mean_nothing(model):
    with pytest.raises(InputError, match=r"'colour', 'day', .* cannot be told from bare numbers; give X as a frame"):
        model.predict(np.ones((2, 7)))
    with pytest.raises(InputError, match="X has no rows"):
        model.predict(fresh().head(0))
    with pytest.raises(InputError, match="X has 3 samples"):
        DissipativeRegressor(**QUICK).fit(fresh(3), [1.0, 2.0, 3.0])


# Saved and loaded


def test_the_columns_come_back_with_the_model(model, tmp_path):
    nescio.save(model, tmp_path / "m")
    again = nescio.load(tmp_path / "m")
    rows = fresh()
    rows.loc[3, "colour"] = "mauve"
    rows.loc[4, "town"] = None
    assert again.columns_.describe() == model.columns_.describe()
    np.testing.assert_array_equal(again.support_.rows, model.support_.rows)
    np.testing.assert_array_equal(again.x_range_, model.x_range_)
    for first, second in ((model, again), (model, pl.from_pandas(rows))):
        other = again if isinstance(second, pl.DataFrame) else second
        given = second if isinstance(second, pl.DataFrame) else rows
        np.testing.assert_array_equal(other.predict_dist(given).std, first.predict_dist(rows).std)
        np.testing.assert_array_equal(other.support(given), first.support(rows))
    nescio.save(again, tmp_path / "n")
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()


CHANGES: list[tuple[str, Any, str]] = [
    ("encoded", 11, "model.table.encoded must be 10; got 11"),
    ("encoded", None, "unknown entry .*columns"),
    ("columns/1/kind", "colour", "kind must be one of"),
    ("columns/1/kind", "number", "levels of column 1 do not fit its kind"),
    ("columns/1/levels", ["red", "red", "blue"], "levels of column 1 do not fit"),
    ("columns/1/levels", ["red", 3, "blue"], "list of 3 names"),
    ("columns/1/n_levels", 2, "list of 2 names"),
    ("columns/0/name", "colour", "two columns of one name"),
    ("columns/0/name", "gross", "not those of its columns"),
    ("columns/0/gaps", 1, "must be true or false"),
    ("columns/0/gaps", True, "'columns/scales' must be float64 of shape"),
    ("columns/0/note", None, "must be a text"),
    ("columns/0/more", 1, "unknown entry"),
    ("columns/9", {}, "unknown entry"),
]


@pytest.mark.parametrize(("place", "value", "words"), CHANGES)
def test_a_wrong_word_about_the_columns_is_refused(model, place, value, words):

    arrays, description = to_state(model)
    description = copy.deepcopy(description)
    entry = description["table"]
    *way, last = place.split("/")
    for step in way:
        entry = entry[step]
    entry[last] = value
    with pytest.raises(InputError, match=words):
        from_state(arrays, description, {}, torch.device("cpu"))


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("columns/scales", lambda a: -a - 1.0, "must not be negative"),
        ("columns/fill", lambda a: a[:-1], "must be float64 of shape"),
        ("columns/origin", lambda a: a * np.nan, "holds NaN or infinity"),
        ("columns/5/averages", lambda a: a[1:], "must be float64 of shape"),
        ("x_range", lambda a: a[::-1], "smallest and the largest"),
        ("support_rows", lambda a: a + 0.5, "must hold numbers of rows"),
        ("support_rows", lambda a: -a - 1, "must hold numbers of rows"),
    ],
)
def test_a_wrong_number_about_the_columns_is_refused(model, name, change, words):

    arrays, description = to_state(model)
    arrays[name] = np.ascontiguousarray(change(arrays[name]))
    with pytest.raises(InputError, match=words):
        from_state(arrays, description, {}, torch.device("cpu"))


def test_nothing_of_the_table_but_reference_rows_and_levels_is_written(model, tmp_path: Path):
    arrays, _ = to_state(model)
    assert sum(array.nbytes for name, array in arrays.items() if name.startswith("columns")) < 4_000
