"""Arguments and data that cannot be used are refused before any training, each in its own sentence."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from nescio import (
    BayesByBackpropRegressor,
    DissipativeRegressor,
    EvidentialRegressor,
    FaithfulRegressor,
    GaussianProcessRegressor,
    MCDropoutRegressor,
    MeanVarianceRegressor,
    NaturalBoostingRegressor,
    NoiseContrastiveRegressor,
    PseudoCountRegressor,
    ReliableVarianceRegressor,
    VariationalVarianceRegressor,
    VBEMRegressor,
)
from nescio._validation import InputError
from nescio.estimators.together import fit_family
from nescio.pseudo_inputs import BruteForce, LevelSet, MixtureDescent
from nescio.training.devices import resolve_device

QUICK: dict[str, Any] = {"max_steps": 3, "n_folds": 2, "n_members": 1, "device": "cpu", "random_state": 3}


def table(rows: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    X = rng.normal([3.0, -70.0], [0.5, 9.0], (rows, 2))
    return X, 4.0 * X[:, 0] - X[:, 1] + rng.normal(size=rows)


def sentence(words: str) -> str:
    return f"^{re.escape(words)}$"


@pytest.fixture(scope="module")
def fitted() -> DissipativeRegressor:
    return DissipativeRegressor(**QUICK).fit(*table())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1; got 0."),
        ({"learning_rate": -1}, "learning_rate must be a finite number that exceeds 0; got -1."),
        ({"n_blocks": 0}, "n_blocks must be a whole number of at least 1; got 0."),
        ({"hidden": (4, 0)}, "hidden must be a whole number of at least 1; got 0."),
        ({"hidden": 64}, "hidden must be a list of whole numbers, one for each hidden layer; got 64."),
        ({"mean_hidden": None}, "mean_hidden must be a list of whole numbers, one for each hidden layer; got None."),
        ({"mean_hidden": [5, 2.5]}, "mean_hidden must be a whole number of at least 1; got 2.5."),
        ({"mean_activation": ["relu"]}, None),
        ({"mean_network": []}, "mean_network must be a function (n_inputs, n_outputs) -> nn.Module; got []."),
        ({"precision_network": 3}, "precision_network must be a function (n_inputs, n_outputs) -> nn.Module; got 3."),
        ({"placement": "far"}, "placement must be one of nescio.pseudo_inputs or a function; got 'far'."),
        ({"outside": [1.0, "much"]}, "outside must be a positive number in units of y, one per target (1), 'auto', "
         "'target', 'residual' or a function of x; got [1.0, 'much']."),
        ({"outside": True}, "outside must be a positive number in units of y, one per target (1), 'auto', 'target', "
         "'residual' or a function of x; got True."),
        ({"random_state": "x"}, "random_state must be None, a whole number or a generator of numpy; got 'x'."),
        ({"random_state": 1.5}, "random_state must be None, a whole number or a generator of numpy; got 1.5."),
    ],
    ids=str,
)  # fmt: skip
def test_a_setting_of_the_regressor(settings, words):
    words = sentence(words) if words else r"^mean_activation must be one of 'tanh', .*; got \['relu'\]\.$"
    with pytest.raises(InputError, match=words):
        DissipativeRegressor(**{**QUICK, **settings}).fit(*table())


@pytest.mark.parametrize(
    ("device", "there", "words"),
    [
        ("cuda", 0, "device='cuda' was asked for, but the number of CUDA devices is 0; use device='auto'."),
        ("cuda:2", 2, "device='cuda:2' was asked for, but the number of CUDA devices is 2; use device='auto'."),
        ("meta", 0, "device must be 'auto', 'cpu' or a CUDA device; got 'meta'."),
        ("mps", 0, "device must be 'auto', 'cpu' or a CUDA device; got 'mps'."),
        (None, 0, "device must be 'auto', 'cpu' or a CUDA device; got None."),
    ],
)
def test_a_device_that_is_not_there(device, there, words, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: there)
    with pytest.raises(InputError, match=sentence(words)):
        DissipativeRegressor(**{**QUICK, "device": device}).fit(*table())
    assert resolve_device("cpu") == torch.device("cpu")
    assert resolve_device(f"cuda:{max(there - 1, 0)}" if there else "auto").type == ("cuda" if there else "cpu")


X, Y = table()
DAYS = pd.date_range("2024-01-01", periods=30)
DATES = "y holds dates or durations, not numbers; turn them into days or seconds first."


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (X, None, "this regressor requires y to be passed, but the target y is None."),
        (X, Y[1:], "y must have one row for each of the 30 rows of X; its shape is (29,)."),
        (X, ["a"] * 30, "y must hold numbers; 'a' in row 0 is none."),
        (X, [*Y[:29], "dear"], "y must hold numbers; 'dear' in row 29 is none."),
        (X, Y * 1j, "j in row 0 is none."),
        (X, DAYS, DATES),
        (X, DAYS - DAYS[0], DATES),
        (X, DAYS.tz_localize("UTC"), DATES),
        (X, list(DAYS.date), DATES),
        (X, pl.Series(DAYS), DATES),
        (X, pd.DataFrame({"price": Y, "sold": DAYS}), DATES),
        (X[:, 0], Y, "X must have rows and columns, and its shape is (30,). Reshape your data: X.reshape(-1, 1) if it"),
        (X[:, :0], Y, "X is no table of numbers: Found array with 0 feature(s)"),
        ([[1.0], [1.0, 2.0]] * 15, Y, "X is no table of numbers: setting an array element with a sequence."),
        (pl.LazyFrame({"a": X[:, 0]}), Y, "X is a LazyFrame; call .collect() first."),
        (pd.DataFrame(X, columns=pd.MultiIndex.from_product([["a"], ["b", "c"]])), Y,
         "X has columns with names of several levels (a MultiIndex); give each column one name."),
        (X, np.ones((30, 1, 1)), "y must have one row for each of the 30 rows of X; its shape is (30, 1, 1)."),
        (X, np.where(X[:, 0] > 3.0, Y, np.inf), None),
        (X * [1.0, 1e99], Y, "the table holds numbers beyond 1e+100, such as"),
        (X, Y * 1e100, "the table holds numbers beyond 1e+100, such as"),
        (X * 1j, Y, "X holds complex numbers. Complex data not supported: split them into two columns."),
    ],
    ids=["no y", "short y", "text y", "a text in y", "complex y", "dates", "durations", "dates of a zone",
         "list of dates", "polars dates", "a column of dates", "1-D X", "no column", "ragged X", "LazyFrame",
         "MultiIndex", "deep y", "infinite y", "large X", "large y", "complex X"],
)  # fmt: skip
def test_data_that_cannot_be_learned_from(x, y, words):
    if words is None:
        bad = ~np.isfinite(y)
        words = f"y contains infinity ({bad.sum()} rows, the first is row {bad.argmax()}); drop them."
    with pytest.raises(InputError, match=re.escape(words)):
        VariationalVarianceRegressor(**QUICK).fit(x, y)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.where(np.arange(30) == 7, -2.0, 1.0), "sample_weight must be finite and not negative; got -2 in row 7."),
        (np.where(np.arange(30) == 5, np.nan, 1.0), "sample_weight must be finite and not negative; got nan in row 5."),
        (np.inf, "sample_weight must be finite and not negative; got inf in row 0."),
        (np.ones(29), "sample_weight must have one weight for each of the 30 rows of X; its shape is (29,)."),
        (np.ones((30, 1)), "sample_weight must have one weight for each of the 30 rows of X; its shape is (30, 1)."),
        (["heavy"] * 30, "sample_weight must hold numbers; 'heavy' in row 0 is none."),
        (DAYS, DATES.replace("y holds", "sample_weight holds")),
        (0, "sample_weight must have a positive sum; all weights are zero."),
    ],
    ids=["negative", "NaN", "infinite", "short", "a column", "text", "dates", "zero"],
)
def test_weights_that_are_none(weights, words):
    with pytest.raises(InputError, match=sentence(words)):
        VariationalVarianceRegressor(**QUICK).fit(X, Y, weights)


def test_new_rows_of_another_shape(fitted):
    words = "X has 1 features, but DissipativeRegressor is expecting 2 features as input; give the columns "
    for rows in (X[:, :1], pd.DataFrame({"a": X[:, 0]})):
        with pytest.raises(InputError, match=sentence(f"{words}that it was fitted with, in their order.")):
            fitted.predict(rows)
    with pytest.raises(InputError, match=r"its shape is \(2,\)\. Reshape your data:"):
        fitted.predict(X[0])
    with pytest.raises(InputError, match=sentence("X is a LazyFrame; call .collect() first.")):
        fitted.verdict(pl.LazyFrame({"a": X[:, 0]}))


def test_the_largest_number_is_named_with_its_sign():
    x = X.copy()
    x[7, 0] = -3e200
    with pytest.raises(InputError, match=re.escape("such as -3e+200; rescale the column or drop the row.")):
        VariationalVarianceRegressor(**QUICK).fit(x, Y)


def test_a_level_that_is_a_function_is_told_what_it_returned():
    words = "outside as a function of x must return finite, positive numbers; it returned -2."
    with pytest.raises(InputError, match=sentence(words)):
        DissipativeRegressor(outside=lambda x: np.where(x[:, 0] > 3.0, 5.0, -2.0), **QUICK).fit(X, Y)


def test_levels_and_rates_that_are_no_probabilities(fitted):
    for ask in (fitted.predict_interval, fitted.interval_kind):
        with pytest.raises(InputError, match=sentence("level must lie strictly between 0 and 1; got 90.")):
            ask(X, 90)
    for ask in (fitted.verdict, fitted.explain, fitted.watch):
        with pytest.raises(InputError, match=sentence("outside must lie strictly between 0 and 1; got 0.")):
            ask(X, 0.05, 0)
    dist = fitted.predict_dist(X)
    with pytest.raises(InputError, match=sentence("q must lie strictly between 0 and 1; got 1.0.")):
        dist.quantile([0.5, 1.0])
    with pytest.raises(InputError, match=sentence("n must be a whole number of at least 1; got 0.")):
        dist.sample(0)
    words = "random_state must be None, a whole number or a generator of numpy; got 'x'."
    with pytest.raises(InputError, match=sentence(words)):
        dist.sample(2, random_state="x")


def test_categories_that_come_as_dates():
    frame = pd.DataFrame({"size": X[:, 0], "town": np.where(X[:, 1] > -70, "Aix", "Bonn")})
    model = VariationalVarianceRegressor(**QUICK).fit(frame, Y)
    dates = frame.assign(town=pd.Timestamp("2024-05-01"))
    words = "column 'town' holds a date, but was a category in training; convert it first."
    with pytest.raises(InputError, match=sentence(words)):
        model.predict(dates)


def test_columns_that_are_none_or_twice_there():
    words = "column 'a' holds complex numbers; turn it into numbers, text or dates, or drop it."
    with pytest.raises(InputError, match=sentence(words)):
        VariationalVarianceRegressor(**QUICK).fit(pd.DataFrame({"a": X[:, 0] * 1j}), Y)
    words = "X has more than one column called 'a'; rename or drop the others."
    with pytest.raises(InputError, match=sentence(words)):
        VariationalVarianceRegressor(**QUICK).fit(pd.DataFrame(X, columns=["a", "a"]), Y)


def test_a_mean_that_returns_too_many_numbers():
    words = "mean must return one number for each of the 30 rows and 1 target; it returned the shape (30, 2)."
    with pytest.raises(InputError, match=sentence(words)):
        DissipativeRegressor(mean=lambda rows: rows, **QUICK).fit(X, Y)


def test_a_family_without_methods():
    with pytest.raises(InputError, match=sentence("models must hold at least one method.")):
        fit_family([], X, Y)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (BayesByBackpropRegressor(n_samples=0), "n_samples must be a whole number of at least 1; got 0."),
        (BayesByBackpropRegressor(learning_rate=0.0), "learning_rate must be a finite number that exceeds 0; got 0.0."),
        (
            BayesByBackpropRegressor(hidden=0),
            "hidden must be a list of whole numbers, one for each hidden layer; got 0.",
        ),
        (EvidentialRegressor(hidden=()), "hidden must hold 1 or more widths of hidden layers; got ()."),
        (FaithfulRegressor(hidden=()), "hidden must hold 1 or more widths of hidden layers; got ()."),
        (GaussianProcessRegressor(max_rows=1), "max_rows must be a whole number of at least 2; got 1."),
        (GaussianProcessRegressor(n_starts=0), "n_starts must be a whole number of at least 1; got 0."),
        (GaussianProcessRegressor(max_iterations=0), "max_iterations must be a whole number of at least 1; got 0."),
        (GaussianProcessRegressor(smallest_noise=0), "smallest_noise must be a finite number that exceeds 0; got 0."),
        (MCDropoutRegressor(rates=()), "rates must hold at least one rate; got none."),
        (MeanVarianceRegressor(batch_size=0), "batch_size must be a whole number of at least 1; got 0."),
        (MeanVarianceRegressor(learning_rate=0), "learning_rate must be a finite number that exceeds 0; got 0."),
        (MeanVarianceRegressor(validation_fraction=1), "validation_fraction must lie strictly between 0 and 1; got 1."),
        (NaturalBoostingRegressor(patience=0), "patience must be a whole number of at least 1; got 0."),
        (NaturalBoostingRegressor(max_depth=0), "max_depth must be a whole number of at least 1; got 0."),
        (NaturalBoostingRegressor(learning_rate=0), "learning_rate must be a finite number that exceeds 0; got 0."),
        (NaturalBoostingRegressor(validation_fraction=0), "validation_fraction must lie strictly between 0 and 1;"),
        (NoiseContrastiveRegressor(ncp_weight=-1), "ncp_weight must be a finite number that exceeds 0; got -1."),
        (NoiseContrastiveRegressor(kl_weight=-1), "kl_weight must be a finite number that exceeds 0; got -1."),
        (NoiseContrastiveRegressor(hidden=()), "hidden must hold 1 or more widths of hidden layers; got ()."),
        (
            NoiseContrastiveRegressor(hidden=8),
            "hidden must be a list of whole numbers, one for each hidden layer; got 8.",
        ),
        (NoiseContrastiveRegressor(hidden=(8, 0)), "hidden must be a whole number of at least 1; got 0."),
        (PseudoCountRegressor(count_rate=0), "count_rate must be a finite number that exceeds 0; got 0."),
        (PseudoCountRegressor(bandwidth=-1), "bandwidth must be a finite number that exceeds 0; got -1."),
        (
            ReliableVarianceRegressor(hidden=8),
            "hidden must be a list of whole numbers, one for each hidden layer; got 8.",
        ),
        (VBEMRegressor(hidden=0), "hidden must be a list of whole numbers, one for each hidden layer; got 0."),
        (VBEMRegressor(n_samples=0), "n_samples must be a whole number of at least 1; got 0."),
        (VBEMRegressor(batch_size=0), "batch_size must be a whole number of at least 1; got 0."),
        (VBEMRegressor(validation_fraction=2), "validation_fraction must lie strictly between 0 and 1; got 2."),
    ],
    ids=lambda value: value.split(";")[0] if isinstance(value, str) else type(value).__name__,
)
def test_a_setting_of_another_method(model, words):
    with pytest.raises(InputError, match=f"^{re.escape(words)}"):
        model.fit(X, Y)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MixtureDescent(step_size=0), "step_size must be a finite number that exceeds 0; got 0."),
        (lambda: MixtureDescent(pool_multiplier=0), "pool_multiplier must be a whole number of at least 1; got 0."),
        (lambda: LevelSet(first_stride=0), "first_stride must be a finite number that exceeds 0; got 0."),
        (lambda: LevelSet(bisections=0), "bisections must be a whole number of at least 1; got 0."),
        (lambda: BruteForce(grid=1), "grid must be a whole number of at least 2; got 1."),
        (lambda: BruteForce(hardest=0), "hardest must be a whole number of at least 1; got 0."),
        (lambda: BruteForce(stride=0), "stride must be a whole number of at least 1; got 0."),
        (lambda: BruteForce(low=2.0, high=2.0), "low must be below high; got 2.0 and 2.0."),
    ],
    ids=lambda value: value.split(" ")[0] if isinstance(value, str) else "",
)
def test_a_setting_of_a_placement(make, words):
    with pytest.raises(InputError, match=sentence(words)):
        make()


@pytest.mark.parametrize("members", ["many", None, 0])
def test_a_family_refuses_members_that_are_no_number_as_a_fit_does(members):
    with pytest.raises(InputError, match="n_members must be"):
        fit_family([DissipativeRegressor(**QUICK | {"n_members": members})], X, Y)


def test_a_placement_with_more_pools_than_members_is_refused():
    many = lambda x, count, streams: torch.randn(len(streams) + 2, count, x.shape[1])
    with pytest.raises(InputError, match=r"placement must return finite points of shape \(1, 20000,"):
        DissipativeRegressor(**QUICK, placement=many).fit(X, Y)
