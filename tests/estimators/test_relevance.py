"""How much the mean feels its inputs, and distances that count them by it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nescio import DissipativeRegressor
from nescio.calibration import error_growth
from nescio.estimators import dissipative, grading
from nescio.estimators.grading import prior_from_blocks
from nescio.estimators.means import Growth, errors_by_distance, find_relevance
from nescio.estimators.problem import Problem
from nescio.estimators.sizes import SMALL

LEVEL = torch.tensor([2.0])
WEIGHT = torch.ones(1, requires_grad=True)


def graded(x, seen, noise):
    """The prior of shape 3 on rows ``x``."""
    return prior_from_blocks(x, seen, noise, LEVEL, 3.0, Problem(x.numpy(), x.numpy(), None, np.ones(1), 0, None))


def test_an_input_is_felt_by_the_slope_of_the_mean_along_it_and_a_flat_one_a_little():
    x = torch.as_tensor(np.random.default_rng(4).normal(size=(60, 3)), dtype=torch.float32)
    slopes = torch.tensor([[3.0, 0.5, 0.0], [0.0, -1.0, 0.0]])  # of two outputs
    found = find_relevance(lambda points, members: (points @ slopes.T).expand(members, -1, -1), x)
    size = np.array([9.0, 1.25, 0.05**2 * (9.0 + 1.25) / 3.0])  # squared; the last is the least that counts
    np.testing.assert_allclose(found, np.sqrt(size / size.mean()), rtol=1e-6)


def test_an_input_that_does_not_vary_counts_as_usual_whatever_the_slope_along_it():
    x = torch.as_tensor(np.random.default_rng(4).normal(size=(60, 3)), dtype=torch.float32)
    x[:, 1] = 0.25
    for slope in (0.0, 40.0):
        slopes = torch.tensor([[3.0], [slope], [1.0]])
        found = find_relevance(lambda points, members, to=slopes: (points @ to).expand(members, -1, -1), x)
        size = np.array([9.0, 5.0, 1.0])  # squared; in the middle the mean of the others
        np.testing.assert_allclose(found, np.sqrt(size / size.mean()), rtol=1e-6)
    torch.testing.assert_close(find_relevance(lambda points, members: points[None], torch.ones(5, 2)), torch.ones(2))


@pytest.mark.parametrize(
    "mean",
    [
        lambda points, members: torch.full((members, len(points), 1), 0.3),  # has no slope
        lambda points, members: WEIGHT.expand(members, len(points), 1),  # has one, but not along the inputs
        lambda points, members: (0.0 * points).sum(-1, keepdim=True).expand(members, -1, -1),  # is flat
        lambda points, members: points.abs().sqrt().sum(-1, keepdim=True).expand(members, -1, -1),  # is too steep at 0
    ],
)
def test_a_mean_without_a_finite_slope_feels_all_inputs_alike(mean):
    x = torch.tensor([[0.0, 1.0], [2.0, 0.0], [0.5, -0.7]])
    torch.testing.assert_close(find_relevance(mean, x), torch.ones(2))


def test_errors_are_told_by_distances_that_the_mean_feels():
    rows, relevance = torch.tensor([[0.0, 0.0], [0.6, 0.0], [0.0, 0.8], [3.0, 3.0]]), torch.tensor([1.4, 0.2])
    errors = [(np.array([1, 2]), torch.tensor([[0.3], [0.4]]))]
    seen = errors_by_distance(rows, torch.ones(4, 1), [np.array([0, 3])], errors, 0, 0, relevance)
    np.testing.assert_allclose(seen.distance, [1.4 * 0.6, 0.2 * 0.8], rtol=1e-6)
    np.testing.assert_allclose(seen.squared_error[:, 0], [0.09, 0.16], rtol=1e-6)
    assert seen.relevance is relevance


def test_the_graded_prior_rises_along_inputs_that_the_mean_feels():
    x, noise, relevance = 0.1 * torch.arange(8.0).reshape(4, 2), torch.full((4, 1), 0.01), torch.tensor([1.4, 0.2])
    seen = Growth(np.arange(4), np.array([0.1, 0.2, 0.6, 0.8]), np.array([[0.01], [0.02], [0.4], [0.5]]), relevance)
    prior = graded(x, seen, noise)
    along, across = (float(prior(x[-1:] + step).rate) for step in 0.4 * torch.eye(2))
    assert along > 5.0 * across
    points = torch.rand(20, 2, generator=torch.Generator().manual_seed(0))
    stretched = graded(x * relevance, seen._replace(relevance=torch.ones(2)), noise)  # the same, in stretched inputs
    torch.testing.assert_close(prior(points).rate, stretched(points * relevance).rate)


@pytest.mark.parametrize(("rows", "relative"), [(SMALL - 1, True), (SMALL, False)])
def test_on_a_small_table_the_growth_is_in_proportion_to_the_noise(rows, relative):
    """Errors held out at one distance: three times the noise, be it 0.01 or 0.04, or 0.05 above either."""
    rng = np.random.default_rng(3)
    x = torch.as_tensor(np.c_[np.arange(rows), np.zeros((rows, 3))], dtype=torch.float32)  # all far from each other
    noise = torch.where(torch.arange(rows) % 2 == 0, 0.01, 0.04).unsqueeze(1)
    variance = noise.numpy() + (2.0 * noise.numpy() if relative else 0.05)
    square = variance * np.square(rng.standard_t(6.0, (rows, 1)) * np.sqrt(4.0 / 6.0))
    prior = graded(x, Growth(np.arange(rows), np.full(rows, 0.4), square, torch.ones(4)), noise)
    for row in (10, 11):
        there = prior(x[row : row + 1] + torch.tensor([0.0, 0.4, 0.0, 0.0]))  # no neighbour is nearer
        near = max(float(noise[row]), 0.8 * float(noise.median()))  # a row vouches up to a distance of 0.5
        expected = 3.0 * near if relative else near + 0.05
        assert float(there.rate / (there.concentration - 1.0)) == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(("rows", "inputs", "small"), [(SMALL - 1, 4, True), (SMALL, 4, False), (SMALL - 1, 3, False)])
def test_a_small_table_measures_distances_by_what_its_mean_has_learned(rows, inputs, small, monkeypatch):
    found = {}

    def prior(x, seen, *others):
        found["relevance"] = seen.relevance
        return prior_from_blocks(x, seen, *others)

    def growth(*arguments, by_precision, **named):
        found["by precision"] = by_precision
        return error_growth(*arguments, by_precision=by_precision, **named)

    monkeypatch.setattr(dissipative, "prior_from_blocks", prior)
    monkeypatch.setattr(grading, "error_growth", growth)
    X = np.random.default_rng(0).normal(size=(rows, inputs))
    settings = {"max_steps": 60, "hidden": (8,), "mean_hidden": (16,), "n_members": 1, "n_folds": 2, "n_blocks": 2}
    DissipativeRegressor(**settings, n_pseudo_inputs=50, random_state=0).fit(X, 2.0 * X[:, 0] - X[:, 2])
    assert found["by precision"] is small
    if small:
        first, second, third, fourth = found["relevance"].tolist()
        assert first > 1.3 * third > 1.3 * 2.0 * max(second, fourth)
    else:
        torch.testing.assert_close(found["relevance"], torch.ones(inputs))


def test_a_module_of_your_own_with_dropout_gives_the_same_fit_again():
    make = lambda inputs, outputs: torch.nn.Sequential(
        torch.nn.Linear(inputs, 8), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(8, outputs)
    )
    X = np.random.default_rng(0).normal(size=(60, 4))
    settings = {"max_steps": 20, "hidden": (8,), "mean_network": make, "n_members": 1, "n_folds": 2, "n_blocks": 2}
    fit = lambda: (
        DissipativeRegressor(**settings, n_pseudo_inputs=50, random_state=0).fit(X, X[:, 0]).predict_dist(3 * X)
    )
    before = torch.get_rng_state()
    np.testing.assert_array_equal(fit().std, fit().std)
    assert torch.equal(before, torch.get_rng_state())
