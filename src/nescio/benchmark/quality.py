"""Accuracy, calibration and detection of the defaults on six UCI sets: `make quality`.

Random 90/10 splits with rows of identical inputs on one side; d-VV and VV with the same networks, inside prior and
seeds; standardised units; every number is a mean over test rows and outputs of one split.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed

from nescio import DissipativeRegressor, VariationalVarianceRegressor
from nescio._random import child_seed
from nescio._validation import InputError
from nescio.benchmark.outside_points import box, far, near
from nescio.benchmark.records import provenance, write_records
from nescio.datasets.splits import grouped_train_test
from nescio.datasets.uci import load_uci
from nescio.metrics import auroc

__all__ = ["DATASETS", "evaluate", "main", "summary"]

DATASETS = ("concrete", "yacht", "ccpp", "energy", "boston", "wine_red")
METHODS = {"d-vv": DissipativeRegressor, "vv": VariationalVarianceRegressor}
FAR = 100.0  # standard deviations


def evaluate(dataset: str, method: str, seed: int, **parameters: Any) -> dict[str, Any]:
    """Fit one model on one split and measure it."""
    torch.set_num_threads(1)
    data = load_uci(dataset)
    train, test = grouped_train_test(data.X, 0.1, seed)
    model = METHODS[method](random_state=seed, **parameters)
    began = time.perf_counter()
    targets = data.y if data.y.shape[1] > 1 else data.y[:, 0]
    model.fit(data.X[train], targets[train])
    seconds = time.perf_counter() - began

    y, scale = data.y[test], model.y_scale_
    prediction = model.predict_dist(data.X[test])
    x = (data.X[test] - model.x_shift_) / model.x_scale_
    level_std = lambda rows: (model.predict_dist(rows).std.reshape(len(rows), -1) / scale).mean(1)
    inside_std, inside_support = level_std(data.X[test]), model.support(data.X[test])
    result: dict[str, Any] = {"dataset": dataset, "method": method, "seed": seed}
    shaped = targets[test]
    result["log_likelihood"] = float((prediction.log_prob(shaped).reshape(y.shape) + np.log(scale)).mean())
    result["rmse"] = float(np.sqrt(np.square((prediction.mean.reshape(y.shape) - y) / scale).mean()))
    for level in (50, 90, 95):
        lower, upper = prediction.interval(level / 100)
        result[f"coverage_{level}"] = float(((lower <= shaped) & (shaped <= upper)).mean())
    result["crps"] = float((prediction.crps(shaped).reshape(y.shape) / scale).mean())
    rng = np.random.default_rng(child_seed(seed, "outside", dataset))
    off = {"near": near(x, rng), "far": far(x, rng), "box": box(x, rng), "very_far": x + FAR * rng.normal(size=x.shape)}
    points = {name: z * model.x_scale_ + model.x_shift_ for name, z in off.items()}
    for name in ("near", "far", "box"):
        result[f"auroc_{name}"] = auroc(inside_std, level_std(points[name]))
    result["auroc_near_support"] = auroc(1.0 - inside_support, 1.0 - model.support(points["near"]))
    result["std_far_ratio"] = float(np.median(level_std(points["very_far"]) / _level(model)))
    result["all_finite"] = bool(all(np.isfinite(level_std(rows)).all() for rows in [data.X[test], *points.values()]))
    result["shape"], result["kl_weight"] = float(model.shape_), float(model.kl_weight_)
    result["seconds"] = seconds
    return result


def _level(model: Any) -> float:
    """The level outside, in units of the target's spread; that spread for a method without a level."""
    return float((model.outside_std_ / model.y_scale_).mean()) if hasattr(model, "outside_std_") else 1.0


COLUMNS = (
    "log_likelihood", "rmse", "coverage_50", "coverage_90", "coverage_95", "crps", "auroc_box", "auroc_far",
    "auroc_near", "auroc_near_support", "std_far_ratio", "seconds",
)  # fmt: skip


def summary(records: list[dict[str, Any]]) -> str:
    """Means over seeds, a line for each set and method, with the paired difference of the log-likelihood."""
    lines = [
        f"{'dataset':10s} {'method':6s} " + " ".join(f"{name.replace('auroc_', 'au_')[:10]:>10s}" for name in COLUMNS)
    ]
    for dataset in dict.fromkeys(record["dataset"] for record in records):
        by_method: dict[str, dict[int, dict[str, Any]]] = {}
        for record in records:
            if record["dataset"] == dataset:
                by_method.setdefault(record["method"], {})[record["seed"]] = record
        for method, runs in by_method.items():
            means = [np.mean([run[name] for run in runs.values()]) for name in COLUMNS]
            lines.append(f"{dataset:10s} {method:6s} " + " ".join(f"{value:10.3f}" for value in means))
        if len(by_method) == 2:
            both = by_method["d-vv"].keys() & by_method["vv"].keys()
            gaps = [by_method["d-vv"][s]["log_likelihood"] - by_method["vv"][s]["log_likelihood"] for s in both]
            lines.append(f"{dataset:10s} paired difference of log_likelihood, d-vv - vv: {np.mean(gaps):+.3f}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the grid, print the table, write the records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, default=Path("quality.csv"), help="of records with versions and hardware")
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    tasks = [(d, m, s) for d in options.datasets for m in options.methods for s in range(options.seeds)]
    try:
        for name in options.datasets:
            load_uci(name)
        runs = Parallel(n_jobs=options.jobs, return_as="generator")(delayed(evaluate)(*task) for task in tasks)
        records = []
        for record in runs:
            records.append(record)
            print(
                f"[{len(records)}/{len(tasks)}] {record['dataset']} {record['method']} {record['seed']}",
                file=sys.stderr,
            )
    except InputError as error:
        print(f"quality: {error}", file=sys.stderr)
        return 2
    write_records(options.csv, [record | provenance() for record in records])
    print(summary(records))
    return 0


if __name__ == "__main__":
    sys.exit(main())
