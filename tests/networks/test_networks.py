"""Stacks against plain modules, heads against their own definitions, the anchor against its promise."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from nescio._random import generators
from nescio._validation import InputError
from nescio.distributions import Gamma
from nescio.networks import (
    ACTIVATIONS,
    MLP,
    Anchor,
    ConcentrationRateHead,
    ModuleStack,
    VarianceShapeHead,
    make_head,
    mlp,
)
from nescio.networks.mlp import without_inputs
from nescio.networks.side_by_side import SideBySide


def plain_forward(parameters, x, model, which, layers, activation):
    """A naive loop over one model and one map."""
    hidden = x[model]
    for layer in range(layers):
        hidden = hidden @ parameters[f"weight{layer}"][model, which] + parameters[f"bias{layer}"][model, which]
        if layer < layers - 1:
            hidden = activation(hidden)
    return hidden


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_merged_maps_equal_a_naive_loop_over_models_and_maps(activation):
    network = MLP(3, 2, (5, 4), activation, maps=2)
    parameters = {name: value.double() for name, value in network.initialise(generators(1, "t", 3)).items()}
    x = torch.randn(3, 7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    out = network(parameters, x)
    assert out.shape == (3, 2, 7, 2)
    for model in range(3):
        for which in range(2):
            expected = plain_forward(parameters, x, model, which, 3, ACTIVATIONS[activation])
            torch.testing.assert_close(out[model, which], expected, rtol=1e-12, atol=1e-12)


def test_without_inputs_a_network_says_what_it_says_where_they_are_zero():
    network = MLP(3, 2, (5, 4), "tanh", 2)
    parameters = {name: value.double() for name, value in network.initialise(generators(1, "blind", 2)).items()}
    x = torch.randn(2, 7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2)) + 1.0
    sees = torch.tensor([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]], dtype=torch.float64)
    there = network(parameters, x * sees.unsqueeze(1))
    blind = without_inputs(parameters, sees)
    torch.testing.assert_close(network(blind, x), there, rtol=1e-12, atol=0.0)
    assert not torch.allclose(network(parameters, x), there, rtol=1e-3)
    assert not torch.allclose(network(without_inputs(parameters, sees.flip(0)), x), there, rtol=1e-3)


def test_a_model_starts_from_the_same_weights_in_any_stack():
    network = MLP(3, 1, (6,), maps=2)
    alone = network.initialise(generators(5, "t", [2]))
    among = network.initialise(generators(5, "t", 4))
    for name in alone:
        assert torch.equal(alone[name][0], among[name][2])


def test_weights_are_drawn_as_torch_draws_them():
    parameters = MLP(16, 1, (400,)).initialise(generators(0, "t", 1))
    weight = parameters["weight0"]
    assert weight.abs().max() <= 0.25
    assert abs(weight.std().item() - 0.25 / 3**0.5) < 0.003


def test_any_module_gives_the_same_in_a_stack_as_alone():
    factory = lambda: nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4))
    network = ModuleStack(factory, maps=2)
    parameters = network.initialise(generators(3, "t", 3))
    x = torch.randn(3, 5, 3, generator=torch.Generator().manual_seed(1))
    together = network(parameters, x)
    assert together.shape == (3, 2, 5, 2)
    for model in range(3):
        single = {name: value[model : model + 1] for name, value in parameters.items()}
        torch.testing.assert_close(network(single, x[model : model + 1])[0], together[model])
        module = factory()
        module.load_state_dict({name: value[model] for name, value in parameters.items()})
        expected = module(x[model]).view(5, 2, 2).transpose(0, 1)
        torch.testing.assert_close(together[model], expected)


def test_making_modules_leaves_the_global_generator_alone():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    network = ModuleStack(lambda: nn.Linear(2, 2), maps=2)
    first = network.initialise(generators(0, "t", 2))
    assert torch.equal(before, torch.get_rng_state())
    again = ModuleStack(lambda: nn.Linear(2, 2), maps=2).initialise(generators(0, "t", 2))
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_batch_normalisation_trains_one_model_at_a_time():
    network = ModuleStack(lambda: nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)))
    network.initialise(generators(0, "t", 1))
    with pytest.raises(InputError, match="one at a time"):
        network.initialise(generators(0, "t", 2))


def test_a_factory_must_make_modules_of_the_right_width():
    with pytest.raises(InputError, match=r"must return a torch\.nn\.Module; it returned int"):
        ModuleStack(lambda: 3)
    network = ModuleStack(lambda: nn.Linear(2, 3), maps=2)
    with pytest.raises(InputError, match="gives 3 columns where a multiple of 2 are needed"):
        network(network.initialise(generators(0, "t", 1)), torch.zeros(1, 4, 2))


@given(st.floats(-60, 60), st.floats(-60, 60))
@settings(max_examples=60, deadline=None)
def test_heads_give_a_finite_posterior_for_any_raw_value(first, second):
    raw = torch.tensor([first, second]).view(1, 2, 1, 1).requires_grad_()
    for head in (VarianceShapeHead(), ConcentrationRateHead()):
        q = head(raw)
        assert torch.isfinite(q.concentration).all()
        assert q.concentration.item() >= 1.0
        assert 0 < q.rate.item() < float("inf")
        (gradient,) = torch.autograd.grad(q.concentration.sum() + q.rate.log().sum(), raw)
        assert torch.isfinite(gradient).all()


def test_the_default_head_never_has_an_infinite_variance_and_the_papers_can():
    raw = torch.tensor([0.0, -60.0]).view(1, 2, 1, 1)
    q = VarianceShapeHead()(raw)
    assert q.rate / (q.concentration - 1) == pytest.approx(1.0)
    assert ConcentrationRateHead()(raw.flip(1)).concentration.item() == 1.0


@given(st.floats(-12, 4), st.floats(0.3, 12))
@settings(max_examples=60, deadline=None)
def test_raw_values_give_the_variance_and_concentration_asked_for(log_variance, excess):
    variance, concentration = torch.tensor([log_variance]).double().exp(), torch.tensor([1.0 + excess]).double()
    for head in (VarianceShapeHead(), ConcentrationRateHead()):
        raw = torch.stack(head.raw(variance, concentration)).view(1, 2, 1, 1)
        q = head(raw)
        torch.testing.assert_close(q.concentration.flatten(), concentration, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close((q.rate / (q.concentration - 1)).flatten(), variance, rtol=1e-4, atol=1e-9)


def test_an_unknown_head_is_refused_by_name():
    with pytest.raises(InputError, match="head must be one of 'variance_shape', 'concentration_rate'; got 'x'"):
        make_head("x")


def test_the_anchor_is_off_near_the_data_on_far_away_and_monotone_between():
    centres = torch.tensor([[1.0, 2.0], [-3.0, 0.5]])
    anchor = Anchor(centres, start=2.0, full=5.0)
    ray = torch.stack([torch.tensor([1.0, 2.0 + r]) for r in torch.linspace(0, 50, 200)])
    weight = anchor.weight(anchor.distance(ray))
    assert (weight[anchor.distance(ray) <= 2.0] == 0).all()
    assert (weight[anchor.distance(ray) >= 5.0] == 1).all()
    assert (weight.diff() >= 0).all()
    assert anchor.weight(anchor.distance(torch.full((1, 2), 1e8))).item() == 1.0


def test_anchor_distances_agree_with_plain_differences():
    generator = torch.Generator().manual_seed(0)
    centres, x = torch.randn(9, 4, generator=generator) * 3, torch.randn(30, 4, generator=generator) * 6
    expected = (x[:, None] - centres[None]).norm(dim=2).amin(1)
    torch.testing.assert_close(Anchor(centres, 0.0, 1.0).distance(x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("block", [1, 40, 10**6])
def test_distances_of_many_rows_are_those_of_each(block, monkeypatch):
    monkeypatch.setattr("nescio.networks.anchor.BLOCK", block)
    generator = torch.Generator().manual_seed(0)
    centres, x = torch.randn(9, 4, generator=generator) * 3, torch.randn(31, 4, generator=generator) * 6
    anchor = Anchor(centres, 0.0, 1.0)
    torch.testing.assert_close(anchor.distances(x), anchor.distance(x), rtol=1e-6, atol=1e-6)


def test_a_row_that_is_a_centre_is_measured_from_the_others():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(40, 3, generator=generator) * 2 + 5
    x[7] = x[2]  # twins, one of them a centre
    centres = x[:10]
    apart = (x[:, None] - centres[None]).norm(dim=2)
    expected = apart.masked_fill(apart == 0, torch.inf).amin(1)
    anchor = Anchor(centres, 0.0, 1.0)
    found = anchor.distance_to_others(x)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert (found[:10] > 0).all()
    assert (anchor.distance(x)[:10] < 1e-2).all()
    torch.testing.assert_close(found[10:], anchor.distance(x)[10:], rtol=1e-4, atol=1e-4)


def test_where_all_rows_are_one_the_distance_to_others_is_zero():
    x = torch.full((5, 2), 3.0)
    assert (Anchor(x, 0.0, 1.0).distance_to_others(x) == 0).all()


def test_the_distance_is_appended_in_units_of_the_spacing():
    anchor = Anchor(torch.zeros(1, 2), 1.0, 2.0, spacing=0.5)
    x = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
    seen = anchor.append(x, anchor.distance(x))
    torch.testing.assert_close(seen[:, :2], x, rtol=0, atol=0)
    torch.testing.assert_close(seen[:, 2], torch.tensor([0.0, math.log(11.0)]), rtol=1e-6, atol=1e-6)


def test_a_full_anchor_is_exactly_the_prior_and_none_is_exactly_the_posterior():
    q = Gamma(torch.tensor([[2.5, 7.0]]), torch.tensor([[0.3, 11.0]]))
    prior = Gamma(torch.tensor([3.0, 1.5]), torch.tensor([2.0, 0.1]))
    full = Anchor.blend(q, prior, torch.ones(1, 1))
    assert torch.equal(full.concentration[0], prior.concentration)
    assert torch.equal(full.rate[0], prior.rate)
    none = Anchor.blend(q, prior, torch.zeros(1, 1))
    assert torch.equal(none.concentration, q.concentration)
    half = Anchor.blend(q, prior, torch.full((1, 1), 0.5))
    variances = [d.rate / (d.concentration - 1) for d in (q, prior)]
    between = half.rate / (half.concentration - 1)
    assert (between >= torch.minimum(*variances)).all()
    assert (between <= torch.maximum(*variances)).all()


def test_dropout_ends_with_the_training():
    network = ModuleStack(lambda: nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1)))
    parameters, x = network.initialise(generators(0, "t", 2)), torch.ones(2, 4, 3)
    with torch.no_grad():
        assert torch.equal(network(parameters, x), network(parameters, x))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        assert not torch.equal(network(parameters, x), network(parameters, x))


def test_a_gain_widens_the_first_layer_alone():
    plain, wide = (MLP(4, 1, (5, 5), gain=gain).initialise(generators(0, "t", 1)) for gain in (1.0, 3.0))
    torch.testing.assert_close(wide["weight0"], 3.0 * plain["weight0"])
    assert torch.equal(wide["weight1"], plain["weight1"])


@pytest.mark.parametrize("rows", [3, 40])
@pytest.mark.parametrize("hidden", [(6,), (5, 4)])
def test_layers_by_hand_have_the_gradients_of_plain_operations(rows, hidden, monkeypatch):
    monkeypatch.setattr(mlp, "MANY", 400)  # the narrow batch sums its last layer, the wide one multiplies it
    network = MLP(3, 1, hidden, "tanh", maps=2)
    streams = [torch.Generator().manual_seed(seed) for seed in (1, 2)]
    start = {name: value.double() for name, value in network.initialise(streams).items()}
    x = torch.randn(2, rows, 3, generator=torch.Generator().manual_seed(3)).double()

    def plain(parameters):
        inner = x.unsqueeze(1)
        for layer in range(len(hidden) + 1):
            inner = inner @ parameters[f"weight{layer}"] + parameters[f"bias{layer}"]
            inner = torch.tanh(inner) if layer < len(hidden) else inner
        return inner

    found, expected = [], []
    for call, gradients in ((lambda p: network(p, x), found), (plain, expected)):
        leaves = {name: value.clone().requires_grad_() for name, value in start.items()}
        out = call(leaves)
        gradients += [out.detach(), *torch.autograd.grad(out.square().sum(), list(leaves.values()))]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("outputs", "maps"), [(1, 2), (2, 1), (3, 2), (6, 2)])
def test_compiled_layers_are_those_of_a_plain_loop_with_their_gradients(outputs, maps):
    torch.compiler.reset()
    network = MLP(4, outputs, (6, 5), "tanh", maps=maps)
    drawn = network.initialise(generators(3, "weights", 2))
    parameters = {name: value.double().requires_grad_() for name, value in drawn.items()}
    x = torch.randn(2, 7, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = torch.compile(lambda values: network(values, x), backend="aot_eager", fullgraph=True)(parameters)

    def plain(model, which):
        hidden = x[model]
        for layer in range(3):
            hidden = hidden @ parameters[f"weight{layer}"][model, which] + parameters[f"bias{layer}"][model, which]
            hidden = hidden if layer == 2 else torch.tanh(hidden)
        return hidden

    expected = torch.stack([torch.stack([plain(model, which) for which in range(maps)]) for model in range(2)])
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    leaves, weight = list(parameters.values()), torch.arange(found.numel(), dtype=torch.float64).view_as(found)
    for one, other in zip(
        torch.autograd.grad((found * weight).sum(), leaves),
        torch.autograd.grad((expected * weight).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("outputs", [1, 3])
def test_networks_side_by_side_say_the_same_when_compiled(outputs):
    torch.compiler.reset()
    both = SideBySide({"variance": MLP(4, outputs, (6,)), "shape": MLP(4, outputs, (3,), maps=3)})
    drawn = both.initialise(generators(3, "weights", 2))
    parameters = {name: value.double().requires_grad_() for name, value in drawn.items()}
    x = torch.randn(2, 7, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = torch.compile(lambda values: both(values, x), backend="aot_eager", fullgraph=True)(parameters)
    expected, leaves = both(parameters, x), list(parameters.values())
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    weight = torch.arange(found.numel(), dtype=torch.float64).view(found.shape)
    for one, other in zip(
        torch.autograd.grad((found * weight).sum(), leaves),
        torch.autograd.grad((expected * weight).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
