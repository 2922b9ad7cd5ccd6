"""A model and its ONNX graph say the same, inside and far away, in any batch; the rest is refused in a sentence."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression
from typer.testing import CliRunner

import nescio
from nescio import DissipativeRegressor, MeanVarianceRegressor, VariationalVarianceRegressor
from nescio._validation import InputError
from nescio.cli import app
from nescio.export import VERDICTS, to_onnx

onnxruntime = pytest.importorskip("onnxruntime")

QUICK: dict[str, Any] = {"max_steps": 15, "n_folds": 3, "hidden": (12, 9), "mean_hidden": (10,), "random_state": 1}
RNG = np.random.default_rng(4)
X = np.column_stack([RNG.normal(3.0, 2.0, 230), RNG.uniform(-900.0, 100.0, 230), RNG.integers(0, 3, 230), np.ones(230)])
Y = np.column_stack([X[:, 0] + 0.01 * X[:, 1] + RNG.normal(size=230), 50.0 - 9.0 * X[:, 2] + RNG.normal(size=230)])
EVERYWHERE = np.vstack(
    [
        X[:40],
        X[:40] + RNG.normal(size=(40, 4)),
        *(X[:9] + 10.0**k * RNG.normal(size=(9, 4)) for k in (1, 2, 4, 12, 100)),
    ]
)

MODELS = {
    "default": DissipativeRegressor(**QUICK),
    "three members, two targets": DissipativeRegressor(**QUICK, n_members=3, outside=(30.0, 7.0)),
    "one member": DissipativeRegressor(**QUICK, n_members=1, distance_input=False),
    "fading mean": DissipativeRegressor(**QUICK, n_members=2, outside_mean="training"),
    "no anchor": DissipativeRegressor(**QUICK, n_members=2, anchor=False),
    "the paper's head": DissipativeRegressor(**QUICK, head="concentration_rate", activation="sigmoid"),
    "vv": VariationalVarianceRegressor(**QUICK, n_members=2, mean_activation="silu"),
    "vv without a prior": VariationalVarianceRegressor(**QUICK, prior=None, n_members=1, mean_activation="leaky_relu"),
}


def run(path, rows) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(str(path))
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, {"X": rows}), strict=True))


def close(found, expected, scale=0.0):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * scale)


@pytest.mark.parametrize("name", MODELS)
def test_a_graph_says_what_the_model_says(name, tmp_path):
    y = Y if "two targets" in name else Y[:, 0]
    model = MODELS[name].fit(X, y)
    to_onnx(model, tmp_path / "model.onnx")
    for rows in (EVERYWHERE, EVERYWHERE[:7], EVERYWHERE[-1:]):
        found, dist = run(tmp_path / "model.onnx", rows), model.predict_dist(rows)
        shape = (len(rows), model.n_outputs_)
        close(found["mean"], dist.mean.reshape(shape), model.y_scale_.max())
        loc, q = model.posterior(rows)
        means = loc.numpy() * model.y_scale_ + model.y_shift_
        close(found["member_mean"], means, model.y_scale_.max())
        rounding = 1e-6 * np.abs(means).max(0)  # of means that have gone far, and whose differences are part of the std
        assert (np.abs(found["std"] - dist.std.reshape(shape)) <= 1e-5 * dist.std.reshape(shape) + rounding).all()
        close(found["concentration"], q.concentration.numpy())
        close(found["rate"], q.rate.numpy() * model.y_scale_**2)
        close(found["score"], model.support_.score(model._read(rows).standardised))


def test_the_parts_of_a_graph_are_a_student_t_in_units_of_y(tmp_path):
    model = DissipativeRegressor(**QUICK, n_members=3).fit(X, Y[:, 1])
    to_onnx(model, tmp_path / "model.onnx")
    found = run(tmp_path / "model.onnx", EVERYWHERE)
    parts = model.predict_dist(EVERYWHERE).distribution.components
    close(2.0 * found["concentration"], parts.df.numpy())
    close(np.sqrt(found["rate"] / found["concentration"]), parts.scale.numpy())
    wrong = np.sqrt(found["rate"] / (found["concentration"] - 1.0))  # the std is not the scale
    assert np.abs(wrong / parts.scale.numpy() - 1.0).min() > 0.01


def test_support_differs_by_the_lots_alone_and_verdicts_hardly(tmp_path):
    model = DissipativeRegressor(**QUICK).fit(X, Y[:, 0])
    to_onnx(model, tmp_path / "model.onnx")
    found = run(tmp_path / "model.onnx", EVERYWHERE)
    scores = model.support_.scores
    own = model.support_.score(model._read(EVERYWHERE).standardised)
    equal = np.array([np.sum(np.abs(scores - score) <= 1e-9 * score) for score in own])
    assert (np.abs(found["support"] - model.support(EVERYWHERE)) <= 0.5 * (1 + equal) / (len(scores) + 1) + 1e-12).all()
    words = np.array([VERDICTS[code] for code in found["verdict"].tolist()])
    assert (words == model.verdict(EVERYWHERE)).mean() > 0.97
    assert set(words) == {"inside", "edge", "outside"} or set(words) == {"inside", "outside"}
    assert (words[-18:] == "outside").all()


@pytest.mark.filterwarnings("ignore:.*too few")
@pytest.mark.parametrize(("rows", "words"), [(100, {"inside", "edge"}), (15, {"unknown"})])
def test_few_rows_cannot_call_a_row_outside(rows, words, tmp_path):
    model = DissipativeRegressor(**QUICK, n_members=1).fit(X[:rows], Y[:rows, 0])
    to_onnx(model, tmp_path / "model.onnx")
    found = run(tmp_path / "model.onnx", EVERYWHERE)["verdict"]
    assert {VERDICTS[code] for code in found.tolist()} == words == set(model.verdict(EVERYWHERE))


def test_metadata_name_columns_targets_and_level(tmp_path):
    frame = pd.DataFrame(X, columns=["Größe", "b", "c", "d"])
    model = DissipativeRegressor(**QUICK, outside=8.0).fit(frame, Y[:, 0])
    to_onnx(model, tmp_path / "model.onnx")
    facts = onnxruntime.InferenceSession(str(tmp_path / "model.onnx")).get_modelmeta().custom_metadata_map
    assert json.loads(facts["nescio.features"]) == ["Größe", "b", "c", "d"]
    assert json.loads(facts["nescio.outside_std"]) == pytest.approx([8.0])
    assert json.loads(facts["nescio.verdicts"])["2"] == "outside"
    assert json.loads(facts["nescio.targets"]) is None
    close(run(tmp_path / "model.onnx", EVERYWHERE)["std"][:, 0], model.predict_dist(frame_of(EVERYWHERE, frame)).std)


def frame_of(rows, like):
    return pd.DataFrame(rows, columns=like.columns)


def module(inputs: int, outputs: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(inputs, 5), torch.nn.Tanh(), torch.nn.Linear(5, outputs))


REFUSED = [
    (DissipativeRegressor(), "this model is not fitted, so there is nothing to export; call fit first"),
    (MeanVarianceRegressor(), "got MeanVarianceRegressor"),
    (DissipativeRegressor(**QUICK, mean=LinearRegression()), "the mean of this model is not the library's own network"),
    (DissipativeRegressor(**QUICK, mean_network=module), "the mean_network of this model is not one of the library's"),
    (VariationalVarianceRegressor(**QUICK, precision_network=module), "the precision_network of this model is not"),
]


@pytest.mark.parametrize(("model", "words"), REFUSED)
def test_what_cannot_be_exported_is_refused_in_a_sentence(model, words, tmp_path):
    if "not fitted" not in words and "got" not in words:
        model = model.fit(X, Y[:, 0])
    with pytest.raises(InputError, match=words):
        to_onnx(model, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_table_with_levels_or_gaps_is_refused(tmp_path):
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(town=np.where(X[:, 2] > 1, "Aix", "Bonn"))
    model = VariationalVarianceRegressor(**QUICK).fit(frame, Y[:, 0])
    with pytest.raises(InputError, match=r"column 'town' is not a plain number \(a column for each level: 'Aix'"):
        to_onnx(model, tmp_path / "model.onnx")


def test_a_level_that_is_a_function_is_refused(tmp_path):
    model = DissipativeRegressor(**QUICK).fit(X, Y[:, 0])
    model.level_ = lambda rows: np.ones((len(rows), 1))
    with pytest.raises(InputError, match="the level outside is a function of yours"):
        to_onnx(model, tmp_path / "model.onnx")


def test_without_onnx_the_extra_is_named(tmp_path, monkeypatch):
    model = VariationalVarianceRegressor(**QUICK).fit(X, Y[:, 0])
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(InputError, match=r"pip install 'nescio\[onnx\]'"):
        to_onnx(model, tmp_path / "model.onnx")


def test_the_command_line_exports_a_saved_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = DissipativeRegressor(**QUICK).fit(X, Y[:, 0])
    nescio.save(model, "a.nescio")
    result = CliRunner().invoke(app, ["export", "a.nescio", "--onnx", "a.onnx"])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Written to a.onnx: input X (4 columns, float64).\n"
    close(run("a.onnx", EVERYWHERE)["std"][:, 0], model.predict_dist(EVERYWHERE).std)
    before = (tmp_path / "a.nescio").read_bytes()
    result = CliRunner().invoke(app, ["export", "a.nescio", "--onnx", "a.nescio"])
    assert result.exit_code == 2
    assert result.stderr == "Error: --onnx is the input 'a.nescio' itself; give another name.\n"
    assert (tmp_path / "a.nescio").read_bytes() == before
    result = CliRunner().invoke(app, ["export", "none.nescio", "--onnx", "b.onnx"])
    assert (result.exit_code, result.stderr) == (2, "Error: there is no file 'none.nescio'.\n")
    towns = pd.DataFrame({"town": np.where(X[:, 0] > 3.0, "Aix", "Bonn")})
    nescio.save(DissipativeRegressor(**QUICK, n_members=1).fit(towns, Y[:, 0]), "c.nescio")
    result = CliRunner().invoke(app, ["export", "c.nescio", "--onnx", "b.onnx"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: column 'town' is not a plain number (a column for each level: 'Aix', 'Bon")
    assert result.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.nescio", "a.onnx", "c.nescio"]
