"""The statistics of the tables against independent oracles, and the paper's own counts from its own cells."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, special

from nescio._validation import InputError
from nescio.benchmark.cells import gather
from nescio.benchmark.exports import Value
from nescio.benchmark.names import FULL_DATASETS
from nescio.benchmark.paper_tables import agreement_table, compare, count_tables, raw_tables
from nescio.benchmark.published import (
    PRINTED_COUNTS,
    PUBLISHED_METHODS,
    Key,
    cell_notes,
    published_cells,
    published_spread,
)
from nescio.benchmark.sound_tables import count_table, difference_tables, mean_tables, rank_table, worst_tables
from nescio.benchmark.statistics import (
    TEST_OVER_TRAIN,
    Spread,
    loss,
    mean_ranks,
    paired_difference,
    spread,
    win_and_draws,
    worst,
)
from nescio.datasets.benchmark_splits import make_splits


def t_quantile(p, df):
    """The quantile of Student's t by quadrature of its density and a root search."""
    constant = math.exp(special.gammaln((df + 1) / 2) - special.gammaln(df / 2)) / math.sqrt(df * math.pi)
    density = lambda t: constant * (1 + t * t / df) ** (-(df + 1) / 2)
    return optimize.brentq(lambda t: 0.5 + integrate.quad(density, 0, t, epsabs=1e-13)[0] - p, 0, 1e3, xtol=1e-12)


def naive_interval(gaps, ratio, level, variance=lambda n, ratio: 1 / n + ratio, ddof=1, df=lambda n: n - 1):
    n = len(gaps)
    mean = sum(gaps) / n
    sample = sum((gap - mean) ** 2 for gap in gaps) / (n - ddof)
    reach = t_quantile((1 + level) / 2, df(n)) * math.sqrt(variance(n, ratio) * sample)
    return mean - reach, mean + reach


TWINS = {
    "the plain resampled test": {"variance": lambda n, ratio: 1 / n},
    "train over test": {"variance": lambda n, ratio: 1 / n + 1 / ratio},
    "the ratio alone": {"variance": lambda n, ratio: ratio},
    "the variance of a population": {"ddof": 0},
    "a degree too many": {"df": lambda n: n},
}


@pytest.mark.parametrize("ratio", [1 / 9, 5 / 9, 20 / 9])
@pytest.mark.parametrize("n", [2, 5, 10])
def test_the_interval_is_that_of_nadeau_and_bengio_and_of_no_wrong_twin(n, ratio):
    rng = np.random.default_rng(n)
    ours, theirs = rng.normal(3.0, 2.0, n), rng.normal(2.0, 1.5, n)
    found = paired_difference(dict(enumerate(ours)), dict(enumerate(theirs)), ratio)
    low, high = naive_interval(list(ours - theirs), ratio, 0.95)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-8)
    for twin in TWINS.values():
        assert naive_interval(list(ours - theirs), ratio, 0.95, **twin)[0] != pytest.approx(low, rel=1e-4)


def test_the_interval_of_a_worked_example():
    gaps = dict(enumerate([0.1, 0.3, 0.2, 0.4]))  # s = 0.12910, t_3 = 3.18245, sqrt(1/4 + 1/9) = 0.60093
    found = paired_difference(gaps, dict.fromkeys(gaps, 0.0), 1 / 9)
    assert found.mean == pytest.approx(0.25)
    assert found.high - found.mean == pytest.approx(3.18245 * 0.12910 * 0.60093, rel=1e-4)


def test_only_shared_trials_are_compared_and_a_single_one_has_no_interval():
    assert paired_difference({0: 1.0}, {1: 1.0}, 0.1) is None
    found = paired_difference({0: 1.0, 1: 5.0}, {1: 3.0, 2: 9.0}, 0.1)
    assert found == (2.0, -math.inf, math.inf, 1)


def test_the_corrected_interval_holds_its_level_where_the_plain_one_does_not():
    """Two predictors of equal merit, compared on tenths that are drawn again and again from the same rows."""
    rng = np.random.default_rng(0)
    corrected = plain = 0
    repeats, n, size = 400, 10, 50
    for _ in range(repeats):
        row_gaps = np.diff(rng.normal(size=(2, size)) ** 2, axis=0)[0]
        gaps = {trial: row_gaps[rng.permutation(size)[: size // 10]].mean() for trial in range(n)}
        zero = dict.fromkeys(gaps, 0.0)
        hit = lambda found: found.low <= 0.0 <= found.high
        corrected += hit(paired_difference(gaps, zero, 1 / 9))
        plain += hit(paired_difference(gaps, zero, 1e-12))
    assert corrected / repeats > 0.93
    assert plain / repeats < 0.9


def test_the_ratios_are_those_of_the_splits():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    for kind in ("standard", "gap", "tail"):
        (split, *_) = make_splits(X, kind, trials=1)
        for region, rows in split.test.items():
            assert len(rows) / len(split.train) == pytest.approx(TEST_OVER_TRAIN[kind, region], rel=0.02)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(-5, 5), st.floats(0.01, 3), st.integers(2, 20)),
        min_size=2,
        max_size=6,
        unique_by=lambda cell: cell[0],
    ),
    st.sampled_from(["log_likelihood", "rmse"]),
)
def test_the_rule_of_counts_is_the_paper_s_with_the_root_and_the_true_n(cells, metric):
    named = {f"m{number}": Spread(*cell) for number, cell in enumerate(cells)}
    win = win_and_draws(metric, named)
    means = {name: cell.mean for name, cell in named.items()}
    assert win.best == (max if metric == "log_likelihood" else min)(means, key=means.get)
    top = named[win.best]
    for name, cell in named.items():
        if name == win.best:
            assert name not in win.draws
            continue
        z = abs(cell.mean - top.mean) / (cell.std**2 / cell.n + top.std**2 / top.n) ** 0.5
        p = math.erfc(z / math.sqrt(2))
        if abs(p - 0.05) > 1e-9:
            assert (name in win.draws) == (p > 0.05)


def test_a_rule_without_the_root_or_with_n_twenty_would_decide_otherwise():
    cells = {"a": Spread(0.0, 0.5, 3), "b": Spread(0.5, 0.5, 3)}  # z = 1.22; without the root 3.0; with n = 20: 3.16
    assert win_and_draws("rmse", cells).draws == ("b",)
    large = {"a": Spread(0.0, 30.0, 10), "b": Spread(60.0, 30.0, 10)}  # z = 4.5; without the root 0.33
    assert win_and_draws("rmse", large).draws == ()


def test_a_method_without_spread_or_without_a_finite_mean_draws_with_nobody():
    cells = {"a": Spread(1.0, math.nan, 1), "b": Spread(1.1, 5.0, 10), "c": Spread(math.nan, 1.0, 3)}
    assert win_and_draws("rmse", cells) == ("a", ())
    assert win_and_draws("rmse", {"c": cells["c"]}) is None
    coverages = {"low": Spread(0.85, 0.001, 9), "high": Spread(0.99, 0.001, 9)}
    assert win_and_draws("coverage_90", coverages).best == "low"  # 0.05 from 0.9, against 0.09


def recount(metric, split, trials):
    """Best and draws of each method from the published cells, by the rule under test."""
    tally = dict.fromkeys(PUBLISHED_METHODS.values(), (0, 0))
    for dataset in FULL_DATASETS:
        keys = [Key(metric, split, dataset, method) for method in PUBLISHED_METHODS.values()]
        cells = {key.method: published_cells()[key]._replace(n=trials) for key in keys if key in published_cells()}
        win = win_and_draws(metric, cells)
        best, draws = tally[win.best]
        tally[win.best] = best + 1, draws + len(win.draws)
    return tally


def test_the_paper_s_counts_come_out_of_its_cells_with_the_root_and_five_trials():
    """As nearly as rounded cells allow: nearly all of ELBO and E[KL], and most of the rest."""
    printed = [
        (metric, split, method, counts)
        for split, rows in PRINTED_COUNTS.items()
        for metric, row in rows.items()
        for method, counts in row.items()
        if counts is not None
    ]
    assert len(printed) == 74
    agree = {
        n: sum(recount(metric, split, n)[method] == counts for metric, split, method, counts in printed)
        for n in (3, 5, 10, 20)
    }
    assert agree == {3: 40, 5: 56, 10: 42, 20: 32}
    for metric, split, method, counts in printed:
        if metric in ("elbo", "kl_ood_inside"):
            best, draws = recount(metric, split, 5)[method]
            assert best == counts[0]
            assert abs(draws - counts[1]) <= 1


def test_published_cells_have_our_names_and_the_faulty_ones_a_note():
    cells = published_cells()
    assert cells[Key("elbo", "standard", "boston", "d-vv")] == Spread(-0.61, 0.33, 3)
    assert cells[Key("rmse", "gap", "yacht", "skafte")] == Spread(0.07, 0.02, 6)
    assert cells[Key("expected_log_likelihood", "standard", "yacht", "vv")].mean == 1.33
    assert Key("elbo", "standard", "boston", "gp") not in cells
    assert {key.dataset for key in cells} == set(FULL_DATASETS)
    assert len(cells) == 24 * (3 + 7 + 7 + 6 + 3 + 3) + 4 * 2 * 18  # NCP and BBB: no set with several outputs
    noted = lambda *key: " ".join(cell_notes(Key(*key)))
    assert "swapped" in noted("elbo", "standard", "yacht", "d-vv")
    assert noted("elbo", "standard", "yacht", "vv") == ""
    assert "target was among the inputs" in noted("rmse", "gap", "wine_red", "bbb")
    assert noted("rmse", "gap", "kin8nm", "bbb") == ""
    assert "training rows" in noted("rmse", "standard", "boston", "skafte")
    assert "1.96" in noted("rmse", "standard", "boston", "skafte")
    assert "1.96" not in noted("rmse", "gap", "boston", "skafte")
    assert "then squared" in noted("expected_log_likelihood", "standard", "wine_red", "deep-ensemble")
    assert noted("expected_log_likelihood", "standard", "wine_red", "mean-variance") == ""
    reach = Key("rmse", "standard", "boston", "skafte")
    assert published_spread(reach).std == pytest.approx(cells[reach].std / 1.96)
    for key in (reach._replace(split="gap"), reach._replace(method="vv"), Key("elbo", "standard", "boston", "skafte")):
        assert published_spread(key) == cells.get(key)
    assert "no hole" in noted("rmse", "gap", "boston", "skafte")
    assert "never trained" in noted("rmse_variance", "standard", "yacht", "deep-ensemble")
    assert noted("rmse", "standard", "yacht", "deep-ensemble") == ""
    assert "1e12" in noted("rmse_variance", "standard", "boston", "vv-no-prior")
    assert noted("rmse_variance", "standard", "carbon", "vv-no-prior") == ""
    assert "Gaussian noise" in noted("elbo", "gap", "superconductivity", "d-vv")


def test_losses_point_one_way():
    assert loss("rmse", 2.0) == 2.0
    assert loss("log_likelihood", 2.0) == -2.0
    assert loss("coverage_90", 0.85) == pytest.approx(0.05)
    assert math.isnan(loss("width_50", 1.0))


def test_ranks_are_shared_by_ties_and_averaged_over_data_sets():
    means = [{"a": 1.0, "b": 2.0, "c": 2.0, "d": 0.0}, {"a": 3.0, "b": math.nan, "c": 1.0}]
    assert mean_ranks("rmse", means) == {"a": (1 + 2) / 2, "b": (2.5 + 3) / 2, "c": (2.5 + 1) / 2}
    assert mean_ranks("log_likelihood", means[:1]) == {"a": 3.0, "b": 1.5, "c": 1.5, "d": 4.0}
    assert mean_ranks("rmse", []) == {}


def test_the_worst_split_is_the_worst_in_the_sense_of_the_metric():
    assert worst("rmse", {0: 1.0, 1: 3.0, 2: 2.0}) == (1, 3.0)
    assert worst("log_likelihood", {0: 1.0, 1: 3.0, 2: -2.0}) == (2, -2.0)
    assert worst("rmse", {0: 1.0, 1: math.nan})[0] == 1


def test_a_spread_is_that_of_a_sample():
    assert spread([1.0, 3.0]) == Spread(2.0, math.sqrt(2.0), 2)
    assert spread([1.0, 3.0]).standard_error == 1.0
    assert math.isnan(spread([4.0]).std)
    with pytest.raises(InputError):
        spread([])


def sound(split="standard", region="all", metric="log_likelihood"):
    """Three methods on two full sets and the partial one, four splits; method k is worse by k/10."""
    rng = np.random.default_rng(5)
    values = []
    for dataset in ("boston", "yacht", "superconductivity_partial"):
        base = rng.normal(size=4)
        for number, method in enumerate(("d-vv", "vv", "gp")):
            noise = 0.01 * rng.normal(size=4)
            for trial in range(4):
                value = float(base[trial] - 0.1 * number + noise[trial])
                values.append(Value("sound", dataset, split, method, trial, region, metric, value))
    return values


def test_tables_of_differences_show_what_pairing_reveals():
    (table,) = difference_tables(gather(sound()))
    assert table.columns == ("method", "boston", "superconductivity_partial", "yacht")
    assert [row[0].value for row in table.rows] == ["vv", "gp"]
    for row, gap in zip(table.rows, (0.1, 0.2), strict=True):
        for cell in row[1:]:
            assert cell.value == pytest.approx(gap, abs=0.03)
            assert cell.interval[0] > 0
            assert cell.best
    (means,) = mean_tables(gather(sound()), ["log_likelihood"])
    assert [cell.best for cell in means.rows[0][1:]] == [True] * 3
    assert means.rows[0][1].spread > 0.1  # unpaired, the splits differ by far more than the methods


def test_where_smaller_is_better_a_positive_difference_still_speaks_for_the_reference():
    values = [value._replace(metric="crps", value=-value.value) for value in sound()]
    (table,) = difference_tables(gather(values), metrics=["crps"])
    assert all(cell.value > 0 for row in table.rows for cell in row[1:])


def test_ranks_and_counts_leave_the_partial_set_out():
    results = gather(sound())
    (ranks,) = rank_table(results, ["log_likelihood"])
    assert [cell.value for cell in ranks.rows[0]] == ["log_likelihood", "standard", "all", 2.0, 1.0, 2.0, 3.0]
    (counts,) = count_table(results, ["log_likelihood"])
    assert [(cell.value, cell.second) for cell in counts.rows[0][3:]] == [(2.0, 4), (0.0, 0), (0.0, 0)]
    (worst_of,) = worst_tables(results)
    values = [v for v in sound() if (v.dataset, v.method) == ("yacht", "gp")]
    low = min(values, key=lambda value: value.value)
    assert (worst_of.rows[2][3].value, worst_of.rows[2][3].second) == (low.value, low.trial)


def test_the_union_of_regions_is_shown_only_where_there_is_nothing_finer():
    values = [*sound("gap", "hole"), *sound("gap", "all"), *sound("gap", "all", "auroc_far")]
    names = [table.name for table in mean_tables(gather(values), ["log_likelihood", "auroc_far"])]
    assert names == ["sound_mean_log_likelihood_gap_hole", "sound_mean_auroc_far_gap_all"]


def paper_values(shift=0.0):
    """Ours exactly as published, plus a shift; the swapped variant on yacht, and a d-VV far from it."""
    values = []
    for key, cell in published_cells().items():
        if key.method in ("d-vv", "vv") and key.dataset != "superconductivity":
            method = "d-vv-swapped" if (key.method, key.dataset) == ("d-vv", "yacht") else key.method
            for trial, step in enumerate((-1.0, 0.0, 1.0)):
                value = cell.mean + shift + step * cell.std
                values.append(Value("paper", key.dataset, key.split, method, trial, "all", key.metric, value))
                if method == "d-vv-swapped":
                    values.append(Value("paper", "yacht", key.split, "d-vv", trial, "all", key.metric, 99.0))
    return values


def test_agreement_is_judged_on_both_splits_and_yacht_by_its_swapped_variant():
    comparisons = compare(gather(paper_values()))
    assert len(comparisons) == 2 * 4 * 11 * 2
    assert all(comparison.agrees for comparison in comparisons)
    yacht = next(c for c in comparisons if c.key == Key("elbo", "standard", "yacht", "d-vv"))
    assert (yacht.ours.mean, yacht.tolerance) == (pytest.approx(-17.6), pytest.approx(1.76))
    shifted = compare(gather(paper_values(shift=0.103)))
    misses = [c for c in shifted if not c.agrees]
    small = [c for c in shifted if c.published.std < 0.0515 and abs(c.published.mean) < 1.03]
    assert 20 < len(misses) < len(shifted)
    assert misses == small
    table = agreement_table(gather(paper_values(shift=0.103)))
    assert len(table.rows) == 2 + len(misses)
    assert "of 88 agree" in table.rows[0][4].value


def test_raw_tables_keep_ours_and_the_published_numbers_in_columns_of_their_own():
    tables = raw_tables(gather(paper_values()))
    assert len(tables) == 6
    for table in tables:
        assert len(table.rows) == 24
        assert table.columns[2:5] == ("d-vv, ours", "vv, ours", "d-vv-swapped, ours")
        assert all(column.endswith(", published") for column in table.columns[5:])
        partial = [row for row in table.rows if row[1].value == "superconductivity"]
        assert all(cell.value is None for row in partial for cell in row[2:5])
        assert table.notes[0] == "Ours: mean ± standard deviation over trials; not run: superconductivity."
    (boston, *_) = tables[0].rows
    assert (boston[2].value, boston[5].value) == (pytest.approx(-0.61), -0.61)

    whole = [value._replace(dataset="superconductivity") for value in paper_values() if value.dataset == "protein"]
    (table, *_) = raw_tables(gather(whole))
    others = [name for name in FULL_DATASETS if name != "superconductivity"]
    assert table.notes[0].endswith(f"; not run: {', '.join(others)}.")
    half = [value for value in paper_values() if value.split == "standard" or value.dataset == "protein"]
    (lacking, *_) = raw_tables(gather(half))
    words = [
        name if name == "superconductivity" else f"{name} (shifted)" for name in FULL_DATASETS if name != "protein"
    ]
    assert lacking.notes[0].endswith(f"; not run: {', '.join(words)}.")
    (row,) = (row for row in table.rows if [cell.value for cell in row[:2]] == ["not shifted", "superconductivity"])
    assert row[2].value is not None
    assert row[2].notes == ("Its pseudo-inputs were Gaussian noise, not those of the paper's generator.",)
    assert row[3].notes == ()


def test_count_tables_add_up_and_stand_beside_what_was_printed():
    everything, standard, shifted = count_tables(gather(paper_values()))
    for whole, first, second in zip(everything.rows, standard.rows, shifted.rows, strict=True):
        for total, one, two in zip(whole[2:], first[2:], second[2:], strict=True):
            if total.value is not None:
                assert total.value == (one.value or 0) + (two.value or 0)
    printed = {row[0].value: row for row in everything.rows if row[1].value == "printed"}
    assert [(cell.value, cell.second) for cell in printed["elbo"][2:5]] == [(21, 18), (3, 3), (0, 0)]
    assert [(cell.value, cell.second) for cell in printed["rmse"][2:]] == [
        (2, 2), (1, 4), (2, 5), (1, 5), (2, 3), (5, 12), (3, 16), (0, 0), (8, 0),
    ]  # fmt: skip
    of = lambda table, *labels: next(row for row in table.rows if (row[0].value, row[1].value) == labels)
    counted, fair = (
        of(everything, "expected_log_likelihood", word)[2:] for word in ("counted", "without footnoted ones")
    )
    assert [cell.value for cell in counted] == [3, 4, 0, 0, 4, 0, 0, 2, 11]
    assert [cell.value for cell in fair] == [8, 8, 2, 1, None, None, None, 2, 3]
    ours = next(row for row in standard.rows if (row[0].value, row[1].value) == ("kl_ood_inside", "ours"))
    assert ours[2].value + ours[3].value == 11
