"""Saved models of images: the same answers again, and files that lie are refused."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
import torch
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack
from torch import nn

import nescio
from nescio import BernoulliVAE, DissipativeVAE, GaussianVAE, VariationalVarianceVAE
from nescio._validation import InputError
from nescio.pseudo_inputs import MultiScale

RNG = np.random.default_rng(0)
IMAGES = (RNG.integers(0, 60, (90, 6, 5)) + 150 * (np.arange(90) % 2)[:, None, None]).astype(np.uint8)
SHORT = {"n_latents": 2, "epochs": 2, "precision_epochs": 2, "batch_size": 32, "device": "cpu", "random_state": 3}
MODELS = {
    "learned": GaussianVAE(**SHORT),
    "shared": GaussianVAE(**SHORT, variance="shared"),
    "v3ae": VariationalVarianceVAE(**SHORT, prior="pixel"),
    "d-v3ae": DissipativeVAE(**SHORT, n_pseudo_inputs=100, placement=MultiScale(1.0, 4.0)),
    "convolutional": DissipativeVAE(**SHORT, n_pseudo_inputs=100, encoder="convolutional", decoder="convolutional"),
    "entropy": BernoulliVAE(**SHORT, entropy=True, n_pseudo_inputs=100),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Each model, fitted, and where it was saved."""
    found = {}
    for name, model in MODELS.items():
        path = tmp_path_factory.mktemp("models") / f"{name}.nescio"
        nescio.save(model.fit(IMAGES), path)
        found[name] = model, path
    return found


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_gives_the_same_answers_to_the_bit(saved, name):
    model, path = saved[name]
    loaded = nescio.load(path)
    assert type(loaded) is type(model)
    assert loaded.get_params()["n_latents"] == 2
    np.testing.assert_array_equal(loaded.transform(IMAGES), model.transform(IMAGES))
    np.testing.assert_array_equal(loaded.elbo(IMAGES), model.elbo(IMAGES))
    np.testing.assert_array_equal(loaded.sample(3, seed=1), model.sample(3, seed=1))
    far = 50.0 * np.ones((2, 2))
    np.testing.assert_array_equal(loaded.variance_map(far), model.variance_map(far))
    if hasattr(model, "knowledge"):
        np.testing.assert_array_equal(loaded.knowledge(far), model.knowledge(far))
    np.testing.assert_array_equal(loaded.held_out_, model.held_out_)
    if hasattr(model, "outside_std_"):
        assert loaded.outside_std_ == model.outside_std_


def small(image_shape, width):
    return nn.Sequential(nn.Flatten(), nn.Linear(30, width))


def large(n_latents, image_shape):
    return nn.Sequential(nn.Linear(n_latents, 30), nn.Unflatten(1, tuple(image_shape)))


def test_networks_of_your_own_are_given_back(tmp_path):
    model = VariationalVarianceVAE(**SHORT, encoder=small, decoder=large).fit(IMAGES)
    nescio.save(model, tmp_path / "m")
    with pytest.raises(InputError, match=r"the encoder is your own code .* load\(path, encoder=...\)"):
        nescio.load(tmp_path / "m")
    again = nescio.load(tmp_path / "m", encoder=small, decoder=large)
    np.testing.assert_array_equal(again.elbo(IMAGES), model.elbo(IMAGES))
    wider = lambda n_latents, image_shape: nn.Sequential(nn.Linear(n_latents, 31), nn.Unflatten(1, (1, 31, 1)))
    with pytest.raises(InputError, match=r"'autoencoder/decoder\.maps\.0\.0\.weight' must be float32 of shape"):
        nescio.load(tmp_path / "m", encoder=small, decoder=wider)


def test_networks_of_another_kind_of_model_are_refused(saved):
    with pytest.raises(InputError, match="takes back encoder and decoder; leave mean_network out of load"):
        nescio.load(saved["shared"][1], mean_network=small)


def test_what_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(InputError, match="this GaussianVAE is not fitted"):
        nescio.save(GaussianVAE(), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def altered(path, target, change):
    """A copy of a file with its manifest and tensors changed, and the checksum made anew."""
    import hashlib

    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        arrays = unpack(archive.read("tensors.safetensors"))
    change(manifest["model"], arrays)
    tensors = pack({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    manifest["tensors_sha256"] = hashlib.sha256(tensors).hexdigest()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.writestr("tensors.safetensors", tensors)
    return target


def double(name):
    def change(model, arrays):
        arrays[name] = 2.0 * arrays[name]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model, arrays: model["params"].update(n_latents=3), "'codes_loc' must be float32 of shape"),
        (lambda model, arrays: model["params"].update(n_latents=10**9), "'codes_loc' must be float32 of shape"),
        (lambda model, arrays: model["params"].update(n_latents="many"), "n_latents must be a whole number"),
        (lambda model, arrays: model["params"].update(encoder="other"), "encoder must be one of"),
        (lambda model, arrays: model["fitted"].update(image_shape=[1, 10**6, 10**6]), "'probe_mean' must be float64"),
        (lambda model, arrays: model["fitted"].update(image_shape=[30]), "must have three sizes"),
        (lambda model, arrays: model["decoder"].update(head="none"), "unexpected tensor"),
        (lambda model, arrays: model["decoder"].update(anchor=None), "unexpected tensor"),
        (lambda model, arrays: model.update(extra=1), "unknown entry"),
        (lambda model, arrays: arrays.pop("precision/offset"), "lacks the tensor 'precision/offset'"),
        (lambda model, arrays: arrays.update(head=-arrays["head"]), "'head' holds a setting beyond its bounds"),
        (lambda model, arrays: arrays.update(anchor_range=arrays["anchor_range"][::-1]), "two ascending distances"),
        (double("outside_rate"), "does not give the answers"),
        (double("precision/offset"), "does not give the answers"),
        (double("autoencoder/decoder.maps.0.0.weight"), "does not give the answers"),
    ],
)
def test_a_file_that_lies_is_refused(saved, tmp_path, change, message):
    path = altered(saved["d-v3ae"][1], tmp_path / "m", change)
    with pytest.raises(InputError, match=message):
        nescio.load(path)


def test_random_damage_is_refused_or_harmless(saved, tmp_path):
    whole = saved["d-v3ae"][1].read_bytes()
    rng = np.random.default_rng(5)
    for _ in range(150):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), rng.integers(1, 6)):
            data[place] = rng.integers(0, 256)
        path = tmp_path / "m"
        path.write_bytes(bytes(data[: rng.integers(1, len(data))]) if rng.random() < 0.3 else bytes(data))
        try:
            loaded = nescio.load(path)
        except InputError:
            continue
        assert np.isfinite(loaded.variance_map(np.zeros((1, 2)))).all()


def test_a_model_moves_between_devices(saved):
    _, path = saved["d-v3ae"]
    assert next(nescio.load(path, device="cpu").autoencoder_.parameters()).device == torch.device("cpu")
