"""The overview of protocol sound, and a page that is filled from it."""

from __future__ import annotations

import numpy as np
import pytest

from nescio._validation import InputError
from nescio.benchmark.cells import gather
from nescio.benchmark.exports import Value
from nescio.benchmark.overview import ahead_table, detection_table
from nescio.report.page_tables import fill_tables


def values(gaps: dict[str, float], partial: float = -9.0) -> list[Value]:
    """d-vv is ahead of vv by ``gaps`` in the hole, with a little noise; the partial set is never counted."""
    rng = np.random.default_rng(0)
    found = []
    for dataset, gap in {**gaps, "superconductivity_partial": partial}.items():
        for trial in range(4):
            base = float(rng.normal())
            for method, value in (("d-vv", base + gap + 0.01 * float(rng.normal())), ("vv", base)):
                found.append(Value("sound", dataset, "gap", method, trial, "hole", "log_likelihood", value))
                auroc = 0.9 if method == "d-vv" else 0.5
                found.append(Value("sound", dataset, "standard", method, trial, "all", "auroc_far", auroc))
    return found


def test_ahead_counts_full_sets_and_names_the_lowest_end():
    table = ahead_table(gather(values({"yacht": 1.0, "boston": 0.5, "concrete": -0.25})))[0]
    row = {cell[0].value: cell for cell in table.rows}["vv"]
    at = {name: row[place] for place, name in enumerate(table.columns)}
    assert at["gap, hole: ahead on"].value == "2 of 3"
    assert at["gap, hole: median"].value == pytest.approx(0.5, abs=0.05)
    assert at["gap, hole: lowest end"].value.endswith("(concrete)")
    assert at["standard: ahead on"].value is None


def test_detection_is_the_mean_over_sets_and_marks_the_best():
    table = detection_table(gather(values({"yacht": 1.0})))[0]
    rows = {row[0].value: row[table.columns.index("far")] for row in table.rows}
    assert rows["d-vv"].value == pytest.approx(0.9)
    assert rows["d-vv"].best
    assert not rows["vv"].best


def test_a_page_keeps_its_words_and_takes_its_tables_from_records():
    tables = ahead_table(gather(values({"yacht": 1.0})))
    page = "Words.\n\n<!-- table:sound_ahead -->\nold\n<!-- end of table -->\n\nMore words.\n"
    filled = fill_tables(page, tables)
    assert filled.startswith("Words.\n\n<!-- table:sound_ahead -->\n\n### Where d-vv is ahead")
    assert filled.endswith("<!-- end of table -->\n\nMore words.\n")
    assert "old" not in filled
    assert fill_tables(filled, tables) == filled


def test_a_page_that_asks_for_a_table_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="asks for a table 'nothing'"):
        fill_tables("<!-- table:nothing --><!-- end of table -->", [])
