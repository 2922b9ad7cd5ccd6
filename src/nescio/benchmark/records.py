"""Records: rows of results with what made them, written once as CSV and never edited."""

from __future__ import annotations

import csv
import gzip
import io
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch

import nescio
from nescio._files import written_beside

__all__ = ["provenance", "write_records"]


@cache
def provenance() -> dict[str, str]:
    """Commit, versions, hardware and date of this run; ``NESCIO_COMMIT`` names the commit of a copy of the tree."""
    folder = Path(nescio.__file__).parent
    ask = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        found = subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # no git here
        found = ""
    hardware = f"{_processor()}, {os.cpu_count()} cores"
    if torch.cuda.is_available():
        hardware += f", {torch.cuda.get_device_name()}"
    return {
        "commit": os.environ.get("NESCIO_COMMIT") or found or "unknown",
        "versions": f"nescio {nescio.__version__}, python {platform.python_version()}, torch {torch.__version__}, "
        f"numpy {np.__version__}, scikit-learn {sklearn.__version__}",
        "hardware": hardware,
        "date": datetime.now(UTC).date().isoformat(),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records as CSV, packed where the name ends in ``.gz``; a crash leaves the old file whole."""
    rows = [dict(record) for record in records]
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    content = text.getvalue().encode()
    with written_beside(path) as file:
        file.write(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
