"""Models of images on the command line: run, resumed, exported, and refused in one sentence."""

from __future__ import annotations

import csv
import hashlib
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from nescio.cli import app


def bars(count, seed):
    """Pictures of a bright bar on a dark ground."""
    rng = np.random.default_rng(seed)
    pictures = rng.integers(10, 40, (count, 8, 7))
    for picture, place in zip(pictures, rng.integers(0, 6, count), strict=True):
        picture[place : place + 2, 1:5] += 180
    return pictures.astype(np.uint8)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of data with two small sets."""
    root = tmp_path / "data"
    (root / "images").mkdir(parents=True)
    entries = []
    for name, train, test in (("bars", bars(300, 0), bars(60, 1)), ("dust", bars(0, 0), 255 - bars(60, 2))):
        path = root / "images" / f"{name}.npz"
        np.savez(
            path,
            train_images=train,
            train_labels=np.zeros(len(train), np.uint8),
            test_images=test,
            test_labels=np.zeros(len(test), np.uint8),
        )
        sha = hashlib.sha256(path.read_bytes()).hexdigest()
        entries.append({"name": name, "file": f"images/{name}.npz", "sha256": sha})
    (root / "manifest.json").write_text(json.dumps({"uci": [], "images": entries}))
    monkeypatch.setenv("NESCIO_DATA", str(root))
    return tmp_path


def bench(*words):
    return CliRunner().invoke(app, ["bench", *map(str, words)])


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_models_are_measured_resumed_and_exported(folder):
    store, out = folder / "s.db", folder / "images.csv"
    words = ["images", "--data", "bars", "--methods", "v3ae,d-v3ae,bernoulli", "--latent", 2, "--seeds", 1, "--quick"]
    done = bench(*words, "--store", store, "--csv", out)
    assert done.exit_code == 0, done.output
    assert "3 trials measured" in done.output
    rows = rows_of(out)
    assert set(rows[0]) == {"protocol", "dataset", "method", "latent", "seed", "metric", "value", "provenance"}
    found = {(row["method"], row["metric"]): float(row["value"]) for row in rows}
    assert {row["protocol"] for row in rows} == {"quick"}
    assert {row["latent"] for row in rows} == {"2"}
    for metric in ("elbo", "log_likelihood", "log_likelihood_truncated", "bits_per_dim", "rmse_mean", "rmse_sample"):
        assert np.isfinite(found["d-v3ae", metric])
    assert ("d-v3ae", "overhead_pseudo_inputs") in found
    assert ("bernoulli", "bits_per_dim") not in found
    assert found["d-v3ae", "ray_variance_lowest"] > 0.3 * found["d-v3ae", "outside_variance"]
    assert rows_of(folder / "images_provenance.csv")[0]["commit"]
    again = bench(*words, "--store", store)
    assert "0 trials measured" in again.output
    assert "3 were there before" in again.output


def test_times_may_be_measured_alone_or_left_out(folder):
    store, out = folder / "s.db", folder / "images.csv"
    words = ["images", "--data", "bars", "--methods", "v3ae,d-v3ae", "--latent", 2, "--seeds", 1, "--store", store]
    assert bench(*words, "--quick", "--times", "off", "--csv", out).exit_code == 0
    found = {row["metric"] for row in rows_of(out)}
    assert "elbo" in found
    assert not found & {"seconds_train", "overhead_pseudo_inputs"}
    mixed = bench(*words, "--quick", "--times", "only")
    assert mixed.exit_code == 2
    assert "do not go together" in mixed.output


def test_foreign_images_are_told_apart_by_every_score(folder):
    out = folder / "detection.csv"
    words = ["detect", "--in", "bars", "--out", "dust,noise", "--latent", 2, "--seeds", 1, "--quick"]
    done = bench(*words, "--store", folder / "s.db", "--csv", out)
    assert done.exit_code == 0, done.output
    rows = rows_of(out)
    assert {"inside", "outside", "method", "score", "refit", "seed", "metric", "value"} <= set(rows[0])
    found = {(row["outside"], row["score"], row["metric"]): float(row["value"]) for row in rows}
    assert {row["refit"] for row in rows} == {"none"}
    assert found["dust", "novelty", "auroc"] > 0.99
    assert found["noise", "knn_pixels", "auroc"] > 0.99
    assert {metric for _, _, metric in found} == {"auroc", "aupr", "fpr95"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["images", "--data", "cats"], "name must be one of"),
        (["images", "--data", "bars", "--methods", "gan"], "methods must be among 'vae'"),
        (["images", "--data", "bars", "--seeds", 0], "seeds must be a whole number of at least 1"),
        (["detect", "--in", "bars", "--refit", "twice"], "refit must be among 'none'"),
        (["detect", "--in", "bars", "--jobs", 0], "--jobs must be a whole number of at least 1"),
    ],
)
def test_a_mistake_gets_one_sentence_and_leaves_no_store(folder, words, sentence):
    done = bench(*words, "--store", folder / "s.db")
    assert done.exit_code == 2
    assert sentence in done.output
    assert not (folder / "s.db").exists()
