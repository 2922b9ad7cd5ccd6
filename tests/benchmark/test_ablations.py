"""Ablations: the variants are what they say, share their work without sharing results, and stand beside the paper's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from nescio._validation import InputError
from nescio.benchmark import ablation_paper, ablation_runs, stack
from nescio.benchmark import evaluate as evaluate_module
from nescio.benchmark.ablation_paper import run_paper_variants, variant_settings
from nescio.benchmark.ablation_runs import ablation_requests, make_ablation_plan, run_variants
from nescio.benchmark.ablation_tables import ablation_tables
from nescio.benchmark.ablations import ABLATION_METRICS, ABLATIONS, find_variant
from nescio.benchmark.cells import gather
from nescio.benchmark.evaluate import evaluate
from nescio.benchmark.exports import Value, read_values
from nescio.benchmark.methods import make_method
from nescio.benchmark.names import DATASETS, FULL_DATASETS
from nescio.benchmark.paper import run_paper
from nescio.benchmark.paper_settings import PaperSettings
from nescio.benchmark.paper_training import pseudo_input_pool
from nescio.benchmark.plan import Table, Task, task_seed
from nescio.benchmark.published import Key, published_cells
from nescio.benchmark.published_ablations import AblationKey, ablation_notes, published_ablations
from nescio.cli import app
from nescio.datasets.benchmark_splits import make_splits
from nescio.datasets.uci import UCIData
from nescio.pseudo_inputs import FarNoise, GaussianNoise, MixtureDescent

PAPERS = ("boundary-samples", "n-steps", "threshold", "pig-comparison", "n-pseudo-inputs", "prior-informativity")
OURS = (
    "priors",
    "anchor",
    "distance-input",
    "precision-steps",
    "folds-and-blocks",
    "placements",
    "pseudo-weight",
    "epistemic-share",
)
SIZES = {"max_steps": 3, "hidden": (4,), "mean_hidden": (4,), "n_folds": 2}


def small_table(name: str, root: Any = None) -> UCIData:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 2)) * [1.0, 20.0] + [0.0, 7.0]
    return UCIData(name, X, 30.0 * X[:, :1] + rng.normal(size=(80, 1)) + 500.0, ("a", "b"), ("y",))


def quick(name: str, *, seed: int) -> Any:
    model = make_method(name, seed=seed)
    return model.set_params(**{key: size for key, size in SIZES.items() if key in model.get_params()})


@pytest.fixture
def _small_world(tmp_path, monkeypatch):
    """Data of 80 rows and models of a few steps, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stack, "load_uci", small_table)
    monkeypatch.setattr(stack, "_load", small_table)
    monkeypatch.setattr(ablation_runs, "make_method", quick)
    monkeypatch.setattr(evaluate_module, "MOST_ROWS", 20)
    short = lambda *arguments: run_paper_variants(*arguments, most_epochs=10)
    monkeypatch.setattr(ablation_paper, "run_paper_variants", short)


def test_all_that_was_promised_is_there_under_names_of_its_own():
    assert tuple(ABLATIONS) == (*PAPERS, *OURS)
    variants = [variant for ablation in ABLATIONS.values() for variant in ablation.variants]
    assert len(variants) == len(set(variants))
    assert not any("," in variant or " " in variant for variant in variants)
    for name, ablation in ABLATIONS.items():
        assert ablation.protocol == ("paper" if name in PAPERS else "sound")
        assert set(ablation.metrics) <= ABLATION_METRICS.keys()
        assert set(ablation.datasets) <= set(FULL_DATASETS if name in PAPERS else DATASETS)
        assert all(find_variant(variant) == (name, ablation) for variant in ablation.variants)
    with pytest.raises(InputError, match="'anchor=up' is no variant"):
        find_variant("anchor=up")


@pytest.mark.parametrize("name", OURS)
def test_each_variant_of_ours_differs_from_the_default_in_what_it_names_alone(name):
    for settings in ABLATIONS[name].variants.values():
        model, default = ablation_runs._model(settings, 7), make_method(settings.get("method", "d-vv"), seed=7)
        changed = {key: model.get_params(deep=False)[key] for key in settings if key not in ("method", "rows")}
        assert changed == {key: value for key, value in settings.items() if key not in ("method", "rows")}
        rest = lambda each, names=tuple(changed): {
            key: value for key, value in each.get_params(deep=False).items() if key not in names
        }
        assert rest(model) == rest(default)


def test_the_defaults_are_among_the_variants():
    default = make_method("d-vv", seed=0)
    assert default.outside_prior == "graded"
    assert default.anchor
    assert default.pseudo_weight == "auto"
    assert default.n_blocks == ABLATIONS["folds-and-blocks"].variants["blocks=8"]["n_blocks"]


def test_printed_numbers_are_those_of_the_raw_tables_where_both_print_them():
    printed = published_ablations()
    assert len(printed) == 6 + 8 + 6 + 36
    known = {(variant, metric) for a in ABLATIONS.values() for variant in a.variants for metric in a.metrics}
    assert {(key.variant, key.metric) for key in printed} <= known
    same = [("generator=descent", dataset, "elbo", "d-vv") for dataset in FULL_DATASETS]
    for dataset in ("ccpp", "wine_white"):
        same += [("boundary-samples=none", dataset, "kl_ood_inside", "vv")]
        same += [("boundary-samples=boundary", dataset, "kl_ood_inside", "d-vv")]
    for variant, dataset, metric, method in same:
        raw = published_cells()[Key(metric, "standard", dataset, method)].mean  # printed with two digits
        assert printed[AblationKey(variant, dataset, metric)] == pytest.approx(raw, abs=0.00501)


def test_faulty_comparisons_have_their_notes_and_fair_ones_have_none():
    words = lambda *key: " ".join(ablation_notes(AblationKey(*key)))
    assert "factor 15" in words("boundary-samples=far", "wine_white", "kl_ood_inside")
    assert "Not a tolerance" in words("threshold=0.1", "carbon", "elbo")
    assert "compares priors" in words("generator=gaussian-noise+rate=0.5", "boston", "elbo")
    assert "swapped" in words("generator=0-steps", "yacht", "elbo")
    assert "Gaussian noise" in words("generator=descent", "superconductivity", "elbo")
    assert words("generator=descent", "boston", "elbo") == ""
    assert words("n-steps=5", "carbon", "elbo") == ""


def test_a_walk_does_not_refit_the_mixture_and_a_pool_has_the_size_that_is_asked_for():
    points = torch.randn(70, 3, generator=torch.Generator().manual_seed(1)) * 2.0
    stream = lambda: torch.Generator().manual_seed(5)
    settings = PaperSettings(0.2, batch_size=30)
    fresh = pseudo_input_pool(points, stream(), settings, 2)
    densities: dict[Any, Any] = {}
    kept = pseudo_input_pool(points, stream(), settings, 2, densities)
    torch.testing.assert_close(kept, fresh, rtol=0, atol=0)
    assert len(densities) == 2
    without = replace(settings, placement=replace(MixtureDescent.as_run(), steps=0))
    still = pseudo_input_pool(points, stream(), without, 2, densities)
    assert len(densities) == 2
    moved = (still - kept).norm(dim=1)
    assert 0.0 < float(moved.max()) <= 5 * 0.4 + 1e-5  # the same starting points, five steps of 0.4 at most
    assert len(pseudo_input_pool(points, stream(), replace(settings, pool=17), 3)) == 17


def test_the_two_sweeps_vary_the_steps_and_the_gate_of_the_later_code_and_nothing_else():
    later = replace(MixtureDescent.as_run(), pool_multiplier=1)
    steps = [variant["placement"] for variant in ABLATIONS["n-steps"].variants.values()]
    assert steps == [replace(later, steps=number) for number in (0, 1, 5, 10)]
    gates = [variant["placement"] for variant in ABLATIONS["threshold"].variants.values()]
    assert gates == [replace(later, gate=gate) for gate in (0.1, 0.01, 0.001)]
    points = torch.randn(200, 2, generator=torch.Generator().manual_seed(1)) * 0.1  # steep, so that the gate decides
    pools = [
        pseudo_input_pool(
            points, torch.Generator().manual_seed(5), PaperSettings(0.2, batch_size=200, placement=placement), 4
        )
        for placement in (steps[0], *gates)
    ]
    still, *walked = pools
    shares = [float(((pool - still).norm(dim=1) > 1e-6).float().mean()) for pool in walked]
    assert shares[0] == 1.0
    assert shares[0] > shares[1] > shares[2]  # a gate, not a tolerance: the smaller, the fewer points move


def test_noise_is_in_units_of_the_spread_of_the_whole_table_and_repeats_each_row():
    points = torch.randn(64, 40, generator=torch.Generator().manual_seed(1)) * 3.0
    settings = PaperSettings(0.2, batch_size=20, placement=FarNoise())
    pool = pseudo_input_pool(points, torch.Generator().manual_seed(2), settings, 4)
    assert len(pool) == 4 * 64
    assert float(pool.std()) == pytest.approx(float(points.std()) * (1 + 15.0**2) ** 0.5, rel=0.03)
    faint = replace(settings, placement=GaussianNoise(scale=1e-6))
    nearest = torch.cdist(pseudo_input_pool(points, torch.Generator().manual_seed(2), faint, 4), points).argmin(1)
    assert torch.bincount(nearest).tolist() == [4] * 64


def test_informativity_keeps_the_variance_of_the_prior():
    for rate in (0.001, 10.0):
        settings = variant_settings("boston", "standard", {"informativity": rate})
        assert settings.prior_rate == rate
        assert settings.prior_rate / (settings.prior_concentration - 1.0) == pytest.approx(0.19 / 0.5)
        assert settings.pseudo_weight == 1.0
    assert variant_settings("boston", "standard", {"placement": None}).pseudo_weight is None
    assert variant_settings("boston", "standard", {"pseudo_weight": None}).pseudo_weight is None
    assert variant_settings("boston", "standard", {"prior_rate": 0.5}).prior_concentration == 1.5


def test_on_the_authors_trainer_a_variant_that_changes_nothing_is_protocol_paper():
    data = small_table("yacht")
    protocol = run_paper(data, "standard", ["vv", "d-vv"], range(2), most_epochs=10)
    variants = {
        "none": {"placement": None},
        "as run": {},
        "still": {"placement": replace(MixtureDescent.as_run(), steps=0)},
        "rate": {"prior_rate": 0.5},
    }
    found = run_paper_variants(data, "standard", variants, [0, 1], most_epochs=10)
    quiet = lambda rows: {row[:2]: row[2] for row in rows if row[1] != "seconds"}
    for variant, method in (("none", "vv"), ("as run", "d-vv")):
        for trial in (0, 1):
            assert quiet(found[variant, trial]) == quiet(protocol[method, trial])
    mean = ("all", "rmse")
    assert quiet(found["still", 0])[mean] == quiet(found["as run", 0])[mean]  # one joint phase
    assert quiet(found["still", 0]) != quiet(found["as run", 0])
    assert quiet(found["rate", 0])[mean] != quiet(found["as run", 0])[mean]  # another prior, another joint phase
    alone = run_paper_variants(data, "standard", {"rate": variants["rate"]}, [1], most_epochs=10)
    for key, value in quiet(alone["rate", 1]).items():
        assert value == pytest.approx(quiet(found["rate", 1])[key], rel=2e-3, abs=2e-4)


def test_a_variant_of_superconductivity_keeps_its_noise_where_no_placement_is_asked_for():
    data = small_table("superconductivity")
    (protocol,) = run_paper(data, "standard", ["d-vv"], [0], most_epochs=10).values()
    found = run_paper_variants(
        data, "standard", {"as run": {}, "descent": {"placement": MixtureDescent.as_run()}}, [0], most_epochs=10
    )
    quiet = lambda rows: [row for row in rows if row[1] != "seconds"]
    assert quiet(found["as run", 0]) == quiet(protocol)
    assert quiet(found["descent", 0]) != quiet(protocol)


@pytest.mark.usefixtures("_small_world")
def test_variants_in_one_stack_are_as_good_as_alone_also_where_they_differ_in_blocks():
    data = small_table("yacht")
    variants = ("blocks=2", "blocks=8", "blocks=16")
    tasks = [Task("ablation", "yacht", "gap", variant, 1) for variant in variants]
    found = {m.task.method: {v[:2]: v[2] for v in m.values} for m in run_variants(tasks, data)}
    seed = task_seed(tasks[0])
    assert seed == task_seed(Task("sound", "yacht", "gap", "d-vv", 1))
    split = make_splits(data.X, "gap", trials=10)[1]
    for variant, blocks in zip(variants, (2, 8, 16), strict=True):
        alone = quick("d-vv", seed=seed).set_params(n_blocks=blocks).fit(data.X[split.train], data.y[split.train, 0])
        for region, metric, value in evaluate(alone, data, split, seed):
            assert found[variant][region, metric] == pytest.approx(value, rel=1e-3, abs=1e-4)
        parts = alone.predict_dist(data.X[split.test["hole"]])
        share = float((1.0 - (parts.aleatoric_std / parts.std) ** 2).mean())
        assert found[variant]["hole", "epistemic_share"] == pytest.approx(share, rel=1e-3)
        assert ("all", "seconds") in found[variant]
    assert found["blocks=2"]["hole", "log_likelihood"] != found["blocks=16"]["hole", "log_likelihood"]


def test_fewer_rows_are_part_of_more():
    train = np.arange(100, 160)
    shares = [ablation_runs._first_rows(train, share, 9) for share in (0.1, 0.3, 1.0)]
    assert [len(rows) for rows in shares] == [6, 18, 60]
    assert set(shares[0]) < set(shares[1]) < set(shares[2]) == set(train)
    assert list(shares[1]) == sorted(shares[1])
    assert list(shares[0]) != list(train[:6])


def test_the_plan_has_every_task_once_and_variants_of_a_split_together():
    requests = ablation_requests(["all"])
    assert tuple(requests) == (*PAPERS, *OURS)
    sizes = {name: 100 + 10 * number for number, name in enumerate(DATASETS)}
    tables = {
        name: {dataset: Table(sizes[dataset], 5, dict.fromkeys(request.kinds, 2)) for dataset in request.datasets}
        for name, request in requests.items()
    }
    plan = make_ablation_plan(requests, tables)
    tasks = [task for stack_ in plan for task in stack_.tasks]
    assert len(tasks) == len(set(tasks))
    assert len(tasks) == sum(2 * len(a.variants) * len(a.datasets) * len(a.kinds) for a in ABLATIONS.values())
    rows = [sizes[stack_.tasks[0].dataset] for stack_ in plan]
    assert rows == sorted(rows, reverse=True)
    for stack_ in plan:
        (name,) = {find_variant(task.method)[0] for task in stack_.tasks}
        assert stack_.methods == tuple(ABLATIONS[name].variants)
        assert len({(task.dataset, task.kind) for task in stack_.tasks}) == 1
        assert len({task.trial for task in stack_.tasks}) == (2 if name in PAPERS else 1)


def test_seeds_are_those_of_the_protocol_that_is_varied():
    assert task_seed(Task("ablation", "carbon", "standard", "n-steps=5", 1)) == 3
    ours = Task("ablation", "boston", "gap", "anchor=off", 2)
    assert task_seed(ours) == task_seed(ours._replace(protocol="sound", method="d-vv")) != 4


def values(variant: str, dataset: str, metric: str, *numbers: float, kind: str = "standard") -> list[Value]:
    return [
        Value("ablation", dataset, kind, variant, trial, "all", metric, number) for trial, number in enumerate(numbers)
    ]


def test_a_table_puts_printed_numbers_beside_ours_and_ranks_under_one_prior_only():
    records = [
        *values("generator=descent", "boston", "elbo", -0.6, -0.7),
        *values("generator=gaussian-noise", "boston", "elbo", -0.5, -0.6),
        *values("generator=gaussian-noise+rate=0.5", "boston", "elbo", 0.5, 0.7),
        *values("generator=descent", "yacht", "elbo", 1.0, 1.2),
    ]
    (table,) = ablation_tables(gather(records))
    assert table.name == "ablation_pig-comparison_standard"
    assert table.columns == ("data set", "variant", "elbo", "elbo, printed")
    rows = {(row[0].value, row[1].value): row[2:] for row in table.rows}
    ours, printed = rows["boston", "generator=descent"]
    assert ours.value == pytest.approx(-0.65)
    assert ours.spread == pytest.approx(0.05)
    assert (printed.value, printed.notes) == (-0.614, ())
    assert (ours.best, rows["boston", "generator=gaussian-noise"][0].best) == (False, True)
    other = rows["boston", "generator=gaussian-noise+rate=0.5"]
    assert not other[0].best  # the largest number, of another prior
    assert "compares priors" in other[1].notes[0]
    assert rows["boston", "generator=gaussian-noise"][1].value is None
    assert "swapped" in rows["yacht", "generator=descent"][1].notes[0]
    assert rows["mean over sets", "generator=descent"][0].value == pytest.approx(0.5 * (1.1 - 0.65))
    assert ("mean over sets", "generator=gaussian-noise") not in rows  # it has not all sets
    assert any("own prior" in note for note in table.notes)


def test_the_best_is_nearest_to_its_target_and_what_has_no_better_is_not_marked():
    records = [
        *values("anchor=on", "yacht", "coverage_90", 0.93, kind="gap"),
        *values("anchor=off", "yacht", "coverage_90", 0.99, kind="gap"),
        *values("anchor=on", "yacht", "std_far", 1.0, kind="gap"),
        *values("anchor=off", "yacht", "std_far", float("nan"), kind="gap"),
    ]
    (table,) = ablation_tables(gather(records))
    assert table.columns == ("data set", "variant", "coverage_90", "std_far")
    assert [[cell.best for cell in row[2:]] for row in table.rows] == [[True, False], [False, False]]
    (chosen,) = ablation_tables(gather(records), ["std_far"])
    assert chosen.columns == ("data set", "variant", "std_far")


def bench(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


@pytest.mark.usefixtures("_small_world")
def test_the_command_runs_resumes_exports_and_shows():
    options = (
        "ablation",
        "boundary-samples,anchor",
        "epistemic-share",
        "--datasets",
        "yacht",
        "--trials",
        "1",
        "--jobs",
        "1",
    )
    first = bench(*options, "--store", "x.db", "--csv", "ablations.csv")
    assert first.exit_code == 0, first.output
    assert "14 trials measured" in first.stderr
    again = bench(*options, "--store", "x.db")
    assert "0 trials measured" in again.stderr
    assert "14 were there before; 0 failed." in again.stderr
    records = read_values(Path("ablations.csv"))
    assert {record.protocol for record in records} == {"ablation"}
    assert {record.method for record in records if record.split == "gap"} == {"anchor=on", "anchor=off"}
    parts = {(r.method, r.metric): r.value for r in records if r.metric.startswith("epistemic")}
    assert 0.0 < parts["d-vv-ensemble+rows=10%", "epistemic_share"] < 1.0
    assert all(0.0 < value < np.inf for value in parts.values())
    assert Path("ablations_provenance.csv").is_file()
    shown = bench("table", "--store", "x.db", "--protocol", "ablation")
    assert shown.exit_code == 0, shown.output
    assert "Ablation boundary-samples, split standard" in shown.stdout
    assert "log_likelihood (hole)" in shown.stdout
    assert shown.stdout == bench("table", "--csv", "ablations.csv", "--protocol", "ablation").stdout


@pytest.mark.usefixtures("_small_world")
def test_a_variant_that_fails_is_told_and_the_others_are_there(monkeypatch):
    def broken(points, count, streams):
        raise ValueError("no room left")

    variants = ABLATIONS["anchor"].variants | {"anchor=off": {"placement": broken}}
    monkeypatch.setitem(ABLATIONS, "anchor", replace(ABLATIONS["anchor"], variants=variants))
    result = bench("ablation", "anchor", "--datasets", "yacht", "--trials", "1", "--jobs", "1", "--store", "x.db")
    assert result.exit_code == 1
    assert "1 trials measured" in result.stderr
    assert "Failed: ablation yacht gap anchor=off 0: ValueError: no room left (in broken" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ablation", "ancor"), "NAME must be one of 'boundary-samples'"),
        (("ablation", "anchor", "--datasets", "bostn"), "datasets of anchor must be among"),
        (("ablation", "n-steps", "--datasets", "superconductivity_partial"), "datasets of n-steps must be among"),
        (("ablation", "anchor", "--trials", "0"), "trials must be a whole number"),
        (("ablation", "anchor", "--jobs", "0"), "--jobs must be"),
        (("ablation", "anchor", "--store", "no/where.db"), "there is no directory"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing_behind(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = bench(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
