"""The card: what it holds for each kind of table, that hostile names do nothing, and how it lies in a browser."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from browser import needs_chromium, visit
from nescio import DissipativeRegressor, MeanVarianceRegressor
from nescio._validation import InputError
from nescio.calibration import Conformal
from nescio.report import card, card_page
from nescio.report.card_curves import curve_figure
from nescio.report.card_facts import describe_columns
from nescio.report.card_probe import column_curve, column_importance, ignorance_map, judge, seen_share
from nescio.report.card_table import UserTable
from page_reader import Reader

HOSTILE = '<script>alert("1")</script>'
NAMES = [HOSTILE, "a$b$c and a name as long as a sentence, which nobody should ever give to any column", "密度 & 'x'"]
RATES = (1 / 20, 1 / 200)
DOCS = Path(__file__).parents[2] / "docs"


def regressor(**settings):
    quick = {"max_steps": 30, "n_members": 1, "n_folds": 2, "random_state": 0, "device": "cpu"}
    return DissipativeRegressor(**(quick | settings))


def rows(n, seed=0, width=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(5.0, 2.0, (n, width))
    return X, 3.0 * X[:, 0] + 2.0 * X[:, 1:].sum(axis=1) + 0.1 * (1.0 + np.abs(X[:, 0])) * rng.normal(size=n)


@pytest.fixture
def undrawn(monkeypatch):
    """Figures and the contract take most of a card's time, and these tests read its words."""
    monkeypatch.setattr(card_page, "judged_drawings", lambda *arguments: [])
    monkeypatch.setattr(card_page, "contract_lines", lambda *arguments: [])


@pytest.fixture(scope="module")
def hostile():
    """A model of a polars frame whose names are hostile, held-out rows, and a new table with one row far away."""
    X, y = rows(300)
    frame = lambda table: pl.DataFrame(table, schema=NAMES)
    model = regressor(outside=40.0).fit(frame(X[:240]), y[:240])
    model.target_names_ = ["<b>price</b> in $"]
    new = X[240:].copy()
    new[7] = [900.0, 5.0, 5.0]
    return model, frame(X[240:]), y[240:], frame(new)


@pytest.fixture(scope="module")
def page(hostile):
    model, X, y, new = hostile
    return card(model, X, y, new=new)


def test_the_page_is_well_formed_complete_and_loads_nothing(page):
    reader = Reader(page)
    assert reader.faults() == []
    assert reader.tags.count("svg") == 6 + 3 + 1  # six of calibration, a curve per column, the map
    labels = [value for tag, name, value in reader.attributes if (tag, name) == ("svg", "aria-label")]
    assert len(set(labels)) == 10
    for words in ("How far to trust it", "The new rows", "What it is and what it learned from", "Is it right",
                  "over and beyond its data", "The map of ignorance", "Surest", "Least sure"):  # fmt: skip
        assert words in reader.text
    assert len(page) < 1_500_000


def test_names_are_words_and_nothing_else(page):
    reader = Reader(page)
    assert "<script" not in page
    assert "<b>price" not in page
    assert HOSTILE in reader.text
    assert "密度 & 'x'" in reader.text
    assert re.search(r"a\$b\$c and a name[^.]{0,24}…", reader.text)  # no formula, and cut
    assert len(max((word for text in reader.words for word in text.split("\n")), key=len)) < 1_500


def test_figures_take_their_colours_from_the_page_and_keep_words_as_words(page):
    drawn = "".join(re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL))
    assert "var(--figure-ink, #333333)" in drawn
    assert not re.search(r"(?<!, )#(?!000|fff)[0-9a-f]{6}\b", re.sub(r"url\(#[^)]*\)|#[a-z0-9]+-\d+", "", drawn))
    assert "DejaVu" not in drawn
    assert ">probability promised<" in drawn
    for colour in set(re.findall(r"var\(--figure-(\w+)", page)):
        assert page.count(f"--figure-{colour}:") == 2  # in the light and in the dark


def test_the_page_says_what_the_new_rows_are(page):
    text = Reader(page).text
    assert re.search(r"\d+ of 60 rows \(\d+\.\d%\) are at the edge or outside", text)
    assert f"{HOSTILE} = 900, above every training row" in text


def test_same_model_same_rows_same_page(hostile, undrawn):
    model, X, y, new = hostile
    assert card(model, X, y, new=new) == card(model, X, y, new=new)


@needs_chromium
def test_a_browser_opens_it_silently_at_phone_and_desktop_width_in_the_light_and_in_the_dark(page, tmp_path):
    path = tmp_path / "card.html"
    path.write_text(page, encoding="utf-8")
    for dark in (False, True):
        seen = visit(path, dark=dark)
        assert seen.messages == []
        for look in seen.looks:
            assert look.dark is dark
            assert (look.scroll_width, look.sticking_out) == (look.width, [])
            assert (look.figures, look.empty_figures) == (10, 0)
            assert look.smallest_text >= 9.5


def test_the_example_in_the_docs_is_such_a_page_and_small_enough():
    example = DOCS / "examples" / "concrete-card.html"
    page = example.read_text(encoding="utf-8")
    reader = Reader(page)
    assert reader.faults() == []
    assert reader.tags.count("svg") == 6 + 6 + 1
    assert "Concrete compressive strength(MPa)" in reader.text
    assert "broken" not in reader.text
    assert example.stat().st_size < 1_500_000
    for picture in ("card-desktop.png", "card-phone.png"):
        assert 10_000 < (DOCS / "images" / picture).stat().st_size < 300_000


def test_a_second_fit_is_judged_and_the_page_says_so(undrawn):
    X, y = rows(120)
    model, refit = regressor().fit(X, y), regressor().fit(X[24:], y[24:])
    refit.y_shift_ = refit.y_shift_ + 50.0  # a fault that only the judged one has
    text = Reader(card(model, X[:24], y[:24], refit=refit)).text
    assert "learned from all 120 rows" in text
    assert "fitted once more on 96 of them" in text
    assert "no better than answering the mean" in text
    assert "it had not seen" in text


def test_training_rows_are_recognised_and_told(undrawn):
    X, y = rows(60)
    model = regressor().fit(X, y)
    assert seen_share(model, UserTable(X)) == 1.0
    assert seen_share(model, UserTable(X + 1e-3)) == 0.0
    with pytest.warns(UserWarning, match="most rows of X are rows the model was fitted on"):
        page = card(model, X, y)
    assert "These rows look like rows the model was trained on" in page


def test_tiny_tables_say_that_they_are_tiny(undrawn):
    X, y = rows(30, width=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = Reader(card(regressor().fit(X[:24], y[:24]), X[24:], y[24:])).text
    assert "too few to call a row outside" in text
    assert "With only 6 rows" in text
    assert "The map of ignorance" not in text  # a single column is its own map


def test_two_columns_are_the_map_themselves_and_a_verdict_that_cannot_be_told_is_unknown():
    X, y = rows(18, width=2)
    frame = pd.DataFrame(X, columns=["u", "v"])
    page = card(regressor().fit(frame[:14], y[:14]), frame[14:], y[14:])
    assert "unknown" in page
    assert "of the inputs' variation" not in Reader(page).text


def test_several_targets_each_have_their_say_and_the_first_are_drawn(monkeypatch):
    monkeypatch.setattr(card_page, "MOST_TARGETS", 1)
    X, y = rows(80, width=2)
    Y = np.stack([y, 100.0 * y], axis=1)
    text = card(regressor().fit(X[:60], Y[:60]), X[60:], pd.DataFrame(Y[60:], columns=["first", "second"]))
    reader = Reader(text)
    assert reader.faults() == []
    assert re.findall(r"How far to trust it: (\w+)", reader.text) == ["first", "second"]
    assert reader.tags.count("svg") == 6 + 2 + 1
    assert "This target is in the tables alone" in reader.text


def test_many_columns_and_rows_are_cut_down_and_counted(monkeypatch, undrawn):
    monkeypatch.setattr(card_page, "MOST_ROWS", 50)
    X, y = rows(160, width=30)
    frame = pl.DataFrame(X, schema=[f"column {n}" for n in range(30)])
    reader = Reader(card(regressor().fit(frame[:100], y[:100]), frame[100:], y[100:]))
    assert reader.faults() == []
    assert "18 more columns" in reader.text
    assert "Of these 60 rows, 50 drawn at random were judged" in reader.text
    assert 1 <= reader.tags.count("svg") <= 6 + 1


def test_categories_dates_gaps_and_free_order_of_columns_are_drawn_and_described():
    rng = np.random.default_rng(2)
    size, kind = rng.normal(50.0, 9.0, 150), rng.choice(["flat", "house", "<i>boat</i>"], 150)
    day = np.datetime64("2021-03-01") + rng.integers(0, 500, 150)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(150) < 0.1, np.nan, size),
            "kind": kind,
            "sold": np.datetime_as_string(day),
            "new": rng.random(150) < 0.5,
            "same": np.ones(150),
        }
    )
    y = size + 30.0 * (kind == "house") + (day - day.min()).astype(float) / 5.0
    model = regressor(max_steps=60, calibrate="conformal").fit(frame[:110], y[:110])
    turned = frame[["sold", "same", "new", "kind", "size"]]
    page = card(model, turned[110:], y[110:], new=turned[:20])
    reader = Reader(page)
    assert reader.faults() == []
    for words in ("in days since 2021-03", "a column for each level", "(never seen)", "calibrated on held-out rows",
                  "predict_interval", "missing", "What it promises, checked"):  # fmt: skip
        assert words in reader.text
    assert "<i>boat" not in page
    drawn = [value for tag, name, value in reader.attributes if (tag, name) == ("svg", "aria-label")]
    assert any("as sold runs" in label for label in drawn)
    assert not any("as same runs" in label for label in drawn)


def test_columns_are_described_by_the_training_rows_also_where_only_new_rows_are_shown(undrawn):
    rng = np.random.default_rng(4)
    size = np.append(rng.uniform(-2.0, 7.0, 238), [-2.5, 7.25])
    frame = pd.DataFrame(
        {
            "size": size,
            "gappy": np.where(np.arange(240) % 7 == 0, np.nan, np.arange(240.0)),
            "kind": np.array(["a", "b", "c", "d"])[np.arange(240) % 4],
            "sold": [f"2024-05-{1 + row % 20:02}" for row in range(240)],
            "new": np.arange(240) % 2 == 0,
            "none": [None] * 240,
        }
    )
    spans = {"size": "−2.5 to 7.25", "gappy": "1 to 239", "kind": "a, b, c, … (4 kinds)",
             "sold": "2024-05-01 to 2024-05-20", "new": "false to true", "none": "—"}  # fmt: skip
    with pytest.warns(UserWarning, match="left out: 'none'"):
        model = regressor(max_steps=3).fit(frame, size)
    strange = frame[:9].assign(size=np.arange(900.0, 909.0), kind="z", sold="2031-01-01", new=True)[list(frame)[::-1]]
    found = describe_columns(model, UserTable(strange, model.columns_), None, np.arange(6))
    assert {column.name: column.span for column in found} == spans
    text = Reader(card(model, new=strange)).text
    assert "900 to 908" not in text
    assert "−2.5 to 7.25" in text
    plain = regressor(max_steps=3).fit(frame[["size"]].to_numpy(), size)
    assert [one.span for one in describe_columns(plain, UserTable(np.full((3, 1), 900.0)), None, [0])] == [
        "−2.5 to 7.25"
    ]


def test_a_model_without_a_level_gets_a_card_with_a_warning(undrawn):
    X, y = rows(60, width=2)
    model = MeanVarianceRegressor(max_steps=20, random_state=0, device="cpu").fit(X[:45], y[:45])
    text = Reader(card(model, X[45:], y[45:])).text
    assert "no level is kept there" in text
    assert "level outside" not in text.replace("level outside none", "")


def test_new_rows_alone_make_a_card(hostile, undrawn):
    model, _, _, new = hostile
    reader = Reader(card(model, new=new, new_names=[f"house {n}" for n in range(60)]))
    assert reader.faults() == []
    assert "house 7" in reader.text
    assert "Is it right" not in reader.text


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({}, "held-out rows X and y, or a new table"),
        ({"X": np.ones((4, 3))}, "X and y must be given together"),
        ({"X": np.ones((4, 3)), "y": np.ones(5)}, r"y must have 1 value for each of the 4 rows of X; .* \(5, 1\)"),
        ({"X": np.ones((4, 3)), "y": [1.0, 2.0, np.nan, 3.0]}, "y must have no gaps; 1 of its 4 rows do: drop"),
        ({"X": np.ones((1, 3)), "y": [1.0]}, "X and y must have at least 2 rows to judge by; got 1"),
        ({"X": np.ones(4), "y": np.ones(4)}, "must be a table"),
        ({"X": np.ones((4, 3)), "y": np.ones(4), "row_names": ["a"]}, "one for each of the 4 rows"),
        ({"new": np.ones((4, 3)), "edge": 1.5}, "edge must lie strictly between 0 and 1; got 1.5"),
        ({"new": np.ones((4, 3)), "outside": 0.0}, "outside must lie strictly between 0 and 1; got 0.0"),
    ],
)
def test_mistakes_are_told_in_a_sentence(arguments, match):
    X, y = rows(40)
    with pytest.raises(InputError, match=match):
        card(regressor(max_steps=2).fit(X, y), **arguments)


class Plane:
    """A made-up model, y = 2 x0 - x1, that answers as if it were fitted."""

    single_target_ = True
    y_shift_, y_scale_ = np.array([1.0]), np.array([2.0])

    def predict(self, X):
        X = np.asarray(X, dtype=float)
        return 2.0 * X[:, 0] - X[:, 1]


def test_importance_is_what_shuffling_costs_in_units_of_the_target():
    X = np.random.default_rng(0).normal(0.0, [3.0, 1.0, 5.0], (4_000, 3))
    found = column_importance(Plane(), UserTable(X), Plane().predict(X)[:, None])
    assert found[:, 0] == pytest.approx([2.0 * 3.0 * np.sqrt(2.0), np.sqrt(2.0), 0.0], rel=0.08)


def test_curves_reach_a_data_range_beyond_and_end_at_the_level(hostile):
    model, X, _, _ = hostile
    data = np.array([2.0, 8.0])
    curve = column_curve(model, UserTable(X), 0, 0, data, *RATES)
    assert (curve.x[0], curve.x[-1]) == (-4.0, 14.0)
    middle = np.flatnonzero((curve.x > 2.0) & (curve.x < 8.0))
    expected = model.predict_dist(X[[0] * len(middle)].with_columns(pl.Series(HOSTILE, curve.x[middle])))
    assert curve.std[middle, 0] == pytest.approx(expected.std, rel=1e-5)
    far = column_curve(model, UserTable(X), 0, 0, np.array([-1e4, 1e4]), *RATES)
    assert far.std[[0, -1], 0] == pytest.approx(40.0, rel=1e-3)
    assert set(far.verdict[[0, -1]]) == {"outside"}
    assert column_curve(model, UserTable(X), 0, 0, np.array([3.0, 3.0]), *RATES) is None


def test_a_level_that_is_a_function_of_the_row_is_drawn_as_one():
    X, y = rows(60, width=1)
    model = regressor(outside=lambda x: 10.0 + np.abs(x[:, 0])).fit(X, y)
    curve = column_curve(model, UserTable(X), 0, 0, np.array([0.0, 100.0]), *RATES)
    assert curve.level[:, 0] == pytest.approx(10.0 + np.abs(curve.x), rel=1e-9)
    assert curve.std[-1, 0] == pytest.approx(210.0, rel=1e-2)
    legend = curve_figure(curve, 0, "t", (5.0, 2.0)).axes[1].get_legend()
    assert [text.get_text() for text in legend.get_texts()][-1] == "level outside"  # no single number


def test_the_map_is_inside_at_the_data_and_outside_at_its_corners(hostile):
    model, X, _, _ = hostile
    plan = ignorance_map(model, UserTable(X), NAMES)
    assert max(plan.support[row, column] for row in (0, -1) for column in (0, -1)) < 1 / 200
    centre = plan.support[len(plan.up) // 2, len(plan.across) // 2]
    assert centre > 1 / 20
    assert 0.5 < plan.share < 1.0


def test_judged_answers_are_those_of_the_model_in_chunks_as_in_one(hostile, monkeypatch):
    model, X, y, _ = hostile
    whole = judge(model, UserTable(X), y[:, None], ["t"], *RATES)[0]
    monkeypatch.setattr("nescio.report.card_probe.TOGETHER", 7)
    parts = judge(model, UserTable(X), y[:, None], ["t"], *RATES)[0]
    dist = model.predict_dist(X)
    for found in (whole, parts):
        assert found.mean == pytest.approx(dist.mean, rel=1e-6)
        assert found.pit == pytest.approx(dist.cdf(y), abs=1e-6)
        assert found.intervals[0.9][0] == pytest.approx(model.predict_interval(X)[0], rel=1e-6)
    assert (whole.verdict == parts.verdict).all()
    assert whole.calibrated is None


def test_the_card_knows_how_many_rows_each_interval_was_calibrated_on(monkeypatch):
    X, y = rows(500)
    model = regressor(calibrate="conformal", n_members=2).fit(X[:400], y[:400])
    scores = model.conformal_
    assert 20 < len(scores.inside) < 350  # of 400
    model.conformal_ = Conformal(scores.inside, np.linspace(0.1, 0.9, 11)[:, None])  # enough for 90 %, not for 95 %
    table = X[400:].copy()
    table[0] = 1e4
    monkeypatch.setattr("nescio.report.card_probe.TOGETHER", 30)
    found = judge(model, UserTable(table), y[400:, None], ["t"], *RATES)[0]
    assert {"inside", "edge", "outside"} == set(found.verdict)
    for level, edge in ((0.5, 11), (0.9, 11), (0.95, len(scores.inside))):
        known = {"inside": len(scores.inside), "edge": edge, "outside": 0}
        assert found.calibrated[level].tolist() == [known[word] for word in found.verdict]
