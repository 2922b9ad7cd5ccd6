"""Levels of the methods on the usual random splits, to be held against published tables.

``python -m nescio.benchmark.levels --methods mean-variance deep-ensemble --csv results/baselines_1.csv``

Plain random 90/10 splits, copies of a row on both sides where they fall so, as in the published tables; energy has its
first target alone (the heating load). All splits of a set are trained as one stack. Raw units of the target.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nescio._validation import InputError
from nescio.benchmark.methods import make_method
from nescio.benchmark.records import provenance, write_records
from nescio.datasets.benchmark_splits import make_splits
from nescio.datasets.uci import load_uci
from nescio.estimators.together import fit_stack

__all__ = ["DATASETS", "levels", "main", "page_row", "summary"]

DATASETS = ("boston", "concrete", "energy", "kin8nm", "ccpp", "wine_red", "yacht")
MEASURES = ("log_likelihood_raw", "gaussian_log_likelihood_raw", "rmse_raw", "coverage_90", "seconds")


def levels(method: str, dataset: str, trials: int) -> list[dict[str, Any]]:
    """Fit one method to all splits of one set as one stack; a record for each split.

    ``gaussian_log_likelihood_raw`` is that of the Gaussian with the mean and variance of the prediction, which the deep
    ensembles' table scores; for a single Gaussian both are the same. ``seconds`` is the time of the fit per split.
    """
    data = load_uci(dataset)
    target = data.y[:, 0]
    splits = make_splits(data.X, "standard", protocol="paper", trials=trials)
    models = [make_method(method, seed=seed) for seed in range(len(splits))]
    began = time.perf_counter()
    fitted = fit_stack(models, [(data.X[split.train], target[split.train]) for split in splits])
    seconds = (time.perf_counter() - began) / len(splits)
    return [
        {"method": method, "dataset": dataset, "trial": split.trial}
        | measure(model, data.X[split.test["all"]], target[split.test["all"]])
        | {"seconds": round(seconds, 3)}
        for model, split in zip(fitted, splits, strict=True)
    ]


def measure(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Means over the test rows, in units of y."""
    prediction = model.predict_dist(X)
    variance = np.square(prediction.std)
    gaussian = -0.5 * (np.log(2.0 * np.pi * variance) + np.square(y - prediction.mean) / variance)
    lower, upper = prediction.interval(0.9)
    return {
        "log_likelihood_raw": float(prediction.log_prob(y).mean()),
        "gaussian_log_likelihood_raw": float(gaussian.mean()),
        "rmse_raw": float(np.sqrt(np.square(y - prediction.mean).mean())),
        "coverage_90": float(((lower <= y) & (y <= upper)).mean()),
    }


def summary(records: Sequence[dict[str, Any]]) -> str:
    """A line for each method and set: means over splits, and the standard error of the log-likelihood."""
    lines = [f"{'method':14s} {'dataset':10s} {'error':>6s} " + " ".join(f"{name[:12]:>12s}" for name in MEASURES)]
    for method, dataset in dict.fromkeys((str(row["method"]), str(row["dataset"])) for row in records):
        rows = [row for row in records if (row["method"], row["dataset"]) == (method, dataset)]
        values = {name: np.array([float(row[name]) for row in rows]) for name in MEASURES}
        spread = values["log_likelihood_raw"]
        error = spread.std(ddof=1) / np.sqrt(len(spread)) if len(spread) > 1 else np.nan
        cells = " ".join(f"{values[name].mean():12.3f}" for name in MEASURES)
        lines.append(f"{method:14s} {dataset:10s} {error:6.3f} {cells}")
    return "\n".join(lines)


def page_row(method: str, records: Sequence[Mapping[str, Any]]) -> str:
    """The method's line in ``docs/baselines.md``: mean and standard error of the log-likelihood, set by set."""
    cells = []
    for dataset in DATASETS:
        values = [
            float(row["log_likelihood_raw"]) for row in records if (row["method"], row["dataset"]) == (method, dataset)
        ]
        error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        cells.append(f"{np.mean(values):.2f} ± {error:.2f}" if values else "")
    return f"| ours, `{method}` | {' | '.join(cells)} |"


def merge(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """Write the records; those of other methods and sets that the file holds stay as they are."""
    done = {(row["method"], row["dataset"]) for row in records}
    kept: list[dict[str, Any]] = []
    if path.exists():
        with path.open(newline="") as file:
            kept = [row for row in csv.DictReader(file) if (row["method"], row["dataset"]) not in done]
    order = lambda row: (str(row["method"]), str(row["dataset"]), int(row["trial"]))
    write_records(path, sorted([*kept, *records], key=order))


def main(arguments: list[str] | None = None) -> int:
    """Run the methods, print a line for each set as it is done, write the records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", required=True)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--csv", type=Path, help="write the records here; those of other methods and sets are kept")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    try:
        for place, (method, dataset) in enumerate((m, d) for m in options.methods for d in options.datasets):
            records = levels(method, dataset, options.trials)
            lines = summary(records).splitlines()
            print("\n".join(lines if place == 0 else lines[1:]), flush=True)
            if options.csv:
                merge(options.csv, [record | provenance() for record in records])
    except InputError as error:
        print(f"levels: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
