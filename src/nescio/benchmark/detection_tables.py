"""Detection of foreign images at a glance: every score against every set, refits beside none, and the worst pair."""

from __future__ import annotations

from collections.abc import Sequence

from nescio.benchmark.cells import Cell, Found, Rows, Table, gather_rows, spread_cell
from nescio.benchmark.statistics import spread
from nescio.datasets.foreign import FOREIGN_TRANSFORMS

__all__ = ["detection_tables", "tables_of_models"]

SINGLE = (
    "novelty", "mahalanobis", "copod", "log_likelihood", "elbo", "typicality", "complexity", "reconstruction",
    "total_variance", "epistemic_variance", "knowledge", "latent_density", "knn_latents", "knn_pixels",
)  # fmt: skip


def detection_tables(rows: Rows) -> list[Table]:
    """The tables of each model, and one of the worst pair of sets for each score."""
    rows = list(rows)
    return [*tables_of_models(rows), *_worst(_aurocs(rows))]


def tables_of_models(rows: Rows) -> list[Table]:
    """For each model AUROC of every score against every foreign set, and of the bound with refits beside none.

    Paper: sec:appendix-ood-detection, fig:re_encoding_ood_detection_plots_emnist,
    fig:re_encoding_ood_detection_plots_kmnist.
    """
    found = _aurocs(rows)
    tables = []
    for place in dict.fromkeys(key[:4] for key in found):
        outside = list(dict.fromkeys(key[6] for key in found if key[:4] == place))
        outside.sort(key=lambda name: name in FOREIGN_TRANSFORMS)
        tables += [*_scores(found, place, outside), *_refits(found, place, outside)]
    return tables


def _aurocs(rows: Rows) -> Found:
    names = ("protocol", "inside", "latent", "method", "refit", "score", "outside")
    return gather_rows((row for row in rows if row["metric"] == "auroc"), names)


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
        (Cell(score), *(spread_cell(found.get((*place, "none", score, o)), best=best[o] == score) for o in outside))
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
        (Cell(kind), *(spread_cell(found.get((*place, kind, "elbo", other))) for other in outside)) for kind in kinds
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
