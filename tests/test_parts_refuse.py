"""What the parts of the library refuse, as building blocks of code that is not ours."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest
import torch

import nescio
from nescio import metrics, report
from nescio._validation import InputError
from nescio.distributions import StudentT
from nescio.distributions.pixels import discretised_log_prob
from nescio.networks import MLP
from nescio.networks.branched import BranchedMLP
from nescio.objectives import graded_prior, toy_prior
from nescio.objectives.likelihoods import evidential_surprise, faithful_loss
from nescio.objectives.vae import bernoulli_log_prob, latent_kl, shared_variance_log_prob
from nescio.pseudo_inputs import CodeDescent

COLUMN, ROW = torch.full((3, 1), 0.5), torch.full((3,), 0.5)
ONE_SHAPE = "these tensors must have one shape: {} (3, 1), {} (3,); reshape or expand them first."
TAIL = StudentT(COLUMN + 3.0, COLUMN, COLUMN)


def near(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x[..., 0].abs(), x.abs() + 1.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: metrics.width(COLUMN, ROW), ONE_SHAPE.format("lower", "upper")),
        (lambda: metrics.interval_score(COLUMN, COLUMN, ROW, 0.9), "lower (3, 1), upper (3, 1), y (3,); reshape"),
        (lambda: metrics.interval_score(COLUMN, COLUMN, COLUMN, 90), "level must lie strictly between 0 and 1; got 90"),
        (lambda: faithful_loss(COLUMN, ROW, TAIL), "y (3, 1), loc (3,), scale (3, 1); reshape or expand them first."),
        (lambda: evidential_surprise(COLUMN, COLUMN, COLUMN, ROW), "evidence (3, 1), concentration (3,); reshape"),
        (lambda: latent_kl(COLUMN, ROW), ONE_SHAPE.format("loc", "scale")),
        (lambda: bernoulli_log_prob(COLUMN, ROW), ONE_SHAPE.format("x", "logits")),
        (lambda: shared_variance_log_prob(COLUMN, ROW), ONE_SHAPE.format("x", "loc")),
        (lambda: toy_prior(2.0, rate=0.0), "rate must be a finite number that exceeds 0; got 0.0."),
        (
            lambda: graded_prior(near, ROW.cumsum(0), COLUMN, ROW[:1], 1.0),
            "concentration must be a finite number that exceeds 1 for a finite predictive variance; got 1.0.",
        ),
        (lambda: MLP(2, 1, maps=0), "maps must be a whole number of at least 1; got 0."),
        (lambda: MLP(2, 1, gain=0), "gain must be a finite number that exceeds 0; got 0."),
        (lambda: MLP(2, 1, hidden=50), "hidden must be a list of whole numbers, one for each hidden layer; got 50."),
        (lambda: BranchedMLP(2, 1, maps=0), "maps must be a whole number of at least 1; got 0."),
        (lambda: BranchedMLP(2, 1, watchers=-1), "watchers must be a whole number of at least 0; got -1."),
        (lambda: BranchedMLP(2, 1, hidden=(3, 0)), "hidden must be a whole number of at least 1; got 0."),
        (lambda: BranchedMLP(2, 1, hidden=[]), "hidden must hold 1 or more widths of hidden layers; got []."),
        (lambda: BranchedMLP(2, 1, activation="step"), "; got 'step'."),
        (lambda: discretised_log_prob(TAIL, COLUMN, levels=1), "levels must be a whole number of at least 2; got 1."),
        (
            lambda: CodeDescent().around(COLUMN, COLUMN, 0, torch.Generator()),
            "count must be a whole number of at least 1; got 0.",
        ),
    ],
    ids=range(20),
)
def test_a_part_refuses_what_it_cannot_use(call: Any, words: str):
    with pytest.raises(InputError, match=re.escape(words)):
        call()


def test_the_interval_score_without_its_library_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scoringrules", None)
    with pytest.raises(InputError, match=r"the interval score needs scoringrules: pip install 'nescio\[bench\]'\."):
        metrics.interval_score(COLUMN, COLUMN, COLUMN, 0.9)


@pytest.mark.parametrize("module", [nescio, report])
def test_a_name_that_is_not_there(module):
    with pytest.raises(AttributeError, match=f"module '{re.escape(module.__name__)}' has no attribute 'oracle'"):
        _ = module.oracle
