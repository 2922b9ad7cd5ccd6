"""The contract: what passes, and that each line of it finds the fault that it is there for."""

from __future__ import annotations

import copy
import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import betabinom, binom

from nescio import DissipativeRegressor, MeanVarianceRegressor, VariationalVarianceRegressor
from nescio._validation import InputError
from nescio.calibration import fit_support
from nescio.distributions import StudentT, StudentTMixture
from nescio.estimators.prediction import Prediction
from nescio.testing import Check, ContractError, Report, assert_extrapolates, check_extrapolation
from nescio.testing import inside as inside_checks

QUICK = {"max_steps": 80, "n_members": 2, "n_folds": 3, "hidden": (24,), "mean_hidden": (16,), "random_state": 3}
RATIO = "level far away, "


def draw(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two columns of different units, and a target whose noise grows with one of them."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(50.0, 8.0, rows), rng.uniform(-0.2, 0.1, rows)])
    return X, 7.0 + 0.3 * X[:, 0] + 40.0 * X[:, 1] + (0.5 + 0.02 * np.abs(X[:, 0] - 50)) * rng.normal(size=rows)


TRAIN, FRESH = draw(400, 0), draw(300, 1)


@pytest.fixture(scope="module")
def fitted() -> DissipativeRegressor:
    return DissipativeRegressor(**QUICK).fit(*TRAIN)


def failed(report: Report) -> set[str]:
    return {check.name for check in report.checks if check.passed is False}


def rescaled(model, factor):
    """A twin whose std is multiplied by ``factor(standardised rows)``, ``(N,)``."""
    twin = copy.copy(model)

    def distribution(rows):
        parts = type(model)._distribution(model, rows).distribution.components
        by = np.asarray(factor(rows.standardised), dtype=np.float64)
        scale = parts.scale * parts.scale.new_tensor(by)[None, :, None]
        return Prediction(StudentTMixture(StudentT(parts.df, parts.loc, scale)), model.single_target_)

    twin._distribution = distribution
    return twin


def test_the_default_keeps_the_contract(fitted):
    report = assert_extrapolates(fitted, *FRESH)
    assert report.passed
    assert [check.passed for check in report.checks] == [True] * 9
    assert report.records()[0]["value"] == pytest.approx(1.0, abs=1e-6)


def test_without_rows_everything_but_rates_is_checked(fitted):
    report = check_extrapolation(fitted)
    assert report.passed
    assert [check.passed for check in report.checks] == [True] * 6 + [None] * 3
    assert "no rows were given" in report.table()
    assert "no targets were given" in check_extrapolation(fitted, FRESH[0]).table()


def test_several_targets_are_held_to_their_own_levels():
    X, y = TRAIN
    model = DissipativeRegressor(**QUICK, outside=(40.0, 2.0)).fit(X, np.column_stack([y, -0.1 * y]))
    report = check_extrapolation(model, FRESH[0], np.column_stack([FRESH[1], -0.1 * FRESH[1]]))
    assert [check.passed for check in report.checks[:3]] == [True] * 3
    assert report.checks[6].passed is not None
    assert [check.passed for check in check_extrapolation(model, outside=(40.0, 3.0)).checks[:3]] == [False] * 3


@pytest.mark.parametrize(
    "model",
    [
        MeanVarianceRegressor(max_steps=200, hidden=(20,), random_state=0),
        VariationalVarianceRegressor(**QUICK),
        DissipativeRegressor(**QUICK, anchor=False),
    ],
    ids=["mean-variance", "vv", "no anchor"],
)
def test_a_network_that_goes_on_as_it_likes_breaks_the_contract(model):
    X, y = TRAIN
    with pytest.raises(ContractError, match=r"level far away, single columns .* FAILED") as caught:
        assert_extrapolates(model.fit(X, y), *FRESH)
    assert {RATIO + "random directions", RATIO + "corners"} & failed(caught.value.report)


def far_along_one_column(z):
    return np.where((np.abs(z[:, 0]) < 10.0) & (z[:, 1] < -1e5), 1.2, 1.0)


FAULTS = {
    "level": (far_along_one_column, {RATIO + "single columns"}),
    "dip": (lambda z: np.where(np.abs(np.linalg.norm(z, axis=1) - 6) < 1, 0.02, 1.0), {"no dip on the way"}),
    "batch": (lambda z: np.full(len(z), 1.0 + 1e-11 * len(z)), {"independent of the batch"}),
    "nan": (lambda z: np.where(np.abs(z).max(1) > 1e7, np.nan, 1.0), {"finite everywhere"}),
    "infinite": (lambda z: np.where(np.abs(z).max(1) > 1e7, np.inf, 1.0), {"finite everywhere"}),
    "nan on the way": (
        lambda z: np.where(np.abs(np.linalg.norm(z, axis=1) - 6) < 1, np.nan, 1.0),
        {"no dip on the way", "finite everywhere"},
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_by_its_own_line(fitted, name):
    factor, lines = FAULTS[name]
    assert failed(check_extrapolation(rescaled(fitted, factor), *FRESH)) == lines


def test_a_level_that_is_a_function_of_x_is_held_to_at_each_point(fitted):
    steps = lambda z: np.where(z[:, 0] > 0, 1.5, 1.0)
    twin = rescaled(fitted, lambda z: np.where(np.abs(z).max(1) > 20, steps(z), 1.0))
    assert len(failed(check_extrapolation(twin))) >= 3
    standard = lambda encoded: (encoded - fitted.x_shift_) / fitted.x_scale_
    twin.level_ = lambda encoded: steps(standard(encoded))[:, None] * fitted.outside_std_ / fitted.y_scale_
    assert failed(check_extrapolation(twin)) == set()


@pytest.mark.parametrize("width", [0.6, 3.0])
def test_intervals_too_narrow_or_too_wide_are_found(fitted, width):
    twin = rescaled(fitted, lambda z: np.full(len(z), width))
    names = failed(check_extrapolation(twin, *FRESH, outside=width * fitted.outside_std_))
    assert names == {"coverage of 90 % intervals"}


def test_false_alarms_are_found_and_silence_is_none(fitted):
    twin = copy.copy(fitted)
    twin._p_values = lambda rows: fitted._p_values(rows) ** 3
    names = failed(check_extrapolation(twin, *FRESH))
    assert names == {"false alarms, edge or outside", "false alarms, outside"}
    twin._p_values = lambda rows: fitted._p_values(rows) ** 0.1
    assert failed(check_extrapolation(twin, *FRESH)) == set()


def test_the_bands_are_those_of_counts(fitted):
    lines = {check.name: check for check in check_extrapolation(fitted, *FRESH, chance=0.01).checks}
    inside = int((fitted.support(FRESH[0]) > 1 / 20).sum())
    coverage = lines["coverage of 90 % intervals"]
    assert coverage.lower * inside == pytest.approx(binom.ppf(0.005, inside, 0.9))
    assert coverage.upper * inside == pytest.approx(binom.ppf(0.995, inside, 0.9))
    # A rate from 400 rows is itself uncertain: the band is that of a Beta(20.05, 380.95) rate, wider than a binomial's.
    alarms = lines["false alarms, edge or outside"].upper * 300
    assert alarms == pytest.approx(betabinom.ppf(0.99, 300, 20.05, 380.95))
    assert alarms > binom.ppf(0.99, 300, 0.05)


def test_the_band_of_calibrated_intervals_knows_how_many_rows_they_rest_on():
    model = DissipativeRegressor(**QUICK, calibrate="conformal").fit(*TRAIN)
    line = check_extrapolation(model, *FRESH, chance=0.01).checks[6]
    known, inside = len(model.conformal_.inside), int((model.support(FRESH[0]) > 1 / 20).sum())
    # Over calibration rows and fresh rows alike: the coverage is a share of ranks among both.
    rng = np.random.default_rng(0)
    ranks = np.sort(rng.random((4000, known)), axis=1)[:, math.ceil(0.9 * (known + 1)) - 1]
    counts = rng.binomial(inside, ranks) / inside
    assert np.mean((counts >= line.lower) & (counts <= line.upper)) == pytest.approx(0.99, abs=0.008)
    few = DissipativeRegressor(**{**QUICK, "max_steps": 5}, calibrate="conformal").fit(TRAIN[0][:30], TRAIN[1][:30])
    with pytest.warns(UserWarning, match="too few for a level"):
        assert "rows to calibrate with are too few" in check_extrapolation(few, *FRESH).table()


def test_training_rows_are_noticed(fitted):
    report = check_extrapolation(fitted, *TRAIN)
    assert [check.passed for check in report.checks[-3:]] == [None] * 3
    assert "most of the rows given are training rows" in report.table()
    some = [np.concatenate([fresh, seen[:100]]) for fresh, seen in zip(FRESH, TRAIN, strict=True)]
    mixed, alone = check_extrapolation(fitted, *some), check_extrapolation(fitted, *FRESH)
    assert mixed.checks[-3:] == alone.checks[-3:]


def test_training_rows_of_a_large_table_are_known_by_the_share_that_is_kept(fitted, monkeypatch):
    monkeypatch.setattr(inside_checks, "MOST_KEPT", 100)
    twin = copy.copy(fitted)
    twin.support_ = fit_support(fitted._read(TRAIN[0]).standardised, max_rows=100)
    assert "most of the rows given are training rows" in check_extrapolation(twin, *TRAIN).table()
    assert "training rows;" not in check_extrapolation(twin, *FRESH).table()


def test_few_rows_are_too_few_to_tell():
    X, y = draw(60, 5)
    model = DissipativeRegressor(**{**QUICK, "max_steps": 20}).fit(X, y)
    table = check_extrapolation(model, *FRESH).table()
    assert "60 training rows are too few for 1 false alarm in 200" in table
    assert "5 fresh rows are too few" in check_extrapolation(model, FRESH[0][:5], FRESH[1][:5]).table()


def test_frames_give_what_arrays_give(fitted):
    names = ["heat", "slope"]
    model = DissipativeRegressor(**QUICK).fit(pd.DataFrame(TRAIN[0], columns=names), TRAIN[1])
    report = check_extrapolation(model, pd.DataFrame(FRESH[0], columns=names), FRESH[1])
    assert report == check_extrapolation(fitted, *FRESH)


def messy(rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A table with levels, a boolean and gaps."""
    X, y = draw(rows, seed)
    rng = np.random.default_rng(seed + 100)
    towns, lift = rng.choice(["Aix", "Bonn", "Cork"], rows, p=[0.6, 0.3, 0.1]), rng.random(rows) < 0.4
    frame = pd.DataFrame({"heat": np.where(rng.random(rows) < 0.1, np.nan, X[:, 0]), "slope": X[:, 1], "town": towns})
    return frame.assign(lift=lift), y + 4.0 * (towns == "Cork")


def test_a_table_with_levels_and_gaps_keeps_the_contract():
    model = DissipativeRegressor(**{**QUICK, "max_steps": 1_500}).fit(*messy(400, 0))
    report = check_extrapolation(model, *messy(300, 1))
    assert failed(report) == set(), report.table()
    assert "24 points" in report.checks[1].note  # two numbers, both ways, at six distances
    strange = messy(300, 1)[0].assign(town="Dover")
    assert "0 fresh rows are too few" in check_extrapolation(model, strange, FRESH[1]).table()


def test_a_table_of_levels_alone_has_nowhere_to_go():
    frame, y = messy(300, 0)
    model = DissipativeRegressor(**{**QUICK, "max_steps": 20}).fit(frame[["town", "lift"]], y)
    report = check_extrapolation(model)
    assert report.checks[0].passed is None
    assert "no column is a number" in report.table()
    assert report.passed


def test_the_model_and_the_global_generators_are_left_alone(fitted):
    before, state = dict(fitted.__dict__), repr(np.random.get_state())  # noqa: NPY002
    first = check_extrapolation(fitted, *FRESH)
    assert repr(np.random.get_state()) == state  # noqa: NPY002
    assert fitted.__dict__ == before
    assert check_extrapolation(fitted, *FRESH) == first


def test_a_table_reads_in_columns():
    checks = (
        Check("level", 1.0, 0.85, 1.15, "std"),
        Check("dip", 0.5, 0.7, math.inf, "least"),
        Check("rate", None, 0.0, 1.0, "no rows were given"),
        Check("alarms", 0.1, 0.0, 0.2, "share"),
    )
    report = Report(checks)
    assert not report.passed
    assert report.table().splitlines() == [
        "check   found  must be",
        "level   1      0.85 to 1.15  ok           std",
        "dip     0.5    at least 0.7  FAILED       least",
        "rate                         not checked  no rows were given",
        "alarms  0.1    at most 0.2   ok           share",
    ]
    assert Report(checks[2:]).passed
    assert Check("x", math.nan, 0.0, 1.0, "").passed is False


MISTAKES = [
    ({"level": 1.5}, "level must lie strictly between 0 and 1"),
    ({"chance": 0.0}, "chance must lie strictly between 0 and 1"),
    ({"outside": -1.0}, "outside must be a finite number that exceeds 0"),
    ({"y": FRESH[1]}, "y was given without X"),
    ({"X": FRESH[0], "y": np.ones((300, 2))}, "y must have the 1 target of the fit"),
]


@pytest.mark.parametrize(("settings", "words"), MISTAKES)
def test_a_mistake_is_one_sentence(fitted, settings, words):
    with pytest.raises(InputError, match=words):
        check_extrapolation(fitted, **settings)


def test_what_is_no_fitted_regressor_is_refused():
    with pytest.raises(InputError, match="must be fitted"):
        check_extrapolation(DissipativeRegressor())
    with pytest.raises(InputError, match="regressor of this library; got dict"):
        check_extrapolation({})
