"""Scores of foreign images against naive loops, what a detector promises, and what it refuses."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score
from sklearn.neighbors import NearestNeighbors

from nescio._validation import InputError
from nescio.generative import detection
from nescio.generative.combination import COMBINATIONS, Copod, Mahalanobis, make_combination
from nescio.generative.detection import (
    NOVELTY,
    SCORES,
    SEVEN,
    NoveltyDetector,
    detection_metrics,
    refit_scores,
)
from nescio.generative.statistics import compressed_bits, image_statistics
from nescio.metrics import aupr

_spec = importlib.util.spec_from_file_location("stand_in", Path(__file__).with_name("stand_in.py"))
stand_in = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(stand_in)

TRAIN, HELD_OUT, TEST = (stand_in.smooth_images(count, seed) for count, seed in ((300, 1), (200, 2), (40, 3)))
FLIPPED = np.ascontiguousarray(TEST[:, ::-1])
NOISE = np.random.default_rng(4).integers(0, 256, TEST.shape, dtype=np.uint8)
MODEL, PLAIN = stand_in.PrecisionModel(TRAIN), stand_in.LinearModel(TRAIN)


@pytest.fixture(scope="module")
def detector():
    return NoveltyDetector().fit(MODEL, HELD_OUT, reference=TRAIN)


def rows_of(images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1) / 255.0


def table_of(images: np.ndarray, names, detector) -> np.ndarray:
    columns = image_statistics(MODEL, images) | detector.scores(images, ["knn_latents", "knn_pixels"])
    return np.stack([columns[name] for name in names], axis=1)


def neighbours(reference: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return NearestNeighbors(n_neighbors=5, algorithm="brute").fit(reference).kneighbors(rows)[0].mean(axis=1)


def test_every_score_is_what_its_name_says(detector):
    found = detector.scores(TEST)
    assert list(found) == list(SCORES) == detector.names_
    statistics, log_p = image_statistics(MODEL, TEST), MODEL.log_prob(TEST)
    seven = table_of(HELD_OUT, SEVEN, detector), table_of(TEST, SEVEN, detector)
    expected = {
        "elbo": -(log_p - 0.5),
        "log_likelihood": -log_p,
        "reconstruction": statistics["residual"],
        "total_variance": statistics["total_variance"],
        "epistemic_variance": statistics["epistemic_variance"],
        "knowledge": -statistics["knowledge"],
        "latent_density": -statistics["code_density"],
        "typicality": np.abs(log_p - MODEL.log_prob(HELD_OUT).mean()),
        "complexity": -log_p / np.log(2) - compressed_bits(TEST),
        "mahalanobis": Mahalanobis(seven[0])(seven[1]),
        "copod": Copod(seven[0])(seven[1]),
        "knn_pixels": neighbours(rows_of(TRAIN), rows_of(TEST)),
        "knn_latents": neighbours(MODEL.encode(TRAIN)[0], MODEL.encode(TEST)[0]),
        "novelty": make_combination("mahalanobis", table_of(HELD_OUT, NOVELTY, detector))(
            table_of(TEST, NOVELTY, detector)
        ),
    }
    assert set(expected) == set(found)
    for name, values in expected.items():
        assert found[name].dtype == np.float64
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("name", ["elbo", "log_likelihood", "reconstruction", "latent_density", "knn_pixels"])
def test_scores_are_larger_for_foreign_images(detector, name):
    inside, outside = (detector.scores(images, [name])[name] for images in (TEST, NOISE))
    assert detection_metrics(inside, outside)["auroc"] > 0.95


@pytest.mark.parametrize("combine", COMBINATIONS)
def test_novelty_finds_flips_noise_and_constant_images_and_spares_the_inside(combine):
    detector = NoveltyDetector(combine=combine).fit(MODEL, HELD_OUT, reference=TRAIN)
    constant = np.broadcast_to(np.linspace(0, 255, 40).astype(np.uint8)[:, None, None], TEST.shape)
    inside = detector.score(TEST)
    for outside in (FLIPPED, NOISE, constant):
        assert detection_metrics(inside, detector.score(outside))["auroc"] > 0.97
    others = detector.score(stand_in.smooth_images(400, 9))  # not those of the fit: a kernel sits on each of these
    alarms = np.mean(inside > np.quantile(others, 0.9))
    assert alarms < 0.1 + 4 * np.sqrt(0.1 * 0.9 / len(TEST))


def test_scores_of_the_default_draw_no_samples_and_fit_nothing():
    model = stand_in.PrecisionModel(TRAIN)
    detector = NoveltyDetector(n_samples=7, seed=3).fit(model, HELD_OUT, reference=TRAIN)
    model.calls.clear()
    detector.score(TEST)
    assert set(model.calls) == {"encode"}
    model.calls.clear()
    detector.scores(TEST, ["complexity", "log_likelihood", "elbo", "typicality"])
    assert model.calls == ["score_samples 7 3", "elbo 1 3"]  # each once, whatever needs it


def test_an_image_scores_the_same_in_any_batch(detector):
    whole, alone = detector.scores(TEST), detector.scores(TEST[5:6])
    for name, values in whole.items():
        assert alone[name][0] == pytest.approx(values[5], rel=1e-4, abs=1e-5), name


def test_a_model_without_a_posterior_has_the_scores_that_it_can_have():
    detector = NoveltyDetector().fit(PLAIN, HELD_OUT)
    assert set(SCORES) - set(detector.names_) == {"knowledge", "epistemic_variance", "knn_pixels"}
    assert not {"knowledge", "log_epistemic_variance", "knn_pixels"} & set(detector.columns_)
    assert list(detector.scores(TEST)) == detector.names_
    with pytest.raises(InputError, match="'knowledge' needs a model with a posterior over its precision"):
        detector.scores(TEST, ["elbo", "knowledge"])
    with pytest.raises(InputError, match="'knn_pixels' needs training images, given to fit as reference"):
        detector.scores(TEST, ["knn_pixels"])


def test_another_choice_of_columns_is_another_score(detector):
    columns = ["log_residual", "knn_pixels"]
    own = NoveltyDetector(columns=columns).fit(MODEL, HELD_OUT, reference=TRAIN)
    expected = make_combination("mahalanobis", table_of(HELD_OUT, columns, detector))
    np.testing.assert_allclose(own.score(TEST), expected(table_of(TEST, columns, detector)), rtol=1e-6)


def test_the_reference_is_a_seeded_sample_in_bytes():
    fits = [NoveltyDetector(max_reference=50, seed=seed).fit(MODEL, HELD_OUT, reference=TRAIN) for seed in (0, 0, 1)]
    assert all(fit.reference_.shape == (50, 36) and fit.reference_.dtype == torch.uint8 for fit in fits)
    assert torch.equal(fits[0].reference_, fits[1].reference_)
    assert not torch.equal(fits[0].reference_, fits[2].reference_)
    known = {row.tobytes() for row in TRAIN.reshape(300, -1)}
    assert all(row.tobytes() in known for row in fits[0].reference_.numpy())
    darker = np.clip((TRAIN - 0.4) / 255.0, 0.0, 1.0)  # floats between two grey values, the upper one nearer
    floats = NoveltyDetector().fit(MODEL, HELD_OUT, reference=darker)
    np.testing.assert_array_equal(floats.reference_.numpy(), TRAIN.reshape(300, -1))


@pytest.mark.parametrize("combine", COMBINATIONS)
@pytest.mark.parametrize("reference", [TRAIN, None])
def test_a_detector_comes_back_from_its_state(combine, reference, tmp_path):
    columns = None if reference is None else ["log_residual", "knn_pixels", "knowledge"]
    detector = NoveltyDetector(combine=combine, columns=columns, k=3, n_samples=9, seed=5)
    detector.fit(MODEL, HELD_OUT, reference=reference)
    np.savez(tmp_path / "state.npz", **detector.state())
    with np.load(tmp_path / "state.npz", allow_pickle=False) as stored:
        state = {name: stored[name] for name in stored.files}
    again = NoveltyDetector.from_state(MODEL, state)
    assert (again.combine, again.k, again.n_samples, again.seed) == (combine, 3, 9, 5)
    assert all(values.dtype in (np.uint8, np.float64) for values in state.values())
    for name, values in detector.scores(TEST).items():
        np.testing.assert_array_equal(again.scores(TEST)[name], values, err_msg=name)
    for name, values in again.state().items():
        np.testing.assert_array_equal(values, state[name])


@pytest.mark.parametrize("fault", ["settings", "table", "columns"])
def test_a_foreign_state_is_refused(detector, fault):
    state = detector.state()
    if fault == "columns":
        state["table"] = state["table"][:, 1:]
    else:
        del state[fault]
    with pytest.raises(InputError, match=r"state must be what NoveltyDetector.state\(\) returned"):
        NoveltyDetector.from_state(MODEL, state)


def test_mistakes_are_told_in_one_sentence(detector):
    with pytest.raises(InputError, match=r"has not been fitted; call fit\(model, images\) first"):
        NoveltyDetector().score(TEST)
    with pytest.raises(InputError, match="has not been fitted"):
        NoveltyDetector().state()
    with pytest.raises(InputError, match="combine must be one of"):
        NoveltyDetector(combine="sum").fit(MODEL, HELD_OUT)
    with pytest.raises(InputError, match="images must be at least 2 held-out images; got 1"):
        NoveltyDetector().fit(MODEL, HELD_OUT[:1])
    with pytest.raises(InputError, match="k must be a whole number of at least 1; got 0"):
        NoveltyDetector(k=0).fit(MODEL, HELD_OUT)
    with pytest.raises(InputError, match=r"columns must be among .*; got 'knn_pixels'"):
        NoveltyDetector(columns=["knn_pixels"]).fit(MODEL, HELD_OUT)
    with pytest.raises(InputError, match=r"names must be one of 'novelty'.*; got 'surprise'"):
        detector.scores(TEST, ["surprise"])


def test_without_a_refit_the_score_is_the_negative_bound():
    inside, outside = refit_scores(MODEL, TEST, NOISE)
    np.testing.assert_allclose(inside, 0.5 - MODEL.log_prob(TEST))
    np.testing.assert_allclose(outside, 0.5 - MODEL.log_prob(NOISE))


def test_a_refit_per_image_scores_both_sets_by_what_the_bound_gains():
    model = stand_in.PrecisionModel(TRAIN)
    inside, outside = refit_scores(model, TEST[:4], NOISE[:3], refit="per-image", n_samples=2, seed=6)
    np.testing.assert_allclose(inside, 0.5 + np.arange(4), rtol=1e-6)
    np.testing.assert_allclose(outside, 0.5 + np.arange(3), rtol=1e-6)
    assert sorted(model.calls) == ["elbo 2 6", "elbo 2 6", "refit_each 3 6", "refit_each 4 6"]


def test_the_transductive_refit_sees_the_outside_alone():
    model = stand_in.PrecisionModel(TRAIN)
    inside, outside = refit_scores(model, TEST, NOISE[:30], refit="transductive", seed=6)
    assert [call for call in model.calls if call.startswith("refit")] == ["refit_encoder 30 6"]
    np.testing.assert_allclose(inside, 0.5 - model.log_prob(TEST))
    np.testing.assert_allclose(outside, 0.5 - 100.0 - model.log_prob(NOISE[:30]))
    with pytest.raises(InputError, match="refit must be one of 'none', 'per-image', 'transductive'; got 'all'"):
        refit_scores(model, TEST, NOISE, refit="all")


def test_metrics_agree_with_counting_pairs_and_thresholds():
    generator = np.random.default_rng(8)
    inside, outside = np.round(generator.normal(0, 1, 60), 1), np.round(generator.normal(1.2, 2, 37), 1)
    found = detection_metrics(inside, outside)
    wins = np.mean([[(b > a) + 0.5 * (a == b) for a in inside] for b in outside])
    assert found["auroc"] == pytest.approx(wins, rel=1e-12)
    thresholds = [t for t in np.unique(np.concatenate([inside, outside])) if np.mean(outside >= t) >= 0.95]
    assert found["fpr95"] == pytest.approx(np.mean(inside >= max(thresholds)))
    precision, reached = 0.0, 0.0
    for t in sorted(set(np.concatenate([inside, outside])), reverse=True):
        recall = np.mean(outside >= t)
        precision += (recall - reached) * (outside >= t).sum() / ((outside >= t).sum() + (inside >= t).sum())
        reached = recall
    assert found["aupr"] == pytest.approx(precision, rel=1e-12)
    labels = np.repeat([0, 1], [60, 37])
    assert found["aupr"] == pytest.approx(average_precision_score(labels, np.concatenate([inside, outside])))


def test_average_precision_takes_the_outside_as_positive_and_allows_infinite_scores():
    inside, outside = np.array([0.0, 1.0, 2.0]), np.array([np.inf])
    assert aupr(inside, outside) == 1.0
    assert aupr(np.zeros(3), np.zeros(1)) == pytest.approx(0.25)
    assert aupr(outside, inside) == pytest.approx((1 / 2 + 2 / 3 + 3 / 4) / 3)
    with pytest.raises(InputError, match="outside_score must be a list of numbers"):
        aupr(inside, np.array([np.nan]))


@pytest.mark.parametrize("name", detection.DIRECTIONS)
def test_the_known_directions_are_right(detector, name):
    inside, outside = (
        table_of(images, [name], detector)[:, 0] * detection.DIRECTIONS[name] for images in (TEST, NOISE)
    )
    assert detection_metrics(inside, outside)["auroc"] > 0.9


def test_what_novelty_is_made_of_can_be_measured(detector):
    assert set(NOVELTY) == set(detector.columns_)
    assert set(detection.DIRECTIONS) <= set(NOVELTY)
    assert set(NOVELTY) | set(SEVEN) <= set(detector.table_)
