"""The sentences of a card follow from its numbers: each rule on numbers that call for it, and on their neighbours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nescio.estimators.watch import Watch
from nescio.report.card_statistics import Accuracy, Coverage, Ranking
from nescio.report.card_words import Findings, trust_marks, trust_sentences

GOOD = Findings(
    target="strength",
    accuracy=Accuracy(206, 4.6, 3.2, 0.1, 16.0, 0.92, -2.7),
    coverage=[
        Coverage("all", 0.5, 206, 110, 85, 121),
        Coverage("inside", 0.9, 190, 60, 160, 180),  # not the line that counts
        Coverage("all", 0.9, 206, 185, 174, 196),
    ],
    ranking=Ranking(2.8, 5.9, 0.4, 1e-9),
    watch=Watch(206, 9, 1, 1 / 20, 1 / 200, 0.64),
    inside=4.3,
    outside=23.1,
    chosen="data",
    seen=False,
)


def words(**changes):
    return " ".join(trust_sentences(replace(GOOD, **changes))).replace("\xa0", " ")


def grades(**changes):
    return {mark.about: mark.grade for mark in trust_marks(replace(GOOD, **changes))}


def skilled(skill, rows=206):
    return replace(GOOD.accuracy, skill=skill, rows=rows)


def test_a_good_model_is_called_good_with_its_numbers():
    text = words()
    assert set(grades().values()) == {"good"}
    for part in ("206 rows it had not seen", "strength closely", "off by 4.60", "off by 16.0",
                 "as many as they promise", "185 of 206 values (90 %)", "knows where it errs", "by 2.80", "by 5.90",
                 "goes to 23.1", "since none was set", "5.37 times the usual 4.30", "it calls inside"):  # fmt: skip
        assert part in text
    assert not any(word in text for word in ("too narrow", "no better", "rough", "come from elsewhere", "trained on"))


@pytest.mark.parametrize(
    ("skill", "word", "grade"),
    [(0.9, "closely", "good"), (0.89, "fairly well", "good"), (0.5, "fairly well", "good"), (0.49, "roughly", "fair"),
     (0.1, "roughly", "fair"), (0.09, "no better than", "poor"), (-3.0, "no better than", "poor")],
)  # fmt: skip
def test_accuracy_has_four_steps(skill, word, grade):
    assert word in words(accuracy=skilled(skill))
    assert grades(accuracy=skilled(skill))["accuracy"] == grade
    assert ("Do not decide anything" in words(accuracy=skilled(skill))) is (grade == "poor")


@pytest.mark.parametrize(
    ("hits", "words_", "grade"),
    [(173, "too narrow", "poor"), (174, "as many as they promise", "good"), (197, "on the safe side", "fair")],
)
def test_intervals_are_judged_on_all_rows_at_ninety_per_cent(hits, words_, grade):
    lines = [*GOOD.coverage[:2], replace(GOOD.coverage[2], hits=hits)]
    assert words_ in words(coverage=lines)
    assert grades(coverage=lines)["90 % intervals"] == grade


def test_a_std_that_does_not_tell_is_not_praised():
    flat = Ranking(5.0, 5.2, 0.03, 0.4)
    assert "cannot be told from these rows" in words(ranking=flat)
    assert "It knows where it errs" not in words(ranking=flat)
    assert grades(ranking=flat)["knows its errors"] == "fair"


def test_a_level_that_was_set_is_called_so_and_a_model_without_one_is_warned_of():
    assert "the level that was set;" in words(chosen="number")
    assert "as a function of the row;" in words(chosen="function")
    text = words(outside=None)
    assert "whatever its network happens to say" in text
    assert "goes to" not in text
    assert grades(outside=None)["outside the data"] == "poor"


def test_held_out_rows_from_elsewhere_are_told_only_where_chance_does_not_explain_them():
    many = Watch(206, 56, 40, 1 / 20, 1 / 200, 1e-20)
    assert "calls 40 of these rows outside what it has seen and 16 at the edge" in words(watch=many)
    for chance in (0.2, float("nan")):
        assert "come from elsewhere" not in words(watch=replace(many, p_value=chance))


def test_few_rows_are_called_few():
    lines = [Coverage("all", 0.9, 49, 45, 38, 48)]
    assert "With only 49 rows" in words(accuracy=skilled(0.9, 49), coverage=lines)
    assert "from 78 % to 98 %" in words(accuracy=skilled(0.9, 49), coverage=lines)
    assert "With only" not in words(accuracy=skilled(0.9, 50))


def test_training_rows_are_not_called_unseen():
    text = words(seen=True)
    assert text.startswith("These rows look like rows the model was trained on")
    assert "it had not seen" not in text


def test_a_std_of_zero_inside_gives_no_division():
    assert "∞ times" in words(inside=0.0)
