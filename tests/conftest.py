"""What several parts of the tests need: a folder of data and a publisher's server of our own."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words: object) -> None:
        """Nothing."""


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """A folder, the address it is served at, and an empty cache; no data folder."""
    folder = tmp_path / "served"
    folder.mkdir()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("NESCIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NESCIO_DATA", raising=False)
    yield folder, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def data_folder(tmp_path: Path) -> Callable[[str, str], Path]:
    """Makes a folder laid out as ``NESCIO_DATA`` is, of one table: a CSV whose last column is the target."""

    def make(name: str, text: str) -> Path:
        packed = gzip.compress(text.encode())
        (tmp_path / "uci").mkdir()
        (tmp_path / "uci" / f"{name}.csv.gz").write_bytes(packed)
        header, *rows = text.split()
        *features, target = header.split(",")
        entry = {
            "name": name,
            "file": f"uci/{name}.csv.gz",
            "sha256": hashlib.sha256(packed).hexdigest(),
            "n": len(rows),
            "features": features,
            "targets": [target],
        }
        (tmp_path / "manifest.json").write_text(json.dumps({"uci": [entry]}))
        return tmp_path

    return make
