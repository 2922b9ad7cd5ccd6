"""Mean-variance networks, ensembles, dropout, evidential and faithful regression: our laws and scikit-learn's."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import torch
from scipy import optimize, special
from sklearn.utils.estimator_checks import parametrize_with_checks

from nescio import VariationalVarianceRegressor
from nescio._validation import InputError
from nescio.estimators.dropout import MCDropoutRegressor, fit_noise
from nescio.estimators.ensemble import DeepEnsembleRegressor
from nescio.estimators.evidential import EvidentialRegressor
from nescio.estimators.faithful import FaithfulRegressor
from nescio.estimators.mean_variance import MeanVarianceRegressor
from nescio.estimators.together import fit_stack
from nescio.networks import MLP
from nescio.networks.dropout import DropoutMLP, kept
from nescio.networks.side_by_side import SideBySide, as_one, part

QUICK = {"max_steps": 50, "learning_rate": 0.05, "hidden": (8,)}
MODELS = [
    MeanVarianceRegressor(**QUICK, random_state=0),
    MeanVarianceRegressor(**QUICK, beta=0.5, random_state=0),
    DeepEnsembleRegressor(n_members=2, member=MeanVarianceRegressor(**QUICK), random_state=0),
    MCDropoutRegressor(**QUICK, rates=(0.01, 0.1), n_passes=20, random_state=0),
    EvidentialRegressor(**QUICK, random_state=0),
    FaithfulRegressor(**QUICK, tails="student", random_state=0),
    FaithfulRegressor(**QUICK, random_state=0),
]
NAMES = ["mean-variance", "beta-nll", "ensemble", "dropout", "evidential", "faithful-student", "faithful"]
LAWS = pytest.mark.parametrize("model", MODELS, ids=NAMES)

EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": (
        "which rows are held out is drawn row by row: one row of weight two and two equal rows lead to other divisions "
        "of the table, and with them to another fit"
    ),
    "check_sample_weight_equivalence_on_sparse_data": "sparse tables are refused",
}


@parametrize_with_checks(
    [model for model, name in zip(MODELS, NAMES, strict=True) if name not in ("beta-nll", "faithful-student")],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_compatible(estimator, check):
    check(estimator)


def fresh(model, **changes):
    """A copy with fewer steps, for laws that hold after any number of them."""
    copy = pickle.loads(pickle.dumps(model))
    inner = copy.member if isinstance(copy, DeepEnsembleRegressor) else copy
    inner.set_params(max_steps=6)
    return copy.set_params(**changes)


def make_table(n=70, outputs=1, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 8.0, 0.3] + [2.0, -1.0, 4.0]
    y = 5.0 + np.sin(X[:, :1]) * np.arange(1, outputs + 1) + 0.5 * rng.normal(size=(n, outputs))
    return X, y[:, 0] if outputs == 1 else y * 10.0 ** np.arange(outputs)


@LAWS
def test_same_seed_same_model_and_the_global_generators_are_untouched(model):
    X, y = make_table()
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002 (the global one is watched)
    first, second = (fresh(model).fit(X, y).predict(X, return_std=True) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert torch.equal(before[0], torch.get_rng_state())
    assert (before[1] == np.random.get_state()[1]).all()  # noqa: NPY002
    other = fresh(model, random_state=1).fit(X, y)
    assert not np.array_equal(other.predict(X), first[0])


@LAWS
def test_a_rows_answer_does_not_depend_on_its_batch_and_pickling_keeps_it(model):
    X, y = make_table()
    fitted = fresh(model).fit(X, y)
    far = np.concatenate([X, 50.0 * X])
    whole = fitted.predict_dist(far)
    assert np.isfinite(whole.std).all()
    copy = pickle.loads(pickle.dumps(fitted))
    for rows in (slice(0, 1), slice(3, 60), np.array([139, 0, 70])):
        part_of = copy.predict_dist(far[rows])
        for name in ("df", "loc", "scale"):  # of the parts: sums over many of them may round differently
            parts, all_parts = (getattr(one.distribution.components, name) for one in (part_of, whole))
            np.testing.assert_array_equal(parts, all_parts[:, rows])
        np.testing.assert_allclose(part_of.std, whole.std[rows], rtol=1e-14)


@LAWS
@pytest.mark.parametrize("factor", [1e-4, 1e5])
def test_rescaling_the_target_rescales_the_prediction(model, factor):
    X, y = make_table()
    plain = fresh(model).fit(X, y).predict_dist(X)
    scaled = fresh(model).fit(X, factor * y - 3.0 * factor).predict_dist(X)
    np.testing.assert_allclose(scaled.mean, factor * plain.mean - 3.0 * factor, rtol=2e-3, atol=2e-3 * factor)
    np.testing.assert_allclose(scaled.std, factor * plain.std, rtol=5e-3)


@LAWS
def test_a_stack_learns_what_each_table_teaches_alone(model):
    tables = [make_table(seed=2), make_table(90, seed=3)]
    models = [fresh(model, random_state=seed) for seed in (5, 6)]
    for alone, shared, (X, y) in zip(models, fit_stack(models, tables), tables, strict=True):
        alone.fit(X, y)
        np.testing.assert_allclose(shared.predict(X), alone.predict(X), rtol=1e-3)
        np.testing.assert_allclose(shared.predict_dist(X).std, alone.predict_dist(X).std, rtol=1e-2)


@LAWS
def test_several_targets_each_have_their_own_noise(model):
    X, y = make_table(outputs=3)
    prediction = pickle.loads(pickle.dumps(model)).fit(X, y).predict_dist(X)
    assert prediction.mean.shape == prediction.std.shape == (70, 3)
    ratio = np.median(prediction.std, axis=0)
    assert ratio[1] > 3 * ratio[0]
    assert ratio[2] > 3 * ratio[1]


@LAWS
def test_weights_pull_the_mean_and_their_unit_does_not_matter(model):
    X = np.repeat(make_table(40)[0], 10, axis=0)
    y = np.tile(np.eye(10)[0], 40)  # each input has the target 1 once and 0 nine times
    weights = np.where(y == 1.0, 81.0, 1.0)
    fitted = pickle.loads(pickle.dumps(model))
    inner = fitted.member if isinstance(fitted, DeepEnsembleRegressor) else fitted
    inner.set_params(max_steps=150, batch_size=16)  # many batches hold no heavy row
    first = fitted.fit(X, y, weights).predict(X)
    # The likelihood of a Student-t takes a tenth of the weight for outliers.
    wanted = 1.0 if isinstance(model, EvidentialRegressor) else 0.9
    np.testing.assert_allclose(first, wanted, atol=0.06)
    np.testing.assert_allclose(first.mean(), wanted, atol=0.02)
    np.testing.assert_allclose(fitted.fit(X, y, 1e3 * weights).predict(X), first, rtol=1e-2)


@LAWS
def test_noise_that_grows_is_seen_where_a_method_can_see_it(model):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(600, 1))
    y = 3.0 + X[:, 0] + np.exp(2.0 * X[:, 0]) * rng.normal(size=600)
    fitted = pickle.loads(pickle.dumps(model))
    inner = fitted.member if isinstance(fitted, DeepEnsembleRegressor) else fitted
    inner.set_params(max_steps=400, hidden=(20,))
    low, high = fitted.fit(X, y).predict_dist(np.array([[-0.8], [0.8]])).std
    if isinstance(model, MCDropoutRegressor):
        assert high < 2.0 * low  # one noise for all
    else:
        assert high > 4.0 * low  # the truth is a factor of 25


def test_bad_arguments_are_refused_in_one_sentence():
    X, y = make_table()
    for model, words in [
        (MeanVarianceRegressor(beta=1.5), "beta must lie between 0"),
        (EvidentialRegressor(penalty=-1.0), "penalty must be"),
        (FaithfulRegressor(tails="heavy"), "tails must be one of 'student', 'gaussian'"),
        (MCDropoutRegressor(rates=(0.1, 1.0)), "rates must lie strictly"),
        (MCDropoutRegressor(rates=()), "rates must hold"),
        (MCDropoutRegressor(n_passes=0), "n_passes must be a whole number"),
        (DeepEnsembleRegressor(n_members=0), "n_members must be a whole number"),
        (DeepEnsembleRegressor(member="gp"), "member must be a regressor of this library or None; got str"),
        (MeanVarianceRegressor(max_steps=0), "max_steps must be"),
    ]:
        with pytest.raises(InputError, match=words):
            model.fit(X, y)


def test_an_ensemble_is_the_mixture_of_its_members():
    X, y = make_table()
    model = fresh(MODELS[2], n_members=3).fit(X, y)
    locations = [core.predictive(model._read(X).x) for core in model.core_.cores]
    assert len({float(one.loc.sum()) for one in locations}) == 3, "the members must differ"
    scale = float(model.y_scale_[0])
    densities = [one.log_prob(torch.as_tensor((y[:, None] - model.y_shift_) / scale)).numpy() for one in locations]
    expected = special.logsumexp(np.concatenate(densities)[..., 0], axis=0) - math.log(3) - math.log(scale)
    np.testing.assert_allclose(model.predict_dist(X).log_prob(y), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.predict(X), model.predict_dist(X).mean, rtol=1e-6)


def test_an_ensemble_takes_any_member_and_does_not_look_at_its_seed():
    X, y = make_table()
    predictions = [
        DeepEnsembleRegressor(
            n_members=2,
            member=VariationalVarianceRegressor(
                n_members=1, max_steps=4, hidden=(8,), mean_hidden=(8,), random_state=seed
            ),
            random_state=4,
        ).fit(X, y)
        for seed in (0, 1)
    ]
    assert predictions[0].core_.predictive(predictions[0]._read(X).x).loc.shape == (2, 70, 1)
    np.testing.assert_array_equal(predictions[0].predict(X), predictions[1].predict(X))
    assert (predictions[0].support(X) == predictions[1].support(X)).all()


def test_the_variance_of_dropout_is_the_noise_plus_the_spread_of_the_passes():
    X, y = make_table()
    model = fresh(MODELS[3]).fit(X, y)
    passes = model.core_.locations(model._read(X).x).double().numpy()[..., 0] * model.y_scale_[0]
    prediction = model.predict_dist(X)
    assert passes.shape == (20, 70)
    noise = float(model.noise_std_[0]) ** 2
    np.testing.assert_allclose(prediction.variance, noise + passes.var(0), rtol=1e-5)
    np.testing.assert_allclose(prediction.aleatoric_std**2, noise, rtol=1e-5)
    assert (prediction.epistemic_std == 0.0).all()
    assert model.rate_ in (0.01, 0.1)
    assert not np.allclose(prediction.variance, passes.var(0), rtol=0.1), "the noise must not be left out"


def test_masks_lose_the_share_they_should_and_keep_the_mean():
    noise = torch.randn(2, 400, 500, generator=torch.Generator().manual_seed(0))
    masks = kept(noise, torch.tensor([0.1, 0.4]))
    for mask, rate in zip(masks, (0.1, 0.4), strict=True):
        error = math.sqrt(rate * (1 - rate) / mask.numel())
        assert float((mask == 0).float().mean()) == pytest.approx(rate, abs=5 * error)
        assert mask.unique().tolist() == pytest.approx([0.0, 1 / (1 - rate)])


def test_a_thinned_network_is_the_network_under_its_mask():
    network = DropoutMLP(3, 2, (5, 4), "tanh")
    parameters = network.initialise([torch.Generator().manual_seed(1)])
    stream = torch.Generator().manual_seed(2)
    masks = kept(torch.randn(1, 6, network.units, generator=stream), torch.tensor([0.3]))[0]
    x = torch.randn(9, 3, generator=stream)
    thinned = network.plain(network.thin(parameters, masks), x.expand(6, 9, 3))
    for number, mask in enumerate(masks):
        expected = network(parameters, x.unsqueeze(0), mask.expand(1, 9, network.units))
        torch.testing.assert_close(thinned[number], expected[0])
    ones = torch.ones(1, 9, network.units)
    torch.testing.assert_close(network(parameters, x[None], ones), network.plain(parameters, x[None]))


def test_the_noise_is_that_of_the_best_likelihood():
    rng = np.random.default_rng(5)
    errors = rng.normal(size=(30, 200, 2)) * [0.02, 0.3] + rng.normal(size=(200, 2)) * [0.1, 0.5]
    weights = rng.uniform(0.5, 2.0, size=200)
    precision, best = fit_noise(*(torch.as_tensor(part) for part in (errors, weights)))
    for output in range(2):

        def loss(log_precision: float, errors: np.ndarray = errors[..., output]) -> float:
            terms = -0.5 * math.exp(log_precision) * errors**2 + 0.5 * (log_precision - math.log(2 * math.pi))
            return -float(np.average(special.logsumexp(terms, axis=0) - math.log(30), weights=weights))

        right = optimize.minimize_scalar(loss, bounds=(-5.0, 15.0), method="bounded")
        assert math.log(float(precision[output])) == pytest.approx(right.x, abs=0.11)
        assert float(best[output]) == pytest.approx(-right.fun, abs=2e-3)
    single = torch.as_tensor(errors[:1])
    precision, _ = fit_noise(single, torch.ones(200, dtype=torch.float64))
    np.testing.assert_allclose(precision, 1.0 / single.square().mean((0, 1)), rtol=0.11)


def test_networks_side_by_side_are_what_they_are_alone():
    networks = {"mean": MLP(3, 2, (5,), "relu"), "variance": MLP(3, 2, (4, 6), "tanh", maps=2)}
    both = SideBySide(networks)
    parameters = both.initialise([torch.Generator().manual_seed(seed) for seed in (1, 2)])
    x = torch.randn(2, 7, 3, generator=torch.Generator().manual_seed(0))
    out = both(parameters, x)
    assert both.maps == 3
    assert out.shape == (2, 3, 7, 2)
    torch.testing.assert_close(out[:, :1], networks["mean"](part(parameters, "mean"), x))
    torch.testing.assert_close(out[:, 1:], networks["variance"](part(parameters, "variance"), x))


@pytest.mark.parametrize("activation", ["tanh", "softplus"])  # the second is not zero at zero
def test_perceptrons_of_unequal_width_side_by_side_are_one_with_idle_units(activation):
    widths = {"variance": (6, 5), "shape": (3, 2)}
    both = SideBySide({name: MLP(3, 2, own, activation) for name, own in widths.items()})
    drawn = both.initialise([torch.Generator().manual_seed(seed) for seed in (1, 2)])
    parameters = {name: value.double() for name, value in drawn.items()}
    x = torch.randn(2, 7, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    one = MLP(3, 2, (6, 5), activation, maps=2)
    torch.testing.assert_close(one(as_one(parameters), x), both(parameters, x), rtol=1e-13, atol=1e-13)
    swapped = as_one({name: parameters[name] for name in reversed(parameters)})
    assert not torch.allclose(one(swapped, x), both(parameters, x))
