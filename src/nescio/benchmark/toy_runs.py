"""Every method on the paper's toy problem, plain and with a hole, many times over: `make toy`.

One line of ``results/toy.csv`` for each fit, what ``nescio.benchmark.desiderata`` says of it; and the curves of the
first seed in ``results/toy_curves.npz``. What a file has already is not fitted again.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed

from nescio._files import written_beside
from nescio._validation import InputError, check_one_of
from nescio.benchmark.desiderata import HOLE, ToyFit, toy_desiderata
from nescio.benchmark.methods import make_method
from nescio.benchmark.names import FAMILY, METHODS
from nescio.benchmark.records import provenance, write_records
from nescio.datasets.toy import ToyData, toy_regression, toy_std
from nescio.estimators.levels import outside_level
from nescio.estimators.mean_variance import MeanVarianceRegressor
from nescio.estimators.precision_regressor import PrecisionRegressor
from nescio.estimators.together import fit_family

__all__ = [
    "DATA",
    "GRID",
    "fit_toy",
    "load_curves",
    "main",
    "measure",
    "measure_family",
    "read_toy",
    "save_curves",
    "toy_record",
]

GRID = (-25.0, 35.0, 601)  # the range of the paper's figures, a point every tenth
DATA = ("standard", "shifted")
SEEDS = 20
CURVES = ("x_data", "y_data", "x", "mean", "std", "aleatoric_std", "epistemic_std", "true_std", "kl")


def fit_toy(data: str, method: str, seed: int, **parameters: Any) -> ToyFit:
    """Fit one method, with ``parameters`` changed where they are given, and predict on the grid.

    Paper: fig:toy_result.
    """
    check_one_of("data", data, DATA)
    torch.set_num_threads(1)  # two threads on a shared core are slower than one
    toy = toy_regression(seed=seed, hole=HOLE if data == "shifted" else None)
    model: Any = make_method(method, seed=seed)
    own = {name: value for name, value in parameters.items() if name in model.get_params(deep=False)}
    if len(own) < len(parameters):  # an ensemble of mean-variance networks: the rest is for its members
        own["member"] = MeanVarianceRegressor(**{n: value for n, value in parameters.items() if n not in own})
    return _curves(data, method, toy, model.set_params(**own).fit(toy.x, toy.y))


def _curves(data: str, method: str, toy: ToyData, model: Any) -> ToyFit:
    """What a fitted model predicts on the grid."""
    x = np.linspace(*GRID)
    prediction = model.predict_dist(x[:, None])
    return ToyFit(
        data=data,
        method=method,
        x_data=toy.x[:, 0],
        y_data=toy.y,
        x=x,
        mean=prediction.mean,
        std=prediction.std,
        aleatoric_std=prediction.aleatoric_std,
        epistemic_std=np.hypot(prediction.epistemic_std, prediction.mean_std),
        true_std=toy_std(x),
        level=_level(model),
        hole=HOLE if data == "shifted" else None,
        kl=_knowledge(model, x),
    )


def _level(model: Any) -> float:
    """The level that d-VV takes by default, also for its relatives, which are judged by it; nan for other families."""
    if not hasattr(model, "inside_std_"):
        return float("nan")
    explained = np.square(model.inside_std_ / model.y_scale_)
    return float((outside_level("auto", model.y_scale_, explained) * model.y_scale_)[0])


def _knowledge(model: Any, x: np.ndarray) -> np.ndarray | None:
    """Divergence from the outside prior, or from the only one, ``(G,)``; None where there is none."""
    if not isinstance(model, PrecisionRegressor) or (model.outside_prior_ is None and model.inside_prior_ is None):
        return None
    return np.asarray(model.knowledge(x[:, None]))


def toy_record(fit: ToyFit, seed: int) -> dict[str, Any]:
    """The line of a fit: the four numbers, the level, and nothing that could be worked out from them."""
    found = toy_desiderata(fit.x, fit.std, fit.true_std, fit.kl, fit.hole)
    return {
        "data": fit.data,
        "method": fit.method,
        "seed": seed,
        "rms_log": f"{found.rms_log:.6g}",
        "ratio": f"{found.ratio:.6g}",
        "seen_ratio": f"{found.seen_ratio:.6g}",
        "low_ratio": f"{found.low_ratio:.6g}",
        "kl_share": f"{found.kl_share:.6g}",
        "level": f"{fit.level:.6g}",
    }


def measure(data: str, method: str, seed: int, **parameters: Any) -> tuple[dict[str, Any], ToyFit]:
    """Fit and judge, with the seconds that it took."""
    began = time.process_time()
    fit = fit_toy(data, method, seed, **parameters)
    return toy_record(fit, seed) | {"cpu_seconds": f"{time.process_time() - began:.1f}"}, fit


def measure_family(
    data: str, methods: Sequence[str], seed: int, **parameters: Any
) -> list[tuple[dict[str, Any], ToyFit]]:
    """Fit and judge methods of split training, each phase that they share once.

    The seconds of each count all of its phases, at the share of a core that the whole family had.
    """
    torch.set_num_threads(1)
    toy = toy_regression(seed=seed, hole=HOLE if data == "shifted" else None)
    began, worked = time.perf_counter(), time.process_time()
    asked: list[Any] = [make_method(method, seed=seed) for method in methods]
    models = fit_family([model.set_params(**parameters) for model in asked], toy.x, toy.y)
    share = (time.process_time() - worked) / (time.perf_counter() - began)
    fits = [_curves(data, method, toy, model) for method, model in zip(methods, models, strict=True)]
    return [
        (toy_record(fit, seed) | {"cpu_seconds": f"{share * model.fit_seconds_:.1f}"}, fit)
        for fit, model in zip(fits, models, strict=True)
    ]


def _measure(data: str, methods: Sequence[str], seed: int) -> list[tuple[dict[str, Any], ToyFit]]:
    return [measure(data, methods[0], seed)] if len(methods) == 1 else measure_family(data, methods, seed)


def _grouped(tasks: Sequence[tuple[str, str, int]]) -> list[tuple[str, tuple[str, ...], int]]:
    """The tasks in their order, those of split training on one table together, where the first of them stood."""
    groups: dict[tuple[str, str, int], list[str]] = {}
    for data, method, seed in tasks:
        groups.setdefault((data, "family" if method in FAMILY else method, seed), []).append(method)
    return [(data, tuple(methods), seed) for (data, _, seed), methods in groups.items()]


def read_toy(path: Path) -> list[dict[str, str]]:
    """The lines of a CSV of toy records; none where there is no file."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def save_curves(path: Path, fits: Mapping[str, ToyFit]) -> None:
    """Write curves by name, in single precision, without anything that could be run on reading."""
    arrays: dict[str, np.ndarray] = {}
    for name, fit in fits.items():
        for part in CURVES:
            values = getattr(fit, part)
            if values is not None:
                arrays[f"{name}/{part}"] = np.asarray(values, dtype=np.float32)
        hole = fit.hole if fit.hole is not None else (np.nan, np.nan)
        arrays[f"{name}/facts"] = np.array([fit.level, *hole])
        arrays[f"{name}/names"] = np.array([fit.data, fit.method])
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
    with written_beside(path) as handle:
        handle.write(packed.getvalue())


def load_curves(path: Path) -> dict[str, ToyFit]:
    """Curves that ``save_curves`` wrote, by name; none where there is no file."""
    if not path.is_file():
        return {}
    with np.load(path, allow_pickle=False) as arrays:
        found = {}
        for name in dict.fromkeys(key.rpartition("/")[0] for key in arrays.files):
            level, low, high = arrays[f"{name}/facts"].tolist()
            data, method = arrays[f"{name}/names"].tolist()
            parts = {part: arrays[f"{name}/{part}"] for part in CURVES if f"{name}/{part}" in arrays.files}
            hole = None if np.isnan(low) else (low, high)
            found[name] = ToyFit(data=data, method=method, level=level, hole=hole, **parts)
    return found


def _order(record: Mapping[str, Any]) -> tuple[int, int, int]:
    return DATA.index(record["data"]), METHODS.index(record["method"]), int(record["seed"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit what is missing, and write both files after every fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, default=Path("results/toy.csv"))
    parser.add_argument("--curves", type=Path, help="also keep the curves of seed 0, for the figures")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    records: list[dict[str, Any]] = list(read_toy(options.csv))
    curves = {} if options.curves is None else load_curves(options.curves)
    there = {(record["data"], record["method"], int(record["seed"])) for record in records}
    drawn = {(fit.data, fit.method, 0) for fit in curves.values()}
    tasks = [
        task
        for seed in range(options.seeds)
        for method in options.methods
        for data in options.data
        if (task := (data, method, seed)) not in there
        or (options.curves is not None and seed == 0 and task not in drawn)
    ]
    try:
        groups = _grouped(tasks)
        runs = Parallel(n_jobs=options.jobs, return_as="generator_unordered")(delayed(_measure)(*g) for g in groups)
        for number, (record, fit) in enumerate((one for run in runs for one in run), start=1):
            key = (record["data"], record["method"], int(record["seed"]))
            print(f"[{number}/{len(tasks)}] {' '.join(map(str, key))}", file=sys.stderr)
            if key not in there:
                records = sorted([*records, record | provenance()], key=_order)
                write_records(options.csv, records)
            if options.curves is not None and key[2] == 0:
                curves[f"{fit.data}/{fit.method}"] = fit
                save_curves(options.curves, dict(sorted(curves.items())))
    except InputError as error:
        print(f"toy: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
