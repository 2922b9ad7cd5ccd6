"""The UCI loader: a folder made on the spot, faults told in one sentence, and the real files where they are at hand."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest

from nescio._validation import InputError
from nescio.datasets import load_uci, uci_names

needs_data = pytest.mark.skipif("NESCIO_DATA" not in os.environ, reason="NESCIO_DATA does not name the data folder")


@pytest.fixture
def folder(data_folder):
    return data_folder("small", "a,b,t\n1,2,3.5\n4,5,-6e-3\n")


def test_a_table_is_cut_into_features_and_targets(folder, monkeypatch):
    data = load_uci("small", folder)
    np.testing.assert_array_equal(data.X, [[1, 2], [4, 5]])
    np.testing.assert_array_equal(data.y, [[3.5], [-0.006]])
    assert data.features == ("a", "b")
    assert data.targets == ("t",)
    monkeypatch.setenv("NESCIO_DATA", str(folder))
    monkeypatch.setenv("NESCIO_CACHE", str(folder / "cache"))
    assert load_uci("small").name == "small"
    assert uci_names() == ["small"]


def test_an_unset_folder_is_told(monkeypatch, tmp_path):
    monkeypatch.delenv("NESCIO_DATA", raising=False)
    monkeypatch.setenv("NESCIO_CACHE", str(tmp_path))
    with pytest.raises(InputError, match="NESCIO_DATA is not set"):
        load_uci("yacht")


def test_an_unknown_name_is_answered_with_the_known_ones(folder):
    with pytest.raises(InputError, match="name must be one of 'small'; got 'yacht'"):
        load_uci("yacht", folder)


def test_a_missing_file_is_named(folder):
    (folder / "uci" / "small.csv.gz").unlink()
    with pytest.raises(InputError, match=r"small\.csv\.gz cannot be read"):
        load_uci("small", folder)
    with pytest.raises(InputError, match=r"manifest\.json cannot be read"):
        load_uci("small", folder / "nowhere")


def test_a_changed_byte_is_noticed(folder):
    path = folder / "uci" / "small.csv.gz"
    path.write_bytes(gzip.compress(b"a,b,t\n1,2,3.5\n4,5,-7e-3\n"))
    with pytest.raises(InputError, match="is not the one in the manifest"):
        load_uci("small", folder)


@pytest.mark.parametrize("text", ["[]", "{", '{"uci": 3}', '{"uci": [{}]}'])
def test_a_broken_manifest_is_told(folder, text):
    (folder / "manifest.json").write_text(text)
    with pytest.raises(InputError, match="does not list data sets"):
        load_uci("small", folder)


@needs_data
@pytest.mark.parametrize(
    ("name", "shape"), [("yacht", (308, 6, 1)), ("energy", (768, 8, 2)), ("naval", (11934, 16, 2))]
)
def test_the_real_sets_have_the_shapes_of_the_paper(name, shape):
    data = load_uci(name)
    assert (*data.X.shape, data.y.shape[1]) == shape
    assert np.isfinite(data.X).all()
    assert np.isfinite(data.y).all()
    assert len(data.features) == shape[1]


@needs_data
def test_every_set_of_the_manifest_can_be_read():
    for name in uci_names(os.environ["NESCIO_DATA"]):
        assert len(load_uci(name).X) > 0
