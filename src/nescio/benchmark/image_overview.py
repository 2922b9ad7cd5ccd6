"""The models of images at a glance: likelihoods and samples, the variance far away, detection, times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nescio.benchmark.cells import EMPTY, Cell, Table
from nescio.benchmark.image_methods import IMAGE_METHODS
from nescio.benchmark.image_tables import PUBLISHED_VAE
from nescio.benchmark.statistics import spread
from nescio.datasets.foreign import FOREIGN_TRANSFORMS

__all__ = ["PRINTED_SECONDS", "detection_tables", "image_tables"]

Rows = Iterable[Mapping[str, str]]
Found = dict[tuple[str, ...], list[float]]

PRINTED_SECONDS = {
    "fashion_mnist": (407.991, 504.190),
    "cifar10": (2022.803, 2573.566),
    "svhn": (2023.293, 2585.144),
}
"""Of training without and with pseudo-inputs. Paper: tab:runtime_gen_models, tab:runtime_gen_models_wout_pi."""

MEASURES = {
    "log_likelihood_truncated": "log p, truncated",
    "rmse_sample": "RMSE of samples",
    "bits_per_dim": "bits per pixel",
    "elbo": "ELBO",
    "log_likelihood": "log p, 100 codes",
    "rmse_mean": "RMSE of means",
}
PRINTED_LATENT = {"fashion_mnist": "10", "svhn": "128", "cifar10": "128"}
PRINTED = ("log_likelihood_truncated", "rmse_sample")
LARGER = ("log_likelihood_truncated", "elbo", "log_likelihood")
NOT_COMPARED = ("bernoulli", "bernoulli-entropy")  # a likelihood of shares of ones is no density of grey values
SINGLE = (
    "novelty", "mahalanobis", "copod", "log_likelihood", "elbo", "typicality", "complexity", "reconstruction",
    "total_variance", "epistemic_variance", "knowledge", "latent_density", "knn_latents", "knn_pixels",
)  # fmt: skip


def _gathered(rows: Rows, names: Sequence[str]) -> Found:
    found: Found = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(float(row["value"]))
    return found


def _cell(values: Sequence[float] | None, *, best: bool = False) -> Cell:
    if not values:
        return EMPTY
    summary = spread(values)
    return Cell(summary.mean, summary.std if len(values) > 1 else None, best=best)


def image_tables(rows: Rows) -> list[Table]:
    """For each protocol, set and length of a code one table of measures, and one of the variance far away; times."""
    found = _gathered(rows, ("protocol", "dataset", "latent", "method", "metric"))
    places = list(dict.fromkeys(key[:3] for key in found))
    tables = []
    for place in places:
        methods = [name for name in IMAGE_METHODS if (*place, name, "elbo") in found]
        if methods:
            tables += [_measures(found, place, methods), *_rays(found, place, methods)]
    return [*tables, *_times(found)]


def _measures(found: Found, place: tuple[str, ...], methods: Sequence[str]) -> Table:
    protocol, dataset, latent = place
    printed = {
        method: [Cell(*PUBLISHED_VAE[metric, method][dataset]) for metric in PRINTED]
        for method in methods
        if dataset in PUBLISHED_VAE.get((PRINTED[0], method), {})
        and latent == PRINTED_LATENT[dataset]
        and protocol != "tf32"
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
        cells = [_cell(found.get((*place, method, metric)), best=best.get(metric) == method) for metric in MEASURES]
        beside = printed.get(method, [EMPTY] * len(PRINTED))
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
                    _cell(found.get((*place, method, "outside_variance"))),
                    _cell(found.get((*place, method, "ray_variance_mean"))),
                    Cell(min(lowest)),
                    Cell(max(highest)),
                    _cell(found.get((*place, method, "cost_per_pixel"))),
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


def _times(found: Found) -> list[Table]:
    lines = []
    for key, seconds in found.items():
        protocol, dataset, latent, method, metric = key
        if metric != "seconds_train":
            continue
        printed = PRINTED_SECONDS.get(dataset)
        own = printed[method == "d-v3ae"] if printed and method in ("v3ae", "d-v3ae") else None
        overhead = found.get((protocol, dataset, latent, method, "overhead_pseudo_inputs"))
        lines.append(
            (Cell(dataset), Cell(method), Cell(latent), Cell(protocol), _cell(seconds), _cell(overhead), Cell(own))
        )
    if not lines:
        return []
    columns = ("set", "method", "codes", "protocol", "seconds", "overhead of pseudo-inputs", "printed seconds")
    notes = ("Training of both phases, with the device to itself. The printed seconds are of an RTX 3080.",)
    return [Table("image_times", "Seconds of training", columns, tuple(lines), notes, 4, 2)]


def detection_tables(rows: Rows) -> list[Table]:
    """AUROC of every score against every foreign set, refits beside none, and the worst pair."""
    rows = [row for row in rows if row["metric"] == "auroc"]
    names = ("protocol", "inside", "latent", "method", "refit", "score", "outside")
    found = _gathered(rows, names)
    tables = []
    for place in dict.fromkeys(key[:4] for key in found):
        outside = list(dict.fromkeys(key[6] for key in found if key[:4] == place))
        outside.sort(key=lambda name: name in FOREIGN_TRANSFORMS)
        tables += [*_scores(found, place, outside), *_refits(found, place, outside)]
    return [*tables, *_worst(found)]


def _title(place: tuple[str, ...]) -> str:
    protocol, inside, latent, method = place
    return f"{method} on {inside}, codes of {latent} numbers, protocol {protocol}"


def _scores(found: Found, place: tuple[str, ...], outside: Sequence[str]) -> list[Table]:
    scores = [name for name in SINGLE if any((*place, "none", name, other) in found for other in outside)]
    if not scores:
        return []
    means = {
        (score, other): spread(found[*place, "none", score, other]).mean
        for score in scores
        for other in outside
        if (*place, "none", score, other) in found
    }
    best = {other: max((means.get((score, other), 0.0), score) for score in scores)[1] for other in outside}
    lines = tuple(
        (Cell(score), *(_cell(found.get((*place, "none", score, o)), best=best[o] == score) for o in outside))
        for score in scores
    )
    notes = ("AUROC, mean ± standard deviation over seeds. Without a refit; novelty is the default score.",)
    name = "_".join(("detection", *place))
    return [Table(name, f"Foreign images: {_title(place)}", ("score", *outside), lines, notes, 1, 4)]


def _refits(found: Found, place: tuple[str, ...], outside: Sequence[str]) -> list[Table]:
    kinds = [kind for kind in ("none", "per-image", "transductive") if any(k[:5] == (*place, kind) for k in found)]
    if len(kinds) < 2:
        return []
    lines = tuple(
        (Cell(kind), *(_cell(found.get((*place, kind, "elbo", other))) for other in outside)) for kind in kinds
    )
    notes = (
        "AUROC of the bound: as it is; of its gain when the code of each image alone is fitted anew; and with the "
        "encoder fitted to all foreign images together, as in the paper, which is no detection, since it uses which "
        "images they are. Refits are judged on 500 images of each set.",
    )
    name = "_".join(("refit", *place))
    return [Table(name, f"Refits: {_title(place)}", ("refit", *outside), lines, notes, 1, 4)]


def _worst(found: Found) -> list[Table]:
    lines = []
    for score in SINGLE:
        pairs = {
            key: spread(values).mean
            for key, values in found.items()
            if key[0] == "sound" and key[4] == "none" and key[5] == score and key[6] not in FOREIGN_TRANSFORMS
        }
        if pairs:
            worst = min(pairs, key=pairs.__getitem__)
            mean = sum(pairs.values()) / len(pairs)
            lines.append((Cell(score), Cell(str(len(pairs))), Cell(mean), Cell(pairs[worst]),
                          Cell(f"{worst[1]} / {worst[6]}")))  # fmt: skip
    if not lines:
        return []
    columns = ("score", "pairs", "mean AUROC", "worst AUROC", "worst pair, inside / outside")
    notes = ("Over pairs of sets in both directions, flips, rotations and noise left out.",)
    return [Table("detection_worst", "All pairs of sets", columns, tuple(lines), notes, 1, 4)]
