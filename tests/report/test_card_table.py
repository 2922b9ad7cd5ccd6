"""Tables of three makes give a card the same columns, cells and changes, and stay as they were."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from nescio.report.card_table import CATEGORY, DATE, NUMBER, UserTable

DAYS = [datetime.datetime(2020, 1, day) for day in (1, 5, 9)]
COLUMNS = {
    "size": [1.5, float("nan"), 3.25],
    "count": [3, 1, 2],
    "day": DAYS,
    "kind": ["a", None, "b"],
    "on": [True, False, True],
}


@pytest.fixture(params=["pandas", "polars"])
def table(request):
    return UserTable(pd.DataFrame(COLUMNS) if request.param == "pandas" else pl.DataFrame(COLUMNS))


def test_columns_have_their_names_kinds_and_cells(table):
    assert table.names == list(COLUMNS)
    assert [table.kind(column) for column in range(5)] == [NUMBER, NUMBER, DATE, CATEGORY, CATEGORY]
    assert [table.cell(1, column) for column in range(5)] == ["missing", "1", "2020-01-05", "missing", "False"]


def test_a_column_is_shuffled_alone_and_the_table_stays(table):
    order = np.array([2, 0, 1])
    for column in range(5):
        changed = UserTable(table.permuted(column, order))
        for other in range(5):
            rows = order if other == column else np.arange(3)
            assert [changed.cell(n, other) for n in range(3)] == [table.cell(n, other) for n in rows]
    assert [table.cell(n, 1) for n in range(3)] == ["3", "1", "2"]


def test_one_row_is_varied_in_one_column(table):
    for column, values, shown in (
        (0, np.array([9.0, -2.5]), ["9", "-2.5"]),
        (1, np.array([0.5, 7.0]), ["0.5", "7"]),
        (2, np.array(["2030-01-01", "1999-12-31"], dtype="datetime64[us]"), ["2030-01-01", "1999-12-31"]),
        (3, np.array(["z", "a"], dtype=object), ["z", "a"]),
    ):
        varied = UserTable(table.varied(2, column, values))
        assert varied.rows == 2
        assert [varied.cell(n, column) for n in range(2)] == shown
        assert varied.kind(column) == table.kind(column)
        assert [varied.cell(n, 4) for n in range(2)] == ["True", "True"]
    assert table.rows == 3


def test_an_array_has_numbers_for_names_and_is_not_changed():
    array = np.arange(6).reshape(3, 2)
    table = UserTable(array)
    assert (table.names, table.kind(0)) == (["x0", "x1"], NUMBER)
    assert table.varied(1, 0, np.array([0.5, 9.0])).tolist() == [[0.5, 3.0], [9.0, 3.0]]
    assert table.permuted(1, np.array([1, 2, 0])).tolist() == [[0, 3], [2, 5], [4, 1]]
    assert array.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_pandas_rows_with_an_index_of_their_own_are_taken_by_place():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=[10, 10, 7])
    table = UserTable(frame)
    assert table.take([2, 0]).values(0).tolist() == [3.0, 1.0]
    assert table.permuted(0, np.array([1, 2, 0]))["a"].tolist() == [2.0, 3.0, 1.0]
