"""The published forms: files made here in each of them, read back to the same numbers; and damaged ones, refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nescio._validation import InputError
from nescio.datasets.formats import digest_of, member_of, read_form

NAMES = ("fixed acidity", "b", "t")
VALUES = np.array([[1.5, -2.0, 0.003], [1872790.507, 5.0, 3.0], [0.1 + 0.2, 1e-7, -40.25]])


READ_AS = {
    "blanks": "blanks", "commas": "commas", "semicolons": "semicolons", "decimal commas": "semicolons",
    "arff": "arff", "xls": "spreadsheet", "xlsx": "spreadsheet",
}  # fmt: skip


@pytest.mark.parametrize("form", READ_AS)
def test_every_form_gives_the_numbers_that_were_written(form, published):
    table = read_form(published(form, VALUES, NAMES), READ_AS[form])
    np.testing.assert_allclose(table.values, VALUES, rtol=2e-16 if form == "xlsx" else 0)  # a cell keeps 15 digits
    assert table.values.dtype == np.float64
    expected = {"blanks": (), "arff": ("fixed_acidity", "b", "t")}.get(form, NAMES)
    assert table.header == expected


def test_whole_numbers_in_a_spreadsheet_are_numbers_too(xlsx):
    table = read_form(xlsx([("X1", "X2"), (1, 2.5), (3, 4)]), "spreadsheet")
    np.testing.assert_array_equal(table.values, [[1.0, 2.5], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("data", "form", "words"),
    [
        (b"1 2\n3\n", "blanks", "same number of cells"),
        (b"", "blanks", "same number of cells"),
        (b"a,b\n1,x\n", "commas", "not a number"),
        (b"a,b\n1,nan\n", "commas", "gaps or infinite"),
        (b"\xff\xfe\x00", "commas", "not text"),
        (b"@relation a\n1,2\n", "arff", "no line '@data'"),
        (b"<html>not found</html>", "spreadsheet", "the spreadsheet cannot be read"),
        (b"a|b\n1|2\n", "bars", "form must be one of"),
    ],
)
def test_a_damaged_file_is_refused_in_a_sentence(data, form, words):
    with pytest.raises(InputError, match=words):
        read_form(data, form)


def test_a_spreadsheet_with_a_gap_or_with_words_is_refused(xlsx):
    with pytest.raises(InputError, match="gaps or infinite"):
        read_form(xlsx([("a", "b"), (1.0, None), (2.0, 3.0)]), "spreadsheet")
    with pytest.raises(InputError, match="cannot be read"):
        read_form(xlsx([("a", "b"), (1.0, "x"), (2.0, 3.0)]), "spreadsheet")


def test_a_member_is_found_in_any_folder_and_in_an_archive_inside(zipped):
    inner = zipped({"UCI CBM Dataset/data.txt": b"right"})
    clutter = {"__MACOSX/x/._data.txt": b"wrong", "__MACOSX/data.txt": b"wrong", "old data.txt": b"wrong"}
    assert member_of(zipped(clutter | {"UCI CBM Dataset/data.txt": b"right"}), "data.txt") == b"right"
    assert member_of(zipped(clutter | {"other.zip": zipped({}), "set.zip": inner}), "data.txt") == b"right"
    with pytest.raises(InputError, match=r"holds no file 'train\.csv'"):
        member_of(zipped(clutter | {"set.zip": inner}), "train.csv")
    with pytest.raises(InputError, match="not a zip archive"):
        member_of(b"<html>", "train.csv")


@given(arrays(np.float64, (3, 2), elements=st.floats(-1e6, 1e6)), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_the_digest_knows_every_number_and_its_place_but_not_the_last_bits(values, place):
    digest = digest_of(values)
    assert digest_of(np.nextafter(values, np.inf)) == digest or np.abs(values).min() < 1e-6 or _on_an_edge(values)
    changed = values.copy()
    changed.flat[place] += max(abs(changed.flat[place]) * 1e-7, 1e-7)
    assert digest_of(changed) != digest
    assert digest_of(values.reshape(2, 3)) != digest
    assert digest_of(values[::-1]) == digest if (values[0] == values[2]).all() else digest_of(values[::-1]) != digest


def _on_an_edge(values: np.ndarray) -> bool:
    """Whether a next double is written differently to nine digits, which happens half way between two of them."""
    return any(f"{a:.9g}" != f"{b:.9g}" for a, b in zip(values.flat, np.nextafter(values, np.inf).flat, strict=True))
