"""``nescio data``: what it lists, gets and verifies, its exit codes, and nothing half-written."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from nescio.cli import app
from nescio.datasets.formats import digest_of
from nescio.datasets.sources import SOURCES, Source

pytest.importorskip("pooch")
REAL = os.environ.get("NESCIO_DATA", "")
VALUES = np.array([[1.5, 2.5], [3.25, 4.0], [5.0, 6.75]])
TEXT = b"1.5 2.5\n3.25 4.0\n5.0 6.75\n"


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["data", *map(str, arguments)])


def refused(*arguments: Any, code: int = 2) -> str:
    """The one sentence of a call that ends badly."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert result.stderr.count("\n") == 1
    return str(result.stderr)


@pytest.fixture(autouse=True)
def place(served, tmp_path, monkeypatch):
    """An empty cache, no data folder, and one published set, ``tiny``, on a server of our own."""
    folder, address = served
    (folder / "tiny.data").write_bytes(TEXT)
    tiny = Source("tiny", "made up", address + "tiny.data", "", "blanks", 3, ("a",), ("t",), digest_of(VALUES))
    monkeypatch.setitem(SOURCES, "tiny", tiny)
    return tmp_path


def own_folder(place, name: str = "mine") -> None:
    packed = gzip.compress(b"a,b,t\n1,2,3\n4,5,6\n")
    (place / "own" / "uci").mkdir(parents=True)
    (place / "own" / "uci" / f"{name}.csv.gz").write_bytes(packed)
    entry = {"name": name, "file": f"uci/{name}.csv.gz", "sha256": hashlib.sha256(packed).hexdigest(), "n": 2,
             "features": ["a", "b"], "targets": ["t"]}  # fmt: skip
    (place / "own" / "manifest.json").write_text(json.dumps({"uci": [entry]}))


def files_of(folder) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def lines_of(text: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split() for line in text.splitlines() if line}


def test_the_list_shows_shapes_and_where_each_set_is(place, monkeypatch):
    own_folder(place)
    monkeypatch.setenv("NESCIO_DATA", str(place / "own"))
    assert run("get", "tiny").exit_code == 0
    result = run("list")
    assert result.exit_code == 0
    lines = lines_of(result.stdout)
    assert lines["tiny"][1:5] == ["3", "1", "1", "cache"]
    assert lines["mine"][1:5] == ["2", "2", "1", "NESCIO_DATA"]
    assert lines["superconductivity"][1:6] == ["21,263", "81", "1", "not", "here"]
    assert lines["svhn"][1:3] == ["73,257", "26,032"]
    assert len(lines) == 1 + 12 + 2 + 6
    assert "superconductivity_partial" not in lines


def test_getting_a_set_says_where_it_is_and_how_it_was_checked(place, monkeypatch):
    result = run("get", "tiny")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert (
        result.stderr == f"tiny: 3 rows, {place / 'cache' / 'uci' / 'tiny.csv.gz'}; its numbers are the known ones.\n"
    )
    assert files_of(place / "cache") == ["tiny.csv.gz", "tiny.json"]
    assert "already here" in run("get", "tiny").stderr
    monkeypatch.setitem(SOURCES, "tiny", SOURCES["tiny"]._replace(values=None))
    assert "already here" not in run("get", "tiny", "--force").stderr


def test_a_first_download_without_a_known_checksum_is_told(place, monkeypatch):
    monkeypatch.setitem(SOURCES, "tiny", SOURCES["tiny"]._replace(values=None))
    assert "no checksum of it is known" in run("get", "tiny").stderr
    assert "no checksum of the publisher's file is known" in run("verify", "tiny").stdout


def test_what_the_data_folder_has_is_not_downloaded(place, monkeypatch):
    own_folder(place, "tiny")
    monkeypatch.setenv("NESCIO_DATA", str(place / "own"))
    result = run("get", "tiny")
    assert result.exit_code == 0
    assert str(place / "own") in result.stderr
    assert not (place / "cache").exists()


def test_mistakes_are_one_sentence_and_leave_nothing(place, monkeypatch):
    assert "there is no data set 'tinny' to get" in refused("get", "tiny", "tinny")
    assert "to get" in refused("get", "superconductivity_partial")
    assert not (place / "cache").exists()  # names are looked at before anything is fetched
    assert "no data set is here" in refused("verify")
    run("get", "tiny")
    assert "'yacht' is not here; here are 'tiny'" in refused("verify", "yacht")
    (place / "served" / "tiny.data").write_bytes(TEXT.replace(b"6.75", b"6.76"))
    assert "holds other numbers" in refused("get", "tiny", "--force")
    (place / "served" / "tiny.data").unlink()
    assert "404" in refused("get", "tiny", "--force")
    assert files_of(place / "cache") == ["tiny.csv.gz", "tiny.json"]
    monkeypatch.setenv("NESCIO_DATA", str(place / "nowhere"))
    for command in ("list", "verify"):
        assert "manifest" in refused(command)


def test_a_cache_that_cannot_be_written_is_one_sentence(place, monkeypatch):
    (place / "file").write_text("")
    monkeypatch.setenv("NESCIO_CACHE", str(place / "file" / "cache"))
    assert "not fetched" in refused("get", "tiny")


def test_verify_ends_with_one_when_a_set_is_damaged_and_names_it(place, monkeypatch):
    own_folder(place)
    monkeypatch.setenv("NESCIO_DATA", str(place / "own"))
    run("get", "tiny")
    result = run("verify")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "mine: the file is the one in the manifest.",
        "tiny: file and numbers are the ones known.",
    ]
    (place / "own" / "uci" / "mine.csv.gz").write_bytes(gzip.compress(b"a,b,t\n1,2,3\n4,5,7\n"))
    sentence = refused("verify", code=1)
    assert sentence.startswith("mine: FAULT: ")
    assert run("verify", "tiny").exit_code == 0


def test_numbers_that_are_not_the_published_ones_are_a_fault_even_if_the_manifest_agrees(place, monkeypatch):
    own_folder(place, "tiny")
    monkeypatch.setenv("NESCIO_DATA", str(place / "own"))
    assert "instead of (3, 1, 1)" in refused("verify", code=1)


@pytest.mark.skipif(not REAL, reason="NESCIO_DATA does not name the data folder")
def test_the_real_folder_is_whole(monkeypatch):
    monkeypatch.setenv("NESCIO_DATA", REAL)
    result = run("verify")
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 12 + 6
