"""The curves behind the paper's small regression figures, as arrays; drawing is done elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from nescio import DissipativeRegressor, NoiseContrastiveRegressor, VariationalVarianceRegressor
from nescio._random import generators
from nescio.benchmark.workshop import Arrays
from nescio.datasets.toy import toy_mean, toy_regression, toy_std, toy_symmetrical, toy_symmetrical_std
from nescio.distributions import Gamma, gamma_kl
from nescio.objectives import toy_prior
from nescio.pseudo_inputs import MixtureDescent, Rejected, UniformIntervals

__all__ = ["ncp_curves", "placement_curves", "prior_curves", "sketch_points"]

NCP_WEIGHTS = (0.01, 0.1, 1.0, 10.0)
SYMMETRICAL_LEVEL = 1.58  # the prior of the authors' figure, at the largest noise of the data
FAR = ((-120.0, -100.0), (170.0, 200.0))  # the interval that the paper's figure draws
RATES = (1e-3, 100.0)  # of the prior, in units of the squared target: it says hardly anything, and much


def ncp_curves(steps: dict[str, Any], weights: Sequence[float] = NCP_WEIGHTS) -> Arrays:
    """Mean and std of noise contrastive priors with each weight, and of d-VV; the error of each mean.

    Paper: fig:mean_regularisation.
    """
    toy = toy_regression(seed=0)
    x = np.linspace(-10.0, 20.0, 301)
    inside = np.linspace(0.0, 10.0, 201)
    found: Arrays = {"x": x, "x_data": toy.x[:, 0], "y_data": toy.y, "weights": np.array(weights)}
    models: dict[str, Any] = {
        f"{weight:g}": NoiseContrastiveRegressor(ncp_weight=weight, random_state=0, **steps) for weight in weights
    }
    models["d-vv"] = DissipativeRegressor(random_state=0, **steps)
    for name, model in models.items():
        model.fit(toy.x, toy.y)
        found[f"mean/{name}"], found[f"std/{name}"] = model.predict(x[:, None], return_std=True)
        error = model.predict(inside[:, None]) - toy_mean(inside)
        found[f"rmse/{name}"] = np.sqrt(np.mean(np.square(error)))
    found["noise"] = np.sqrt(np.mean(np.square(toy_std(inside))))
    return found


def placement_curves(steps: dict[str, Any]) -> Arrays:
    """Std of the posterior without pseudo-inputs, with close ones and with far ones, under one prior at the top noise.

    Paper: fig:pi_placement.  One network, no anchor: what is seen is what the pseudo-inputs alone do.
    """
    toy = toy_symmetrical(seed=0)
    shift, scale = float(toy.x.mean()), float(toy.x.std())
    x = np.linspace(-200.0, 210.0, 1641)
    found: Arrays = {"x": x, "x_data": toy.x[:, 0], "y_data": toy.y, "true_std": toy_symmetrical_std(x)}
    found["level"] = np.array(SYMMETRICAL_LEVEL)
    found["inside"] = np.linspace(0.0, 10.0, 201)
    found["true_inside"] = toy_symmetrical_std(found["inside"])
    common = {"n_members": 1, "random_state": 0, **steps}
    placed = {"close": UniformIntervals().intervals, "far": FAR}
    models: dict[str, Any] = {"no": VariationalVarianceRegressor(**common)}
    for name, intervals in placed.items():
        moved = tuple(((low - shift) / scale, (high - shift) / scale) for low, high in intervals)
        models[name] = DissipativeRegressor(
            placement=UniformIntervals(moved), outside=SYMMETRICAL_LEVEL, outside_prior="constant", anchor=False,
            distance_input=False, **common,
        )  # fmt: skip
        found[f"intervals/{name}"] = np.array(intervals)
    for name, model in models.items():
        model.fit(toy.x, toy.y)
        found[f"std/{name}"] = model.predict_dist(x[:, None]).std
        found[f"inside_std/{name}"] = model.predict_dist(found["inside"][:, None]).std
    return found


def prior_curves() -> Arrays:
    r"""Two priors with one variance, unlike in how much they say: densities, and the best posterior under each.

    Nothing is trained: with a perfect mean and the noise :math:`\sigma^2(x)` the loss is least for
    :math:`q = Gamma(a + 1/2, b + \sigma^2(x)/2)`.

    Paper: fig:gamma_prior.
    """
    x = np.linspace(0.0, 10.0, 201)
    noise = torch.as_tensor(np.square(toy_std(x)))
    spread = float(toy_regression(seed=0).y.std())
    precision = np.geomspace(1e-3, 1e5, 400)
    found: Arrays = {"x": x, "precision": precision, "rates": np.array(RATES), "spread": np.array(spread)}
    found["true_std"] = toy_std(x)
    for number, rate in enumerate(RATES):
        prior = toy_prior(torch.tensor([spread], dtype=torch.float64), rate)
        q = Gamma(prior.concentration + 0.5 + 0.0 * noise, prior.rate + 0.5 * noise)
        density = torch.distributions.Gamma(prior.concentration, prior.rate).log_prob(torch.as_tensor(precision))
        found[f"density/{number}"] = density.exp().numpy() * precision
        found[f"concentration/{number}"] = prior.concentration.numpy()[0]
        found[f"kl/{number}"] = gamma_kl(q, prior).numpy()
        found[f"std/{number}"] = (q.rate / (q.concentration - 1.0)).sqrt().numpy()
    return found


def sketch_points(steps: dict[str, Any]) -> Arrays:
    """Data, the density of their inputs, pseudo-inputs off them, and what d-VV says there.

    Paper: fig:sketch.
    """
    toy = toy_regression(n=150, seed=4)
    model = DissipativeRegressor(random_state=0, **steps).fit(toy.x, toy.y)
    x = np.linspace(-12.0, 22.0, 341)
    prediction = model.predict_dist(x[:, None])
    rows = torch.as_tensor((toy.x - model.x_shift_) / model.x_scale_, dtype=torch.float64)
    walk = MixtureDescent(gradient="log_density", normalise=True, tolerance=0.0, n_components=8).fitted(rows)
    placed = Rejected(walk)(rows, 60, generators(0, "sketch", 1))[0].numpy() * model.x_scale_ + model.x_shift_
    grid = torch.as_tensor((x[:, None] - model.x_shift_) / model.x_scale_, dtype=torch.float64)
    density: Any = walk.density
    return {
        "x": x, "x_data": toy.x[:, 0], "y_data": toy.y, "mean": prediction.mean, "std": prediction.std,
        "density": np.exp(density.log_prob(grid).numpy()) / float(model.x_scale_[0]),
        "pseudo_inputs": placed[:, 0], "level": np.array(float(model.outside_std_[0])),
    }  # fmt: skip
