"""Protocol *paper*: rows, starting weights, stopping, placement of test noise and averages are the authors'."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from sklearn.model_selection import train_test_split
from torch.utils.data import TensorDataset, random_split

from nescio._validation import InputError
from nescio.benchmark import paper
from nescio.benchmark.ablation_paper import run_paper_variants
from nescio.benchmark.paper import box_points, measure, run_paper
from nescio.benchmark.paper_settings import PRIOR_RATES, PaperSettings, paper_settings
from nescio.benchmark.paper_splits import authors_table, paper_trials, standardise
from nescio.benchmark.paper_training import (
    EpochSampler,
    PaperStack,
    posterior,
    pseudo_input_pool,
    starting_weights,
)
from nescio.datasets.benchmark_splits import make_splits
from nescio.datasets.uci import UCIData
from nescio.distributions import Gamma
from nescio.networks import MLP
from nescio.pseudo_inputs import GaussianNoise, MixtureDescent

METRICS = {
    "elbo",
    "expected_log_likelihood",
    "rmse",
    "rmse_variance",
    "rmse_sample",
    "kl_ood_inside",
    "log_likelihood",
}


def small_table(name: str = "energy", rows: int = 90, outputs: int = 2) -> UCIData:
    rng = np.random.default_rng(5)
    X = np.c_[rng.normal(3.0, 2.0, rows), rng.uniform(-1.0, 5.0, rows), np.full(rows, 7.0)]
    y = np.stack([np.sin(X[:, 0]) * (k + 1) + X[:, 1] + 0.2 * rng.normal(size=rows) for k in range(outputs)], axis=1)
    return UCIData(name, X, y, ("a", "b", "c"), tuple(f"t{k}" for k in range(outputs)))


def table_as_torch_splits_it(X: np.ndarray, seed: int, times: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows for training, validation and testing as scikit-learn and torch cut them after seeding the global streams."""
    state = np.random.get_state()  # noqa: NPY002  (the authors' splits come from the global stream)
    with torch.random.fork_rng():
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        for _ in range(times):
            rest, test = train_test_split(np.arange(len(X)), test_size=int(0.1 * len(X)), shuffle=True)
            table = TensorDataset(torch.as_tensor(rest))
            size = int(0.9 * len(rest))
            train, validation = random_split(table, [size, len(rest) - size])
    np.random.set_state(state)  # noqa: NPY002
    return rest[list(train.indices)], rest[list(validation.indices)], test


@pytest.mark.parametrize(("trial", "times"), [(0, 2), (1, 1), (2, 1)])
def test_rows_are_those_that_scikit_learn_and_torch_draw_from_the_trial_s_seed(trial, times):
    X = small_table().X
    found = paper_trials(X, "standard", range(3))[trial]
    train, validation, test = table_as_torch_splits_it(X, 2 + trial, times)
    assert found.seed == 2 + trial
    assert found.train.tolist() == train.tolist()
    assert found.validation.tolist() == validation.tolist()
    assert found.test["all"].tolist() == test.tolist()
    assert not np.array_equal(found.test["all"], table_as_torch_splits_it(X, 2 + trial, 3 - times)[2])


def test_the_hole_is_the_middle_third_by_position_and_is_tested_after_the_ordinary_rows():
    X = small_table(rows=100).X
    runs = paper_trials(X, "gap", range(3))
    assert [run.feature for run in runs] == [0, 1, 2]
    for run in runs[:2]:
        inside, hole = run.test["inside"], run.test["hole"]
        assert run.test["all"].tolist() == [*inside, *hole]
        kept = np.concatenate([run.train, run.validation])
        assert sorted([*kept, *inside, *hole]) == list(range(100))
        assert (len(inside), len(hole), len(run.train)) == (10, 30, 54)
        values = X[:, run.feature]
        assert (np.diff(values[hole]) >= 0).all()
        below, above = (values[kept] < values[hole[0]]).sum(), (values[kept] > values[hole[-1]]).sum()
        assert (below, above) == (30, 30)
        assert sorted(run.seen) == sorted([*kept, *hole])


@pytest.mark.parametrize(("kind", "first"), [("standard", 1), ("gap", 0)])
def test_but_for_the_first_standard_trial_the_rows_are_those_of_the_benchmark_s_splits(kind, first):
    X = small_table(rows=100).X[:, :2]
    theirs = make_splits(X, kind, protocol="paper", trials=2)
    for number in range(first, 2):
        ours, split = paper_trials(X, kind, range(2))[number], theirs[number]
        assert sorted([*ours.train, *ours.validation]) == split.train.tolist()
        assert {name: sorted(rows) for name, rows in ours.test.items()} == {
            name: rows.tolist() for name, rows in split.test.items()
        }


def test_boston_loses_its_first_row_and_no_other_set_does():
    boston, energy = small_table("boston"), small_table("energy")
    assert len(authors_table(boston)[0]) == 89
    assert authors_table(boston)[1][0].tolist() == boston.y[1].tolist()
    assert len(authors_table(energy)[0]) == 90


def test_scales_come_from_the_rows_that_are_not_in_the_random_tenth():
    data = small_table(rows=100)
    run = paper_trials(data.X, "gap", [0])[0]
    scaled = standardise(data.X, run.seen).double().numpy()
    np.testing.assert_allclose(scaled[run.seen].mean(0), 0.0, atol=1e-6)
    np.testing.assert_allclose(scaled[run.seen].std(0), [1.0, 1.0, 0.0], atol=1e-6)
    assert abs(scaled[run.train][:, 0].std() - 1.0) > 0.05  # the training rows alone have another spread


def test_weights_start_as_three_networks_of_torch_made_one_after_the_other():
    drawn = starting_weights(torch.Generator().manual_seed(11), n_inputs=4, n_outputs=2, hidden=6)
    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(1))
    network = MLP(4, 2, (6,), "tanh", maps=3)
    with torch.random.fork_rng():
        torch.manual_seed(11)
        nets = [torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2)) for _ in range(3)]
    expected = torch.stack([net(x) for net in nets]).unsqueeze(0)
    torch.testing.assert_close(network(drawn, x.unsqueeze(0)), expected, rtol=1e-5, atol=1e-6)


def test_swapping_swaps_the_prior_s_rate_and_the_kl_weight_of_yacht():
    right, swapped = paper_settings("yacht", "standard", "d-vv"), paper_settings("yacht", "standard", "d-vv-swapped")
    assert (right.prior_rate, right.kl_weight) == (0.018, 0.5)
    assert (swapped.prior_rate, swapped.kl_weight) == (0.5, 0.018)
    gap = paper_settings("yacht", "gap", "d-vv-swapped")
    assert (gap.prior_rate, gap.kl_weight) == (0.05, 0.018)
    assert dataclasses.replace(swapped, prior_rate=0.018, kl_weight=0.5) == right
    with pytest.raises(InputError, match="yacht alone"):
        paper_settings("boston", "standard", "d-vv-swapped")


def test_methods_differ_in_the_terms_they_have():
    for name in PRIOR_RATES:
        vv, dvv, none = (paper_settings(name, "gap", method) for method in ("vv", "d-vv", "vv-no-prior"))
        assert dataclasses.replace(dvv, pseudo_weight=None, placement=vv.placement) == vv
        noise = name == "superconductivity"
        assert dvv.placement == (GaussianNoise() if noise else MixtureDescent.as_run())
        assert (vv.kl_weight, dvv.pseudo_weight) == (0.5, 1.0)  # their tau of 0.5 weighs both terms alike
        assert (none.kl_weight, none.prior_rate, none.pseudo_weight) == (0.0, 0.5, None)
    with pytest.raises(InputError, match="superconductivity_partial"):
        paper_settings("superconductivity_partial", "standard", "vv")


@pytest.mark.parametrize(
    ("rows", "steps", "epochs"),
    [(409, 1, 20_000), (1296, 2, 10_000), (6635, 7, 2850), (7750, 8, 12_500), (5166, 6, 3330), (37_041, 37, 2700)],
)
def test_budgets_are_theirs_cut_to_the_last_check(rows, steps, epochs):
    settings = PaperSettings(0.1)
    assert settings.steps_per_epoch(rows) == steps
    assert settings.max_epochs(rows) == epochs


def tiny_stack(trials: int = 2, rows: int = 90) -> tuple[PaperStack, list[MLP]]:
    data = small_table(rows=rows)
    runs = paper_trials(data.X, "standard", range(trials))
    tables = [(standardise(data.X, run.seen), standardise(data.y, run.seen)) for run in runs]
    starts = [starting_weights(torch.Generator().manual_seed(run.seed), 3, 2, 50) for run in runs]
    stack = PaperStack(
        x=torch.cat([x for x, _ in tables]),
        y=torch.cat([y for _, y in tables]),
        train=[torch.as_tensor(run.train) + rows * place for place, run in enumerate(runs)],
        validation=[torch.as_tensor(run.validation) + rows * place for place, run in enumerate(runs)],
        start={name: torch.cat([start[name] for start in starts]) for name in starts[0]},
        seeds=[run.seed for run in runs],
    )
    return stack, runs


def naive_run(stack: PaperStack, model: int, settings: PaperSettings) -> tuple[list[dict[str, torch.Tensor]], int]:
    """One trial by a plain loop: Adam on the full batch, a look every 10 epochs; the weights at each look."""
    parameters = {
        name: value[model : model + 1].double().clone().requires_grad_() for name, value in stack.start.items()
    }
    x, y = stack.x.double(), stack.y.double()
    optimiser = torch.optim.Adam(parameters.values(), lr=1e-2)
    prior = torch.distributions.Gamma(settings.prior_concentration, settings.prior_rate)
    network = MLP(3, 2, (50,), "tanh", maps=3)

    def terms(rows):
        loc, q = posterior(network, parameters, x[None, rows])
        gamma = torch.distributions.Gamma(q.concentration, q.rate)
        mean_log = torch.digamma(q.concentration) - q.rate.log()
        fit = 0.5 * (mean_log - math.log(2 * math.pi) - gamma.mean * (y[None, rows] - loc) ** 2)
        return fit, torch.distributions.kl_divergence(gamma, prior)

    best, waited, epoch, looks = math.inf, 0, 0, []
    while epoch < settings.max_epochs(len(stack.train[model])):
        for _ in range(10):
            fit, kl = terms(stack.train[model])
            optimiser.zero_grad()
            (-(fit - settings.kl_weight * kl).mean()).backward()
            optimiser.step()
        epoch += 10
        with torch.no_grad():
            fit, kl = terms(stack.validation[model])
            loss = float(-(fit - kl).mean())
        looks.append({name: value.detach().clone() for name, value in parameters.items()})
        waited = 0 if loss < best else waited + 1
        best = min(best, loss)
        if waited >= settings.patience_checks:
            break
    return looks, epoch


def test_a_trial_ends_after_so_many_checks_without_a_better_bound_and_keeps_its_last_weights():
    settings = PaperSettings(0.05, patience_checks=3, most_epochs=1500)
    stack, _ = tiny_stack()
    wide = dataclasses.replace(
        stack,
        x=stack.x.double(),
        y=stack.y.double(),
        start={name: value.double() for name, value in stack.start.items()},
    )
    trained = wide.joint_phase(settings)
    lengths = []
    for model in range(2):
        looks, epochs = naive_run(stack, model, settings)
        lengths.append(epochs)
        away = [max(float((trained[n][model] - look[n][0]).abs().max()) for n in look) for look in looks]
        assert away[-1] < 1e-3  # Adam's 1e-8 sees that their loss is a mean over outputs, ours a sum
        assert min(away[:-1]) > 1e-2  # neither the best look nor the one before
    assert max(lengths) < 1500  # both ended early, so the rule was at work
    assert lengths[0] != lengths[1]


def test_the_second_phase_leaves_the_mean_alone_and_begins_the_precision_anew():
    settings = dataclasses.replace(paper_settings("energy", "standard", "d-vv"), most_epochs=10)
    stack, _ = tiny_stack()
    trained = stack.joint_phase(settings)
    pools = [stack.x[rows] * 3.0 for rows in stack.train]
    second = stack.second_phase(settings, trained, pools)
    elsewhere = stack.second_phase(settings, {name: value * 1.0 for name, value in trained.items()}, pools)
    changed = {name: torch.cat([v[:, :1], v[:, 1:] + 9.0], dim=1) for name, v in trained.items()}
    again = stack.second_phase(settings, changed, pools)
    for name in trained:
        assert torch.equal(second[name][:, 0], trained[name][:, 0])
        assert not torch.equal(second[name][:, 1:], trained[name][:, 1:])
        assert torch.equal(second[name], elsewhere[name])
        assert torch.equal(second[name][:, 1:], again[name][:, 1:])  # what phase one made of them is forgotten


def test_epochs_end_with_a_short_batch_and_hold_every_row_once():
    rows = [torch.arange(0, 25), torch.arange(100, 125)]
    pools = [torch.arange(0, 40), torch.arange(40, 73)]
    generators = [torch.Generator().manual_seed(seed) for seed in (1, 2)]
    draws = EpochSampler(rows, generators, 10, pools).take(6, torch.arange(2))
    assert [draw.rows.shape[1] for draw in draws] == [10, 10, 5, 10, 10, 5]
    for model, first in enumerate((0, 100)):
        for epoch in (draws[:3], draws[3:]):
            assert sorted(torch.cat([draw.rows[model] for draw in epoch]).tolist()) == list(range(first, first + 25))
        assert all(set(draw.pseudo[model].tolist()) <= set(pools[model].tolist()) for draw in draws)
        assert all(len(set(draw.pseudo[model].tolist())) == 10 for draw in draws)
    assert not torch.equal(draws[0].rows[0], draws[3].rows[0])
    alone = EpochSampler(rows[1:], [torch.Generator().manual_seed(2)], 10, pools[1:]).take(6, torch.arange(1))
    assert all(torch.equal(one.rows[0], draw.rows[1]) for one, draw in zip(alone, draws, strict=True))


def test_pseudo_inputs_are_four_pools_per_batch_and_lie_off_the_data():
    points = torch.randn(150, 2, generator=torch.Generator().manual_seed(0))
    settings = PaperSettings(0.1, batch_size=60)
    pool = pseudo_input_pool(points, torch.Generator().manual_seed(3), settings, most_batches=2)
    again = pseudo_input_pool(points, torch.Generator().manual_seed(3), settings, most_batches=2)
    assert torch.equal(pool, again)
    assert len(pool) >= 2 * 4 * 60
    nearest = torch.cdist(pool, points).min(1).values.median()
    among_data = torch.cdist(points, points).fill_diagonal_(math.inf).min(1).values.median()
    assert nearest > 3 * among_data


@pytest.mark.parametrize("placement", [MixtureDescent.as_run(), GaussianNoise(scale=0.5)])
def test_a_pool_is_drawn_batch_by_batch_in_one_order(placement):
    points = torch.randn(100, 3, generator=torch.Generator().manual_seed(1)) * 2.0
    stream = torch.Generator().manual_seed(5)
    order, naive = torch.randperm(100, generator=stream), []
    for batch in (points[order[:30]], points[order[30:60]]):
        if isinstance(placement, MixtureDescent):
            seed = int(torch.randint(2**31, (), generator=stream))
            own = dataclasses.replace(placement, seed=seed).fitted(batch)
            count = 4 * len(own.density.means) * (30 // len(own.density.means) + 1)
        else:
            own, count = GaussianNoise(scale=0.5 * float(points.std())), 4 * 30
        naive.append(own(batch, count, [stream])[0])
    settings = PaperSettings(0.2, batch_size=30, placement=placement)
    pool = pseudo_input_pool(points, torch.Generator().manual_seed(5), settings, most_batches=2)
    assert torch.equal(pool, torch.cat(naive))


def test_a_mixture_that_is_kept_is_that_of_its_batch_and_settings():
    points = torch.randn(100, 3, generator=torch.Generator().manual_seed(1)) * 2.0
    kept: dict = {}
    walks = [
        PaperSettings(0.2, batch_size=30),
        PaperSettings(0.2, batch_size=60),
        PaperSettings(0.2, batch_size=60, placement=dataclasses.replace(MixtureDescent.as_run(), max_rows=20)),
    ]
    for settings in walks:
        fresh = pseudo_input_pool(points, torch.Generator().manual_seed(5), settings, 1)
        assert torch.equal(pseudo_input_pool(points, torch.Generator().manual_seed(5), settings, 1, kept), fresh)
    assert len(kept) == 3


def test_superconductivity_has_noise_of_the_table_s_spread_for_pseudo_inputs():
    settings = paper_settings("superconductivity", "gap", "d-vv")
    assert settings.prior_rate == 0.299
    assert paper_settings("superconductivity", "standard", "vv").prior_rate == 0.17

    corners = torch.tensor([[-2.0, 0.0], [2.0, 0.0]]).repeat(500, 1)  # its columns differ in spread; the noise has one
    pool = pseudo_input_pool(corners, torch.Generator().manual_seed(3), settings, most_batches=1)
    assert pool.shape == (4 * len(corners), 2)
    spread = float(corners.std())
    assert pool[:, 1].std().item() == pytest.approx(spread, rel=0.05)
    assert pool[:, 0].std().item() == pytest.approx(math.hypot(2.0, spread), rel=0.05)
    assert pool.mean(0).abs().max() < 0.2


def test_the_box_is_about_the_mean_and_as_wide_as_range_times_spread():
    x = torch.tensor([[0.0, 10.0], [2.0, 11.0], [7.0, 16.0]]).repeat(4000, 1)
    points = box_points(x, torch.Generator().manual_seed(0)).double().numpy()
    half = np.ptp(x.numpy(), axis=0) * x.numpy().std(0, ddof=1)
    centre = x.numpy().mean(0)
    assert points.shape == x.shape
    assert (np.abs(points - centre) <= half * 1.0001).all()
    np.testing.assert_allclose(np.abs(points - centre).max(0), half, rtol=2e-3)
    np.testing.assert_allclose(points.std(0), half / np.sqrt(3.0), rtol=0.02)


def test_metrics_are_means_over_points_and_outputs_of_batches_weighed_by_size():
    generator = torch.Generator().manual_seed(4)
    x, y = torch.randn(25, 3, generator=generator), 1.0 + torch.randn(25, 2, generator=generator)
    prior = Gamma(torch.tensor(1.5), torch.tensor(0.3))

    def predict(rows):
        loc = rows[:, :2] * 0.7
        return loc, Gamma(1.3 + rows[:, 1:].square(), 0.2 + rows[:, :2].abs())

    found = measure(predict, x, y, prior, 10, torch.Generator().manual_seed(0))
    assert set(found) == METRICS
    loc, q = predict(x)
    alpha, beta = q.concentration.double(), q.rate.double()
    squares = (y - loc).double() ** 2
    fit = 0.5 * (torch.digamma(alpha) - beta.log() - math.log(2 * math.pi) - alpha / beta * squares)
    kl = torch.distributions.kl_divergence(torch.distributions.Gamma(alpha, beta), torch.distributions.Gamma(1.5, 0.3))
    marginal = torch.distributions.StudentT(2 * alpha, loc.double(), (beta / alpha).sqrt()).log_prob(y.double())
    assert found["expected_log_likelihood"] == pytest.approx(float(fit.mean()), rel=1e-5)
    assert found["elbo"] == pytest.approx(float((fit - kl).mean()), rel=1e-5)
    assert found["log_likelihood"] == pytest.approx(float(marginal.mean()), rel=1e-5)
    sizes = (10, 10, 5)
    roots = lambda values: sum(float(part.mean().sqrt()) * len(part) for part in values.split(sizes)) / 25
    assert found["rmse"] == pytest.approx(roots(squares), rel=1e-5)
    assert found["rmse"] != pytest.approx(float(squares.mean().sqrt()), rel=1e-4)  # not the root of the whole mean
    assert found["rmse"] != pytest.approx(roots(squares.sum(1)), rel=1e-2)  # outputs are averaged, not summed
    assert found["rmse_variance"] == pytest.approx(roots((beta / (alpha - 1) - squares) ** 2), rel=1e-5)


def test_an_infinite_variance_counts_as_the_authors_large_number():
    y = torch.zeros(6, 1)
    predict = lambda rows: (torch.zeros(len(rows), 1), Gamma(torch.ones(len(rows), 1), torch.ones(len(rows), 1)))
    prior = Gamma(torch.tensor(1.5), torch.tensor(0.3))
    found = measure(predict, torch.randn(6, 2), y, prior, 4, torch.Generator().manual_seed(0))
    assert found["rmse_variance"] == 1e12
    assert math.isfinite(found["elbo"])


def test_rows_name_trials_regions_and_metrics_and_do_not_depend_on_what_runs_beside_them():
    data = small_table("yacht", outputs=1)
    together = run_paper(data, "gap", ["vv", "d-vv", "d-vv-swapped"], range(2), most_epochs=20)
    alone = run_paper(data, "gap", ["d-vv"], range(2), most_epochs=20)
    values = lambda rows: {(region, metric): value for region, metric, value in rows if metric != "seconds"}
    assert set(alone) == {("d-vv", 0), ("d-vv", 1)}
    for trial in (0, 1):
        own = values(alone["d-vv", trial])
        assert own == values(together["d-vv", trial])
        assert set(own) == {(r, m) for r in ("all", "inside", "hole") for m in METRICS}
        assert [row[:2] for row in alone["d-vv", trial] if row[1] == "seconds"] == [("all", "seconds")]
        rmse = {method: values(together[method, trial])["all", "rmse"] for method in ("vv", "d-vv", "d-vv-swapped")}
        assert rmse["vv"] == rmse["d-vv"]  # one mean for both
        assert rmse["vv"] != rmse["d-vv-swapped"]
        assert values(together["vv", trial]) != own


def test_a_trial_does_not_depend_on_the_trials_beside_it():
    data = small_table()
    one = run_paper(data, "standard", ["vv"], [0], most_epochs=30)["vv", 0]
    three = run_paper(data, "standard", ["vv"], range(3), most_epochs=30)
    of_first = {(region, metric): value for region, metric, value in three["vv", 0]}
    assert len(three) == 3
    for region, metric, value in one:
        if metric != "seconds":
            assert value == pytest.approx(of_first[region, metric], rel=1e-3)
    last = run_paper(data, "standard", ["vv"], [2], most_epochs=30)
    assert list(last) == [("vv", 2)]
    of_last = {(region, metric): value for region, metric, value in three["vv", 2]}
    assert all(
        value == pytest.approx(of_last[region, metric], rel=1e-3)
        for region, metric, value in last["vv", 2]
        if metric != "seconds"
    )


def test_a_trial_has_pseudo_inputs_around_eight_batches_and_each_method_pays_for_its_own(monkeypatch):
    asked = []

    def pool(points, generator, settings, most_batches, densities):
        asked.append((most_batches, densities))
        return pseudo_input_pool(points, generator, settings, most_batches, densities)

    monkeypatch.setattr(paper, "pseudo_input_pool", pool)
    data = small_table("yacht", outputs=1)
    run_paper(data, "standard", ["d-vv", "d-vv-swapped"], [0], most_epochs=1)
    assert asked == [(8, None)] * 2
    run_paper_variants(data, "standard", {"as run": {}, "rate": {"prior_rate": 0.5}}, [0], most_epochs=1)
    assert [most for most, _ in asked[2:]] == [4, 4]
    assert asked[2][1] is asked[3][1]
    assert len(asked[2][1]) == 1


def test_a_kind_the_authors_did_not_run_is_refused():
    with pytest.raises(InputError, match="kind must be one of 'standard', 'gap'"):
        run_paper(small_table(), "tail", ["vv"], [0])
