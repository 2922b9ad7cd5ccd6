"""The arrays behind the figures: formulas against an optimiser, walks against their steps, small models of images."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nescio.benchmark import gallery_runs, image_figures, toy_figures
from nescio.benchmark.setting_tables import generator_table, image_sources_table, uci_sources_table
from nescio.benchmark.workshop import Unavailable
from nescio.datasets.images import ImageData
from nescio.datasets.toy import toy_mean

QUICK = {"max_steps": 3}


def test_the_best_posterior_under_a_prior_is_the_one_that_an_optimiser_finds():
    found = toy_figures.prior_curves()
    for number, rate in enumerate(found["rates"]):
        shape = float(found[f"concentration/{number}"])
        assert rate / (shape - 1.0) == pytest.approx(float(found["spread"]) ** 2, rel=1e-6)  # both have this variance
        place = 77
        noise = torch.tensor(float(found["true_std"][place]) ** 2, dtype=torch.float64)
        prior = torch.distributions.Gamma(*torch.tensor([shape, float(rate)], dtype=torch.float64))
        raw = torch.zeros(2, dtype=torch.float64, requires_grad=True)
        optimiser = torch.optim.LBFGS([raw], max_iter=300, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

        def loss(prior=prior, noise=noise, raw=raw, optimiser=optimiser):
            optimiser.zero_grad()
            a, b = raw.exp()
            likelihood = 0.5 * (torch.digamma(a) - b.log() - a / b * noise)  # without its constant
            value = torch.distributions.kl_divergence(torch.distributions.Gamma(a, b), prior) - likelihood
            value.backward()
            return value

        optimiser.step(loss)
        concentration, scale = raw.detach().exp().tolist()
        assert concentration == pytest.approx(shape + 0.5, rel=1e-4)
        assert np.sqrt(scale / (concentration - 1.0)) == pytest.approx(float(found[f"std/{number}"][place]), rel=1e-4)


def test_the_error_of_each_mean_is_taken_against_the_truth_inside():
    found = toy_figures.ncp_curves(QUICK, weights=(0.1, 5.0))
    assert {"mean/0.1", "std/5", "mean/d-vv", "rmse/0.1"} <= found.keys()
    inside = (found["x"] >= 0.0) & (found["x"] <= 10.0)
    for name in ("0.1", "d-vv"):
        error = found[f"mean/{name}"][inside] - toy_mean(found["x"][inside])
        assert float(found[f"rmse/{name}"]) == pytest.approx(float(np.sqrt(np.mean(error**2))), rel=0.05)


def test_placements_are_compared_on_one_network_each_and_the_sketch_has_points_off_the_data():
    found = toy_figures.placement_curves(QUICK)
    assert found["std/no"].shape == found["std/close"].shape == found["std/far"].shape == found["x"].shape
    assert found["intervals/close"].tolist() == [[-3.0, 0.5], [10.2, 13.0]]
    sketch = toy_figures.sketch_points(QUICK)
    left = sketch["pseudo_inputs"] < sketch["x_data"].min()
    right = sketch["pseudo_inputs"] > sketch["x_data"].max()
    assert left.any()
    assert right.any()
    assert (left | right).all()
    assert np.trapezoid(sketch["density"], sketch["x"]) == pytest.approx(1.0, abs=0.05)


def test_a_descent_goes_down_by_steps_of_one_length():
    found = gallery_runs.descent_path()
    scale = found["x_data"].std(0)
    lengths = np.linalg.norm(np.diff(found["path"], axis=0) / scale, axis=-1)
    np.testing.assert_allclose(lengths, 0.15, rtol=1e-6)
    assert found["log_density"][-1].mean() < found["log_density"][0].mean() - 5.0


def test_a_map_of_the_gallery_is_the_model_s_own_prediction_in_its_place():
    found = gallery_runs.gallery_map("Gaussian noise", QUICK)
    assert found["std"].shape == found["knowledge"].shape == found["log_density"].shape == (61, 61)
    assert found["pseudo_inputs"].shape == (400, 2)
    column, row = np.unravel_index(np.argmax(found["log_density"].T), (61, 61))  # densest on the data, not mirrored
    spot = found["axis"][[column, row]]
    assert np.linalg.norm(found["x_data"] - spot, axis=1).min() < 0.3


@pytest.fixture
def small_images(monkeypatch):
    """Eight by eight pixels instead of the sets, and hardly any training."""
    rng = np.random.default_rng(0)

    def make(name, quick):
        if name == "lost":
            raise Unavailable("lost")
        level = {"fashion_mnist": 90, "mnist": 200}[name]
        draw = lambda n: np.clip(rng.normal(level, 30, (n, 8, 8)), 0, 255).astype(np.uint8)
        return ImageData(name, draw(120), np.arange(120) % 5, draw(60), np.arange(60) % 5)

    monkeypatch.setattr(image_figures, "images", make)
    monkeypatch.setattr(image_figures, "QUICK", {"epochs": 1, "precision_epochs": 1, "batch_size": 60})
    monkeypatch.setattr(image_figures, "SIDE", 9)
    monkeypatch.setattr(image_figures, "STATIONS", 2)
    image_figures.fitted.cache_clear()
    yield
    image_figures.fitted.cache_clear()


def test_figures_of_images_come_from_one_fit_of_each_model(small_images):
    maps = image_figures.latent_maps(True)
    assert maps["variance/vae"].shape == maps["variance/d-v3ae"].shape == (9, 9)
    assert maps["lattice/vae"].dtype == np.uint8
    paths = image_figures.refit_paths(True)
    assert paths["path/vae"].shape == (image_figures.STATIONS + 1, image_figures.FOLLOWED, 2)
    assert 0.0 <= paths["outside/d-v3ae"].min() <= paths["outside/d-v3ae"].max() <= 1.0
    scores = image_figures.detection_scores("mnist", True)
    assert {f"{rule}/vae/inside" for rule in ("none", "transductive", "per-image", "novelty")} <= scores.keys()
    assert image_figures.fitted.cache_info().misses == 2
    with pytest.raises(Unavailable, match="lost"):
        image_figures.detection_scores("lost", True)


def test_the_entropy_of_an_image_is_at_most_that_of_an_even_one(small_images):
    found = image_figures.entropy_maps(True)
    assert found["entropy/bernoulli"].shape == (9, 9)
    assert found["entropy/bernoulli-entropy"].max() <= np.log(64) + 1e-5


def test_tables_of_settings_show_printed_and_published_counts_apart():
    boston = next(row for row in uci_sources_table().rows if row[0].value == "boston")
    assert (boston[1].value, boston[2].value, len(boston[2].notes)) == ("505 × 13 × 1", "506 × 13 × 1", 1)
    mnist = next(row for row in image_sources_table().rows if row[0].value == "mnist")
    assert mnist[1].value == mnist[2].value == "70,000 × 1 × 28 × 28"
    rows = generator_table("regression").rows
    assert [cell.value for cell in rows[0][1:5]] == ["N", "5", "0.005", "0.4"]
    assert [cell.value for cell in rows[1][2:5]] == ["5", "0.005", "0.4"]
    assert rows[2][3].value == "0.005, as a gate"
    assert [cell.value for cell in generator_table("codes").rows[1][2:5]] == ["10", "0.007, as a gate", "0.4"]
