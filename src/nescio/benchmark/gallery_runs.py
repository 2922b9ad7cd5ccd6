"""A toy problem of two inputs on which the whole idea can be seen: data, density, pseudo-inputs, knowledge, std."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nescio import DissipativeRegressor
from nescio._random import generators
from nescio.benchmark.workshop import Arrays
from nescio.densities import fit_gaussian_mixture
from nescio.pseudo_inputs import FarNoise, GaussianNoise, LevelSet, MixtureDescent, MultiScale, Rejected

__all__ = ["PLACEMENTS", "descent_path", "gallery_map", "moons"]

SIDE = 61  # points of the map along each input
REACH = 6.0
COMPONENTS = 12  # of the density: enough for two arcs, few enough to be smooth
SHOWN = 400  # pseudo-inputs that are drawn
STEPS = 14  # of the descent that the slider shows

PLACEMENTS: dict[str, Any] = {
    "default": Rejected(MultiScale()),
    "descent, as run": MixtureDescent.as_run(),
    "descent, as printed": MixtureDescent(),
    "level set": LevelSet(),
    "Gaussian noise": GaussianNoise(),
    "far noise": FarNoise(),
}
"""Every way to place pseudo-inputs, by the words on the page."""


def moons(n: int = 500, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two arcs of inputs ``(N, 2)`` with a gap between them, and targets ``(N,)`` whose noise grows along the arcs."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0.0, np.pi, n)
    upper = rng.random(n) < 0.5
    arcs = np.where(upper[:, None], np.stack([np.cos(angle), np.sin(angle)], 1),
                    np.stack([1.0 - np.cos(angle), 0.4 - np.sin(angle)], 1))  # fmt: skip
    x = 2.0 * (arcs + 0.09 * rng.standard_normal((n, 2)))
    noise = 0.05 + 0.2 * angle / np.pi
    return x, np.sin(1.5 * x[:, 0]) + 0.5 * x[:, 1] + noise * rng.standard_normal(n)


def gallery_map(name: str, steps: dict[str, Any]) -> Arrays:
    """One placement: its pseudo-inputs, and over a map the std and knowledge of d-VV trained with them.

    Without the anchor and the distance input, so that what is seen is the work of the pseudo-inputs.
    """
    x, y = moons()
    placement = PLACEMENTS[name]
    model = DissipativeRegressor(
        placement=placement, outside_prior="constant", anchor=False, distance_input=False, n_members=1,
        random_state=0, **steps,
    ).fit(x, y)  # fmt: skip
    axis = np.linspace(-REACH, REACH, SIDE)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    rows = torch.as_tensor((x - model.x_shift_) / model.x_scale_, dtype=torch.float32)
    placed = placement(rows, SHOWN, generators(0, "gallery", 1))[0].double().numpy() * model.x_scale_ + model.x_shift_
    mixture = fit_gaussian_mixture(rows.double(), COMPONENTS, "full", bayesian=False, seed=0)
    where = torch.as_tensor((grid - model.x_shift_) / model.x_scale_)
    shape = (SIDE, SIDE)
    return {
        "axis": axis, "x_data": x, "y_data": y, "pseudo_inputs": placed,
        "log_density": (mixture.log_prob(where).numpy() - np.log(model.x_scale_).sum()).reshape(shape),
        "std": model.predict_dist(grid).std.reshape(shape),
        "knowledge": model.knowledge(grid).reshape(shape),
        "level": np.array(float(model.outside_std_[0])),
    }  # fmt: skip


def descent_path() -> Arrays:
    """Points that walk down the log-density of the arcs in unit steps, all of their stations ``(T, K, 2)``."""
    x, _ = moons()
    shift, scale = x.mean(0), x.std(0)
    rows = torch.as_tensor((x - shift) / scale)
    density = fit_gaussian_mixture(rows, COMPONENTS, "full", bayesian=False, seed=0)
    walk = MixtureDescent(steps=1, step_size=0.15, gradient="log_density", normalise=True, tolerance=0.0)
    points = rows[np.random.default_rng(1).permutation(len(rows))[:80]].unsqueeze(0)
    stations = [points]
    for _ in range(STEPS):
        stations.append(walk.descend(density, stations[-1]))
    path = torch.cat(stations).numpy()
    return {
        "x_data": x, "path": path * scale + shift,
        "log_density": density.log_prob(torch.as_tensor(path)).numpy() - np.log(scale).sum(),
    }  # fmt: skip
