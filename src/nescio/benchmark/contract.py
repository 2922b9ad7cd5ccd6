"""Does the default keep the contract on the UCI sets at hand and on the toy problem? `make contract`.

Models are fitted as the command line fits them, with calibrated intervals, on nine tenths of the rows, and checked on
the rest, rows of identical inputs on one side; on the toy problem they are checked on rows drawn anew.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nescio import DissipativeRegressor
from nescio._validation import InputError
from nescio.benchmark.records import provenance, write_records
from nescio.datasets import grouped_train_test, load_uci, toy_regression, uci_names
from nescio.testing import Report, check_extrapolation

__all__ = ["TOY", "main", "measure", "records_of"]

TOY = "toy"


def rows_of(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training rows and targets, and fresh ones."""
    if name == TOY:
        toy, fresh = toy_regression(seed=seed), toy_regression(seed=seed + 1)
        return toy.x, toy.y, fresh.x, fresh.y
    data = load_uci(name)
    targets = data.y if data.y.shape[1] > 1 else data.y[:, 0]
    train, test = grouped_train_test(data.X, 0.1, seed)
    return data.X[train], targets[train], data.X[test], targets[test]


def measure(name: str, seed: int, **parameters: Any) -> tuple[Report, float]:
    """Fit and check; the report, and the seconds of the fit."""
    X, y, X_fresh, y_fresh = rows_of(name, seed)
    began = time.perf_counter()
    model = DissipativeRegressor(calibrate="conformal", random_state=seed, **parameters).fit(X, y)
    seconds = time.perf_counter() - began
    return check_extrapolation(model, X_fresh, y_fresh), seconds


def records_of(name: str, seed: int, report: Report, seconds: float) -> list[dict[str, Any]]:
    """The lines of a report as records, with what made them."""
    made = provenance()
    return [{"dataset": name, "seed": seed, **line, "seconds": seconds, **made} for line in report.records()]


def main(arguments: list[str] | None = None) -> int:
    """Fit, check and print; write the records after each set, so that nothing is lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, default=Path("contract.csv"))
    parser.add_argument("--datasets", nargs="+", help="default: all UCI sets at hand, and toy")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-steps", type=int)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    parameters = {} if options.max_steps is None else {"max_steps": options.max_steps}
    records, broken = [], []
    try:
        names = options.datasets or [TOY, *sorted(uci_names(), key=lambda name: load_uci(name).X.size)]
        for name in names:
            report, seconds = measure(name, options.seed, **parameters)
            records += records_of(name, options.seed, report, seconds)
            broken += [] if report.passed else [name]
            print(f"{name}: {'kept' if report.passed else 'BROKEN'}, fitted in {seconds:.0f} s")
            print(report.table(), flush=True)
            write_records(options.csv, records)
    except InputError as error:
        print(f"contract: {error}", file=sys.stderr)
        return 2
    print(f"broken on {', '.join(broken)}" if broken else f"kept on all {len(names)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
