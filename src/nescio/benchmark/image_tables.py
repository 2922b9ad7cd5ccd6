"""The models of images at a glance: likelihoods and samples, the variance far away, times; ours and as printed."""

from __future__ import annotations

from collections.abc import Sequence

from nescio.benchmark.cells import EMPTY, Cell, Found, Rows, Table, gather_rows, spread_cell
from nescio.benchmark.image_methods import IMAGE_METHODS
from nescio.benchmark.published_images import PRINTED_MEASURES, PRINTED_MODELS, PRINTED_SETS, printed_measure
from nescio.benchmark.published_times import GENERATIVE_TIMES
from nescio.benchmark.statistics import spread

__all__ = ["image_tables", "image_times_tables", "metrics_tables", "printed_metrics_table", "printed_times_table"]

MEASURES = {
    "log_likelihood_truncated": "log p, truncated",
    "rmse_sample": "RMSE of samples",
    "bits_per_dim": "bits per pixel",
    "elbo": "ELBO",
    "log_likelihood": "log p, 100 codes",
    "rmse_mean": "RMSE of means",
}
KEY = ("protocol", "dataset", "latent", "method", "metric")
LARGER = ("log_likelihood_truncated", "elbo", "log_likelihood")
NOT_COMPARED = ("bernoulli", "bernoulli-entropy")  # a likelihood of shares of ones is no density of grey values


def image_tables(rows: Rows) -> list[Table]:
    """Measures of all models, the variance far away, and times."""
    rows = list(rows)
    return [*metrics_tables(rows), *image_times_tables(rows)]


def metrics_tables(rows: Rows) -> list[Table]:
    """For each protocol, set and length of a code one table of measures, and one of the variance far away.

    Printed numbers stand in columns of their own, beside the models that they were printed for.

    Paper: tab:metrics-vae.
    """
    found = gather_rows(rows, KEY)
    tables = []
    for place in dict.fromkeys(key[:3] for key in found):
        methods = [name for name in IMAGE_METHODS if (*place, name, "elbo") in found]
        if methods:
            tables += [_measures(found, place, methods), *_rays(found, place, methods)]
    return tables


def _measures(found: Found, place: tuple[str, ...], methods: Sequence[str]) -> Table:
    protocol, dataset, latent = place
    comparable = latent == PRINTED_SETS.get(dataset) and protocol != "tf32"
    printed = {
        method: [printed_measure(metric, method, dataset) or EMPTY for metric in PRINTED_MEASURES]
        for method in methods
        if comparable and method in PRINTED_MODELS
    }
    best = {}
    for metric in MEASURES:
        means = {
            method: spread(found[*place, method, metric]).mean
            for method in methods
            if (*place, method, metric) in found and method not in NOT_COMPARED
        }
        if means:
            best[metric] = (max if metric in LARGER else min)(means, key=means.__getitem__)
    lines = []
    for method in methods:
        cells = [
            spread_cell(found.get((*place, method, metric)), best=best.get(metric) == method) for metric in MEASURES
        ]
        beside = printed.get(method, [EMPTY] * len(PRINTED_MEASURES))
        seeds = len(found[*place, method, "elbo"])
        lines.append((Cell(method), Cell(str(seeds)), *cells, *(beside if printed else ())))
    notes = [
        "Mean ± standard deviation over seeds, on all test images, all columns of a row from the same models. Nats per "
        "image; bits per pixel and channel, an upper bound on the code length; pixels run from 0 to 1.",
    ]
    if any(method in NOT_COMPARED for method in methods):
        notes.append("Bernoulli likelihoods are of shares of ones and cannot be compared with densities.")
    columns = ("method", "seeds", *MEASURES.values(), *(("printed log p", "printed RMSE") if printed else ()))
    title = f"{dataset}, codes of {latent} numbers, protocol {protocol}"
    return Table(f"images_{protocol}_{dataset}_{latent}", title, columns, tuple(lines), tuple(notes), 2, 3)


def _rays(found: Found, place: tuple[str, ...], methods: Sequence[str]) -> list[Table]:
    protocol, dataset, latent = place
    lines = []
    for method in methods:
        lowest, highest = (found.get((*place, method, f"ray_variance_{end}")) for end in ("lowest", "highest"))
        if lowest and highest and method not in NOT_COMPARED:
            lines.append(
                (
                    Cell(method),
                    spread_cell(found.get((*place, method, "outside_variance"))),
                    spread_cell(found.get((*place, method, "ray_variance_mean"))),
                    Cell(min(lowest)),
                    Cell(max(highest)),
                    spread_cell(found.get((*place, method, "cost_per_pixel"))),
                )
            )
    if not lines:
        return []
    columns = ("method", "level", "mean over rays", "lowest ray", "highest ray", "cost, nats per pixel")
    notes = (
        "The decoder's variance, averaged over pixels, on 64 rays at twice the radius of the data; lowest and highest "
        "over all rays and seeds. Cost: truncated log p of the V3AE of the same seed minus that of the d-V3AE.",
    )
    title = f"Far from the data: {dataset}, codes of {latent} numbers, protocol {protocol}"
    return [Table(f"rays_{protocol}_{dataset}_{latent}", title, columns, tuple(lines), notes, 1, 4)]


def printed_metrics_table() -> Table:
    """The paper's table of measures, whole.

    Paper: tab:metrics-vae.
    """
    lines = [
        (Cell(dataset), Cell(latent), Cell(method),
         *(printed_measure(metric, method, dataset) or EMPTY for metric in PRINTED_MEASURES))
        for dataset, latent in PRINTED_SETS.items() for method in PRINTED_MODELS
    ]  # fmt: skip
    columns = ("set", "codes", "method", "printed log p, truncated", "printed RMSE of samples")
    notes = ("Mean ± standard deviation over 5 trials, 10 for FashionMNIST by the authors' logs.",)
    return Table("images_printed", "The paper's numbers", columns, tuple(lines), notes, 3, 3)


def image_times_tables(rows: Rows) -> list[Table]:
    """Seconds of training of each model that was timed, beside those printed for the same set; empty without any.

    Paper: tab:runtime_gen_models, tab:runtime_gen_models_wout_pi.
    """
    found = gather_rows(rows, KEY)
    lines = []
    for key, seconds in found.items():
        protocol, dataset, latent, method, metric = key
        if metric != "seconds_train":
            continue
        _, printed = GENERATIVE_TIMES.get(method, {}).get(dataset, (None, None))
        overhead = found.get((protocol, dataset, latent, method, "overhead_pseudo_inputs"))
        labels = map(Cell, (dataset, method, latent, protocol))
        lines.append((*labels, spread_cell(seconds), spread_cell(overhead), Cell(printed)))
    if not lines:
        return []
    columns = ("set", "method", "codes", "protocol", "seconds", "overhead of pseudo-inputs", "printed seconds")
    notes = ("Training of both phases, with the device to itself. The printed seconds are of an RTX 3080.",)
    return [Table("image_times", "Seconds of training", columns, tuple(lines), notes, 4, 2)]


def printed_times_table(method: str) -> Table:
    """The paper's table of times and emissions of one model, whole.

    Paper: tab:runtime_gen_models, tab:runtime_gen_models_wout_pi.
    """
    printed = GENERATIVE_TIMES[method].items()
    lines = tuple((Cell(name), Cell(f"{carbon:.6f}"), Cell(seconds)) for name, (carbon, seconds) in printed)
    columns = ("set", "printed CO₂ (kg)", "printed seconds")
    notes = ("On one RTX 3080.",)
    return Table(f"times_printed_{method}", "The paper's numbers", columns, lines, notes, 1, 2)
