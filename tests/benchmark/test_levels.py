"""Levels measure what they say: known answers, one tiny run, and records that leave their neighbours alone."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from nescio.benchmark import levels
from nescio.datasets.uci import UCIData
from nescio.distributions import StudentT, StudentTMixture
from nescio.estimators.mean_variance import MeanVarianceRegressor
from nescio.estimators.prediction import Prediction


class Known:
    """Predicts two Gaussians for every row."""

    def predict_dist(self, X):
        loc = torch.tensor([-1.0, 2.0], dtype=torch.float64).view(2, 1, 1).expand(2, len(X), 1)
        return Prediction(StudentTMixture(StudentT(torch.inf, loc, torch.full_like(loc, 0.5))), single_target=True)


def test_the_measures_have_their_known_values():
    y = np.array([-1.2, 0.3, 2.6, 9.0])
    found = levels.measure(Known(), np.zeros((4, 1)), y)
    density = 0.5 * (stats.norm.pdf(y, -1.0, 0.5) + stats.norm.pdf(y, 2.0, 0.5))
    assert found["log_likelihood_raw"] == pytest.approx(np.log(density).mean())
    matched = stats.norm(0.5, np.sqrt(0.25 + 1.5**2))
    assert found["gaussian_log_likelihood_raw"] == pytest.approx(matched.logpdf(y).mean())
    assert found["rmse_raw"] == pytest.approx(np.sqrt(np.square(y - 0.5).mean()))
    assert found["coverage_90"] == 0.75


def made_up(name, root=None):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return UCIData(name, X, np.c_[X.sum(1), 1e6 * X[:, 0]] + rng.normal(size=(60, 2)), ("a", "b"), ("y", "z"))


def test_a_run_has_a_record_for_each_split_and_the_first_target_alone(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(levels, "load_uci", made_up)
    monkeypatch.setattr(
        levels, "make_method", lambda name, seed: MeanVarianceRegressor(max_steps=30, random_state=seed)
    )
    path = tmp_path / "levels.csv"
    for method in ("b", "a", "b"):
        command = ["--methods", method, "--datasets", "one", "--trials", "2", "--csv", str(path)]
        assert levels.main(command) == 0
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["method"], row["trial"]) for row in rows] == [("a", "0"), ("a", "1"), ("b", "0"), ("b", "1")]
    assert all(float(row["rmse_raw"]) < 1e3 for row in rows), "the second target is in millions"
    assert {"commit", "versions", "hardware"} <= rows[0].keys()
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_an_unknown_method_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(levels, "load_uci", made_up)
    assert levels.main(["--methods", "crystal-ball", "--datasets", "one"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_page_shows_the_levels_of_the_records():
    root = Path(__file__).parents[2]
    records = []
    for path in sorted((root / "results").glob("baselines_*.csv")):
        with path.open(newline="") as file:
            records += list(csv.DictReader(file))
    lines = (root / "docs" / "baselines.md").read_text(encoding="utf-8").splitlines()
    shown = [line for line in lines if line.startswith("| ours, `")]
    methods = [line.split("`")[1] for line in shown]
    assert {"mean-variance", "beta-nll", "deep-ensemble", "mc-dropout", "evidential", "faithful"} <= set(methods)
    for line, method in zip(shown, methods, strict=True):
        assert line == levels.page_row(method, records)
