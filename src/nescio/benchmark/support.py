"""Is `support` uniform on fresh rows from inside, and are false alarms as rare as stated? `make support`.

Half of the distinct rows of a table, drawn at random, is the reference; the others are fresh rows from inside. Nothing
is trained. Their scores are compared with the calibration scores by the two-sample test of Kolmogorov and Smirnov, and
the false alarms at each rate with the 99 % quantile of their beta-binomial distribution. A small reference shows what
is said where a rate cannot be kept.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import betabinom, ks_2samp

from nescio._random import child_seed
from nescio.benchmark.records import provenance, write_records
from nescio.calibration import EDGE, EDGE_RATE, OUTSIDE, OUTSIDE_RATE, fit_support
from nescio.datasets.uci import load_uci

__all__ = ["main", "measure"]

SETS = ("concrete", "ccpp", "kin8nm")
SEEDS = 20
SMALL = 150  # too few for 1 false alarm in 200
RATES = {EDGE: EDGE_RATE, OUTSIDE: OUTSIDE_RATE}
BAND = 0.99


def measure(X: np.ndarray, seed: int, rows: int | None = None) -> dict[str, Any]:
    """One split of the distinct rows of ``X``; ``rows`` are the reference, by default half of them."""
    distinct = np.unique(X, axis=0)
    order = np.random.default_rng(child_seed(seed, "support split")).permutation(len(distinct))
    count = len(distinct) // 2 if rows is None else rows
    reference, fresh = distinct[order[:count]], distinct[order[count:]]
    shift, scale = reference.mean(0), np.maximum(reference.std(0), 1e-12)
    support = fit_support((reference - shift) / scale, seed=seed)
    x = (fresh - shift) / scale
    p = support.p_value(x)
    test = ks_2samp(support.score(x), support.scores)
    record: dict[str, Any] = {
        "seed": seed,
        "reference_rows": count,
        "fresh_rows": len(fresh),
        "ks": round(float(test.statistic), 5),
        "ks_p_value": round(float(test.pvalue), 6),
    }
    for name, rate in RATES.items():
        told = support.can_tell(rate)
        alarms = int((p <= rate).sum())
        shape = rate * (len(support.scores) + 1)
        most = int(betabinom.ppf(BAND, len(fresh), shape, len(support.scores) + 1 - shape))
        record[f"{name}_rate"] = rate
        record[f"{name}_alarms"] = alarms if told else "too few rows"
        record[f"{name}_most"] = most if told else "too few rows"
    return record


def main(arguments: list[str] | None = None) -> int:
    """Measure every set and seed, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, default=Path("support.csv"))
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args(arguments)
    records = []
    for name in options.sets:
        X = load_uci(name).X
        runs = [measure(X, seed) for seed in range(options.seeds)]
        records += [{"data": name} | run for run in [*runs, measure(X, 0, SMALL)]]
        low = sum(run["ks_p_value"] < 0.01 for run in runs)
        over = sum(run[f"{kind}_alarms"] > run[f"{kind}_most"] for run in runs for kind in RATES)
        print(f"{name}: {low} of {len(runs)} tests below 1 %; {over} of {2 * len(runs)} rates above their 99 % band")
    write_records(options.csv, [record | provenance() for record in records])
    return 0


if __name__ == "__main__":
    sys.exit(main())
