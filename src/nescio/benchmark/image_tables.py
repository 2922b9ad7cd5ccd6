"""Tables of the image models: likelihoods and errors beside the published ones, detection by every score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nescio.benchmark.cells import EMPTY, Cell, Table
from nescio.benchmark.statistics import Spread, spread

__all__ = ["PUBLISHED_VAE", "detection_table", "metrics_table"]

PUBLISHED_VAE = {
    ("log_likelihood_truncated", "vae"): {"fashion_mnist": (2215.54, 68.81), "svhn": (4304.90, 58.45),
                                          "cifar10": (2930.64, 14.82)},
    ("log_likelihood_truncated", "d-v3ae"): {"fashion_mnist": (2349.71, 11.80), "svhn": (4133.41, 64.28),
                                             "cifar10": (2668.85, 13.23)},
    ("rmse_sample", "vae"): {"fashion_mnist": (0.171, 0.003), "svhn": (0.097, 7e-4), "cifar10": (0.154, 5e-4)},
    ("rmse_sample", "d-v3ae"): {"fashion_mnist": (0.158, 0.003), "svhn": (0.087, 0.002), "cifar10": (0.129, 7e-4)},
}  # fmt: skip
"""Mean and standard deviation over 5 trials as printed."""
MEASURES = {
    "log_likelihood_truncated": "E log p(x|z), truncated (nats)",
    "rmse_sample": "RMSE of drawn images",
    "rmse_mean": "RMSE of mean images",
    "elbo": "bound (nats)",
    "log_likelihood": "log p(x), importance-weighted (nats)",
    "bits_per_dim": "bits per pixel",
    "ray_variance_mean": "variance at twice the data's radius",
    "outside_variance": "level asked for",
}
TWO_MODELS = (
    "From two models with different priors, one for each row, and trained without pseudo-inputs, by the authors' "
    "configurations and logs."
)
Rows = Sequence[Mapping[str, str]]


def _spread(rows: Iterable[Mapping[str, str]]) -> Spread | None:
    values = [float(row["value"]) for row in rows]
    return spread(values) if values else None


def metrics_table(rows: Rows) -> Table:
    """Measures of each model on each set and length of code, with the published ones in columns of their own.

    Paper: tab:metrics-vae.
    """
    where = list(dict.fromkeys((row["protocol"], row["dataset"], row["latent"]) for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    lines = []
    for protocol, dataset, latent in where:
        for metric, words in MEASURES.items():
            for method in methods:
                key = (protocol, dataset, latent, method, metric)
                names = ("protocol", "dataset", "latent", "method", "metric")
                found = _spread(row for row in rows if tuple(row[name] for name in names) == key)
                printed = PUBLISHED_VAE.get((metric, method), {}).get(dataset)
                if found is not None:
                    theirs = EMPTY if printed is None else Cell(*printed)
                    labels = (dataset, latent, protocol, words, method)
                    lines.append((*map(Cell, labels), _shown(found), theirs))
    for dataset in ("svhn", "cifar10"):
        if not any(name == dataset for _, name, _ in where):
            for (metric, method), cells in PUBLISHED_VAE.items():
                theirs = Cell(*cells[dataset], notes=(TWO_MODELS,) if method == "d-v3ae" else ())
                labels = (dataset, "128", "not run", MEASURES[metric], method)
                lines.append((*map(Cell, labels), EMPTY, theirs))
    columns = ("set", "latents", "protocol", "measure", "model", "ours", "published")
    notes = (
        "Ours: mean ± standard deviation over seeds, all measures of a model from one checkpoint. Published: over 5 "
        "trials, 10 for FashionMNIST by the logs; 10 latents for FashionMNIST, 128 for the others.",
        "cifar10_subset is a third of CIFAR-10 and never stands beside the published numbers.",
    )
    return Table("image_metrics", "Models of images", columns, tuple(lines), notes, labels=5, digits=3)


def _shown(found: Spread) -> Cell:
    return Cell(found.mean, found.std)


def detection_table(rows: Rows, inside: str = "fashion_mnist", metric: str = "auroc") -> Table:
    """AUROC of each score of each model against each kind of foreign images.

    Paper: sec:appendix-ood-detection, fig:re_encoding_ood_detection_plots_emnist,
    fig:re_encoding_ood_detection_plots_kmnist.
    """
    chosen = [row for row in rows if row["inside"] == inside and row["metric"] == metric]
    outside = list(dict.fromkeys(row["outside"] for row in chosen))
    names = ("protocol", "method", "latent", "score", "refit")
    keys = list(dict.fromkeys(tuple(row[name] for name in names) for row in chosen))
    found: dict[tuple[str, ...], list[float]] = {}
    for row in chosen:
        found.setdefault((*(row[name] for name in names), row["outside"]), []).append(float(row["value"]))
    lines = []
    best = {
        name: max((spread(v).mean for k, v in found.items() if k[-1] == name and k[4] != "transductive"), default=0.0)
        for name in outside
    }
    for chosen_key in keys:
        cells = []
        for name in outside:
            values = found.get((*chosen_key, name))
            one = spread(values) if values else None
            cells.append(EMPTY if one is None else Cell(one.mean, one.std, best=one.mean == best[name]))
        lines.append((*map(Cell, chosen_key), *cells))
    notes = (
        "Mean ± standard deviation over seeds. Larger is better; marked: the best of a column, transductive scores "
        "apart, since they know which images are foreign.",
    )
    columns = ("protocol", "model", "latents", "score", "refit", *outside)
    return Table("image_detection", f"Foreign images against {inside} (AUROC)", columns, tuple(lines), notes, 5, 3)
