"""Models of images: two phases of which the second leaves the first alone, and a decoder that keeps its level."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.decomposition import PCA
from torch import nn

from nescio._validation import InputError, NumericalError
from nescio.distributions import StudentT
from nescio.generative import BernoulliVAE, DissipativeVAE, GaussianVAE, VariationalVarianceVAE
from nescio.generative.base import Learned
from nescio.generative.dissipative import latent_anchor
from nescio.generative.measures import image_measures, ray_variances
from nescio.generative.priors import distance_prior

SHAPE = (6, 5)


def bars(count: int, seed: int = 0) -> np.ndarray:
    """Pictures ``(N, 6, 5)`` of bytes: a bar of random place and brightness, with grain."""
    rng = np.random.default_rng(seed)
    pictures = rng.normal(30.0, 6.0, size=(count, *SHAPE))
    places = rng.integers(0, SHAPE[0] - 1, size=count)
    bright = rng.uniform(90.0, 220.0, size=count)
    for picture, place, level in zip(pictures, places, bright, strict=True):
        picture[place : place + 2, 1:4] += level
    return pictures.clip(0.0, 255.0).astype(np.uint8)


def small_encoder(image_shape, width):
    """A network of one hidden layer with batch normalisation."""
    pixels = int(np.prod(image_shape))
    return nn.Sequential(nn.Flatten(), nn.Linear(pixels, 24), nn.BatchNorm1d(24), nn.LeakyReLU(), nn.Linear(24, width))


def small_decoder(n_latents, image_shape):
    """Its mirror, without batch normalisation."""
    pixels = int(np.prod(image_shape))
    return nn.Sequential(
        nn.Linear(n_latents, 24), nn.LeakyReLU(), nn.Linear(24, pixels), nn.Unflatten(1, tuple(image_shape))
    )


QUICK = {
    "n_latents": 3,
    "encoder": small_encoder,
    "decoder": small_decoder,
    "epochs": 12,
    "precision_epochs": 8,
    "batch_size": 64,
    "learning_rate": 1e-2,
    "device": "cpu",
    "random_state": 0,
}

TRAIN, TEST = bars(600), bars(80, seed=1)
MODELS = {
    "learned": GaussianVAE(**QUICK, batch_norm=False),
    "shared": GaussianVAE(**QUICK, variance="shared"),
    "fixed": GaussianVAE(**QUICK, variance=0.01),
    "v3ae": VariationalVarianceVAE(**QUICK),
    "d-v3ae": DissipativeVAE(**QUICK, n_pseudo_inputs=500),
    "bernoulli": BernoulliVAE(**QUICK),
    "entropy": BernoulliVAE(**QUICK, entropy=True, n_pseudo_inputs=500),
}


@pytest.fixture(scope="module")
def fitted():
    return {name: clone(model).fit(TRAIN) for name, model in MODELS.items()}


def test_the_second_phase_leaves_encoder_and_mean_as_they_were(fitted):
    weights = fitted["shared"].autoencoder_.state_dict()
    assert any("running_mean" in name for name in weights)
    for name in ("learned", "fixed", "v3ae", "d-v3ae"):
        for key, value in fitted[name].autoencoder_.state_dict().items():
            torch.testing.assert_close(value, weights[key], rtol=0.0, atol=0.0)


def test_entropy_training_leaves_the_encoder_as_it_was_and_moves_the_decoder(fitted):
    before, after = (fitted[name].autoencoder_.state_dict() for name in ("bernoulli", "entropy"))
    for key, value in after.items():
        assert torch.equal(value, before[key]) == (key.startswith("encoder") or "num_batches" in key), key


@pytest.mark.parametrize("name", MODELS)
def test_the_face_of_a_model(fitted, name):
    model = fitted[name]
    z = model.transform(TEST)
    assert z.shape == (80, 3)
    assert model.reconstruct(TEST).shape == (80, *SHAPE)
    assert model.sample(4, seed=1).shape == (4, *SHAPE)
    assert model.variance_map(z).shape == (80,)
    assert np.isfinite(model.elbo(TEST)).all()
    assert np.square(model.reconstruct(TEST) - TEST / 255.0).mean() < 0.5 * (TEST / 255.0).var()
    assert np.abs(model.decode(z).mean.numpy() - model.reconstruct(TEST).reshape(80, -1)).max() < 1e-6


@pytest.mark.parametrize("name", ["shared", "v3ae", "d-v3ae", "entropy"])
def test_same_seed_same_model_and_the_global_generator_is_untouched(fitted, name):
    state = torch.random.get_rng_state()
    again = clone(MODELS[name]).fit(TRAIN)
    assert torch.equal(torch.random.get_rng_state(), state)
    np.testing.assert_array_equal(again.elbo(TEST), fitted[name].elbo(TEST))
    np.testing.assert_array_equal(again.sample(3, seed=5), fitted[name].sample(3, seed=5))
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("name", ["learned", "d-v3ae"])
def test_an_image_does_not_depend_on_its_batch(fitted, name):
    model = fitted[name]
    np.testing.assert_array_equal(model.transform(TEST[:7]), model.transform(TEST)[:7])
    z = model.transform(TEST)
    np.testing.assert_array_equal(model.variance_map(z[:7]), model.variance_map(z)[:7])


@pytest.mark.parametrize("outside", ["pixels", 0.4])
def test_far_away_the_variance_is_the_level_and_inside_it_is_not(outside):
    model = DissipativeVAE(**QUICK, n_pseudo_inputs=500, outside=outside).fit(TRAIN)
    spread = (TRAIN / 255.0).var(0).mean() if outside == "pixels" else 0.16
    assert model.outside_std_**2 == pytest.approx(spread, rel=0.05)
    for radius in (3.0, 1e3, 1e6):
        np.testing.assert_allclose(ray_variances(model, [radius]), model.outside_std_**2, rtol=1e-4)
    assert np.median(model.variance_map(model.transform(TEST))) < 0.3 * spread


def test_without_pseudo_inputs_and_anchor_the_variance_far_away_is_arbitrary(fitted):
    rays = ray_variances(fitted["v3ae"], [3.0])
    assert rays.max() > 5.0 * rays.min()


def test_knowledge_is_nothing_far_away_and_much_at_the_data(fitted):
    model = fitted["d-v3ae"]
    np.testing.assert_allclose(model.knowledge(1e4 * np.ones((2, 3))), 0.0, atol=1e-3)
    assert model.knowledge(model.transform(TEST)).min() > 10.0


def test_aleatoric_and_epistemic_parts_add_up(fitted):
    model = fitted["d-v3ae"]
    z = model.transform(TEST)
    q = model.posterior(z)
    aleatoric = (q.rate / q.concentration).mean(1).numpy()
    np.testing.assert_allclose(aleatoric + model.epistemic_variance(z), model.variance_map(z), rtol=1e-4)


def test_entropy_rises_away_from_the_data(fitted):
    away = 4.0 * fitted["entropy"].radius_ * np.eye(3)
    assert fitted["entropy"].entropy_map(away).mean() > fitted["bernoulli"].entropy_map(away).mean()
    assert fitted["entropy"].entropy_map(away).max() <= np.log(30) + 1e-5


def test_measures_come_from_one_draw_of_codes(fitted):
    model = fitted["d-v3ae"]
    found = image_measures(model, TEST, n_importance=20)
    np.testing.assert_allclose(found["elbo"], model.elbo(TEST).mean(), rtol=1e-5)
    assert found["log_likelihood_truncated"] > found["log_likelihood_expected"] > found["elbo"]
    assert found["log_likelihood"] > found["elbo"]
    assert 0.0 < found["bits_per_dim"] < 8.0
    assert found["rmse_sample"] > found["rmse_mean"]
    assert "bits_per_dim" not in image_measures(fitted["bernoulli"], TEST)


class Logit(nn.Module):
    """Undoes the sigmoid of the mean, for a linear decoder."""

    def forward(self, x):
        return torch.logit(x.clamp(1e-4, 1 - 1e-4))


def linear_model():
    rng = np.random.default_rng(3)
    loadings = np.linalg.qr(rng.normal(size=(8, 2)))[0].T
    codes = rng.normal(size=(4_000, 2)) * [0.2, 0.13]
    x = 0.5 + codes @ loadings + 0.05 * rng.normal(size=(4_000, 8))
    model = GaussianVAE(
        n_latents=2,
        variance="shared",
        encoder=lambda shape, width: nn.Sequential(nn.Flatten(), nn.Linear(8, width)),
        decoder=lambda latents, shape: nn.Sequential(nn.Linear(latents, 8), nn.Unflatten(1, (1, 2, 4)), Logit()),
        epochs=150,
        batch_size=200,
        learning_rate=2e-2,
        device="cpu",
        random_state=0,
    )
    return x.reshape(-1, 2, 4).astype(np.float32).clip(0.0, 1.0), model


@pytest.fixture(scope="module")
def linear():
    x, model = linear_model()
    return x, model.fit(x)


def test_a_linear_autoencoder_is_probabilistic_principal_components(linear):
    x, model = linear
    flat = x.reshape(len(x), -1)
    best = PCA(2).fit(flat).score(flat)
    bound = np.mean([model.elbo(x, seed=seed).mean() for seed in range(5)])
    assert best - 0.05 < bound < best + 0.02
    found = PCA(2).fit(model.reconstruct(x).reshape(len(x), -1)).components_
    wanted = PCA(2).fit(flat).components_
    assert np.linalg.svd(found @ wanted.T)[1].min() > 0.999


def exact_log_prob(model, x):
    """log p(x) of the linear model, a Gaussian."""
    layer = model.autoencoder_.decoder.maps[0][0]
    weight, mean = layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
    covariance = weight @ weight.T + float(model.decoded_.variance) * np.eye(8)
    away = x.reshape(len(x), -1) - mean
    _, log_determinant = np.linalg.slogdet(covariance)
    squared = np.einsum("ni,ij,nj->n", away, np.linalg.inv(covariance), away)
    return -0.5 * (squared + log_determinant + 8 * np.log(2 * np.pi))


def test_importance_sampling_converges_to_the_exact_likelihood(linear):
    x, model = linear
    x = x[:200]
    exact = exact_log_prob(model, x)
    errors = {count: np.abs(model.score_samples(x, n_samples=count) - exact).mean() for count in (4, 64, 1024)}
    assert errors[1024] < errors[64] < errors[4]
    slope = np.log(errors[1024] / errors[64]) / np.log(16.0)
    assert -0.75 < slope < -0.25  # S^(-1/2)
    assert exact.mean() - 0.5 < model.elbo(x, n_samples=64).mean() < exact.mean()


def test_fitting_codes_anew_raises_the_bound_of_each_image_alone(fitted):
    model = fitted["d-v3ae"]
    foreign = TEST.transpose(0, 2, 1).repeat(2, axis=1)[:, :6, :5]
    together = model.refit_each(foreign, steps=20)
    np.testing.assert_allclose(model.refit_each(foreign[:5], steps=20), together[:5], rtol=1e-5)
    assert together.mean() > model.refit_each(foreign, steps=0).mean()
    assert np.isfinite(together).all()


class Own(nn.Module):
    """A module that is no sequence of layers."""

    def __init__(self, inputs, outputs, shape=None):
        super().__init__()
        self.layer, self.shape = nn.Linear(inputs, outputs), shape

    def forward(self, x):
        found = self.layer(x.flatten(1))
        return found if self.shape is None else found.view(-1, *self.shape)


def test_modules_of_any_kind_will_do():
    settings = {**QUICK, "epochs": 2, "precision_epochs": 2}
    settings |= {"encoder": lambda shape, width: Own(30, width), "decoder": lambda n, shape: Own(n, 30, shape)}
    model = DissipativeVAE(**settings, n_pseudo_inputs=100).fit(TRAIN[:100])
    assert np.isfinite(model.elbo(TEST)).all()


def test_training_that_leaves_the_finite_numbers_is_told():
    with pytest.raises(NumericalError, match="lower learning_rate"):
        GaussianVAE(**{**QUICK, "learning_rate": 1e18, "epochs": 5}).fit(TRAIN[:100])


def test_entropy_training_leaves_the_statistics_of_batch_normalisation(fitted):
    settings = {**QUICK, "decoder": "dense", "epochs": 2, "precision_epochs": 2}
    plain = BernoulliVAE(**settings).fit(TRAIN[:100])
    told = BernoulliVAE(**settings, entropy=True, n_pseudo_inputs=100).fit(TRAIN[:100])
    after = told.autoencoder_.state_dict()
    for key, value in plain.autoencoder_.state_dict().items():
        if "running" in key:
            assert torch.equal(value, after[key]), key


def test_a_stray_code_does_not_let_the_anchor_swallow_the_data(fitted):
    model = fitted["d-v3ae"]
    codes = torch.cat([torch.randn(2_000, 2), torch.tensor([[9.0, 0.0], [-9.0, 0.0], [0.0, 9.0]])])
    learned = Learned(model.autoencoder_, torch.zeros(1), (codes, torch.full_like(codes, 1e-3)), None, 0)
    anchor = latent_anchor(learned)
    assert float(anchor.weight(anchor.distance(codes[:2_000])).quantile(0.99)) < 0.05


def test_fitting_the_encoder_anew_moves_nothing_else(fitted):
    model = fitted["v3ae"]
    before = {key: value.clone() for key, value in model.autoencoder_.state_dict().items()}
    foreign = 255 - TEST
    other = model.refit_encoder(foreign, epochs=100)
    assert other.elbo(foreign).mean() > model.elbo(foreign).mean()
    for key, value in other.autoencoder_.state_dict().items():
        assert torch.equal(model.autoencoder_.state_dict()[key], before[key])
        if key.startswith("decoder"):
            assert torch.equal(value, before[key])
    assert isinstance(other.decode(other.transform(TEST)), StudentT)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_latents": 0}, "n_latents must be a whole number of at least 1; got 0"),
        ({"encoder": "deep"}, "encoder must be one of 'auto', 'dense', 'convolutional'; got 'deep'"),
        ({"random_state": "a"}, "random_state must be None, a whole number or a generator of numpy; got 'a'"),
        ({"random_state": 1.5}, "random_state must be None, a whole number or a generator of numpy; got 1.5"),
        ({"outside": "far"}, "outside must be one of 'pixels'; got 'far'"),
        ({"outside": -1.0}, "outside must be"),
        ({"prior": "strong"}, "prior must be one of 'weak'"),
        ({"prior": (2.0, 0.0)}, r"prior must be a name, two positive numbers \(shape, rate\)"),
        ({"prior": ("near", 2.0, 1.0)}, "prior must be a name, two positive numbers"),
        ({"pseudo_weight": 0.0}, "pseudo_weight must be"),
        (
            {"outside_shape": 1.0},
            "outside_shape must be a finite number that exceeds 1 for a finite predictive variance",
        ),
        ({"placement": lambda points, count, streams: points[None, :3, :2]}, "placement must return finite points"),
    ],
)
def test_a_bad_parameter_gets_one_sentence(parameters, message):
    with pytest.raises(InputError, match=message):
        DissipativeVAE(**{**QUICK, "epochs": 1, "precision_epochs": 1, **parameters}).fit(TRAIN[:64])


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("v3ae", "nescio.generative.v3ae.fit_precision"),
        ("d-v3ae", "nescio.generative.dissipative.fit_precision"),
        ("d-v3ae", "nescio.generative.dissipative.latent_anchor"),  # the last that can go wrong
    ],
)
def test_an_interrupted_fit_leaves_the_old_model_whole(fitted, name, place, monkeypatch):
    model, z = deepcopy(fitted[name]), fitted[name].transform(TEST)
    before = set(vars(model))

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(place, interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(epochs=1, precision_epochs=1).fit(255 - TRAIN // 2)
    for ask in ("knowledge", "epistemic_variance", "variance_map"):
        np.testing.assert_array_equal(getattr(model, ask)(z), getattr(fitted[name], ask)(z))
    for number in ("residual_std_", "outside_std_"):
        assert getattr(model, number, None) == getattr(fitted[name], number, None)
    assert set(vars(model)) == before
    fresh = clone(model)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(TRAIN)
    assert not [attribute for attribute in vars(fresh) if attribute.endswith("_")]


@pytest.mark.parametrize("prior", ["residual", "channel", "pixel", "distance", "distance_linear", (3.0, 0.01)])
@pytest.mark.parametrize("batch_norm", [False, True])
def test_every_prior_trains_to_finite_answers(prior, batch_norm):
    settings = {**QUICK, "epochs": 2, "precision_epochs": 2, "decoder": "dense", "batch_norm": batch_norm}
    model = DissipativeVAE(**settings, prior=prior, outside_prior="inside", n_pseudo_inputs=200).fit(TRAIN[:128])
    assert np.isfinite(model.elbo(TEST)).all()
    assert np.isfinite(model.knowledge(model.transform(TEST))).all()


def test_the_distance_prior_is_the_authors_and_its_linear_form_the_paper_s():
    centres = torch.tensor([[0.0, 0.0], [10.0, 0.0]], dtype=torch.float64)
    codes = torch.tensor([[0.0, 0.0], [9.0, 0.0], [0.0, 100.0]], dtype=torch.float64)
    prior = distance_prior(centres, 11.0, 1e-3)(codes)
    middle = np.log(999.0) * 0.3
    shares = 1.0 / (1.0 + np.exp(-(np.array([0.0, 1.0, 100.0]) - middle) / 0.3))
    assert shares[0] == pytest.approx(1e-3)
    np.testing.assert_allclose(prior.rate[:, 0].numpy(), 1e-3 * (1.0 - shares + 1e4 * shares), rtol=1e-10)
    assert torch.equal(prior.concentration, torch.full((3, 1), 11.0, dtype=torch.float64))
    linear = distance_prior(centres, 11.0, 1e-3, linear=True)(codes)
    shares = np.minimum(np.array([0.0, 1.0, 100.0]) / (2.0 * middle), 1.0)
    np.testing.assert_allclose(linear.rate[:, 0].numpy(), 1e-3 * (1.0 - shares + 1e4 * shares), rtol=1e-10)
