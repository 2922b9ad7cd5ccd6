"""The numbers per image against naive loops, and the compressor against a PNG file."""

from __future__ import annotations

import importlib.util
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from nescio._validation import InputError
from nescio.generative.arrays import image_tensor
from nescio.generative.statistics import GREY_VARIANCE, compressed_bits, image_statistics, total_variation

_spec = importlib.util.spec_from_file_location("stand_in", Path(__file__).with_name("stand_in.py"))
stand_in = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(stand_in)

TRAIN, TEST = stand_in.smooth_images(60, 1), stand_in.smooth_images(7, 2)
MODEL = stand_in.PrecisionModel(TRAIN)


def naive_variation(picture: np.ndarray) -> float:
    """Neighbour by neighbour."""
    height, across = picture.shape
    return sum(
        abs(float(picture[i, j]) - float(picture[i + di, j + dj]))
        for i in range(height)
        for j in range(across)
        for di, dj in ((0, 1), (1, 0))
        if i + di < height and j + dj < across
    )


def naive(model, image: np.ndarray) -> dict[str, float]:
    """One image, pixel by pixel, with SciPy's densities."""
    (loc,), (scale,) = (part.astype(float) for part in model.encode(image[None]))
    z = model.encode(image[None])[0]
    decoder = model.decode(z)
    x = image.reshape(-1) / 255.0
    mean, width, df = (part[0].double().numpy() for part in (decoder.loc, decoder.scale, decoder.df))
    codes = [
        np.prod([stats.norm.pdf(loc[i], m[i], s[i]) for i in range(len(loc))])
        for m, s in zip(model.codes_.loc.double().numpy(), model.codes_.scale.double().numpy(), strict=True)
    ]
    pictures = image / 255.0, mean.reshape(image.shape), (x - mean).reshape(image.shape)
    variation, of_mean, of_residual = map(naive_variation, pictures)
    variances = [width[p] ** 2 * df[p] / (df[p] - 2) for p in range(len(x))]
    excess = [width[p] ** 2 * 2 / (df[p] - 2) for p in range(len(x))]
    residual = sum((x[p] - mean[p]) ** 2 for p in range(len(x))) ** 0.5
    return {
        "residual": residual,
        "log_residual": np.log(residual),
        "spread": sum(w**2 for w in width) ** 0.5,
        "log_spread": sum(np.log(w) for w in width),
        "code_norm": sum(m**2 for m in loc) ** 0.5,
        "code_spread": sum(s**2 for s in scale) ** 0.5,
        "log_code_spread": sum(np.log(s) for s in scale),
        "surprise": sum(np.log(1 + (x[p] - mean[p]) ** 2 / width[p] ** 2) for p in range(len(x))),
        "total_variation": variation,
        "mean_variation": of_mean,
        "residual_variation": of_residual,
        "log_likelihood": sum(stats.t.logpdf(x[p], df[p], mean[p], width[p]) for p in range(len(x))),
        "code_divergence": sum(0.5 * (m**2 + s**2 - 1) - np.log(s) for m, s in zip(loc, scale, strict=True)),
        "code_density": np.log(np.mean(codes)),
        "total_variance": np.mean(variances),
        "log_total_variance": np.log(np.mean(variances)),
        "knowledge": 10.0 * np.exp(-0.1 * sum(m**2 for m in loc)),
        "epistemic_variance": np.mean(excess),
        "log_epistemic_variance": np.log(np.mean(excess)),
    }


def test_every_statistic_agrees_with_a_loop_over_pixels():
    found = image_statistics(MODEL, TEST)
    for place, image in enumerate(TEST):
        expected = naive(MODEL, image)
        assert set(found) == set(expected)
        for name, value in expected.items():
            assert found[name][place] == pytest.approx(value, rel=2e-5, abs=2e-5), name


@pytest.mark.parametrize("chunk", [1, 3, 7, 100])
def test_chunks_change_nothing(chunk):
    whole, found = image_statistics(MODEL, TEST), image_statistics(MODEL, TEST, chunk=chunk)
    for name, values in whole.items():
        assert found[name].shape == (len(TEST),)
        assert found[name].dtype == np.float64
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("form", [lambda x: x / np.float32(255), lambda x: torch.as_tensor(x).unsqueeze(1)])
def test_bytes_floats_and_tensors_of_one_image_agree(form):
    whole, found = image_statistics(MODEL, TEST), image_statistics(MODEL, form(TEST))
    for name, values in whole.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-4, atol=1e-5, err_msg=name)


def test_a_gaussian_decoder_has_no_knowledge_and_the_normal_likelihood():
    model = stand_in.LinearModel(TRAIN)
    found = image_statistics(model, TEST)
    assert not {"knowledge", "epistemic_variance", "log_epistemic_variance"} & set(found)
    decoder = model.decode(model.encode(TEST)[0])
    expected = stats.norm.logpdf(TEST.reshape(7, -1) / 255.0, decoder.loc.numpy(), decoder.scale.numpy()).sum(1)
    np.testing.assert_allclose(found["log_likelihood"], expected, rtol=1e-5)
    np.testing.assert_allclose(found["total_variance"], np.square(decoder.scale.numpy()).mean(1), rtol=1e-5)


def test_a_bernoulli_decoder_that_is_sure_keeps_finite_statistics():
    model = stand_in.BernoulliModel(TRAIN)
    model.mean, model.weights = np.round(model.mean), model.weights * 0.0  # probabilities of exactly 0 and 1
    found = image_statistics(model, TEST)
    assert all(np.isfinite(found[name]).all() for name in ("log_spread", "surprise", "spread"))
    np.testing.assert_allclose(found["log_spread"], 0.5 * 36 * np.log(GREY_VARIANCE), rtol=1e-6)


def test_an_infinite_variance_stays_infinite_and_leaves_the_rest_alone():
    model = stand_in.PrecisionModel(TRAIN)
    model.df = lambda z: torch.full((len(z), 1), 0.8)  # no variance, no mean
    found = image_statistics(model, TEST)
    assert np.isinf(found["total_variance"]).all()
    assert np.isinf(found["log_epistemic_variance"]).all()
    finite = ("residual", "log_spread", "surprise", "log_likelihood", "code_density")
    assert all(np.isfinite(found[name]).all() for name in finite)


def test_a_perfect_reconstruction_has_a_finite_logarithm():
    model = stand_in.LinearModel(np.repeat(TEST[:1], 5, axis=0))
    model.mean, model.weights = model.pixels(TEST[:1])[0].double().numpy(), model.weights * 0.0
    found = image_statistics(model, TEST[:1])
    assert found["residual"][0] == 0.0
    assert np.isfinite(found["log_residual"][0])


def test_colour_adds_up_the_variation_of_its_channels():
    images = stand_in.smooth_images(4, 3, size=5, channels=3)
    found = total_variation(image_tensor(images)).numpy()
    channels = [total_variation(image_tensor(images[..., channel])).numpy() for channel in range(3)]
    np.testing.assert_allclose(found, np.sum(channels, axis=0), rtol=1e-12)


@pytest.mark.parametrize("chunk", [0, 2.5])
def test_a_wrong_chunk_is_refused(chunk):
    with pytest.raises(InputError, match="chunk must be a whole number of at least 1"):
        image_statistics(MODEL, TEST, chunk=chunk)


def unfiltered(kind: int, data: bytes, shape: tuple[int, int, int]) -> np.ndarray:
    """Undo a PNG filter pixel by pixel, as its standard says."""
    height, width, channels = shape
    rest = np.frombuffer(data, dtype=np.uint8).reshape(shape)
    image = np.zeros(shape, dtype=int)
    for i in range(height):
        for j in range(width):
            for c in range(channels):
                a = image[i, j - 1, c] if j else 0
                b = image[i - 1, j, c] if i else 0
                d = image[i - 1, j - 1, c] if i and j else 0
                order = sorted([(abs(b - d), 0, a), (abs(a - d), 1, b), (abs(a + b - 2 * d), 2, d)])
                guess = [0, a, b, order[0][2]][kind]
                image[i, j, c] = (int(rest[i, j, c]) + guess) % 256
    return image.astype(np.uint8)


@pytest.mark.parametrize("channels", [0, 3])
def test_the_filters_lose_nothing(channels):
    from nescio.generative.statistics import _filters

    noise = np.random.default_rng(4).integers(0, 256, (4, 5, 6, channels or 1), dtype=np.uint8)
    noise[2:] = noise[2:] // 64 * 64  # few values: many ties between the guesses
    for kind, filtered in enumerate(_filters(noise)):
        for image, packed in zip(noise, filtered, strict=True):
            np.testing.assert_array_equal(unfiltered(kind, packed.tobytes(), image.shape), image)


def test_bits_are_those_of_the_shortest_deflated_stream():
    image = stand_in.smooth_images(1, 5, size=28)[0]
    plain = 8 * len(zlib.compress(image.tobytes(), 9))
    (bits,) = compressed_bits(image[None])
    assert bits < plain  # a smooth image is shorter as differences
    left = np.diff(image.astype(int), axis=1, prepend=0).astype(np.uint8)
    assert bits <= 8 * len(zlib.compress(left.tobytes(), 9))
    assert bits % 8 == 0
    assert bits > 8 * struct.calcsize("I")


def test_noise_costs_all_its_bits_and_a_constant_image_hardly_any():
    generator = np.random.default_rng(6)
    noise = generator.integers(0, 256, (3, 28, 28), dtype=np.uint8)
    constant = np.full((3, 28, 28), 90, dtype=np.uint8)
    smooth = stand_in.smooth_images(3, 7, size=28)
    bits = [compressed_bits(images).mean() for images in (constant, smooth, noise)]
    assert bits[0] < 300
    assert bits[0] < 0.2 * bits[1] < 0.2 * bits[2]
    assert 0.97 * 8 * 784 < bits[2] < 1.05 * 8 * 784
    np.testing.assert_array_equal(compressed_bits(smooth / 255.0), compressed_bits(smooth))
