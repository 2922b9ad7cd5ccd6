"""Saved models: what comes back is what was saved, and no file whatever brings down the reader."""

from __future__ import annotations

import copy
import errno
import hashlib
import json
import os
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack

import nescio
from nescio import DissipativeRegressor, VariationalVarianceRegressor, _archive, persistence
from nescio._validation import InputError
from nescio.pseudo_inputs import BruteForce, LevelSet, MixtureDescent, MultiScale, Rejected, UniformIntervals

TINY: dict[str, Any] = {
    "max_steps": 5,
    "n_folds": 2,
    "hidden": (4,),
    "mean_hidden": (3, 5),
    "random_state": 7,
    "device": "cpu",
    "compile": False,
    "shape": 2.0,
    "kl_weight": 0.5,
}
DISSIPATIVE: dict[str, Any] = {**TINY, "n_pseudo_inputs": 50, "n_blocks": 1, "n_members": 1}


def table(outputs: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.normal([2.0, -1.0, 40.0], [0.5, 3.0, 8.0], (23, 3))
    y = x @ rng.normal(size=(3, outputs)) + 5.0 + rng.normal(size=(23, outputs))
    return x, y[:, 0] if outputs == 1 else y


def rows() -> np.ndarray:
    x, _ = table()
    return np.concatenate([x[:7], x[:7] * 3.0 - 20.0, x[:3] * 1e4])


def answers(model: Any, x: Any = None) -> dict[str, np.ndarray]:
    x = rows() if x is None else x
    prediction = model.predict_dist(x)
    lower, upper = prediction.interval(0.8)
    found = {
        "predict": model.predict(x),
        "mean": prediction.mean,
        "std": prediction.std,
        "aleatoric_std": prediction.aleatoric_std,
        "lower": lower,
        "upper": upper,
        "support": model.support(x),
        "verdict": model.verdict(x, 0.2, 0.1),
        "score": model.score_samples(x),
    }
    if model.core_.reference_prior is not None:
        found["knowledge"] = model.knowledge(x)
    return found


def assert_same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> None:
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name], err_msg=name, strict=True)


@pytest.fixture(scope="module")
def model() -> DissipativeRegressor:
    x, y = table()
    placement = Rejected(MultiScale(largest=6.0))
    return DissipativeRegressor(placement=placement, outside=9.0, distance_input=True, **DISSIPATIVE).fit(x, y)


@pytest.fixture(scope="module")
def saved(model: DissipativeRegressor, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("saved") / "model.nescio"
    nescio.save(model, path)
    return path.read_bytes()


def parts(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The manifest and the tensors, read by means of our own."""
    import io

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return json.loads(archive.read("manifest.json")), archive.read("tensors.safetensors")


def assemble(path: Path, manifest: Any, tensors: bytes, *, checksum: bool = True) -> Path:
    """A well-formed archive around any manifest and tensors."""
    if checksum and isinstance(manifest, dict):
        manifest = {**manifest, "tensors_sha256": hashlib.sha256(tensors).hexdigest()}
    text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("manifest.json", text)
        archive.writestr("tensors.safetensors", tensors)
    return path


# Round trips


@pytest.mark.parametrize(
    ("kind", "settings", "outputs"),
    [
        (DissipativeRegressor, {}, 1),
        (DissipativeRegressor, {"outside": (3.0, 8.0), "outside_mean": "training"}, 2),
        (DissipativeRegressor, {"n_members": 3}, 2),
        (DissipativeRegressor, {"anchor": False, "outside_prior": "constant", "head": "concentration_rate"}, 1),
        (VariationalVarianceRegressor, {}, 1),
        (VariationalVarianceRegressor, {"prior": None, "n_members": 2}, 2),
    ],
    ids=["plain", "two targets", "members", "paper", "vv", "no prior"],
)
def test_a_loaded_model_gives_the_same_answers_bit_for_bit(kind, settings, outputs, tmp_path):
    base = DISSIPATIVE if kind is DissipativeRegressor else TINY
    fitted = kind(**{**base, **settings}).fit(*table(outputs))
    nescio.save(fitted, tmp_path / "m")
    loaded = nescio.load(tmp_path / "m")
    assert type(loaded) is kind
    assert_same(answers(fitted), answers(loaded))
    assert loaded.get_params() == fitted.get_params()
    for name in ("n_rows_", "n_outputs_", "n_features_in_", "single_target_", "shape_", "kl_weight_"):
        assert getattr(loaded, name) == getattr(fitted, name)
        assert type(getattr(loaded, name)) is type(getattr(fitted, name))
    np.testing.assert_array_equal(loaded.inside_std_, fitted.inside_std_, strict=True)
    assert not hasattr(loaded, "feature_names_in_")


def test_a_single_column_of_targets_stays_a_table(tmp_path):
    x, y = table()
    fitted = VariationalVarianceRegressor(**TINY).fit(x, y[:, None])
    nescio.save(fitted, tmp_path / "m")
    assert nescio.load(tmp_path / "m").predict(x).shape == fitted.predict(x).shape


def test_column_and_target_names_come_back(tmp_path):
    x, y = table()
    frame = pd.DataFrame(x, columns=["a", 'ü "quoted"', "c\nd"])
    fitted = VariationalVarianceRegressor(**TINY).fit(frame, y)
    fitted.target_names_, fitted.id_names_ = ["price"], ["house", "year"]
    nescio.save(fitted, tmp_path / "m")
    loaded = nescio.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.feature_names_in_, fitted.feature_names_in_, strict=True)
    assert loaded.target_names_ == ["price"]
    assert loaded.id_names_ == ["house", "year"]
    assert_same(answers(fitted, frame), answers(loaded, frame))
    with pytest.raises(ValueError, match="X lacks 'a'"):
        loaded.predict(frame.rename(columns={"a": "b"}))


def test_a_loaded_model_can_be_saved_to_the_same_bytes(model, saved, tmp_path):
    (tmp_path / "m").write_bytes(saved)
    nescio.save(nescio.load(tmp_path / "m"), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == saved


def test_a_loaded_model_can_be_fitted_again(model, saved, tmp_path):
    (tmp_path / "m").write_bytes(saved)
    loaded = nescio.load(tmp_path / "m")
    assert_same(answers(loaded.fit(*table())), answers(model))


def test_the_model_is_not_changed_by_saving(model, tmp_path):
    before = answers(model)
    nescio.save(model, tmp_path / "m")
    assert_same(before, answers(model))
    assert model.placement == Rejected(MultiScale(largest=6.0))


def test_parameters_changed_after_the_fit_do_not_change_the_network(tmp_path):
    fitted = VariationalVarianceRegressor(**TINY).fit(*table())
    before = answers(fitted)
    fitted.set_params(hidden=(99,), mean_activation="relu", head="concentration_rate", n_members=4)
    nescio.save(fitted, tmp_path / "m")
    loaded = nescio.load(tmp_path / "m")
    assert_same(answers(loaded), before)
    assert loaded.hidden == (99,)


def test_the_device_parameter_is_set_only_when_asked(saved, tmp_path):
    manifest, tensors = parts(saved)
    manifest["model"]["params"]["device"] = "cuda:3"
    path = assemble(tmp_path / "m", manifest, tensors)
    assert nescio.load(path).device == "cuda:3"
    assert nescio.load(path, device="cpu").device == "cpu"
    assert nescio.load(path, device=torch.device("cpu")).core_.offset.device.type == "cpu"
    with pytest.raises(InputError, match="device must be"):
        nescio.load(path, device="abacus")


PLACEMENTS = [
    (Rejected(MultiScale(), threshold=0.5), Rejected(MultiScale(), threshold=0.5)),
    (UniformIntervals(((-1.0, 2.0), (4.0, 5.5))), UniformIntervals(((-1.0, 2.0), (4.0, 5.5)))),
    (BruteForce(grid=50, hardest=20), BruteForce(grid=50, hardest=20)),
    (MixtureDescent.as_run(), MixtureDescent.as_run()),
    (LevelSet(level=-3.0), LevelSet(level=-3.0)),
    (lambda points, count, generators: points, None),
    (Rejected(lambda points, count, generators: points), None),
]


@pytest.mark.parametrize(("given", "expected"), PLACEMENTS, ids=lambda value: type(value).__name__)
def test_placements_come_back_unless_they_are_the_users_code(given, expected, tmp_path):
    fitted = copy.copy(_vv()).set_params()
    dissipative = DissipativeRegressor(**DISSIPATIVE, placement=given)
    for name, value in vars(fitted).items():
        if name.endswith("_"):
            setattr(dissipative, name, value)
    nescio.save(dissipative, tmp_path / "m")
    assert nescio.load(tmp_path / "m").placement == expected


def test_densities_fitted_inside_a_placement_are_left_out(tmp_path):
    points = torch.as_tensor(table()[0])
    dissipative = DissipativeRegressor(**DISSIPATIVE)
    vars(dissipative).update({name: value for name, value in vars(_vv()).items() if name.endswith("_")})
    for placement, expected in [
        (MixtureDescent(n_components=2).fitted(points), MixtureDescent(n_components=2)),
        (LevelSet(n_components=2).fitted(points), LevelSet(n_components=2)),
    ]:
        nescio.save(dissipative.set_params(placement=placement), tmp_path / "m")
        assert nescio.load(tmp_path / "m").placement == expected
    nescio.save(dissipative.set_params(placement=Rejected(MultiScale()).fitted(points)), tmp_path / "m")
    assert nescio.load(tmp_path / "m").placement.neighbours is None


_FITTED: list[VariationalVarianceRegressor] = []


def _vv() -> VariationalVarianceRegressor:
    if not _FITTED:
        _FITTED.append(VariationalVarianceRegressor(**TINY).fit(*table()))
    return _FITTED[0]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("random_state", np.random.RandomState(0), None),
        ("random_state", np.random.default_rng(0), None),
        ("random_state", np.int64(5), 5),
        ("random_state", 2**80, 2**80),
        ("learning_rate", np.float32(0.5), 0.5),
        ("hidden", [3, 4], (3, 4)),
        ("hidden", np.array([3, 4]), (3, 4)),
        ("device", torch.device("cpu"), "cpu"),
    ],
)
def test_parameters_come_back_as_plain_values(name, value, expected, tmp_path):
    nescio.save(copy.copy(_vv()).set_params(**{name: value}), tmp_path / "m")
    loaded = getattr(nescio.load(tmp_path / "m"), name)
    assert loaded == expected
    assert type(loaded) is type(expected)


# Given back


def make_network(inputs: int, outputs: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(inputs, 6), torch.nn.Tanh(), torch.nn.Linear(6, outputs))


def other_network(inputs: int, outputs: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(inputs, 6), torch.nn.ReLU(), torch.nn.Linear(6, outputs))


def wider_network(inputs: int, outputs: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(inputs, 7), torch.nn.Tanh(), torch.nn.Linear(7, outputs))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory) -> tuple[VariationalVarianceRegressor, Path]:
    settings = {**TINY, "mean_network": make_network, "precision_network": make_network, "n_members": 2}
    fitted = VariationalVarianceRegressor(**settings).fit(*table(2))
    path = tmp_path_factory.mktemp("foreign") / "m"
    nescio.save(fitted, path)
    return fitted, path


def test_networks_given_back_give_the_same_answers(foreign):
    fitted, path = foreign
    loaded = nescio.load(path, mean_network=make_network, precision_network=make_network)
    assert_same(answers(fitted), answers(loaded))
    assert loaded.mean_network is make_network


def test_a_network_that_is_not_given_back_is_asked_for(foreign):
    with pytest.raises(InputError, match=r"the mean_network is your own code .* load\(path, mean_network=\.\.\.\)"):
        nescio.load(foreign[1])
    with pytest.raises(InputError, match=r"give it back: load\(path, precision_network=\.\.\.\)"):
        nescio.load(foreign[1], mean_network=make_network)


def test_another_network_is_refused_by_its_answers(foreign):
    for role in ("mean_network", "precision_network"):
        given = {"mean_network": make_network, "precision_network": make_network, role: other_network}
        with pytest.raises(InputError, match="given back, the model does not give the predictions that were stored"):
            nescio.load(foreign[1], **given)


def test_a_network_of_another_shape_is_refused(foreign):
    with pytest.raises(InputError, match="the mean_network given back does not fit the saved one: the tensor"):
        nescio.load(foreign[1], mean_network=wider_network, precision_network=make_network)
    with pytest.raises(InputError, match=r"must return a torch\.nn\.Module"):
        nescio.load(foreign[1], mean_network=lambda inputs, outputs: 3, precision_network=make_network)


def test_what_is_not_needed_is_refused(saved, tmp_path):
    (tmp_path / "m").write_bytes(saved)
    with pytest.raises(InputError, match="leave mean_network out of load"):
        nescio.load(tmp_path / "m", mean_network=make_network)
    with pytest.raises(InputError, match=r"takes back mean, mean_network and .* and decoder; got 'median'"):
        nescio.load(tmp_path / "m", median=make_network)
    with pytest.raises(InputError, match="this model's mean is its own; leave mean out of load"):
        nescio.load(tmp_path / "m", mean=make_network)
    with pytest.raises(InputError, match="this model has a mean_network of the library's own; leave mean_network out"):
        nescio.load(tmp_path / "m", mean_network=make_network)
    with pytest.raises(InputError, match=r"this model takes back .* and outside; leave encoder out of load"):
        nescio.load(tmp_path / "m", encoder=make_network)
    with pytest.raises(InputError, match=r"mean_network must be a function that returns an nn\.Module; got 3"):
        nescio.load(tmp_path / "m", mean_network=3)


# What cannot be saved


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(InputError, match="is not fitted, so there is nothing to save; call fit first"):
        nescio.save(DissipativeRegressor(), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_other_objects_are_not_saved(tmp_path):
    class Mine(VariationalVarianceRegressor):
        pass

    mine = Mine()
    vars(mine).update(vars(_vv()))
    for thing in (mine, {"a": 1}, None):
        with pytest.raises(InputError, match="save knows DissipativeRegressor and VariationalVarianceRegressor; got"):
            nescio.save(thing, tmp_path / "m")


@pytest.mark.parametrize("value", [object(), float("nan"), {"a": 1}, b"x", 1j])
def test_a_parameter_without_a_place_in_the_file_is_named(value, tmp_path):
    with pytest.raises(InputError, match="learning_rate holds"):
        nescio.save(copy.copy(_vv()).set_params(learning_rate=value), tmp_path / "m")


def test_a_model_that_would_not_load_again_is_not_saved(tmp_path):
    broken = copy.copy(_vv())
    broken.x_scale_ = broken.x_scale_ * [1.0, np.inf, 1.0]
    with pytest.raises(InputError, match="would not load again, so it is not saved: the tensor 'x_scale' holds NaN"):
        nescio.save(broken, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


class Noisy(torch.nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + torch.randn(len(x), 1)


def test_a_network_that_answers_at_random_is_not_saved(tmp_path):
    fitted = VariationalVarianceRegressor(**{**TINY, "mean_network": Noisy}).fit(*table())
    with pytest.raises(InputError, match="not saved: with the 'mean_network' given back, the model does not give"):
        nescio.save(fitted, tmp_path / "m")


class Half(torch.nn.Linear):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.bfloat16()).float()


def test_a_network_of_other_numbers_than_the_file_holds_is_not_saved(tmp_path):
    fitted = VariationalVarianceRegressor(**{**TINY, "mean_network": Half}).fit(*table())
    with pytest.raises(InputError, match=r"parameters of type torch\.bfloat16 cannot be saved; use float32"):
        nescio.save(fitted, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_answers_nan_is_not_saved(tmp_path):
    broken = copy.copy(_vv())
    broken.y_shift_ = broken.y_shift_ * np.nan
    with pytest.raises(InputError, match="predictions are not finite near its data, so it is not saved; fit it again"):
        nescio.save(broken, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


# Places that cannot be written, and writing that fails


def test_places_that_cannot_be_written_are_refused(model, tmp_path):
    with pytest.raises(InputError, match="is a directory; give the name of a file"):
        nescio.save(model, tmp_path)
    with pytest.raises(InputError, match="there is no directory"):
        nescio.save(model, tmp_path / "no" / "m")
    with pytest.raises(InputError, match="is not an ordinary file; give another name"):
        nescio.save(model, os.devnull)
    with pytest.raises(InputError, match=r"cannot be written: .*; choose another place\."):
        nescio.save(model, "/proc/self/m")
    with pytest.raises(InputError, match="is not a file name"):
        nescio.save(model, f"{tmp_path}/a\0b")


@pytest.mark.parametrize("fault", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("where", ["os.replace", "os.fsync", "zipfile.ZipFile.writestr"])
def test_a_failed_write_leaves_the_old_file_and_no_other(model, fault, where, tmp_path, monkeypatch):
    path = tmp_path / "m"
    path.write_bytes(b"old")

    def fail(*_: Any, **__: Any) -> None:
        raise fault

    monkeypatch.setattr(where, fail)
    with pytest.raises(type(fault)):
        nescio.save(model, path)
    monkeypatch.undo()
    assert [each.name for each in tmp_path.iterdir()] == ["m"]
    assert path.read_bytes() == b"old"


def test_a_link_stays_and_permissions_stay(model, tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    real.chmod(0o600)
    link.symlink_to(real)
    nescio.save(model, link)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    nescio.load(link)


def test_a_new_file_has_the_usual_permissions(model, tmp_path):
    mask = os.umask(0o027)
    try:
        nescio.save(model, tmp_path / "m")
    finally:
        os.umask(mask)
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o640


# Files that are refused


def refused(path: Path, match: str) -> None:
    with pytest.raises(InputError, match=match) as caught:
        nescio.load(path)
    message = str(caught.value)
    assert message.endswith(".")
    assert ". " not in message.replace("...", "")
    assert "\n" not in message
    assert len(message) < 400 + len(str(path))


def test_missing_files_and_directories_are_refused(tmp_path):
    refused(tmp_path / "none", "there is no file")
    refused(tmp_path, "is a directory; give the file that save wrote")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "is not an ordinary file; give the file that save wrote")
    refused(Path(f"{tmp_path}/a\0b"), "is not a file name")
    refused(Path(f"{tmp_path}/{'a' * 300}"), r"' cannot be read: File name too long\.")


def test_files_that_are_no_zip_are_refused(saved, tmp_path):
    path = tmp_path / "m"
    for data in (b"", b"x", b"hello, world\n" * 10, saved[1:], b"\x80\x04pickle"):
        path.write_bytes(data)
        refused(path, "it is not a zip archive")


def test_truncated_and_padded_files_are_refused(saved, tmp_path):
    path = tmp_path / "m"
    for data in (saved[:-1], saved[: len(saved) // 2], saved[:40], saved + b"\0", saved + saved, b"PK" + saved):
        path.write_bytes(data)
        refused(path, "is truncated or has bytes added|is damaged")


def test_tampered_tensors_are_refused_by_their_checksum(saved, tmp_path):
    manifest, tensors = parts(saved)
    changed = bytearray(tensors)
    changed[-3] ^= 1
    refused(assemble(tmp_path / "m", manifest, bytes(changed), checksum=False), "checksum of its tensors is wrong")


def _zip(path: Path, members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_unexpected_members_are_refused(saved, tmp_path):
    manifest, tensors = parts(saved)
    text, path = json.dumps(manifest).encode(), tmp_path / "m"
    good = [("manifest.json", text), ("tensors.safetensors", tensors)]
    for name in ("../evil", "/etc/passwd", "a/../../b", "C:\\x", "manifest.json/", "Manifest.json", "x.pkl", "\x1b[2J"):
        refused(_zip(path, [*good, (name, b"x")]), "unexpected member")
    refused(_zip(path, [*good, good[0]]), "a member is there twice")
    refused(_zip(path, good[:1]), "is not a saved model: it lacks 'tensors.safetensors'")
    refused(_zip(path, [good[1]]), "it lacks 'manifest.json'")
    refused(_zip(path, [*good, *((f"m{i}", b"") for i in range(200))]), "too many members")


def test_compressed_and_encrypted_members_are_refused(saved, tmp_path):
    manifest, tensors = parts(saved)
    members = [("manifest.json", json.dumps(manifest).encode()), ("tensors.safetensors", tensors)]
    refused(_zip(tmp_path / "m", members, zipfile.ZIP_DEFLATED), "compressed members")
    bomb = [("manifest.json", b" " * 10_000_000), ("tensors.safetensors", tensors)]
    refused(_zip(tmp_path / "m", bomb, zipfile.ZIP_DEFLATED), "compressed members")
    data = bytearray(saved)
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "m").write_bytes(data)
    refused(tmp_path / "m", "is encrypted")


def test_oversized_files_are_refused_before_they_are_read(saved, tmp_path, monkeypatch):
    path = tmp_path / "m"
    path.write_bytes(saved)
    monkeypatch.setattr(persistence, "LIMITS", {"manifest.json": 100, "tensors.safetensors": 2**31})
    refused(path, r"too large: its manifest\.json has \d+ bytes of 100 allowed")
    with pytest.raises(InputError, match=r"manifest\.json has \d+ bytes; at most 100 can be saved"):
        nescio.save(_vv(), path)
    assert path.read_bytes() == saved
    monkeypatch.undo()
    os.truncate(path, 2**32)  # a hole: it takes no room on the disk
    refused(path, "too large for a saved model: 4294967296 bytes")


def test_a_directory_that_lies_about_sizes_is_refused(saved, tmp_path):
    """The sizes in the central directory say less, more, or that the members overlap."""
    start = saved.index(b"PK\x01\x02")
    for size in (0, 10, 2**20, 2**31 - 2, 2**32 - 2):
        data = bytearray(saved)
        data[start + 20 : start + 28] = struct.pack("<2L", size, size)
        (tmp_path / "m").write_bytes(data)
        refused(tmp_path / "m", "is damaged|too large|truncated")


def test_reading_stops_at_the_limit_whatever_the_directory_says(saved, tmp_path):
    (tmp_path / "m").write_bytes(saved)
    with zipfile.ZipFile(tmp_path / "m") as archive:
        info = archive.getinfo("tensors.safetensors")
        info.file_size = info.compress_size = 10
        with pytest.raises((InputError, zipfile.BadZipFile)):
            _archive._read_member(archive, info, "m", 100)


def changed(manifest: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    copied = copy.deepcopy(manifest)
    *way, last = place.split("/")
    inner = copied
    for step in way:
        inner = inner[step]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return copied


@pytest.mark.parametrize(
    ("place", "value", "match"),
    [
        ("format", "another", "the manifest's format must be one of 'nescio model'; got 'another'"),
        ("format_version", 3, "format version 3 and this version of nescio reads up to 2; update nescio"),
        ("format_version", 1, "format version 1, from before the first release; fit the model again"),
        ("format_version", "1", "format_version must be a whole number"),
        ("versions", 3, "versions must be an object; got 3"),
        ("tensors_sha256", ..., "the manifest lacks tensors_sha256"),
        ("surplus", 1, "unknown entry 'surplus'"),
        ("model", [], "model must be an object; got a list"),
        ("model/class", "os.system", r"model\.class must be one of 'DissipativeRegressor'"),
        ("model/class", ["DissipativeRegressor"], r"model\.class must be one of"),
        ("model/params/exec", 1, "a parameter this version does not know: 'exec'"),
        ("model/params/hidden", {"placement": "Popen", "fields": {}}, "must be one of 'BruteForce'"),
        ("model/params/hidden", {"a": 1}, r"lacks params\.hidden\.placement"),
        ("model/params/placement/fields/depth", 1, "a field Rejected does not know: 'depth'"),
        ("model/params/placement/fields/quantile", 3, "not a valid placement: quantile must lie"),
        ("model/params/placement/fields/placement/fields/largest", "far", "not a valid placement: largest must"),
        ("model/params/placement/fields/placement", ..., "is not a valid Rejected"),
        ("model/params/prior", "\ud800", r"params\.prior must be a finite number, a text"),
        ("model/fitted/n_features", 4, r"'x_range' must be float64 of shape \(2, 4\); it is float64 of shape \(2, 3\)"),
        (
            "model/fitted/n_features",
            10**400,
            "n_features must be a whole number of at least 1; got a very large number",
        ),
        ("model/fitted/n_features", True, "n_features must be a whole number"),
        ("model/fitted/n_outputs", 2, "contradicts its 2 outputs"),
        ("model/fitted/n_rows", -3, "n_rows must be a whole number of at least 1; got -3"),
        ("model/fitted/single_target", 1, "single_target must be true or false; got 1"),
        ("model/fitted/single_target", False, r"'probe_mean' must be float64 of shape \(8, 1\)"),
        ("model/fitted/feature_names", ["a", "b"], "must be null or a list of 3 names"),
        ("model/fitted/feature_names", ["a", "b", 3], "must be null or a list of 3 names"),
        ("model/fitted/target_names", "y", "must be null or a list of 1 names"),
        ("model/fitted/shape", 10**400, "shape must be a finite number"),
        ("model/fitted/kl_weight", -1, "kl_weight must be a finite number"),
        ("model/core/members", 2, r"must be float64 of shape \(2, 8, 1\)"),
        ("model/core/mean_network/kind", "pickle", "kind must be one of 'mlp', 'given back'"),
        ("model/core/mean_network/hidden", [3, 6], r"'mean_network/weight1' must be float32 of shape \(4, 1, 3, 6\)"),
        ("model/core/mean_network/hidden", [3, 2**60], "hidden must be a list of whole numbers"),
        ("model/core/mean_network/hidden", [3], r"'mean_network/weight1' must be float32"),
        ("model/core/mean_network/hidden", [3, 5, 1], r"lacks the tensor 'mean_network/weight3'"),
        ("model/core/bag", 0, "bag must be a whole number"),
        ("model/core/bag", 3, r"'mean_network/weight0' must be float32 of shape \(3, 1, "),
        ("model/core/mean_network/activation", "eval", "activation must be one of 'tanh'"),
        ("model/core/mean_network/activation", "relu", "does not give the predictions that were stored with it"),
        ("model/core/head", "Head", "core.head must be one of"),
        ("model/core/head", "ConcentrationRateHead", r"'head' must be float64 of shape \(2,\)"),
        ("model/core/reference_prior", False, "unexpected tensor 'prior_concentration'"),
        ("model/core/anchor", None, "distance_input needs an anchor"),
        ("model/core/distance_input", False, "'precision_network/weight0' must be float32 of shape"),
        ("model/core/distance_input", 1, "core.distance_input must be true or false"),
        ("model/core/anchor", 22, r"'anchor_centres' must be float32 of shape \(22, 3\)"),
        ("model/core/anchor", {}, "core.anchor must be a whole number"),
        ("model/core/anchor_variance", False, "does not give the predictions"),
        ("model/core/fade_mean", True, "does not give the predictions"),
        ("model/support/k", 0, "support.k must be a whole number of at least 1"),
        ("model/support/k", 6, "does not give the predictions"),
        ("model/support/scores", 5, r"'support_scores' must be float64 of shape \(5,\)"),
    ],
)
def test_a_wrong_value_in_the_manifest_is_refused_by_name(place, value, match, saved, tmp_path):
    manifest, tensors = parts(saved)
    refused(
        assemble(tmp_path / "m", changed(manifest, place, value), tensors, checksum=place != "tensors_sha256"), match
    )


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b'{"format": NaN}',
        b'{"format": Infinity}',
        b'{"format": 1, "format": 2}',
        b"9" * 10_000,
        b"[]",
        b"null",
        b'"\\ud800"',
    ],
    ids=str,
)
def test_manifests_that_are_no_json_object_are_refused(text, saved, tmp_path):
    refused(assemble(tmp_path / "m", text, b"x"), "is not valid JSON|nested too deeply|must be an object")


def test_deep_nesting_within_a_parameter_is_refused(saved, tmp_path):
    manifest, tensors = parts(saved)
    manifest["model"]["params"]["hidden"] = "HERE"
    manifest["tensors_sha256"] = hashlib.sha256(tensors).hexdigest()
    for depth in (300, 900, 50_000):
        inner = '{"placement":"Rejected","fields":{"placement":' * depth + "null" + "}}" * depth
        for value in (inner, "[" * depth + "]" * depth):
            text = json.dumps(manifest).replace('"HERE"', value).encode()
            try:
                nescio.load(assemble(tmp_path / "m", text, tensors))
            except InputError as error:
                assert "nested too deeply" in str(error) or "not a valid" in str(error)  # noqa: PT017


def mutate_tensors(tensors: bytes, name: str, change: Any) -> bytes:
    arrays = unpack(tensors)
    value = change(arrays.pop(name))
    if value is not None:
        arrays[name] = value
    return pack(arrays)


def poke(value: float) -> Any:
    def change(array: np.ndarray) -> np.ndarray:
        changed_array = array.copy()
        changed_array.flat[-1] = value
        return changed_array

    return change


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("mean_network/weight0", poke(np.nan), "'mean_network/weight0' holds NaN or infinity"),
        ("precision_network/bias1", poke(np.inf), "holds NaN or infinity"),
        ("offset", lambda a: a.astype(np.float64), "'offset' must be float32"),
        ("offset", lambda a: a.astype(np.int32), "must be floating-point numbers; one is I32"),
        ("offset", lambda a: a[..., 0], r"'offset' must be float32 of shape \(1, 2, 1, 1\)"),
        ("offset", lambda a: None, "lacks the tensor 'offset'"),
        ("x_scale", poke(0.0), "'x_scale' must be positive"),
        ("y_scale", poke(-1.0), "'y_scale' must be positive"),
        ("prior_rate", poke(0.0), "'prior_rate' must be positive"),
        ("head", poke(-1.0), "'head' holds a setting beyond its bounds"),
        ("head", poke(1e9), "'head' holds a setting beyond its bounds"),
        ("head", lambda a: a * [3.0, 1.0, 1.0], "does not give the predictions"),
        ("anchor_range", lambda a: a[[1, 0, 2]], "'anchor_range' must hold two ascending distances"),
        ("anchor_range", lambda a: a * [1.0, 1.0, 0.0], "two ascending distances and a positive one"),
        ("anchor_range", lambda a: a * [0.0, 1.0, 1.0], "does not give the predictions"),
        ("support_scores", lambda a: a[::-1].copy(), "'support_scores' must be ascending distances"),
        ("support_scores", lambda a: a - 100.0, "'support_scores' must be ascending distances"),
        ("support_reference", lambda a: a[:, :2].copy(), "'support_reference' must be float64"),
        ("mean_network/weight2", lambda a: a * 1e30, "does not give the predictions"),
    ],
)
def test_a_wrong_tensor_is_refused_by_name(name, change, match, saved, tmp_path):
    manifest, tensors = parts(saved)
    refused(assemble(tmp_path / "m", manifest, mutate_tensors(tensors, name, change)), match)


def test_fewer_means_than_members_are_refused(foreign, tmp_path):
    manifest, tensors = parts(foreign[1].read_bytes())
    refused(
        assemble(tmp_path / "m", changed(manifest, "model/core/bag", 1), tensors),
        r"model\.core\.bag must not be below its 2 members",
    )


def test_surplus_tensors_and_headers_that_lie_are_refused(saved, tmp_path):
    manifest, tensors = parts(saved)
    arrays = unpack(tensors)
    refused(assemble(tmp_path / "m", manifest, pack({**arrays, "x": np.zeros(3)})), "unexpected tensor 'x'")
    for data in (b"", b"x", tensors[:-4], b"\xff" * 8 + tensors[8:], struct.pack("<Q", 2) + b"{}"):
        refused(assemble(tmp_path / "m", manifest, data), "tensors cannot be read|lacks the tensor")


# Fuzz


def outcome(path: Path) -> dict[str, np.ndarray] | None:
    """None where the file is refused; every other exception is a fault."""
    try:
        loaded = nescio.load(path)
    except InputError:
        return None
    return answers(loaded)


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    """One of the things that happen to files."""
    changed_data = bytearray(data)
    place = rng.randrange(len(data))
    # Half of the blows fall on the structure at the end and the manifest at the beginning, a small part of the bytes.
    if rng.random() < 0.5:
        place = rng.choice([rng.randrange(min(4_000, len(data))), len(data) - 1 - rng.randrange(200)])
    kind = rng.randrange(6)
    if kind == 0:
        changed_data[place] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del changed_data[place:]
    elif kind == 2:
        changed_data[place:place] = rng.randbytes(rng.choice([1, 2, 8, 100]))
    elif kind == 3:
        del changed_data[place : place + rng.choice([1, 2, 8, 100])]
    elif kind == 4:
        changed_data[place : place + 4] = rng.choice(
            [b"\0\0\0\0", b"\xff\xff\xff\xff", b"PK\x01\x02", rng.randbytes(4)]
        )
    else:
        length = rng.choice([4, 30, 500])
        other = rng.randrange(len(data))
        changed_data[place : place + length] = data[other : other + length]
    return bytes(changed_data)


def test_damaged_files_are_refused_or_load_to_the_same_model(model, saved, tmp_path):
    rng = random.Random(20)
    expected, path, loaded = answers(model), tmp_path / "m", 0
    for _ in range(1_200):
        path.write_bytes(damaged_bytes(saved, rng))
        found = outcome(path)
        if found is not None:
            loaded += 1
            assert_same(expected, found)
    assert loaded < 120  # what is left: bits of a header that nobody reads


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way, *(place for key, one in inner for place in places(one, (*way, key)))]


STRANGE: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 8, 23, 0.5, -2.5, 1e308, -1e308, 1e-308, 10**25, 2**63, 10**400, "", "x", "\0"),
    *(
        "tanh",
        "relu",
        "mlp",
        "given back",
        "\ud800",
        "ü" * 500,
        [],
        {},
        [1],
        [[1, [2]]],
        {"a": 1},
        [None] * 3,
        ["a"] * 3,
    ),
    {"placement": "MultiScale", "fields": {}},
    {"placement": "MultiScale", "fields": {"smallest": "a"}},
    {"placement": "BruteForce", "fields": {"grid": 10**30}},
]


def mutated(manifest: Any, rng: random.Random) -> Any:
    """The manifest with a value replaced, removed, doubled, moved or renamed, somewhere below its top."""
    root = {"": copy.deepcopy(manifest)}
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        *way, key = ("", *rng.choice(places(root[""])))
        if not way and rng.random() < 0.9:
            continue
        inner: Any = root
        for step in way:
            inner = inner[step]
        value = inner[key]
        kind = rng.randrange(6)
        if kind == 0 and way:
            del inner[key]
        elif kind == 1 and isinstance(value, (int, float)) and abs(value) < 1e300 and not isinstance(value, bool):
            inner[key] = rng.choice([value * 2, value + 1, -value, value // 3, value - 0.5, str(value), [value]])
        elif kind == 2 and isinstance(value, dict):
            value[rng.choice(["x", "kind", "placement", ""])] = rng.choice(STRANGE)
        elif kind == 3 and isinstance(value, str):
            inner[key] = rng.choice([value[:-1], value.upper(), value + "\n", list(value)])
        elif kind == 4:
            inner[key] = copy.deepcopy(_at(manifest, rng.choice(places(manifest))))
        else:
            inner[key] = copy.deepcopy(rng.choice(STRANGE))
        if not isinstance(root[""], (dict, list)):
            break
    return root[""]


def _at(value: Any, way: tuple[Any, ...]) -> Any:
    for step in way:
        value = value[step]
    return value


def test_mutated_manifests_are_refused_or_load_to_the_same_model(model, saved, tmp_path):
    rng = random.Random(21)
    manifest, tensors = parts(saved)
    expected, loaded = answers(model), 0
    for _ in range(1_500):
        changed_manifest = mutated(manifest, rng)
        checksum = isinstance(changed_manifest, dict) and "tensors_sha256" in changed_manifest
        found = outcome(assemble(tmp_path / "m", changed_manifest, tensors, checksum=checksum))
        if found is not None:
            loaded += 1
            assert_same(expected, found)
    assert 100 < loaded < 1_200  # parameters of training may be anything, the rest may not


def test_mutated_tensors_with_a_new_checksum_never_break_the_reader(saved, tmp_path):
    rng = random.Random(22)
    manifest, tensors = parts(saved)
    length = struct.unpack("<Q", tensors[:8])[0]
    for number in range(600):
        if number % 2:
            header, body = tensors[8 : 8 + length], tensors[8 + length :]
            header = damaged_bytes(header, rng)
            data = struct.pack("<Q", len(header)) + header + body
        else:
            data = damaged_bytes(tensors, rng)
        found = outcome(assemble(tmp_path / "m", manifest, data))
        if found is not None:
            assert np.isfinite(found["predict"]).all()


def test_swapped_members_are_refused(saved, tmp_path):
    manifest, tensors = parts(saved)
    text = json.dumps(manifest).encode()
    refused(_zip(tmp_path / "m", [("manifest.json", tensors), ("tensors.safetensors", text)]), "not valid JSON")
    refused(_zip(tmp_path / "m", [("manifest.json", text), ("tensors.safetensors", text)]), "checksum")
    _zip(tmp_path / "m", [("tensors.safetensors", tensors), ("manifest.json", text)])
    nescio.load(tmp_path / "m")  # the order of members says nothing
