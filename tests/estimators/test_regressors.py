"""The laws of our regressors: seeds, batches, units, members, the level outside, support."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy import optimize, stats

from nescio import DissipativeRegressor, VariationalVarianceRegressor
from nescio.calibration import fit_support
from nescio.estimators.dissipative import default_placement
from nescio.estimators.grading import prior_from_blocks
from nescio.estimators.means import Growth, hold_out
from nescio.estimators.problem import Problem
from nescio.pseudo_inputs import BruteForce, FarNoise, GaussianNoise, LevelSet, MixtureDescent, MultiScale, Rejected
from nescio.training import train

QUICK = {"max_steps": 6, "hidden": (8,), "mean_hidden": (8,), "random_state": 0}
BOTH = [DissipativeRegressor, VariationalVarianceRegressor]


def make_table(n=70, outputs=1, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 8.0, 0.3] + [2.0, -1.0, 4.0]
    y = 5.0 + np.sin(X[:, :1]) * np.arange(1, outputs + 1) + 0.5 * rng.normal(size=(n, outputs))
    return X, y[:, 0] if outputs == 1 else y * 10.0 ** np.arange(outputs)


@pytest.mark.parametrize("estimator", BOTH)
def test_same_seed_same_model_and_the_global_generators_are_untouched(estimator):
    X, y = make_table()
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002 (the global generator is what is watched)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = estimator(**QUICK).fit(X, y), estimator(**QUICK).fit(X, y)
    for method in ("predict", "support", "knowledge"):
        np.testing.assert_array_equal(getattr(first, method)(X), getattr(second, method)(X))
    assert torch.equal(before[0], torch.get_rng_state())
    assert (before[1] == np.random.get_state()[1]).all()  # noqa: NPY002
    other = estimator(**{**QUICK, "random_state": 1}).fit(X, y)
    assert not np.array_equal(other.predict(X), first.predict(X))


@pytest.mark.parametrize("estimator", BOTH)
def test_a_rows_answer_does_not_depend_on_its_batch(estimator):
    X, y = make_table()
    model = estimator(**QUICK, n_members=2).fit(X, y)
    far = np.concatenate([X, 50.0 * X])
    whole = model.predict_dist(far)
    for rows in (slice(0, 1), slice(3, 60), np.array([139, 0, 70])):
        part = model.predict_dist(far[rows])
        np.testing.assert_array_equal(part.mean, whole.mean[rows])
        np.testing.assert_array_equal(part.std, whole.std[rows])
        np.testing.assert_array_equal(model.support(far[rows]), model.support(far)[rows])
        with pytest.warns(UserWarning, match="too few"):
            np.testing.assert_array_equal(model.verdict(far[rows]), model.verdict(far)[rows])


@pytest.mark.parametrize(("columns", "setting", "seen"), [(3, "auto", 0), (4, "auto", 1), (2, True, 1), (5, False, 0)])
def test_the_distance_is_an_input_where_there_are_four_or_where_it_is_asked_for(columns, setting, seen):
    X, y = np.random.default_rng(0).normal(size=(60, columns)) * 3.0 + 7.0, np.linspace(0.0, 9.0, 60)
    model = DissipativeRegressor(**QUICK, distance_input=setting, outside=5.0).fit(X, y)
    assert model.core_.distance_input is bool(seen)
    assert model.core_.precision_parameters["weight0"].shape[-2] == columns + seen
    far = np.full((1, columns), 1e6)
    np.testing.assert_allclose(model.predict(far, return_std=True)[1], 5.0, rtol=1e-5)


@pytest.mark.parametrize(
    ("rows", "setting", "seen"),  # with 60 rows a network of two maps, with 1,000 two side by side
    [
        (60, "auto", [True, False, True]),
        (1_000, "auto", [False, True, False]),
        (1_000, "auto", [True]),
        (60, True, [True] * 3),
        (1_000, True, [True] * 3),
    ],
)
def test_every_other_member_sees_the_distance_unless_all_are_asked_to(rows, setting, seen):
    X = np.random.default_rng(0).normal(size=(rows, 4)) * 3.0 + 7.0
    settings = {**QUICK, "max_steps": 20, "n_members": len(seen)}
    model = DissipativeRegressor(**settings, distance_input=setting).fit(X, X[:, 0] ** 2)
    weights = model.core_.precision_parameters["weight0"]
    assert (weights[:, :, -1] != 0.0).any(-1).tolist() == [[each] * 2 for each in seen]
    assert (weights[:, :, :-1] != 0.0).any(-1).all()


@pytest.mark.parametrize(("rows", "columns", "share"), [(1_000, 4, 0.25), (999, 4, 0.0), (1_000, 3, 0.0)])
def test_some_pseudo_inputs_lie_along_one_input_where_there_are_rows_and_inputs(rows, columns, share):
    assert default_placement(rows, columns) == Rejected(MultiScale(one_input=share))


def test_a_network_of_ones_own_sees_the_distance_in_every_member():
    X = np.random.default_rng(0).normal(size=(60, 4))
    given = []

    def network(n_inputs, n_outputs):
        given.append(n_inputs)
        return torch.nn.Linear(n_inputs, n_outputs)

    model = DissipativeRegressor(**QUICK, n_members=2, precision_network=network).fit(X, X[:, 0])
    assert set(given) == {5}
    assert (model.core_.precision_parameters["weight"][..., -1] != 0.0).all()


@pytest.mark.parametrize("estimator", BOTH)
@pytest.mark.parametrize(
    ("rows", "columns", "head", "width"),
    [
        (1_000, 4, "variance_shape", 4),
        (999, 4, "variance_shape", 8),
        (1_000, 3, "variance_shape", 8),
        (1_000, 4, "concentration_rate", 8),
    ],
)
def test_the_shape_has_half_the_width_of_the_variance_where_there_are_rows_and_inputs(
    estimator, rows, columns, head, width
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    settings = {**QUICK, "max_steps": 1, "n_members": 2, "n_folds": 2}
    learned = estimator(**settings, head=head).fit(X, X[:, 0] + rng.normal(size=rows)).core_.precision_parameters
    listened = learned["weight1"][:, :, :, 0] != 0.0  # members, maps, units
    assert listened[:, 0].all()
    assert (listened[:, 1].sum(-1) == width).all()


@pytest.mark.parametrize(("outside_prior", "warmed"), [("graded", True), ("constant", True), ("inside", False)])
def test_where_inside_and_outside_have_one_prior_there_is_nothing_to_warm_up_for(outside_prior, warmed, monkeypatch):
    names = []

    def watched(start, losses, *rest, **named):
        names.append(losses.__name__)
        return train(start, losses, *rest, **named)

    monkeypatch.setattr("nescio.estimators.precision.train", watched)
    DissipativeRegressor(outside_prior=outside_prior, **QUICK).fit(*make_table())
    assert ("towards_priors" in names) == warmed


def test_rows_that_are_all_alike_have_a_distance_too():
    with pytest.warns(UserWarning, match="no column of X varies"):
        model = DissipativeRegressor(**QUICK, distance_input=True).fit(np.full((12, 4), 3.0), np.arange(12.0))
    assert np.isfinite(model.predict_dist(np.array([[3.0] * 4, [9.0] * 4])).std).all()


@pytest.mark.parametrize(("rows", "members"), [(9_999, 5), (10_000, 2)])
def test_below_ten_thousand_rows_there_are_five_posteriors_and_then_two(rows, members):
    X = np.linspace(0.0, 1.0, rows)[:, None]
    assert VariationalVarianceRegressor(**QUICK, n_folds=2).fit(X, np.sin(9.0 * X[:, 0])).core_.members == members


@pytest.mark.parametrize("factor", [1e-4, 1e5])
def test_rescaling_the_target_rescales_the_prediction(factor):
    X, y = make_table()
    plain = DissipativeRegressor(**QUICK).fit(X, y).predict_dist(X)
    scaled = DissipativeRegressor(**QUICK).fit(X, factor * y - 3.0 * factor).predict_dist(X)
    np.testing.assert_allclose(scaled.mean, factor * plain.mean - 3.0 * factor, rtol=2e-3, atol=2e-3 * factor)
    np.testing.assert_allclose(scaled.std, factor * plain.std, rtol=5e-3)


def test_units_of_the_columns_do_not_matter():
    X, y = make_table()
    plain = DissipativeRegressor(**QUICK).fit(X, y).predict(X)
    other = DissipativeRegressor(**QUICK).fit(X * [1e3, 1e-3, 5.0] + [0.0, 7.0, -100.0], y)
    np.testing.assert_allclose(other.predict(X * [1e3, 1e-3, 5.0] + [0.0, 7.0, -100.0]), plain, rtol=1e-2)


@pytest.mark.parametrize("estimator", BOTH)
def test_several_targets_each_have_their_own_noise(estimator):
    X, y = make_table(outputs=3)
    model = estimator(**QUICK).fit(X, y)
    prediction = model.predict_dist(X)
    assert prediction.mean.shape == prediction.std.shape == (70, 3)
    ratio = np.median(prediction.std, axis=0)
    assert ratio[1] > 3 * ratio[0]
    assert ratio[2] > 3 * ratio[1]
    assert model.knowledge(X).shape == (70,)
    lower, upper = model.predict_interval(X, 0.8)
    assert (lower < upper).all()


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("outside_prior", ["graded", "constant"])
def test_far_away_the_std_is_the_level_in_every_direction_and_at_any_distance(members, outside_prior):
    X, y = make_table(outputs=2)
    level = np.array([4.0, 300.0])
    model = DissipativeRegressor(**QUICK, outside=level, outside_prior=outside_prior, n_members=members).fit(X, y)
    rng = np.random.default_rng(0)
    directions = np.concatenate([rng.normal(size=(20, 3)), np.eye(3), -np.eye(3)])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    for radius in (40.0, 1e3, 1e6, 1e12, 1e200):
        std = model.predict_dist(model.x_shift_ + radius * model.x_scale_ * directions).std
        np.testing.assert_allclose(std, np.broadcast_to(level, std.shape), rtol=1e-5)


@pytest.mark.parametrize("outside_mean", ["extrapolate", "training"])
def test_a_named_level_is_what_its_name_says(outside_mean):
    X, y = make_table()
    fitted = {
        name: DissipativeRegressor(**QUICK, outside=name, outside_mean=outside_mean).fit(X, y)
        for name in ("auto", "target", "residual")
    }
    spread, error = y.std(), fitted["auto"].inside_std_[0]
    assert error < 0.98 * spread
    lost = np.sqrt(2.0 * spread**2 - error**2) if outside_mean == "extrapolate" else spread
    for name, level in (("auto", lost), ("target", spread), ("residual", error)):
        np.testing.assert_allclose(fitted[name].outside_std_, level, rtol=1e-5)
        np.testing.assert_allclose(fitted[name].predict_dist(1e5 * X).std, level, rtol=1e-5)


def test_without_the_anchor_the_network_decides_far_away():
    X, y = make_table()
    model = DissipativeRegressor(**QUICK, outside=4.0, anchor=False).fit(X, y)
    std = model.predict_dist(1e4 * X).std
    assert np.isfinite(std).all()
    assert not np.allclose(std, 4.0, rtol=1e-3)


def test_the_mean_fades_to_the_training_mean_where_that_is_asked_for():
    X, y = make_table()
    kept = DissipativeRegressor(**QUICK).fit(X, y)
    faded = DissipativeRegressor(**QUICK, outside_mean="training").fit(X, y)
    np.testing.assert_allclose(faded.predict(1e4 * X), y.mean(), rtol=1e-6)
    np.testing.assert_array_equal(faded.predict(X), kept.predict(X))
    assert not np.allclose(kept.predict(1e4 * X), y.mean(), rtol=1e-3)


def test_the_mean_is_that_of_vv_with_the_same_seed():
    X, y = make_table()
    means = [estimator(**QUICK).fit(X, y).predict(X) for estimator in BOTH]
    np.testing.assert_allclose(means[0], means[1], rtol=1e-5)


def test_knowledge_vanishes_far_away_and_not_inside():
    X, y = make_table()
    model = DissipativeRegressor(**{**QUICK, "max_steps": 200}, outside=20.0).fit(X, y)
    np.testing.assert_allclose(model.knowledge(1e5 * X), 0.0, atol=1e-5)
    assert np.median(model.knowledge(X)) > 0.5


def test_no_prior_means_no_knowledge():
    X, y = make_table()
    model = VariationalVarianceRegressor(**QUICK, prior=None).fit(X, y)
    assert np.isfinite(model.predict_dist(X).std).all()
    with pytest.raises(ValueError, match="fitted with prior=None"):
        model.knowledge(X)


PLACEMENTS = [
    GaussianNoise(),
    FarNoise(),
    Rejected(GaussianNoise(2.0)),
    MixtureDescent(n_components=5),
    MixtureDescent.as_run(),
    LevelSet(n_components=5),
]


@pytest.mark.parametrize("placement", PLACEMENTS, ids=lambda placement: type(placement).__name__)
def test_every_placement_fits_in_its_slot(placement):
    X, y = make_table()
    model = DissipativeRegressor(**QUICK, placement=placement, n_pseudo_inputs=64, n_members=2).fit(X, y)
    assert np.isfinite(model.predict_dist(X).std).all()


def test_a_users_own_function_is_a_placement_and_brute_force_picks_the_hardest():
    X, y = make_table()
    own = lambda points, count, generators: points[:1].expand(len(generators), count, -1) + 9.0
    assert np.isfinite(DissipativeRegressor(**QUICK, placement=own).fit(X, y).predict(X)).all()
    brute = BruteForce(low=-5.0, high=5.0, grid=200, hardest=50, stride=2)
    assert np.isfinite(DissipativeRegressor(**QUICK, placement=brute).fit(X[:, :1], y).predict(X[:, :1])).all()
    with pytest.raises(ValueError, match=r"placement must return finite points of shape \(5, 20000, 3\)"):
        DissipativeRegressor(**QUICK, placement=lambda p, c, g: torch.full((1, c, 2), 1.0)).fit(X, y)


def test_any_torch_module_takes_the_place_of_the_networks():
    X, y = make_table()
    factory = lambda inputs, outputs: torch.nn.Sequential(
        torch.nn.Linear(inputs, 7), torch.nn.Tanh(), torch.nn.Linear(7, outputs)
    )
    model = DissipativeRegressor(**QUICK, mean_network=factory, precision_network=factory, n_members=2).fit(X, y)
    assert np.isfinite(model.predict_dist(X).std).all()


def test_a_weight_of_zero_drops_a_row():
    X, y = make_table()
    weights = np.r_[np.ones(60), np.zeros(10)]
    dropped = DissipativeRegressor(**QUICK).fit(X, y, sample_weight=weights)
    without = DissipativeRegressor(**QUICK).fit(X[:60], y[:60])
    np.testing.assert_allclose(dropped.predict(X), without.predict(X), rtol=1e-4)
    with pytest.raises(ValueError, match="all weights are zero"):
        DissipativeRegressor(**QUICK).fit(X, y, sample_weight=np.zeros(70))


def test_a_heavy_row_is_worth_as_many_rows_as_it_weighs():
    rng = np.random.default_rng(0)
    X, heavy = rng.uniform(-1.0, 1.0, (1000, 1)), np.arange(1000) % 20 == 0
    y, weights = heavy + 0.05 * rng.normal(size=1000), np.where(heavy, 19, 1)  # one half at 1, the other at 0
    settings = QUICK | {"max_steps": 150, "batch_size": 16, "n_members": 1, "n_folds": 3, "n_blocks": 1}
    fit = lambda *table: DissipativeRegressor(**settings, n_pseudo_inputs=200).fit(*table).predict_dist(X)
    weighted, again = fit(X, y, weights), np.repeat(np.arange(1000), weights)
    repeated, without = fit(X[again], y[again]), fit(X, y)
    assert abs(weighted.mean.mean() - np.average(y, weights=weights)) < 0.05
    assert abs(weighted.mean.mean() - repeated.mean.mean()) < 0.07
    np.testing.assert_allclose(weighted.std.mean(), repeated.std.mean(), rtol=0.1)
    assert without.mean.mean() < 0.15
    assert without.std.mean() < 0.35


def test_the_graded_prior_rises_as_the_weighted_errors_of_held_out_rows_do():
    x, noise = torch.arange(8.0).unsqueeze(1) / 100, torch.full((8, 1), 0.01)
    held_out, errors = np.array([5, 2, 7, 2]), np.array([[0.1], [0.2], [0.3], [0.4]])
    seen = Growth(held_out, np.full(4, 0.4), errors + 0.01, torch.ones(1))
    weights = np.array([9.0, 9.0, 1.0, 9.0, 9.0, 5.0, 9.0, 3.0])

    def most_likely(counted):
        """The growth under a Student-t of six degrees of freedom, by a search."""

        def loss(log_growth):
            scale = np.sqrt((0.01 + np.exp(log_growth)) * 4.0 / 6.0)
            each = stats.t.logpdf(np.sqrt(errors[:, 0] + 0.01), 6.0, scale=scale)
            return -np.average(each, weights=counted)

        return float(np.exp(optimize.minimize_scalar(loss, bounds=(-5.0, 2.0), options={"xatol": 1e-10}).x))

    for heft in (weights, None):
        problem = Problem(x.numpy(), x.numpy(), heft, np.ones(1), 0, None)
        counted = None if heft is None else np.array([5.0, 1.0, 3.0, 1.0])
        expected = {
            1e6: np.average(errors[:, 0], weights=counted),  # hardly a tail: the mean square
            3.0: most_likely(counted),
        }
        for concentration, growth in expected.items():
            prior = prior_from_blocks(x, seen, noise, torch.tensor([2.0]), concentration, problem)
            there = prior(torch.tensor([[0.07 + 0.4]]))
            assert float(there.rate / (there.concentration - 1.0)) == pytest.approx(0.01 + growth, rel=1e-4)
        assert expected[3.0] > 1.05 * expected[1e6]


def test_constant_columns_and_duplicate_rows_are_legal():
    X, y = make_table()
    X = np.c_[X, np.full(70, 3.0), X[:, 0]]
    X, y = np.r_[X, X], np.r_[y, y]
    model = DissipativeRegressor(**QUICK).fit(X, y)
    assert np.isfinite(model.predict_dist(X).std).all()


@pytest.mark.parametrize(
    "constant", [2.0, 0.0, 0.1 + np.spacing(0.1) * (np.arange(70) % 2)], ids=["2", "0", "rounding"]
)
def test_a_constant_target_is_legal_and_said_to_be_one(constant):
    X, y = make_table()
    words = r"^y is constant \((2|0|0\.1) in every row\), so nothing can be learned from it"
    with pytest.warns(UserWarning, match=words):
        model = DissipativeRegressor(**QUICK).fit(X, np.broadcast_to(constant, 70))
    assert np.isfinite(model.predict_dist(X).std).all()
    assert model.y_scale_ == 1.0
    with pytest.warns(UserWarning, match="^column 1 of y is constant"):
        both = VariationalVarianceRegressor(**QUICK).fit(X, np.c_[y, np.broadcast_to(constant, 70)])
    assert both.y_scale_[0] == pytest.approx(np.std(y), rel=1e-12)


def test_features_that_are_all_constant_are_legal_and_said_to_be():
    X, _ = make_table()
    with pytest.warns(UserWarning, match="no column of X varies, so there is nothing to tell one row from another by"):
        model = DissipativeRegressor(**QUICK).fit(np.ones((20, 2)), np.arange(20.0))
    assert np.isfinite(model.predict_dist(X[:, :2]).std).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_a_target_that_varies_in_its_last_digits_keeps_its_spread(weighted):
    X, y = make_table()
    y = 1e6 + 1e-7 * np.round(y, 2)
    weights = np.random.default_rng(4).uniform(1.0, 2.0, 70) if weighted else None
    model = DissipativeRegressor(**QUICK).fit(X, y, weights)
    exact = [Fraction(value) - 10**6 for value in y.tolist()]  # no digit is lost
    parts = [Fraction(1)] * 70 if weights is None else [Fraction(value) for value in weights.tolist()]
    mean = sum(w * e for w, e in zip(parts, exact, strict=True)) / sum(parts)
    variance = sum(w * (e - mean) ** 2 for w, e in zip(parts, exact, strict=True)) / sum(parts)
    np.testing.assert_allclose(model.y_scale_, float(variance) ** 0.5, rtol=1e-10)
    np.testing.assert_allclose(model.y_shift_, float(10**6 + mean), rtol=2e-16)


def test_four_rows_are_enough_and_three_are_not():
    X, y = make_table()
    assert np.isfinite(DissipativeRegressor(**QUICK).fit(X[:4], y[:4]).predict_dist(X).std).all()
    with pytest.raises(ValueError, match=r"X has 3 samples .*at least 4 rows are needed"):
        DissipativeRegressor(**QUICK).fit(X[:3], y[:3])


BAD = [
    ({"outside": -1.0}, "outside must be a positive number in units of y"),
    ({"outside": [1.0, 2.0]}, "outside must be a positive number in units of y"),
    ({"outside": "wide"}, "outside must be one of 'auto', 'target'"),
    ({"outside_prior": "x"}, "outside_prior must be one of"),
    ({"outside_mean": "x"}, "outside_mean must be one of"),
    ({"outside_shape": 1.0}, "outside_shape must be a finite number that exceeds 1 for a finite predictive variance"),
    ({"pseudo_weight": 0.0}, "pseudo_weight must be a finite number that exceeds 0"),
    ({"n_pseudo_inputs": 0}, "n_pseudo_inputs must be a whole number of at least 1"),
    ({"distance_input": "yes"}, "distance_input must be True, False or 'auto'; got 'yes'"),
    ({"precision_steps": 0.0}, "precision_steps"),
    ({"n_members": 0}, "n_members must be a whole number of at least 1; got 0"),
    ({"max_steps": 2.5}, "max_steps must be a whole number of at least 1; got 2.5"),
    ({"shape": 0.8}, "shape must be a finite number that exceeds 1"),
    ({"kl_weight": -1.0}, "kl_weight must be a finite number that exceeds 0"),
    ({"prior": "x"}, "prior must be None or 'residual'; got 'x'"),
    ({"head": "x"}, "head must be one of"),
    ({"activation": "x"}, "activation must be one of"),
    ({"n_folds": 1}, "n_folds must be a whole number of at least 2"),
    ({"validation_fraction": 1.0}, "validation_fraction must lie strictly between 0 and 1"),
    ({"device": "nowhere"}, "device must be 'auto', 'cpu' or a CUDA device"),
    ({"compile": "yes"}, "compile must be True, False or 'auto'"),
    ({"mean_network": 3}, "mean_network must be a function"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD, ids=lambda value: str(value)[:40])
def test_a_bad_parameter_gets_one_sentence(parameters, message):
    X, y = make_table()
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        DissipativeRegressor(**{**QUICK, **parameters}).fit(X, y)


def test_an_interrupted_fit_leaves_the_old_model_whole(monkeypatch):
    X, y = make_table()
    model = DissipativeRegressor(**QUICK).fit(X, y)
    before = model.predict_dist(X).std

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("nescio.estimators.split.fit_precision", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X * 2.0 + 1.0, -y)
    np.testing.assert_array_equal(model.predict_dist(X).std, before)
    fresh = DissipativeRegressor(**QUICK)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    assert not hasattr(fresh, "core_")


def test_pickling_keeps_the_model():
    X, y = make_table()
    model = DissipativeRegressor(**QUICK).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_dist(X).std, model.predict_dist(X).std)
    np.testing.assert_array_equal(copy.support(X), model.support(X))


def test_support_is_uniform_on_fresh_rows_from_inside():
    """Over 40 seeds a two-sample Kolmogorov-Smirnov test finds no more than a correct method lets it find."""
    levels = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        mixing = rng.normal(size=(4, 4))
        rows = rng.normal(size=(600, 4)) @ mixing + rng.integers(0, 2, size=(600, 1)) * 3.0
        support, fresh = fit_support(rows[:400], seed=seed), rows[400:]
        levels.append(stats.ks_2samp(support.scores, support.score(fresh)).pvalue)
        p = support.p_value(fresh)
        assert abs(p.mean() - 0.5) < 5 * np.sqrt((1 / 200 + 1 / 400) / 12)
    assert min(levels) > 1e-4
    assert stats.binomtest(int(np.sum(np.array(levels) < 0.05)), 40, 0.05, alternative="greater").pvalue > 1e-3


def test_support_of_a_large_table_is_calibrated_on_rows_that_are_no_reference():
    rng = np.random.default_rng(0)
    support = fit_support(rng.normal(size=(3000, 3)), max_rows=1000)
    assert len(support.scores) == 1000
    assert stats.kstest(support.p_value(rng.normal(size=(2000, 3))), "uniform").pvalue > 1e-3


def test_twins_do_not_vouch_for_each_other():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    twice = fit_support(np.repeat(X, 2, axis=0))
    assert len(twice.scores) == 300
    assert stats.kstest(twice.p_value(rng.normal(size=(500, 3))), "uniform").pvalue > 1e-3


def test_false_alarms_come_at_their_stated_rate_and_far_rows_are_outside():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1500, 3))
    model = DissipativeRegressor(**QUICK).fit(X, X[:, 0])
    words = model.verdict(rng.normal(size=(20_000, 3)))
    assert abs((words != "inside").mean() - 0.05) < 0.02
    assert abs((words == "outside").mean() - 0.005) < 0.006
    assert (model.verdict(X * 100.0 + 60.0) == "outside").all()
    assert (model.verdict(X[:5], edge=0.9, outside=0.8) != "inside").any()
    with pytest.raises(ValueError, match="outside must not exceed edge"):
        model.verdict(X, edge=0.01, outside=0.2)


def test_a_small_table_says_that_it_cannot_tell():
    X, y = make_table(n=100)
    model = DissipativeRegressor(**QUICK).fit(X, y)
    with pytest.warns(
        UserWarning, match="100 distinct training rows are too few to call a row outside at 1 false alarm in 200"
    ):
        words = model.verdict(1e3 * X)
    assert set(words) == {"edge"}
    tiny = DissipativeRegressor(**QUICK).fit(X[:10], y[:10])
    with pytest.warns(UserWarning, match="at least 199 are needed"):
        assert set(tiny.verdict(1e3 * X)) == {"unknown"}


def test_score_samples_is_larger_for_rows_like_the_data():
    X, y = make_table()
    model = DissipativeRegressor(**QUICK).fit(X, y)
    assert model.score_samples(X).min() > model.score_samples(100 * X + 50).max()


def test_the_prediction_is_consistent_with_itself():
    X, y = make_table(outputs=2)
    prediction = DissipativeRegressor(**QUICK, n_members=3).fit(X, y).predict_dist(X)
    parts = prediction.aleatoric_std**2 + prediction.epistemic_std**2 + prediction.mean_std**2
    np.testing.assert_allclose(parts, prediction.variance, rtol=1e-10)
    lower, upper = prediction.interval(0.9)
    np.testing.assert_allclose(prediction.cdf(upper) - prediction.cdf(lower), 0.9, rtol=1e-8)
    quantiles = prediction.quantile([0.1, 0.5, 0.9])
    assert quantiles.shape == (3, 70, 2)
    assert (np.diff(quantiles, axis=0) > 0).all()
    assert prediction.quantile(0.5).shape == (70, 2)
    draws = prediction.sample(4000, random_state=0)
    assert draws.shape == (4000, 70, 2)
    np.testing.assert_array_equal(draws[:5], prediction.sample(4000, random_state=0)[:5])
    assert prediction.log_prob(y).shape == prediction.crps(y).shape == (70, 2)
    assert (prediction.crps(y) > 0).all()
    part = prediction[10:12]
    assert len(part) == 2
    np.testing.assert_array_equal(part.mean, prediction.mean[10:12])
    np.testing.assert_array_equal(prediction[-1].std, prediction.std[-1:])
    np.testing.assert_array_equal(prediction[np.arange(70) % 2 == 0].std, prediction.std[::2])
    np.testing.assert_array_equal(prediction[::-1].std, prediction.std[::-1])
    assert len(list(prediction)) == 70
    text = repr(prediction)
    assert text.startswith("Prediction of 70 rows")
    assert "… and 65 more" in text
    with pytest.raises(IndexError, match="row 70 of a prediction of 70 rows"):
        prediction[70]
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        prediction.interval(90)
    with pytest.raises(ValueError, match=r"y must have the shape \(70, 2\)"):
        prediction.log_prob(y[:, 0])


def test_a_single_target_comes_back_flat_and_a_column_as_a_column():
    X, y = make_table()
    flat = DissipativeRegressor(**QUICK).fit(X, y)
    column = DissipativeRegressor(**QUICK).fit(X, y[:, None])
    assert flat.predict(X).shape == flat.predict_dist(X).log_prob(y).shape == (70,)
    assert column.predict(X).shape == (70, 1)
    with pytest.raises(ValueError, match="y must have one value for each of the 70 rows"):
        flat.predict_dist(X).log_prob(y[:, None])


def test_twins_stay_on_one_side_of_a_validation_split():
    rows = np.arange(200)
    groups = np.repeat(np.arange(50), 4)
    for seed in range(20):
        learn, stop = (part.numpy() for part in hold_out(rows, groups, 0.1, seed))
        assert not set(groups[learn]) & set(groups[stop])
        assert sorted([*learn, *stop]) == list(rows)
        assert 4 <= len(stop) <= 20
    learn, stop = hold_out(rows, np.zeros(200, dtype=int), 0.1, 0)
    assert (len(learn), len(stop)) == (180, 20)
    learn, stop = hold_out(rows[:2], groups, 0.1, 0)
    assert (len(learn), len(stop)) == (1, 1)


@pytest.mark.parametrize("unit", [1e-15, 1e15])
def test_small_and_large_units_are_no_constants(unit):
    X, y = make_table()
    plain = DissipativeRegressor(**QUICK).fit(X, y).predict_dist(X)
    scaled = DissipativeRegressor(**QUICK).fit(X * unit, y * unit).predict_dist(X * unit)
    np.testing.assert_allclose(scaled.std, plain.std * unit, rtol=1e-2)


def test_a_refit_that_fails_leaves_the_old_model_whole():
    X, y = make_table()
    model = DissipativeRegressor(**QUICK).fit(X, y)
    before = model.predict_dist(X).std
    with pytest.raises(ValueError, match="y contains NaN"):
        model.fit(np.c_[X, X], np.r_[y[:-1], np.nan])
    np.testing.assert_array_equal(model.predict_dist(X).std, before)


def test_too_few_rows_of_positive_weight_are_refused_by_name():
    X, y = make_table()
    with pytest.raises(ValueError, match="sample_weight leaves 2 rows of positive weight; at least 4 are needed"):
        DissipativeRegressor(**QUICK).fit(X, y, sample_weight=np.r_[1.0, 1.0, np.zeros(68)])


def test_dropout_in_a_users_module_follows_the_seed_and_leaves_the_global_generator_alone():
    X, y = make_table()
    factory = lambda inputs, outputs: torch.nn.Sequential(
        torch.nn.Linear(inputs, 7), torch.nn.Dropout(0.3), torch.nn.Linear(7, outputs)
    )
    state = torch.get_rng_state()
    first, second = (DissipativeRegressor(**QUICK, mean_network=factory).fit(X, y).predict(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert torch.equal(state, torch.get_rng_state())


def test_modules_that_cannot_serve_are_refused():
    X, y = make_table(outputs=2)
    narrow = lambda inputs, outputs: torch.nn.Linear(inputs, 1)
    with pytest.raises(ValueError, match="the network gives 1 column where 2 are needed"):
        DissipativeRegressor(**QUICK, mean_network=narrow).fit(X, y)
    normalised = lambda inputs, outputs: torch.nn.Sequential(
        torch.nn.BatchNorm1d(inputs), torch.nn.Linear(inputs, outputs)
    )
    with pytest.raises(ValueError, match="batch normalisation cannot train among its folds"):
        DissipativeRegressor(**QUICK, mean_network=normalised).fit(X, y)


def test_an_outlying_row_of_a_large_table_is_covered_by_the_anchor():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 2))
    X[7] = 150.0
    model = DissipativeRegressor(**QUICK).fit(X, X[:, 0])
    x = torch.as_tensor((X[7:8] - model.x_shift_) / model.x_scale_, dtype=torch.float32)
    assert float(model.core_.anchor.weight(model.core_.anchor.distance(x))) == 0.0


def test_a_level_beyond_all_units_is_refused_before_training():
    X, y = make_table()
    for level in (1e25, 1e-25):
        with pytest.raises(ValueError, match="give it in units of y"):
            DissipativeRegressor(**QUICK, outside=level).fit(X, y)
