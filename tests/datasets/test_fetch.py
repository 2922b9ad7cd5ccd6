"""Downloads from a server made on the spot: the right table arrives, the wrong one leaves nothing behind."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os

import numpy as np
import pytest

from nescio._validation import InputError
from nescio.datasets import load_uci, uci_names
from nescio.datasets.fetch import cache_folder, cached_entry, convert, fetch
from nescio.datasets.formats import FORMS, digest_of
from nescio.datasets.sources import SOURCES, Source
from nescio.datasets.uci import verify_uci

pytest.importorskip("pooch")
needs_data = pytest.mark.skipif("NESCIO_DATA" not in os.environ, reason="NESCIO_DATA does not name the data folder")

VALUES = np.array([[1.5, -2.0, 0.25], [4.0, 5.0, 6e-3], [7.0, 0.1 + 0.2, 9.0], [1.0, 1.0, 1.0]])


@pytest.fixture
def small(served, monkeypatch, published, zipped):
    """A set of four rows published as a zip of a CSV, its digest known."""
    folder, address = served
    (folder / "small.zip").write_bytes(zipped({"data/small.csv": published("commas", VALUES, ("a", "b", "t"))}))
    source = Source("small", "made up", address + "small.zip", "small.csv", "commas", 4, ("a", "b"), ("t",),
                    digest_of(VALUES))  # fmt: skip
    monkeypatch.setitem(SOURCES, "small", source)
    return source


def files_of(folder) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_set_is_downloaded_once_and_read_from_the_cache_after_that(small, served, tmp_path):
    with pytest.raises(InputError, match="run: nescio data get small"):
        load_uci("small")
    data = load_uci("small", download=True)
    np.testing.assert_array_equal(np.hstack([data.X, data.y]), VALUES)
    assert (data.features, data.targets) == (("a", "b"), ("t",))
    assert files_of(tmp_path / "cache") == ["small.csv.gz", "small.json"]
    (served[0] / "small.zip").unlink()
    assert load_uci("small").X.shape == (4, 2)
    assert fetch("small")["checked"] == "values"
    assert uci_names() == ["small"]
    assert verify_uci("small") == "file and numbers are the ones known"


def test_the_cached_file_is_the_same_for_the_same_numbers(small):
    first = cache_bytes(fetch("small"))
    assert cache_bytes(fetch("small", force=True)) == first
    assert first[4:8] == b"\0\0\0\0"  # no time in the header
    assert gzip.decompress(first).decode().splitlines()[:2] == ["a,b,t", "1.5,-2.0,0.25"]
    entry = cached_entry("small")
    assert entry["sha256"] == hashlib.sha256(first).hexdigest()
    assert entry["url"] == small.url


def cache_bytes(entry) -> bytes:
    return entry["path"].read_bytes()


def test_other_numbers_than_the_known_ones_are_refused_and_leave_nothing(small, served, tmp_path, published, zipped):
    wrong = VALUES.copy()
    wrong[2, 1] += 1e-6
    (served[0] / "small.zip").write_bytes(zipped({"small.csv": published("commas", wrong, ("a", "b", "t"))}))
    with pytest.raises(InputError, match="holds other numbers than the copy this library was checked with"):
        fetch("small")
    assert files_of(tmp_path / "cache") == []


def test_a_failed_renewal_leaves_the_older_copy(small, served, tmp_path):
    before = cache_bytes(fetch("small"))
    (served[0] / "small.zip").write_bytes(b"<html>sorry</html>")
    with pytest.raises(InputError, match="not a zip archive"):
        fetch("small", force=True)
    assert cache_bytes(cached_entry("small")) == before
    assert load_uci("small").X.shape == (4, 2)


@pytest.mark.parametrize("step", ["table", "note"])
def test_a_full_disk_loses_neither_the_older_copy_nor_its_first_digest(small, tmp_path, monkeypatch, step):
    monkeypatch.setitem(SOURCES, "small", small._replace(values=None))
    fetch("small")
    before = {path: path.read_bytes() for path in (tmp_path / "cache").rglob("small*")}
    assert len(before) == 2
    whole, sync = os.replace, os.fsync

    def full(descriptor):
        if step == "table":
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    def no_room(old, new):
        if step == "note" and str(new).endswith(".json"):
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        patch.setattr(os, "replace", no_room)
        with pytest.raises(OSError, match="No space left"):
            fetch("small", force=True)
    assert files_of(tmp_path / "cache") == ["small.csv.gz", "small.json"]
    assert {path: path.read_bytes() for path in before} == before
    assert load_uci("small").X.shape == (4, 2)


def test_a_table_of_other_bytes_without_its_note_is_refused_and_can_be_fetched(small, monkeypatch):
    """The same numbers, packed otherwise; the run ends between the table and its note."""
    monkeypatch.setitem(SOURCES, "small", small._replace(values=None))
    first = fetch("small")
    whole = os.replace

    def ended(old, new):
        if str(new).endswith(".json"):
            raise KeyboardInterrupt
        whole(old, new)

    with monkeypatch.context() as patch:
        patch.setattr("nescio.datasets.fetch._packed", lambda table: cache_bytes(first) + gzip.compress(b""))
        patch.setattr(os, "replace", ended)
        with pytest.raises(KeyboardInterrupt):
            fetch("small", force=True)
    with pytest.raises(InputError, match="is not the one in the manifest"):
        load_uci("small")
    assert cached_entry("small")["values_sha256"] == digest_of(VALUES)
    fetch("small", force=True)
    assert load_uci("small").X.shape == (4, 2)


def test_without_a_known_digest_the_first_download_is_recorded_and_the_entry_says_so(
    small, served, monkeypatch, published, zipped
):
    monkeypatch.setitem(SOURCES, "small", small._replace(values=None))
    entry = fetch("small")
    assert (entry["checked"], entry["values_sha256"]) == ("first use", digest_of(VALUES))
    assert "no checksum of the publisher's file is known" in verify_uci("small")
    wrong = published("commas", VALUES * 1.001, ("a", "b", "t"))
    (served[0] / "small.zip").write_bytes(zipped({"small.csv": wrong}))
    with pytest.raises(InputError, match="holds other numbers than the first download"):
        fetch("small", force=True)
    assert load_uci("small").y[0, 0] == 0.25


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": 5}, "holds 4 rows of 3 numbers instead of 5 of 3"),
        ({"features": ("a",)}, "instead of 4 of 2"),
        ({"features": (), "n_features": 2, "targets": ("y",)}, "last column of the file is called 't' instead of 'y'"),
        ({"member": "other.csv"}, "holds no file 'other.csv'"),
    ],
)
def test_a_file_of_another_shape_is_refused_with_the_name_and_the_address(small, monkeypatch, change, words):
    monkeypatch.setitem(SOURCES, "small", small._replace(**change))
    with pytest.raises(InputError, match=words) as caught:
        fetch("small")
    assert str(caught.value).startswith(f"'small' was not fetched from {small.url}: ")
    assert "NESCIO_DATA" in str(caught.value)
    assert cached_entry("small") is None


def test_an_address_that_does_not_answer_is_one_sentence(small, served, capfd, tmp_path):
    with pytest.raises(InputError, match=r"the download failed .*404"):
        fetch("small", url=served[1] + "nowhere.zip")
    with pytest.raises(InputError, match="the download failed"):
        fetch("small", url="http://127.0.0.1:9/small.zip")
    assert capfd.readouterr() == ("", "")
    assert files_of(tmp_path / "cache") == []


def test_the_downloader_is_quiet_here_and_as_it_was_afterwards(small, caplog):
    logger = pytest.importorskip("pooch").get_logger()
    logger.addHandler(caplog.handler)
    try:
        fetch("small")
        assert caplog.records == []
        logger.info("a word of its own")
        assert [record.message for record in caplog.records] == ["a word of its own"]
    finally:
        logger.removeHandler(caplog.handler)


def test_a_header_may_name_the_features_and_a_target_may_come_first(small, published, zipped):
    source = small._replace(features=(), n_features=2)
    table = convert(source, zipped({"small.csv": published("commas", VALUES, ("p", "q", "t"))}))
    assert table.header == ("p", "q", "t")
    turned = zipped({"small.csv": published("commas", VALUES[:, [2, 0, 1]], ("t", "a", "b"))})
    np.testing.assert_array_equal(convert(small._replace(first=True), turned).values, VALUES)


def test_a_damaged_cache_is_noticed(small):
    entry = fetch("small")
    entry["path"].write_bytes(gzip.compress(b"a,b,t\n1,2,3\n"))
    with pytest.raises(InputError, match="is not the one in the manifest"):
        load_uci("small")
    entry["path"].with_name("small.json").write_text("{")
    with pytest.raises(InputError, match=r"cannot be read .* delete it"):
        load_uci("small")


def test_the_data_folder_comes_before_the_cache_and_the_cache_fills_its_gaps(small, tmp_path, monkeypatch):
    fetch("small")
    packed = gzip.compress(b"a,t\n1,2\n3,4\n")
    (tmp_path / "own" / "uci").mkdir(parents=True)
    (tmp_path / "own" / "uci" / "mine.csv.gz").write_bytes(packed)
    mine = {"name": "mine", "file": "uci/mine.csv.gz", "sha256": hashlib.sha256(packed).hexdigest(), "n": 2,
            "features": ["a"], "targets": ["t"]}  # fmt: skip
    manifest = tmp_path / "own" / "manifest.json"
    manifest.write_text(json.dumps({"uci": [mine]}))
    monkeypatch.setenv("NESCIO_DATA", str(tmp_path / "own"))
    assert uci_names() == ["mine", "small"]
    assert load_uci("small").X.shape == (4, 2)
    manifest.write_text(json.dumps({"uci": [mine, mine | {"name": "small"}]}))
    assert load_uci("small").X.shape == (2, 1)
    assert uci_names(tmp_path / "own") == ["mine", "small"]
    with pytest.raises(InputError, match="name must be one of 'mine', 'small'; got 'yacht'"):
        load_uci("yacht", tmp_path / "own")


def test_a_sample_is_never_offered_as_the_whole(served):
    assert SOURCES["superconductivity"].shape == (21263, 81, 1)
    assert "superconductivity_partial" not in SOURCES
    with pytest.raises(InputError, match="name must be one of"):
        fetch("superconductivity_partial")
    with pytest.raises(InputError, match="'superconductivity' is not here"):
        load_uci("superconductivity")


def test_the_cache_is_where_it_is_said_to_be(monkeypatch, tmp_path):
    monkeypatch.setenv("NESCIO_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("NESCIO_CACHE")
    assert cache_folder().name == "nescio"


PAPER = {
    "boston": (505, 13, 1), "carbon": (10721, 5, 3), "ccpp": (9568, 4, 1), "concrete": (1030, 8, 1),
    "energy": (768, 8, 2), "kin8nm": (8192, 8, 1), "naval": (11934, 16, 2), "protein": (45630, 9, 1),
    "superconductivity": (21263, 81, 1), "wine_red": (1599, 11, 1), "wine_white": (4898, 11, 1), "yacht": (308, 6, 1),
}  # fmt: skip


def test_the_twelve_sets_have_the_shapes_of_the_papers_table_but_for_two():
    shapes = {name: source.shape for name, source in SOURCES.items()}
    assert shapes == PAPER | {"boston": (506, 13, 1), "protein": (45730, 9, 1)}
    assert all(source.form in FORMS for source in SOURCES.values())
    assert all(source.url.startswith("https://") for source in SOURCES.values())


AS_PUBLISHED = {
    "boston": "blanks", "carbon": "decimal commas", "ccpp": "xlsx", "energy": "xlsx", "kin8nm": "arff",
    "naval": "blanks", "protein": "commas", "wine_red": "semicolons", "wine_white": "semicolons", "yacht": "blanks",
}  # fmt: skip


@needs_data
@pytest.mark.parametrize("name", AS_PUBLISHED)
def test_a_real_set_written_as_its_publisher_writes_it_is_converted_to_the_known_numbers(name, published, zipped):
    source, data = SOURCES[name], load_uci(name, os.environ["NESCIO_DATA"])
    values, names = np.hstack([data.X, data.y]), (*data.features, *data.targets)
    if source.first:
        values, names = np.roll(values, 1, axis=1), names[-1:] + names[:-1]
    file = published(AS_PUBLISHED[name], values, names)
    table = convert(source, zipped({f"folder/{source.member}": file}) if source.member else file)
    assert digest_of(table.values) == source.values
    assert table.header == (*data.features, *data.targets)
