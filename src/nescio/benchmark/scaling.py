"""Time and memory of a fit against the number of rows, at a fixed number of steps: `make scaling`.

Each size runs in a process of its own, so that its peak memory is its own; tables of 20 columns. The first records are
fits with all defaults, on tables that get ten, five and two posteriors.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from nescio import DissipativeRegressor
from nescio.benchmark.records import provenance, write_records

__all__ = ["main", "measure"]

COLUMNS = 20
STEPS = 300
DEFAULTS = (900, 9_000, 10_000)  # rows of the fits with all defaults


def measure(rows: int, steps: int | None) -> dict[str, Any]:
    """Fit once; seconds, and what the peak of the memory rose by, in MiB."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, COLUMNS))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=rows)
    model = DissipativeRegressor(random_state=0)
    if steps is not None:
        model.set_params(max_steps=steps)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "rows": rows,
        "columns": COLUMNS,
        "max_steps": "default" if steps is None else steps,
        "seconds": round(seconds, 2),
        "table_mib": round(X.nbytes / 2**20, 1),
        "fit_mib": round((after - before) / 2**10, 1),
    }


def main(arguments: list[str] | None = None) -> int:
    """Measure every size, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, default=Path("scaling.csv"), help="of records with versions and hardware")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--one", type=int, nargs=2, metavar=("ROWS", "STEPS"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(measure(options.one[0], options.one[1] or None)))
        return 0
    records = []
    for rows, steps in [*((rows, 0) for rows in DEFAULTS), *((rows, STEPS) for rows in options.rows)]:
        command = [sys.executable, "-m", "nescio.benchmark.scaling", "--one", str(rows), str(steps)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        records.append(json.loads(done.stdout.splitlines()[-1]))
        print(records[-1], flush=True)
    write_records(options.csv, [record | provenance() for record in records])
    return 0


if __name__ == "__main__":
    sys.exit(main())
