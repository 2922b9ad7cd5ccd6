"""Protocol *paper*: VV and d-VV as the authors ran them, the trials of a data set and split in one stack.

Everything is in standardised units. Its only purpose is to show that this code reproduces their numbers: their priors
hold information from the test set, and their "log p" is an expected log-likelihood.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nescio.benchmark.paper_settings import PaperSettings, paper_settings
from nescio.benchmark.paper_splits import PaperTrial, authors_table, paper_trials, standardise
from nescio.benchmark.paper_training import PaperStack, posterior, pseudo_input_pool, starting_weights
from nescio.datasets.uci import UCIData
from nescio.densities import Density
from nescio.distributions import Gamma, StudentT, expected_log_prob, gamma_kl
from nescio.networks import MLP, Parameters
from nescio.pseudo_inputs import GaussianNoise

__all__ = ["Rows", "box_points", "measure", "run_paper", "train_and_test"]

Rows = list[tuple[str, str, float]]
"""Region, metric and value."""

LARGEST_VARIANCE_ERROR = 1e12  # what the authors put for an infinite one before they averaged
MOST_BATCHES = 8  # of a trial that have points placed around them; a mixture adds more than 4,000 to the pool


def run_paper(
    data: UCIData, kind: str, methods: Sequence[str], trials: Sequence[int], *, most_epochs: int | None = None
) -> dict[tuple[str, int], Rows]:
    """Train and test methods of the VV family on some trials: rows of region, metric and value by method and trial.

    ``kind`` is standard or gap (trial t is the hole along feature t). Metrics are those of the published tables under
    our names, ``log_likelihood`` (of the Student-t) and ``seconds`` per trial. The joint phase that VV and d-VV share
    is trained once. ``most_epochs`` cuts every phase short, for a quick look.
    """
    X, y = authors_table(data)
    chosen = {name: replace(paper_settings(data.name, kind, name), most_epochs=most_epochs) for name in methods}
    return train_and_test(X, y, paper_trials(X, kind, trials), chosen, MOST_BATCHES)


def train_and_test(
    X: np.ndarray,
    y: np.ndarray,
    trials: list[PaperTrial],
    chosen: Mapping[str, PaperSettings],
    most_batches: int,
    *,
    keep_mixtures: bool = False,
) -> dict[tuple[str, int], Rows]:
    """Train all settings on all trials and test them; a joint phase that some share is trained once.

    Pseudo-inputs are placed around at most ``most_batches`` batches of each trial. Whoever compares placements may have
    their mixtures fitted once too; the seconds of all but the first are then those without the fit.
    """
    densities: list[dict[Any, Density] | None] = [{} if keep_mixtures else None for _ in trials]
    joint: dict[PaperSettings, tuple[Parameters, float]] = {}
    results: dict[tuple[str, int], Rows] = {}
    for name, settings in chosen.items():
        stack, tests = paper_stack(X, y, trials, settings)
        key = replace(settings, pseudo_weight=None, placement=GaussianNoise(), pool=None)  # what the phase depends on
        if key not in joint:
            began = time.perf_counter()
            joint[key] = stack.joint_phase(settings), time.perf_counter() - began
        parameters, seconds = joint[key]
        if settings.pseudo_weight is not None:
            began = time.perf_counter()
            pools = [
                pseudo_input_pool(stack.x[rows], own, settings, most_batches, known)
                for rows, own, known in zip(stack.train, stack.generators("pool"), densities, strict=True)
            ]
            parameters = stack.second_phase(settings, parameters, pools)
            seconds += time.perf_counter() - began
        for model, trial in enumerate(trials):
            share = seconds / len(trials)
            results[name, trial.trial] = tested(stack, parameters, model, tests[model], settings, share)
    return results


def paper_stack(
    X: np.ndarray, y: np.ndarray, trials: list[PaperTrial], settings: PaperSettings
) -> tuple[PaperStack, list[dict[str, tuple[Tensor, Tensor]]]]:
    """The trials side by side, and each one's test rows by region."""
    inputs, targets, starts, tests = [], [], [], []
    for trial in trials:
        inputs.append(standardise(X, trial.seen))
        targets.append(standardise(y, trial.seen))
        own = torch.Generator()
        own.set_state(trial.generator.get_state())
        starts.append(starting_weights(own, X.shape[1], y.shape[1], settings.hidden))
        tests.append({name: (inputs[-1][rows], targets[-1][rows]) for name, rows in trial.test.items()})
    below = [len(X) * place for place in range(len(trials))]
    stack = PaperStack(
        x=torch.cat(inputs),
        y=torch.cat(targets),
        train=[torch.as_tensor(trial.train) + start for trial, start in zip(trials, below, strict=True)],
        validation=[torch.as_tensor(trial.validation) + start for trial, start in zip(trials, below, strict=True)],
        start={name: torch.cat([each[name] for each in starts]) for name in starts[0]},
        seeds=[trial.seed for trial in trials],
    )
    return stack, tests


def tested(
    stack: PaperStack,
    parameters: Parameters,
    model: int,
    tests: dict[str, tuple[Tensor, Tensor]],
    settings: PaperSettings,
    seconds: float,
) -> Rows:
    """All measures of one model of the stack on its test rows."""
    network = MLP(stack.x.shape[1], stack.y.shape[1], (settings.hidden,), settings.activation, maps=3)
    own = {name: value[model : model + 1] for name, value in parameters.items()}
    prior = Gamma(torch.tensor(settings.prior_concentration), torch.tensor(settings.prior_rate))

    def predict(x: Tensor) -> tuple[Tensor, Gamma]:
        loc, q = posterior(network, own, x.unsqueeze(0))
        return loc[0], Gamma(q.concentration[0], q.rate[0])

    (generator,) = stack.generators("test")[model : model + 1]
    found = []
    for region, (x, y) in tests.items():
        values = measure(predict, x, y, prior, settings.batch_size, generator)
        found += [(region, metric, value) for metric, value in values.items()]
    return [*found, ("all", "seconds", seconds)]


def box_points(x: Tensor, generator: torch.Generator) -> Tensor:
    """Uniform points about the mean of a test batch ``(B, D)``; a column's half width is its range times its spread."""
    width = (x.amax(0) - x.amin(0)) * 2.0 * x.std(0)
    return x.mean(0) + (torch.rand(x.shape, generator=generator) - 0.5) * width


def measure(
    predict: Callable[[Tensor], tuple[Tensor, Gamma]],
    x: Tensor,
    y: Tensor,
    prior: Gamma,
    batch_size: int,
    generator: torch.Generator,
) -> dict[str, float]:
    """The published metrics of one model on test rows ``x (N, D)``, ``y (N, P)``; standardised units.

    Each is computed on batches, over points and outputs together, and averaged over the batches by their size, as the
    authors did: an RMSE is a mean of roots. ``predict`` maps ``(B, D)`` to the mean and the posterior, ``(B, P)``.
    """
    totals: dict[str, float] = {}
    for x_batch, y_batch in zip(x.split(batch_size), y.split(batch_size), strict=True):
        with torch.no_grad():
            loc, q = predict(x_batch)
            student = StudentT.from_gamma(loc, q)
            log_likelihood = expected_log_prob(y_batch, loc, q)
            squares = (y_batch - loc).square()
            outside = predict(box_points(x_batch, generator))[1]
            variance_error = (student.variance - squares).double().square().mean().sqrt()
            values = {
                "elbo": (log_likelihood - gamma_kl(q, prior)).mean(),
                "expected_log_likelihood": log_likelihood.mean(),
                "rmse": squares.mean().sqrt(),
                "rmse_variance": variance_error.clamp(max=LARGEST_VARIANCE_ERROR),
                "rmse_sample": (student.sample(generator=generator) - y_batch).square().mean().sqrt(),
                "kl_ood_inside": gamma_kl(outside, prior).mean(),
                "log_likelihood": student.log_prob(y_batch).mean(),
            }
        for name, value in values.items():
            totals[name] = totals.get(name, 0.0) + float(value) * len(x_batch) / len(x)
    return totals
