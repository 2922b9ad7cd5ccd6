"""Columns to numbers: what each kind becomes, what was never seen is said, and pandas and polars agree."""

from __future__ import annotations

import pickle
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from nescio._validation import ROW, InputError, RowError
from nescio.preprocessing import ColumnEncoder, fit_columns, is_frame, shown_day

FRAMES = (pd.DataFrame, pl.DataFrame)


def targets(rows: int, outputs: int = 1) -> np.ndarray:
    return np.random.default_rng(3).normal(5.0, 2.0, (rows, outputs))


def learn(columns: dict[str, Any], frame: Any = pd.DataFrame, outputs: int = 1) -> tuple[ColumnEncoder, np.ndarray]:
    table = frame(columns)
    return fit_columns(table, targets(table.shape[0], outputs), 7)


def kinds(encoder: ColumnEncoder) -> dict[str, str]:
    return {record["name"]: record["kind"] for record in encoder.describe()}


# What each kind becomes


@pytest.mark.parametrize("frame", FRAMES)
def test_numbers_without_gaps_pass_untouched(frame):
    columns = {"a": np.array([0.1, 2.5, -3.0]), "b": np.array([1, 2, 7]), "c": np.array([True, False, True])}
    encoder, values = learn(columns, frame)
    np.testing.assert_array_equal(values, np.column_stack([np.float64(column) for column in columns.values()]))
    assert encoder.plain
    assert np.isnan(encoder.scales).all(), "each is divided by its own spread, as in an array"
    assert encoder.encoded_names == ["a", "b", "c"]


@pytest.mark.parametrize("frame", FRAMES)
def test_gaps_among_numbers_are_the_median_and_marked(frame):
    encoder, values = learn({"a": [1.0, None, 3.0, 50.0, None, 2.0]}, frame)
    np.testing.assert_array_equal(values[:, 0], [1.0, 2.5, 3.0, 50.0, 2.5, 2.0])
    np.testing.assert_array_equal(values[:, 1], [0, 1, 0, 0, 1, 0])
    assert encoder.encoded_names == ["a", "a missing"]
    assert not encoder.plain
    assert encoder.describe()[0]["done"] == "as it is, gaps are 2.5 and marked"
    assert encoder.transform(frame({"a": [None, 8.0]})).reasons is None


@pytest.mark.parametrize("frame", FRAMES)
def test_booleans_with_gaps_take_the_more_frequent_word(frame):
    encoder, values = learn({"a": [True, None, True, False]}, frame)
    np.testing.assert_array_equal(values, [[1, 0], [1, 1], [1, 0], [0, 0]])
    assert kinds(encoder) == {"a": "boolean"}
    assert encoder.columns[0].decode(values[1]) == "missing"
    assert encoder.columns[0].decode(values[3]) == "false"


@pytest.mark.parametrize("frame", FRAMES)
def test_a_category_has_a_column_for_each_level(frame):
    encoder, values = learn({"a": ["x", "y", None, "y", "x", "é"]}, frame)
    assert encoder.encoded_names == ["a=x", "a=y", "a=é", "a missing"]
    expected = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]]
    np.testing.assert_array_equal(values, expected)
    assert [encoder.columns[0].decode(row) for row in values[:3]] == ["'x'", "'y'", "missing"]


def test_categoricals_and_enums_are_categories():
    for series in (
        pd.Series([1, 2, None, 1], dtype="category"),
        pl.Series(["1", "2", None, "1"], dtype=pl.Categorical),
        pl.Series(["1", "2", None, "1"], dtype=pl.Enum(["1", "2", "9"])),
        pd.Series(["1", "2", None, "1"], dtype="string"),
    ):
        frame = pd.DataFrame if isinstance(series, pd.Series) else pl.DataFrame
        encoder, values = learn({"a": series}, frame)
        assert encoder.encoded_names == ["a=1", "a=2", "a missing"]
        np.testing.assert_array_equal(values.argmax(1), [0, 1, 2, 0])


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.to_datetime(["2024-05-01 00:00", "2024-05-03 12:00", None])),
        pd.Series(pd.to_datetime(["2024-05-01 00:00", "2024-05-03 12:00", None])).dt.tz_localize("UTC"),
        pd.Series(["2024-05-01", "2024-05-03 12:00", None]),
        pd.Series(["2024-05-01T02:00:00+02:00", "2024-05-03T12:00Z", None]),
        pd.Series([datetime(2024, 5, 1), datetime(2024, 5, 3, 12), None], dtype=object),
        pl.Series([datetime(2024, 5, 1), datetime(2024, 5, 3, 12), None]),
        pl.Series(["2024-05-01", "2024-05-03 12:00:00.000", None]),
    ],
)
def test_dates_are_days_since_the_first(column):
    encoder, values = learn({"a": column}, pd.DataFrame if isinstance(column, pd.Series) else pl.DataFrame)
    np.testing.assert_allclose(values, [[0, 0], [2.5, 0], [1.25, 1]], atol=1e-9)
    assert encoder.describe()[0]["done"] == "in days since 2024-05-01, gaps are 2024-05-02 06:00 and marked"
    later = encoder.transform(pd.DataFrame({"a": [date(2025, 5, 1)]}))
    np.testing.assert_allclose(later.values, [[365, 0]])
    assert encoder.columns[0].show(365.0) == "2025-05-01"


def test_times_durations_decimals_and_periods_are_numbers():
    clock = [time(6, 30), time(18), None]
    span = [timedelta(days=1, hours=12), timedelta(0), None]
    for columns, frame in (
        ({"a": pd.Series(clock, dtype=object), "b": pd.Series(span)}, pd.DataFrame),
        ({"a": pl.Series(clock), "b": pl.Series(span)}, pl.DataFrame),
    ):
        encoder, values = learn(columns, frame)
        np.testing.assert_allclose(values[:, 0], [6.5, 18.0, 12.25])
        np.testing.assert_allclose(values[:, 2], [1.5, 0.0, 0.75])
        assert kinds(encoder) == {"a": "time", "b": "duration"}
        assert [encoder.columns[place].show(6.5) for place in (0, 1)] == ["6.5 h", "6.5 days"]
    encoder, values = learn(
        {"a": pd.Series([Decimal("1.5"), Decimal(2)]), "b": pd.period_range("2024-01", periods=2, freq="M")}
    )
    np.testing.assert_allclose(values, [[1.5, 0], [2, 31]])


def test_many_levels_become_the_smoothed_average_of_each_target():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 30, 600)
    y = np.stack([codes + rng.normal(size=600), rng.normal(3.0, 1.0, 600)], axis=1)
    names = np.array([f"town {code:02}" for code in codes])
    encoder, training = fit_columns(pd.DataFrame({"a": names}), y, 1)
    assert kinds(encoder) == {"a": "many levels"}
    assert encoder.encoded_names == ["a, target 0", "a, target 1"]
    fresh = encoder.transform(pd.DataFrame({"a": ["town 07"]})).values[0]
    own = codes == 7
    naive = (y[own].sum(0) + 10.0 * y.mean(0)) / (own.sum() + 10.0)  # ten rows of the average, by hand
    np.testing.assert_allclose(fresh, naive, rtol=1e-12)
    # A training row is told from the others: its own target must not be in it.
    moved = y.copy()
    moved[0] += 1e3
    again = fit_columns(pd.DataFrame({"a": names}), moved, 1)[1]
    np.testing.assert_array_equal(again[0], training[0])
    assert (again[1:] != training[1:]).any()


def test_empty_constant_and_repeated_columns_are_legal_and_described():
    columns = {"a": [1.0, 2.0, 4.0], "empty": [None] * 3, "same": [3, 3, 3], "one": ["x"] * 3, "again": [1.0, 2.0, 4.0]}
    for frame in FRAMES:
        encoder, values = learn(columns, frame)
        assert values.shape == (3, 4)
        notes = {record["name"]: record["note"] for record in encoder.describe()}
        assert notes == {"a": "", "empty": "", "same": "constant", "one": "constant", "again": "the same as 'a'"}
        assert kinds(encoder)["empty"] == "empty"
        assert encoder.transform(frame({**columns, "empty": [7, 8, 9]})).reasons is None
    with pytest.raises(InputError, match="no column with a value"):
        learn({"a": [None, None]})


def test_levels_are_about_as_far_apart_as_numbers_and_never_much_farther():
    rng = np.random.default_rng(0)
    even = rng.choice(["a", "b", "c", "d"], 4000)
    rare = np.array(["a"] * 3999 + ["b"])
    encoder, values = learn({"even": even, "rare": rare, "gap": [None, *rng.normal(size=3999)]})
    scales = np.where(np.isnan(encoder.scales), 1.0, encoder.scales)
    block = values[:, :4] / scales[:4]
    assert block.var(0).sum() == pytest.approx(1.0, rel=1e-9), "a category weighs as much as a number"
    jump = lambda first, second: np.linalg.norm((values[first] - values[second])[4:6] / scales[4:6])
    assert jump(0, 3999) == pytest.approx(np.sqrt(8.0))
    assert 1.0 / encoder.scales[-1] == pytest.approx(np.sqrt(8.0)), "a single gap lies no farther away"
    assert 1.0 / values[:, 5].std() > 60.0, "which its own spread would have made it"


# What was never seen


@pytest.mark.parametrize("frame", FRAMES)
def test_what_training_did_not_have_is_a_reason(frame):
    encoder, _ = learn(
        {"n": [1.0, 2.0, 3.0], "c": ["x", "y", "x"], "d": ["2024-01-01", "2024-01-02", "2024-01-09"]}, frame
    )
    rows = frame({"n": [1.0, None, 5.0, 2.0], "c": ["x", "x", "mauve", None], "d": ["2024-01-05", "soon", None, None]})
    assert encoder.transform(rows).reasons == [
        None,
        "n is missing, which it is in no training row; d = 'soon' is not a date",
        "no training row has c = 'mauve'; d is missing, which it is in no training row",
        "c is missing, which it is in no training row; d is missing, which it is in no training row",
    ]
    values = encoder.transform(rows).values
    assert np.isfinite(values).all()
    np.testing.assert_array_equal(values[2, 1:3], [0, 0])
    assert values[1, 0] == 2.0, "the median"


def test_text_among_numbers_is_a_reason_and_a_column_of_it_is_refused():
    encoder, _ = learn({"n": [1.0, 2.0, 3.0]})
    read = encoder.transform(pd.DataFrame({"n": ["1.5", "many"]}))
    assert read.values[0, 0] == 1.5
    assert read.reasons == [None, "n = 'many' is not a number"]
    assert encoder.transform(pd.DataFrame({"n": [np.inf]})).reasons == ["n is infinite"]
    with pytest.raises(InputError, match=r"'n' holds text, 'many' in row 0, but was a number in training; convert"):
        encoder.transform(pd.DataFrame({"n": ["many"]}))
    with pytest.raises(InputError, match="'n' holds a date, but was a number in training"):
        encoder.transform(pl.DataFrame({"n": [date(2024, 1, 1)]}))


def test_levels_that_look_like_numbers_are_found_again():
    encoder, _ = learn({"c": ["1", "2", "x"], "b": ["true", "false", "true"]})
    for frame in FRAMES:
        read = encoder.transform(frame({"c": [2.0, 1.0, None], "b": [True, False, True]}))
        np.testing.assert_array_equal(read.values[:2, :3], [[0, 1, 0], [1, 0, 0]])
        assert read.reasons == [None, None, "c is missing, which it is in no training row"]
    assert encoder.transform(pd.DataFrame({"c": [1.5], "b": [True]})).reasons == ["no training row has c = '1.5'"]


@pytest.mark.parametrize("frame", FRAMES)
def test_the_order_of_columns_is_free_others_are_named_and_missing_ones_refused(frame):
    encoder, values = learn({"a": [1.0, 2.0, 5.0], "b": ["x", "y", "x"]}, frame)
    read = encoder.transform(frame({"z": [0, 0, 0], "b": ["x", "y", "x"], "a": [1.0, 2.0, 5.0]}))
    np.testing.assert_array_equal(read.values, values)
    assert read.unused == ["z"]
    with pytest.raises(InputError, match="X lacks 'a', which the model was fitted with"):
        encoder.transform(frame({"b": ["x"]}))


def test_pandas_and_polars_give_the_same_numbers():
    rng = np.random.default_rng(1)
    columns = {
        "n": [
            None if gap else float(value) for gap, value in zip(rng.random(40) < 0.2, rng.normal(size=40), strict=True)
        ],
        "c": rng.choice(["x", "y"], 40).tolist(),
        "t": [datetime(2024, 1, 1) + timedelta(hours=int(hour)) for hour in rng.integers(0, 999, 40)],
        "m": [f"l{value}" for value in rng.integers(0, 21, 39)] + [None],
    }
    first, second = (learn(columns, frame) for frame in FRAMES)
    np.testing.assert_array_equal(first[1], second[1])
    assert first[0].describe() == second[0].describe()


# Mistakes


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([f"note {row}" for row in range(40)], r"text that is nearly always another one \(40 different values in 40"),
        ([*(str(row) for row in range(39)), "n/a"], "text among numbers .'n/a' in row 39.; leave such cells empty"),
        ([str(row / 7) for row in range(40)], "numbers as text; convert it to numbers"),
        (
            [f"{day:02}.02.2024" for day in range(1, 29)],
            r"looks like dates; .* \('01.02.2024' in row 0 is",
        ),
        (
            ["01/31/2020", "2/3/20", "12/1/2020 10:30"] * 9,
            r"looks like dates; .*'01/31/2020' in row 0 is not",
        ),
        ([None, "2024-05-01", "2024-05-02", "soon"] * 9, r"looks like dates; .* \('soon' in row 3 is not\)"),
        (["2024-05-31", "2024-06-31"] * 9, r"looks like dates; .* \('2024-06-31' in row 1 is not\)"),
        (["x" * 201, "y"] * 20, "texts of more than 200 characters"),
        ([1.0, np.inf] * 20, r"X contains infinity in column 'a' \(20 rows, the first is row 1\)"),
        ([1 + 2j] * 40, "column 'a' holds complex numbers; turn it into numbers, text or dates, or drop it"),
        (["x", 1, 2.5, True] * 10, "values of several kinds"),
        ([[1], [2]] * 20, "values of several kinds"),
    ],
)
def test_columns_that_cannot_be_used_are_refused_by_name(column, words):
    with pytest.raises(InputError, match=words) as error:
        learn({"a": pd.Series(column)})
    assert "'a'" in str(error.value)


@pytest.mark.parametrize("frame", FRAMES)
def test_text_that_is_no_date_and_no_number_is_a_category(frame):
    versions = ["1.2.3", "1.2.4", "10.2.11", "2.0.1", "3.1.4", "3.1.5"] * 4
    some = ["15.02.2024", "never", "open", "late"] * 6
    codes = ["01067", "10115", "20095", "80331", "99084", "50667"] * 4
    encoder, _ = learn({"versions": versions, "some": some, "codes": codes}, frame)
    assert set(kinds(encoder).values()) == {"category"}
    assert encoder.columns[2].levels == tuple(sorted(set(codes)))


def test_what_its_type_calls_a_category_is_one():
    numbers, days = [str(number) for number in range(8)] * 3, ["15.02.2024", "16.02.2024"] * 12
    for frame in (
        pd.DataFrame({"n": pd.Categorical(numbers), "d": pd.Categorical(days)}),
        pl.DataFrame({"n": numbers, "d": days}, schema={"n": pl.Categorical, "d": pl.Enum(sorted(set(days)))}),
    ):
        encoder, _ = fit_columns(frame, targets(24), 7)
        assert kinds(encoder) == {"n": "category", "d": "category"}


def test_other_mistakes_are_refused():
    with pytest.raises(InputError, match="column 'a' holds values of type List"):
        learn({"a": [[1], [2]]}, pl.DataFrame)
    with pytest.raises(InputError, match="10050 levels, more than 10000"):
        learn({"a": [f"v{row % 10_050}" for row in range(20_200)]})
    twice = pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    with pytest.raises(InputError, match="more than one column called 'a'"):
        fit_columns(twice, targets(1), 0)
    assert not is_frame(pd.DataFrame(np.ones((2, 2))))
    assert not is_frame(np.ones((2, 2)))


def test_rare_levels_are_announced():
    encoder, _ = learn({"a": [f"v{row}" for row in range(30)] + ["w"] * 100})
    assert (
        encoder.describe()[0]["note"] == "about 23% of new rows will bring a level of their own, and count as outside"
    )


def test_days_are_shown_as_dates():
    assert shown_day(0.0) == "1970-01-01"
    assert shown_day(-0.25) == "1969-12-31 18:00"
    assert shown_day(1 / 86400) == "1970-01-01 00:00:01"
    assert shown_day(1e9) == "1e+09 days after 1970"


def test_an_error_about_a_row_can_be_told_of_the_file_and_survives_pickling():
    error = RowError(f"the cell in {ROW} is odd.", 2)
    told = pickle.loads(pickle.dumps(error.in_file(np.array([4, 7, 9]))))
    assert (str(error), str(told)) == ("the cell in row 2 is odd.", "the cell in data row 10 is odd.")
    assert isinstance(told, InputError)
