"""The four wishes of the toy problem as a table: medians over seeds, and on how many seeds each wish is met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from nescio.benchmark.cells import EMPTY, Cell, Table
from nescio.benchmark.desiderata import Desiderata
from nescio.benchmark.names import METHODS

__all__ = ["counts", "desiderata_table"]

Rows = Sequence[Mapping[str, str]]
WORDS = {"standard": "all data", "shifted": "with a hole"}


def _groups(rows: Rows) -> dict[tuple[str, str], list[Desiderata]]:
    found: dict[tuple[str, str], list[Desiderata]] = {}
    for row in rows:
        found.setdefault((row["method"], row["data"]), []).append(Desiderata.of_record(row))
    return found


def counts(rows: Rows) -> dict[tuple[str, str], tuple[int, int]]:
    """By method and data: on how many seeds all four wishes are met, and how many seeds there are."""
    return {key: (sum(all(one.met) for one in of), len(of)) for key, of in _groups(rows).items()}


def desiderata_table(rows: Rows) -> Table:
    """A line for each method and data set; each wish as its median over seeds / the seeds on which it is met."""
    groups = _groups(rows)
    lines = []
    for method in METHODS:
        for data, words in WORDS.items():
            of = groups.get((method, data))
            if not of:
                continue
            cells = [Cell(method), Cell(words), Cell(str(len(of)))]
            for place, name in enumerate(("rms_log", "ratio", "low_ratio", "kl_share")):
                values = [getattr(one, name) for one in of]
                met = sum(one.met[place] for one in of)
                cells.append(EMPTY if name == "kl_share" and not of[0].has_prior else Cell(median(values), second=met))
            everything, three = sum(all(one.met) for one in of), sum(all(one.met[:3]) for one in of)
            cells.append(Cell(f"{everything} of {len(of)}", best=everything == len(of)))
            cells.append(Cell(f"{three} of {len(of)}", best=three == len(of)))
            lines.append(tuple(cells))
    columns = (
        "method", "data", "seeds", "noise found: RMS of log(std / true) ≤ 0.25", "higher outside: ratio ≥ 1",
        "no underestimation: 5 % quantile of std / true ≥ 0.8", "back at the prior: share within 0.1 nat ≥ 0.95",
        "all four", "first three",
    )  # fmt: skip
    notes = (
        "Median over seeds / number of seeds on which the wish is met. Noise on [0, 10], less a hole; higher outside: "
        "smallest std on [−25, −5] and [15, 35] over the largest inside; underestimation on [0, 10], the hole "
        "included; the prior on [−25, −10] and [20, 35].",
        "The prior is each method's own: the outside prior of d-VV, the only one of the others of its family. Empty: "
        "the method has no prior of the precision.",
    )
    return Table("toy_desiderata", "The four wishes of the toy problem", columns, tuple(lines), notes, labels=3)
