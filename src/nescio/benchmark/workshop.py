"""Where the makers of figures and tables get what they need: committed records first, else computed and kept."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import nescio
from nescio._files import written_beside
from nescio.benchmark.cells import Results, Table, gather
from nescio.benchmark.desiderata import ToyFit
from nescio.benchmark.exports import read_values
from nescio.benchmark.records import provenance
from nescio.benchmark.tables import all_tables
from nescio.benchmark.toy_paper import PAPER_METHODS, STEPS, fit_paper_toy
from nescio.benchmark.toy_runs import DATA, fit_toy, load_curves, save_curves

__all__ = ["QUICK_STEPS", "Arrays", "Unavailable", "Workshop", "default_results"]

Arrays = dict[str, np.ndarray]
PROVENANCE = "provenance"  # commit, versions, hardware and date beside the arrays of a figure
QUICK_STEPS = 300  # of training, where --quick has to train a regressor


class Unavailable(Exception):
    """Something that cannot be made here, and why, in one sentence for the page."""


def default_results() -> Path:
    """The folder of committed records: ``results`` here, or beside the source that is running."""
    return here if (here := Path("results")).is_dir() else Path(nescio.__file__).parents[2] / "results"


@dataclass
class Workshop:
    """Records by name, and arrays that are computed at most once.

    ``results`` holds committed records, ``results/figures`` committed arrays; what neither has is computed, small
    if ``quick``, and kept in ``keep``. ``used`` collects the files of records that were read, for the page to name.
    """

    results: Path
    keep: Path
    quick: bool = False

    def __post_init__(self) -> None:
        self.used: list[str] = []
        self.computed: list[str] = []
        self._grouped: dict[str, Results] = {}
        self._tables: dict[str, dict[str, Table]] = {}

    def start(self) -> None:
        """Forget what was used: another page begins."""
        self.used, self.computed = [], []

    def use(self, name: str) -> Path:
        """A file of records by its name, noted as used; Unavailable where it is not there."""
        path = self.results / name
        if not path.is_file():
            raise Unavailable(f"there is no record of it yet ({name} is not among the results).")
        if name not in self.used:
            self.used.append(name)
        return path

    def has(self, name: str) -> bool:
        """Whether a file of records is there."""
        return (self.results / name).is_file()

    def rows(self, name: str) -> list[dict[str, str]]:
        """The lines of a CSV of records."""
        with self.use(name).open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def uci(self, name: str) -> Results:
        """The records of one file of the UCI comparison, grouped."""
        self.use(name)
        if name not in self._grouped:
            self._grouped[name] = gather(read_values(self.results / name))
        return self._grouped[name]

    def table(self, name: str, source: str) -> Table:
        """A table of the UCI comparison by its name, from the file ``source``."""
        if source not in self._tables:
            self.use(source)
            self._tables[source] = {table.name: table for table in all_tables(read_values(self.results / source))}
        self.use(source)
        if name not in self._tables[source]:
            raise Unavailable(f"the records in {source} do not hold what the table '{name}' needs.")
        return self._tables[source][name]

    def toy(self, data: str, method: str) -> ToyFit:
        """The fit of one method with seed 0: a committed curve, or one that was kept, or a fresh one."""
        name = f"{data}/{method}"
        committed = self._committed_toy
        if name in committed:
            self.use("toy_curves.npz")
            return committed[name]
        path = self.keep / f"toy_curves{'-quick' if self.quick else ''}.npz"
        kept = load_curves(path)
        if name not in kept:
            kept[name] = fit_toy(data, method, 0, **self.steps(method))
            path.parent.mkdir(parents=True, exist_ok=True)
            save_curves(path, kept)
        self.note(path)
        return kept[name]

    def paper_toy(self) -> list[list[ToyFit]]:
        """The fits with the authors' settings and seed 0: a list for each method, plain and shifted."""
        committed, steps = self.results / "figures" / "toy_paper.npz", 500 if self.quick else STEPS
        path = self.keep / f"toy_paper{'-quick' if self.quick else ''}.npz"
        if committed.is_file():
            self.use("figures/toy_paper.npz")
            path = committed
        elif not path.is_file():
            fits = {f"{d}/{m}": fit_paper_toy(d, m, [0], steps)[0] for m in PAPER_METHODS for d in DATA}
            path.parent.mkdir(parents=True, exist_ok=True)
            save_curves(path, fits)
        if path != committed:
            self.note(path)
        found = load_curves(path)
        return [[found[f"{data}/{method}"] for data in DATA] for method in PAPER_METHODS]

    @cached_property
    def _committed_toy(self) -> dict[str, ToyFit]:
        return load_curves(self.results / "toy_curves.npz")

    def steps(self, method: str = "d-vv") -> dict[str, Any]:
        """Parameters that make a regressor quick, where that is asked for; a process and boosting have no steps."""
        return {"max_steps": QUICK_STEPS} if self.quick and method not in ("gp", "ngboost") else {}

    def arrays(self, name: str, make: Callable[[], Arrays], *, trained: bool = True) -> Arrays:
        """Arrays by name: committed ones, or kept ones, or what ``make`` computes now.

        Where nothing is ``trained`` a quick run is no smaller than another, and not called so.
        """
        committed = self.results / "figures" / f"{name}.npz"
        if committed.is_file():
            self.use(f"figures/{name}.npz")
            return _load(committed)
        path = self.keep / f"{name}{'-quick' if self.quick and trained else ''}.npz"
        if not path.is_file():
            packed = io.BytesIO()
            made = {PROVENANCE: np.array([*provenance().values()])}
            np.savez_compressed(packed, **make(), **made)  # type: ignore[arg-type]
            path.parent.mkdir(parents=True, exist_ok=True)
            with written_beside(path) as handle:
                handle.write(packed.getvalue())
        self.note(path)
        return _load(path)

    def made_by(self, name: str) -> str:
        """What made a committed file of arrays: its commit, the hardware and the day; nothing where it does not say."""
        if not name.endswith(".npz"):
            return ""
        with np.load(self.results / name, allow_pickle=False) as found:
            if PROVENANCE not in found.files:
                return ""
            commit, _, hardware, date = found[PROVENANCE].tolist()
        return f"made {date} at {commit} on {hardware}"

    def note(self, path: Path) -> None:
        """Name a file that was computed here among what the page is made of."""
        if path.name not in self.computed:
            self.computed.append(path.name)


def _load(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in found.files if name != PROVENANCE}
