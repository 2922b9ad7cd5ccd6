"""The loop: a model's result is its own, whoever trains beside it; schedules, stopping, recovery."""

from __future__ import annotations

import math
import shutil

import numpy as np
import pytest
import torch
import torch._dynamo

from nescio._random import generators
from nescio._validation import InputError, NumericalError
from nescio.distributions import Gamma
from nescio.networks import MLP, VarianceShapeHead
from nescio.networks.side_by_side import SideBySide
from nescio.objectives import PointLosses, dissipative_loss, join_priors, joint_dissipative_loss
from nescio.training import Draw, Sampler, Schedule, Table, train
from nescio.training.loop import choose_stepper
from nescio.training.steppers import CompiledStepper, EagerStepper, GraphStepper, per_model

HEFT = torch.tensor([1.0, 3.0, 7.0, 7.0, 7.0])
PRIOR = Gamma(torch.tensor(2.5).double(), torch.tensor(0.7).double())


def problem(
    models,
    *,
    steps=120,
    batch_size=16,
    patience=None,
    keep="best",
    compile=False,
    learning_rate=1e-2,
    final_fraction=0.02,
    weight_decay=0.0,
    outputs=1,
    lengths=(23, 40, 31, 60),
):
    """d-VV on a made-up table in float64; ``models`` names which of four models share the stack."""
    generator = torch.Generator().manual_seed(11)
    x = torch.randn(80, 3, generator=generator, dtype=torch.float64) * 2 + 1
    y = x[:, :outputs].sin() + 0.4 * torch.randn(80, outputs, generator=generator, dtype=torch.float64)
    pools = torch.randn(4, 50, 3, generator=generator, dtype=torch.float64) * 6
    shift = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    rows = [torch.randperm(80, generator=generator)[:length] for length in lengths]
    chosen = torch.tensor(models)
    table = Table(x, y, shift[chosen], 1.0 + shift[chosen].abs(), None, None)
    pool = pools[chosen]
    network, head = MLP(3, outputs, (6,), maps=2), VarianceShapeHead()
    if outputs > 1:
        network = SideBySide({"variance": MLP(3, outputs, (6,)), "shape": MLP(3, outputs, (4,))})

    def losses(parameters, draw: Draw):
        inputs, targets = table.gather(draw)
        hats = pool[draw.models.unsqueeze(1), draw.pseudo]
        if outputs > 1:
            q = head(network(parameters, torch.cat([inputs, hats], dim=1)))
            prior = join_priors(PRIOR, PRIOR, targets.shape, (*hats.shape[:2], outputs))
            return joint_dissipative_loss(targets, torch.zeros_like(targets), q, prior, kl_weight=0.5)
        q, q_hat = head(network(parameters, inputs)), head(network(parameters, hats))
        return dissipative_loss(targets, torch.zeros_like(targets), q, PRIOR, q_hat, PRIOR, kl_weight=0.5)

    stop = torch.arange(60, 80).expand(len(models), 20)

    def criterion(parameters, alive):
        inputs, targets = table.whole(alive, stop[alive])
        return (head(network(parameters, inputs)).rate.log() - targets).square().mean((1, 2))

    streams = generators(3, "loop", models)
    start = {name: value.double() for name, value in network.initialise(streams).items()}
    sampler = Sampler([rows[m] for m in models], streams, batch_size, pool_size=50)
    schedule = Schedule(
        steps, batch_size, learning_rate, final_fraction, weight_decay, check_every=10, patience=patience, keep=keep
    )
    return train(start, losses, sampler, schedule, criterion=criterion, compile=compile)


@pytest.mark.parametrize("patience", [None, 20])
def test_a_models_result_does_not_depend_on_who_shares_its_stack(patience):
    together = problem([0, 1, 2, 3], patience=patience)
    for model in range(4):
        alone = problem([model], patience=patience)
        assert int(alone.steps[0]) == int(together.steps[model])
        for name, value in alone.parameters.items():
            torch.testing.assert_close(value[0], together.parameters[name][model], rtol=1e-9, atol=1e-11)


def test_a_mean_over_the_stack_would_not_pass_the_same_comparison():
    losses = PointLosses(torch.rand(3, 5), torch.rand(3, 4), torch.rand(3))
    each = per_model(losses, None)
    alone = per_model(PointLosses(losses.inside[:1], losses.outside[:1], losses.penalty[:1]), None)
    torch.testing.assert_close(each[:1], alone)
    assert not torch.allclose(each.mean(), alone)


def test_padding_and_weights_average_only_what_counts():
    inside = torch.tensor([[1.0, 2.0, 50.0], [3.0, 4.0, 5.0]])
    sampler = Sampler([torch.tensor([0, 1]), torch.tensor([2, 3, 4])], generators(0, "s", 2), 3, sample_weight=HEFT)
    weights = sampler.take(1, torch.arange(2))[0].weights
    torch.testing.assert_close(weights, torch.tensor([[0.25, 0.75, 0.0], [1 / 3, 1 / 3, 1 / 3]]))
    torch.testing.assert_close(per_model(PointLosses(inside), weights), torch.tensor([7.0 / 4.0, 4.0]))


def test_models_that_no_longer_improve_leave_and_keep_their_best_weights():
    models, constant = [0, 1, 2, 3], {"final_fraction": 1.0}  # so that a shorter run takes the same steps
    long, short = (problem(models, steps=400, patience=patience, **constant) for patience in (None, 30))
    stopped = short.steps < long.steps
    assert stopped.any()
    assert (short.criterion[stopped] > long.criterion[stopped]).all(), "what came after the stop was not looked at"
    for model in models:
        cut = problem([model], steps=int(short.steps[model]), keep="last", **constant)
        for name, value in short.parameters.items():
            torch.testing.assert_close(value[model], cut.parameters[name][0], rtol=1e-9, atol=1e-11)


def test_the_last_weights_are_kept_where_that_is_asked_for():
    best, last = problem([0, 1], steps=200), problem([0, 1], steps=200, keep="last")
    torch.testing.assert_close(best.criterion, last.criterion)
    assert any(not torch.equal(best.parameters[name], last.parameters[name]) for name in best.parameters)


def test_every_row_is_seen_once_an_epoch_and_small_tables_whole():
    rows = [torch.arange(100, 110), torch.arange(200, 203)]
    sampler = Sampler(rows, generators(0, "s", 2), 4, pool_size=6)
    draws = sampler.take(5, torch.arange(2))
    first = torch.cat([draw.rows[0] for draw in draws])
    assert sorted(first[:10].tolist()) == list(range(100, 110))
    assert sorted(first[10:].tolist()) == list(range(100, 110))
    for draw in draws:
        assert draw.rows[1, :3].tolist() == [200, 201, 202]
        torch.testing.assert_close(draw.weights, torch.tensor([[1 / 4] * 4, [1 / 3, 1 / 3, 1 / 3, 0.0]]))
        assert draw.pseudo.shape == (2, 4)
        assert int(draw.pseudo.max()) < 6


def test_weights_of_rows_travel_with_them():
    weight = torch.arange(10).float()
    sampler = Sampler([torch.arange(10)], generators(0, "s", 1), 4, sample_weight=weight)
    for draw in sampler.take(3, torch.arange(1)):
        torch.testing.assert_close(draw.weights, weight[draw.rows] / (4 * 4.5))


@pytest.mark.parametrize("heavy", ["one", "some"])
def test_a_row_counts_by_its_weight_however_few_rows_a_batch_holds(heavy):
    stream = torch.Generator().manual_seed(0)
    weight = torch.ones(1200) if heavy == "one" else torch.empty(1200).log_normal_(0.0, 2.0, generator=stream)
    weight[0] = 1000.0 if heavy == "one" else weight[0]
    rows = [torch.arange(1000), torch.arange(600, 800), torch.arange(1200)]  # batches of 256, 200 and 256
    top = torch.zeros(1200).index_fill_(0, weight.topk(10).indices, 1.0)
    draws = Sampler(rows, generators(0, "s", 3), 256, sample_weight=weight).take(375, torch.arange(3))
    found = torch.stack([per_model(PointLosses(top[draw.rows]), draw.weights) for draw in draws]).double().mean(0)
    # 375 batches of 256 are 96 epochs of 1,000 rows and 80 of 1,200: every row came equally often.
    share = torch.stack([(top * weight)[own].double().sum() / weight[own].double().sum() for own in rows])
    torch.testing.assert_close(found, share, rtol=1e-5, atol=0.0)
    among = torch.stack([(draw.weights * top[draw.rows]).sum(1) / draw.weights.sum(1) for draw in draws]).mean(0)
    assert (among[[0, 2]] < share[[0, 2]] - 0.03).all()  # by the weights of the batch at hand


@pytest.mark.parametrize("weighted", [True, False])
def test_the_optimum_is_the_weighted_mean_whoever_shares_the_stack(weighted):
    y = torch.cat([torch.zeros(190), torch.ones(10)]).double()
    weight = torch.where(y > 0, 38.0, 2.0)
    rows = [torch.arange(200), torch.arange(180, 200), torch.arange(150, 195)]
    sampler = Sampler(rows, generators(0, "s", 3), 40, sample_weight=weight if weighted else None)
    losses = lambda parameters, draw: PointLosses(0.5 * (parameters["w"] - y[draw.rows]).square())
    start = {"w": torch.full((3, 1), 0.3, dtype=torch.float64)}
    found = train(
        start, losses, sampler, Schedule(3000, 40, 0.02, final_fraction=1e-4, check_every=3000), compile=False
    )
    optimum = [np.average(y[own], weights=weight[own] if weighted else None) for own in rows]
    np.testing.assert_allclose(found.parameters["w"][:, 0], optimum, atol=0.01)


def test_tables_scale_rows_with_each_models_own_scalers():
    x, y = torch.arange(12.0).view(4, 3), torch.arange(4.0).view(4, 1)
    shift, scale = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 5.0]]), torch.tensor([[2.0, 1.0, 4.0], [1.0, 3.0, 1.0]])
    table = Table(x, y, shift, scale, torch.tensor([[1.0], [2.0]]), torch.tensor([[2.0], [4.0]]))
    inputs, targets = table.whole(torch.tensor([1]), torch.tensor([[3, 0]]))
    torch.testing.assert_close(inputs[0, 0], (x[3] - shift[1]) / scale[1])
    torch.testing.assert_close(targets[0, :, 0], torch.tensor([(3.0 - 2.0) / 4.0, (0.0 - 2.0) / 4.0]))
    own = Table(x, torch.stack([y, y + 100]))
    assert own.whole(torch.tensor([1]), torch.tensor([[2]]))[1].item() == 102.0


def test_the_learning_rate_falls_along_a_cosine():
    schedule = Schedule(100, 8, 0.5, final_fraction=0.1)
    assert schedule.rate(0) == pytest.approx(0.5)
    assert schedule.rate(50) == pytest.approx(0.5 * 0.55)
    assert schedule.rate(100) == pytest.approx(0.05)
    assert Schedule(100, 8, 0.5, final_fraction=1.0).rate(73) == pytest.approx(0.5)


def diverging(nan_from):
    """One model whose loss is NaN from a step on."""
    calls = {"count": 0}

    def losses(parameters, draw):
        calls["count"] += 1
        factor = math.nan if calls["count"] > nan_from else 1.0
        return PointLosses((parameters["w"] - 1.0).square() * factor + draw.rows * 0.0)

    sampler = Sampler([torch.arange(2)], generators(0, "d", 1), 2)
    return train(
        {"w": torch.zeros(1, 1)},
        losses,
        sampler,
        Schedule(60, 2, 0.01, check_every=10),
        criterion=lambda p, m: (p["w"][:, 0] - 1).square(),
    )


def test_a_run_that_never_was_finite_stops_and_names_the_cause():
    with pytest.raises(NumericalError, match=r"within its first 10 steps \(model 0 of 1\): lower learning_rate"):
        diverging(0)


def test_a_run_that_leaves_the_finite_numbers_later_goes_back_to_its_best_weights():
    trained = diverging(25)
    assert torch.isfinite(trained.parameters["w"]).all()
    assert int(trained.steps[0]) == 20


def test_an_interrupt_passes_through():
    def losses(parameters, draw):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train({"w": torch.zeros(1, 1)}, losses, Sampler([torch.arange(2)], generators(0, "d", 1), 2), Schedule(10))


def test_the_way_to_step_follows_the_device_and_the_work_ahead(monkeypatch):
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    assert choose_stepper("auto", cpu, 1_000) is EagerStepper
    assert choose_stepper(False, cpu, 10**9) is EagerStepper
    assert choose_stepper("auto", cuda, 1_000) is GraphStepper
    assert choose_stepper(False, cuda, 1_000) is EagerStepper
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/g++")
    assert choose_stepper("auto", cpu, 10**6) is CompiledStepper
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert choose_stepper("auto", cpu, 10**6) is EagerStepper
    with pytest.raises(InputError, match="needs a C\\+\\+ compiler"):
        choose_stepper(True, cpu, 1)
    with pytest.raises(InputError, match="compile must be True, False or 'auto'; got 'yes'"):
        choose_stepper("yes", cpu, 1)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="compiling needs a C++ compiler")
@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_compiled_steps_equal_eager_ones_and_one_compilation_serves_stacks_of_any_size(monkeypatch):
    monkeypatch.setattr("nescio.training.steppers._SHARED", {})
    with torch._dynamo.config.patch(recompile_limit=1):  # a second compilation of a step would raise
        for models, batch_size, patience, outputs in (
            *(([0, 1, 2], 16, None, 1), ([1, 3], 20, None, 1), ([0, 1, 2, 3], 16, 20, 1)),
            *(([0, 1, 2], 16, None, 2), ([1, 3], 20, None, 3)),
        ):
            # The last look comes after a single step, which is nothing to compile for either.
            settings = {"steps": 121, "batch_size": batch_size, "patience": patience, "outputs": outputs}
            compiled, eager = (problem(models, **settings, compile=compile) for compile in (True, False))
            assert torch.equal(compiled.steps, eager.steps)
            for name, value in eager.parameters.items():
                torch.testing.assert_close(value, compiled.parameters[name], rtol=1e-7, atol=1e-9)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="compiling needs a C++ compiler")
@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_steps_compiled_for_one_fit_equal_eager_ones(monkeypatch):
    monkeypatch.setattr("nescio.training.loop.COMPILE_FROM", 0)
    compiled = problem([0, 2], steps=60, weight_decay=0.1, compile="auto")
    for name, value in problem([0, 2], steps=60, weight_decay=0.1).parameters.items():
        torch.testing.assert_close(value, compiled.parameters[name], rtol=1e-7, atol=1e-9)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a CUDA device")
def test_a_captured_graph_takes_the_same_steps():
    table = torch.randn(64, 2, device="cuda")

    def losses(parameters, draw):
        return PointLosses((table[draw.rows] @ parameters["w"] - 1.0).square().sum(-1))

    start = {"w": torch.zeros(3, 2, 1, device="cuda")}
    results = []
    for compile in (False, "auto"):
        sampler = Sampler([torch.arange(64)] * 3, generators(0, "g", 3), 16, device="cuda")
        results.append(train(start, losses, sampler, Schedule(200, 16, 1e-2), compile=compile))
    torch.testing.assert_close(results[0].parameters["w"], results[1].parameters["w"], rtol=1e-4, atol=1e-5)


def test_within_its_tolerance_the_later_weights_are_kept():
    """A criterion that is lowest at step 20 and a little higher later: tolerance decides which check is the result."""
    results = []
    for tolerance in (0.0, 0.15):
        seen = []

        def criterion(parameters, models, seen=seen):
            seen.append(float(parameters["w"][0, 0].detach()))
            return torch.tensor([[1.0, 0.5, 0.6, 0.62, 0.9][len(seen) - 1]])

        sampler = Sampler([torch.arange(2)], generators(0, "d", 1), 2)
        losses = lambda parameters, draw: PointLosses((parameters["w"] - 5.0).square() + draw.rows * 0.0)
        schedule = Schedule(50, 2, 0.1, check_every=10, tolerance=tolerance)
        trained = train({"w": torch.zeros(1, 1)}, losses, sampler, schedule, criterion=criterion)
        results.append(seen.index(float(trained.parameters["w"][0, 0])))
    assert results == [1, 3]


def test_a_step_that_cannot_be_compiled_runs_eagerly_in_auto_mode(monkeypatch):
    class Broken(CompiledStepper):
        def advance(self, draws, learning_rates):
            raise RuntimeError("no headers")

    monkeypatch.setattr("nescio.training.loop.CompiledStepper", Broken)
    monkeypatch.setattr("nescio.training.loop.COMPILE_FROM", 0)
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/g++")
    with pytest.warns(RuntimeWarning, match="could not be compiled and runs eagerly: no headers"):
        fallen_back = problem([0, 1], steps=30, compile="auto")
    eager = problem([0, 1], steps=30, compile=False)
    for name, value in eager.parameters.items():
        assert torch.equal(value, fallen_back.parameters[name])
    with pytest.raises(RuntimeError, match="no headers"):
        problem([0], steps=10, compile=True)


def test_a_gradient_that_lies_otherwise_in_memory_moves_the_right_elements():
    start = {"w": torch.zeros(1, 2, 3)}
    wanted = torch.tensor([[[1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]]])

    def losses(parameters, draw):
        turned = parameters["w"].transpose(1, 2)
        return PointLosses(turned.mul(wanted.transpose(1, 2).contiguous()).sum((1, 2)).unsqueeze(1))

    stepper = EagerStepper(start, losses)
    stepper.advance([Draw(torch.arange(1), torch.zeros(1, 1, dtype=torch.long), None, None)], [0.1])
    torch.testing.assert_close(stepper.parameters["w"].detach(), -0.1 * wanted, rtol=1e-5, atol=0.0)
