"""d-VV around gradient boosting, beside NGBoost: `make foreign-mean`.

The splits, seeds and rows are those of protocol sound, whose records hold NGBoost's log-likelihoods; ours are measured
here, with the default settings and calibrated intervals. The file is written after each run, and runs that it holds are
not repeated. A record is one region of one split and one target; standardised units.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor

from nescio import DissipativeRegressor
from nescio._validation import InputError
from nescio.benchmark.evaluate import judged_rows
from nescio.benchmark.foreign_mean_tables import summary
from nescio.benchmark.plan import Task, task_seed
from nescio.benchmark.records import provenance, write_records
from nescio.datasets.benchmark_splits import make_splits
from nescio.datasets.uci import load_uci

__all__ = ["BOOSTING", "DATASETS", "KINDS", "main", "measure"]

DATASETS = ("boston", "concrete", "energy", "kin8nm", "ccpp")
KINDS = ("standard", "gap")
TRIALS_OF_RECORD = 10  # the number of a trial means one split only where as many are drawn
BOOSTING = GradientBoostingRegressor(n_estimators=200, max_depth=5, subsample=0.5, max_features=0.5, random_state=0)
"""Of the boosters tried the best mean on these sets, holes included: exact splits fall in the middle of a hole."""
LEVEL = 0.9


def measure(dataset: str, kind: str, trial: int, **settings: Any) -> Iterator[dict[str, Any]]:
    """Fit one model to one split and measure it: a record for each region and target."""
    torch.set_num_threads(1)
    data = load_uci(dataset)
    split = make_splits(data.X, kind, trials=TRIALS_OF_RECORD)[trial]
    seed = task_seed(Task("sound", dataset, kind, "d-vv", trial))
    targets = data.y if data.y.shape[1] > 1 else data.y[:, 0]
    X, y = data.X[split.train], targets[split.train]
    model = DissipativeRegressor(mean=BOOSTING, calibrate="conformal", random_state=seed, **settings)
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    alone = [clone(BOOSTING).fit(X, one) for one in data.y[split.train].T]
    for region, rows in judged_rows(split, len(data.X), seed).items():
        if kind == "gap" and region == "all":
            continue
        fresh, truth = data.X[rows], targets[rows]
        prediction, (lower, upper) = model.predict_dist(fresh), model.predict_interval(fresh, LEVEL)
        wide = lambda values: np.reshape(values, (-1, data.y.shape[1]))
        likelihood = wide(prediction.log_prob(truth)) + np.log(model.y_scale_)
        covered = wide((lower <= truth) & (truth <= upper))
        own = prediction.interval(LEVEL)
        fitted = wide((own[0] <= truth) & (truth <= own[1]))
        error = (wide(model.predict(fresh)) - data.y[rows]) / model.y_scale_
        inside = model.interval_kind(fresh, LEVEL) == "inside"
        identical = all(
            np.array_equal(wide(model.predict(fresh))[:, t], one.predict(fresh)) for t, one in enumerate(alone)
        )
        for target in range(data.y.shape[1]):
            yield {
                "dataset": dataset,
                "split": kind,
                "trial": trial,
                "region": region,
                "target": target,
                "seed": seed,
                "rows": len(rows),
                "log_likelihood": float(likelihood[:, target].mean()),
                "rmse": float(np.sqrt(np.square(error[:, target]).mean())),
                "inside_rows": int(inside.sum()),
                "covered": int(covered[inside, target].sum()),
                "covered_fitted": int(fitted[inside, target].sum()),
                "width": float(wide(upper - lower)[:, target].mean() / model.y_scale_[target]),
                "width_fitted": float(wide(own[1] - own[0])[:, target].mean() / model.y_scale_[target]),
                "calibration_rows": len(model.conformal_.inside) if model.conformal_ is not None else 0,
                "identical": identical,
                "seconds": seconds,
            }


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, write the records, print the table; 1 where a claim does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, default=Path("foreign_mean.csv"))
    parser.add_argument("--sound", type=Path, default=Path("results/uci_sound.csv"), help="records that hold NGBoost's")
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--max-steps", type=int)
    options = parser.parse_args(arguments)
    settings = {} if options.max_steps is None else {"max_steps": options.max_steps}
    try:
        tasks = [(d, kind, t) for t in range(options.trials) for d in options.datasets for kind in KINDS]
        there = {
            (d, kind): len(make_splits(load_uci(d).X, kind, trials=TRIALS_OF_RECORD))
            for d in options.datasets
            for kind in KINDS
        }
        records = _read(options.csv)
        done = {(record["dataset"], record["split"], int(record["trial"])) for record in records}
        for task in tasks:
            if task in done or task[2] >= there[task[:2]]:
                continue
            records += [{**record, **provenance()} for record in measure(*task, **settings)]
            write_records(options.csv, records)
            print(f"{' '.join(map(str, task))}: {records[-1]['seconds']:.0f} s", file=sys.stderr)
        text, holds = summary(_read(options.csv), _read(options.sound))
    except InputError as error:
        print(f"foreign_mean: {error}", file=sys.stderr)
        return 2
    print(text)
    return 0 if holds else 1


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


if __name__ == "__main__":
    sys.exit(main())
