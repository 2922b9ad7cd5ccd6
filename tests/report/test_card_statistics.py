"""A card's numbers against loops, scikit-learn and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

from nescio.report.card_statistics import (
    LEVELS,
    Judged,
    accuracy,
    coverage,
    error_by_std,
    pit_histogram,
    ranking,
    reliability,
)


def judged(n=300, *, stretch=1.0, shift=0.0, seed=0, std=None, words=None):
    """Gaussian answers with a std that varies from row to row; the truth is ``stretch`` times as wide."""
    rng = np.random.default_rng(seed)
    std = rng.uniform(0.5, 4.0, n) if std is None else std
    mean = rng.normal(17.0, 6.0, n)
    y = mean + shift + stretch * std * rng.normal(size=n)
    normal = stats.norm(mean, std)
    return Judged(
        "strength",
        y,
        mean,
        std,
        normal.cdf(y),
        normal.logpdf(y),
        np.full(n, "inside") if words is None else words,
        {level: normal.interval(level) for level in LEVELS},
        guess=float(np.mean(y)),
        spread=float(np.std(y)),
    )


def test_errors_are_those_of_scikit_learn_and_the_bias_has_the_sign_of_the_prediction():
    rows = judged(shift=-0.7)
    found = accuracy(rows)
    assert found.rmse == pytest.approx(np.sqrt(mean_squared_error(rows.y, rows.mean)), rel=1e-12)
    assert found.mae == pytest.approx(mean_absolute_error(rows.y, rows.mean), rel=1e-12)
    assert found.skill == pytest.approx(r2_score(rows.y, rows.mean), rel=1e-12)  # the guess is the mean of these rows
    assert found.bias == pytest.approx(np.mean(rows.mean - rows.y), rel=1e-12)
    assert found.bias > 0.3  # predictions too high
    assert found.log_likelihood == pytest.approx(np.mean(rows.log_prob), rel=1e-12)


def test_skill_is_measured_against_the_training_mean_and_a_constant_target_has_none():
    rows = judged(40)
    far = Judged(**{**rows.__dict__, "guess": 1000.0})
    assert accuracy(far).skill > accuracy(rows).skill
    flat = Judged(**{**rows.__dict__, "y": np.full(40, 3.0), "guess": 3.0})
    assert accuracy(flat).skill == -np.inf


def test_coverage_counts_ends_in_all_and_by_verdict():
    words = np.array(["inside"] * 200 + ["edge"] * 90 + ["outside"] * 10)
    rows = judged(words=words)
    lines = {(line.group, line.level): line for line in coverage(rows)}
    assert {group for group, _ in lines} == {"all", "inside", "edge", "outside"}
    for (group, level), line in lines.items():
        lower, upper = rows.intervals[level]
        chosen = [n for n in range(300) if group in ("all", words[n])]
        assert line.rows == len(chosen)
        assert line.hits == sum(lower[n] <= rows.y[n] <= upper[n] for n in chosen)
        inside = stats.binom.cdf(line.most, line.rows, level) - stats.binom.cdf(line.fewest - 1, line.rows, level)
        assert inside >= 0.99
        assert stats.binom.cdf(line.fewest - 1, line.rows, level) < 0.005  # no wider than it need be
    touching = Judged(**{**rows.__dict__, "y": rows.intervals[0.9][1]})
    assert next(line for line in coverage(touching) if line.level == 0.9).share == 1.0


def test_one_verdict_for_all_rows_is_counted_once():
    assert {line.group for line in coverage(judged())} == {"all"}


@pytest.mark.parametrize(("stretch", "word"), [(1.0, "as promised"), (1.6, "too narrow"), (0.6, "too wide")])
def test_intervals_of_the_wrong_width_are_told(stretch, word):
    line = next(line for line in coverage(judged(stretch=stretch)) if line.level == 0.9)
    assert line.word == word


def test_counts_at_the_ends_of_the_band_are_as_promised_and_one_beyond_is_not():
    line = next(line for line in coverage(judged()) if line.level == 0.9)
    at = lambda hits: type(line)("all", 0.9, line.rows, hits, line.fewest, line.most).word
    assert (at(line.fewest), at(line.most)) == ("as promised", "as promised")
    assert (at(line.fewest - 1), at(line.most + 1)) == ("too narrow", "too wide")


def test_reliability_counts_rows_in_central_intervals():
    rows = judged(400, stretch=1.6)
    found = reliability(rows.pit)
    for level, share in zip(found.level, found.found, strict=True):
        lower, upper = stats.norm.interval(level, rows.mean, rows.std)
        assert share == pytest.approx(np.mean((lower <= rows.y) & (rows.y <= upper)), abs=1e-12)
    assert np.all(found.found[5:15] < found.low[5:15])  # too narrow
    assert reliability(judged(400).pit).distance < 0.5 * found.distance


def test_an_upper_tail_is_not_a_central_interval():
    wrong = reliability(np.random.default_rng(0).uniform(0.5, 1.0, 500))  # one-sided, yet half of all in any half
    assert wrong.found == pytest.approx(wrong.level, abs=0.08)
    assert pit_histogram(np.random.default_rng(0).uniform(0.5, 1.0, 500)).count[:4].sum() == 0


@pytest.mark.parametrize(("rows", "bins"), [(6, 4), (100, 5), (5000, 10)])
def test_the_histogram_loses_no_row_and_has_few_bins_for_few_rows(rows, bins):
    found = pit_histogram(np.linspace(0.0, 1.0, rows))
    assert (found.count.sum(), len(found.count), len(found.edges)) == (rows, bins, bins + 1)
    assert found.fewest <= rows / bins <= found.most


def test_bins_hold_the_rows_of_like_std_and_their_errors():
    rows = judged(205)
    found = error_by_std(rows)
    order = sorted(range(205), key=lambda n: rows.std[n])
    first = order[: found.rows[0]]
    assert found.rows.sum() == 205
    assert np.ptp(found.rows) <= 1
    assert found.std[0] == pytest.approx(np.sqrt(np.mean([rows.std[n] ** 2 for n in first])), rel=1e-12)
    assert found.error[0] == pytest.approx(np.sqrt(np.mean([rows.error[n] ** 2 for n in first])), rel=1e-12)
    assert np.all((found.low < found.error) & (found.error < found.high))
    doubled = error_by_std(judged(205, stretch=2.5))
    assert np.all(doubled.error > doubled.high)


def test_an_infinite_std_is_left_out_of_the_bins():
    rows = judged(60)
    found = error_by_std(Judged(**{**rows.__dict__, "std": np.r_[np.inf, rows.std[1:]]}))
    assert found.rows.sum() == 59
    assert np.isfinite(found.std).all()


def test_ranking_tells_a_std_that_follows_the_errors_from_one_that_does_not():
    good, shuffled = judged(400), judged(400)
    shuffled = Judged(**{**shuffled.__dict__, "std": np.random.default_rng(9).permutation(shuffled.std)})
    turned = Judged(**{**good.__dict__, "std": 1.0 / good.std})
    constant = Judged(**{**good.__dict__, "std": np.full(400, 2.0)})
    assert ranking(good).tells
    assert ranking(good).sure < ranking(good).unsure
    assert not ranking(shuffled).tells
    assert not ranking(turned).tells  # a strong correlation with the wrong sign
    assert ranking(turned).p_value < 1e-6
    assert not ranking(constant).tells


def calibrated_on(rows, known):
    return Judged(**{**rows.__dict__, "calibrated": {level: np.asarray(known) for level in LEVELS}})


def at_nine_tenths(rows, group="all"):
    return next(line for line in coverage(rows) if (line.group, line.level) == (group, 0.9))


def test_calibrated_intervals_are_allowed_the_chance_of_their_calibration():
    plain = judged(200)
    small, large = (calibrated_on(plain, np.full(200, known)) for known in (50, 10**9))
    law = stats.betabinom(200, 46, 5)  # the 46th of 51 ranks is the first that is 90 % of them
    found = at_nine_tenths(small)
    assert law.cdf(found.most) - law.cdf(found.fewest - 1) >= 0.99
    assert found.fewest < at_nine_tenths(plain).fewest
    for end in ("fewest", "most"):
        assert getattr(at_nine_tenths(large), end) == getattr(at_nine_tenths(plain), end)


def test_the_band_is_that_of_the_rows_that_each_verdict_was_calibrated_on():
    """Scores to calibrate on and scores of fresh rows, drawn many times over: their counts keep the band."""
    groups = {"inside": (150, 80), "edge": (70, 12), "outside": (30, 0)}  # rows judged, rows calibrated on
    words = np.concatenate([np.full(rows, word) for word, (rows, _) in groups.items()])
    lines = calibrated_on(judged(250, words=words), np.repeat([80, 12, 0], [150, 70, 30]))
    rng, draws = np.random.default_rng(4), 20_000
    counts = {}
    for word, (rows, known) in groups.items():
        chance = 0.9
        if known:
            chance = np.sort(rng.random((draws, known)), axis=1)[:, math.ceil(0.9 * (known + 1)) - 1]
        counts[word] = rng.binomial(rows, chance, size=draws)
    counts["all"] = sum(counts.values())
    slack = 5.0 * np.sqrt(0.005 / draws)
    for word, drawn in counts.items():
        line = at_nine_tenths(lines, word)
        assert max(np.mean(drawn < line.fewest), np.mean(drawn > line.most)) < 0.005 + slack, word
        assert np.mean(drawn <= line.fewest) > 0.005 - slack  # and no wider than it need be
    one_law = at_nine_tenths(calibrated_on(judged(250), np.full(250, 1_000)))  # the wrong twin: all training rows
    assert np.mean((counts["all"] < one_law.fewest) | (counts["all"] > one_law.most)) > 0.02


def test_two_thousand_rows_after_a_calibration_on_950():
    line = at_nine_tenths(calibrated_on(judged(2_000), np.full(2_000, 950)))
    assert (line.fewest, line.most) == tuple(stats.betabinom(2_000, 856, 95).ppf([0.005, 0.995])) == (1736, 1857)
