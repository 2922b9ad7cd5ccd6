"""Tables of settings: the generators' parameters from the code's defaults, the data sets from its list of sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from nescio.benchmark.cells import EMPTY, Cell, Results, Table, spread_cell
from nescio.benchmark.names import FULL_DATASETS
from nescio.benchmark.published_times import REGRESSION_TIMES
from nescio.datasets.image_sources import IMAGE_SOURCES
from nescio.datasets.images import image_names
from nescio.datasets.sources import SOURCES
from nescio.datasets.uci import uci_names
from nescio.pseudo_inputs import CodeDescent, MixtureDescent

__all__ = [
    "GENERATORS", "generator_table", "image_sources_table", "regression_times_table", "uci_sources_table",
]  # fmt: skip

PRINTED_UCI = {
    "boston": (505, 13, 1), "carbon": (10721, 5, 3), "concrete": (1030, 8, 1), "energy": (768, 8, 2),
    "kin8nm": (8192, 8, 1), "naval": (11934, 16, 2), "ccpp": (9568, 4, 1), "protein": (45630, 9, 1),
    "superconductivity": (21263, 81, 1), "wine_red": (1599, 11, 1), "wine_white": (4898, 11, 1), "yacht": (308, 6, 1),
}  # fmt: skip
PRINTED_IMAGES = {
    "mnist": (70000, 1, 28, 28), "fashion_mnist": (70000, 1, 28, 28), "emnist": (70000, 1, 28, 28),
    "kmnist": (70000, 1, 28, 28), "svhn": (600000, 3, 32, 32), "cifar10": (60000, 3, 32, 32),
}  # fmt: skip


GENERATORS: dict[str, tuple[tuple[str, ...], dict[str, MixtureDescent | CodeDescent]]] = {
    "regression": (("N", "5", "0.005", "0.4"),
                   {"MixtureDescent()": MixtureDescent(), "MixtureDescent.as_run()": MixtureDescent.as_run()}),
    "codes": (("N", "10", "0.007", "0.4"), {"CodeDescent()": CodeDescent()}),
}  # fmt: skip


def generator_table(kind: str) -> Table:
    """K, iterations, tolerance and step of a generator, as printed and in the code's own defaults.

    Paper: tab:regression_pig_parameters, tab:vae_pig_parameters.
    """
    printed, ours = GENERATORS[kind]
    rows = [(Cell("in the paper"), *map(Cell, printed), Cell("steps of δ∇p, a stop at the tolerance"))]
    for name, each in ours.items():
        bound = f"{each.tolerance:g}" if each.gate is None else f"{each.gate:g}, as a gate"
        how = f"{'unit steps' if each.normalise else 'steps'} down {each.gradient.replace('_', '-')}"
        cells = ("as many as asked for", str(each.steps), bound, f"{each.step_size:g}", how)
        rows.append((Cell(name), *map(Cell, cells)))
    columns = ("where", "K", "max_iterations", "tolerance", "δ", "how")
    fact = ", ".join(field.name for field in fields(next(iter(ours.values()))))
    notes = (f"Read from the code when this page was made, which has the fields {fact}.",)
    return Table(f"generator_{kind}", "Parameters of the pseudo-input generator", columns, tuple(rows), notes)


def uci_sources_table() -> Table:
    """Rows, inputs and outputs of each regression set, printed and as published, and where it comes from.

    Paper: tab:uci_benchmarks_sources.
    """
    here = set(uci_names())
    rows = []
    for name, printed in PRINTED_UCI.items():
        source = SOURCES[name]
        same = tuple(source.shape) == printed
        note = () if same else ("The paper prints another count; docs/datasets.md says why.",)
        hand = "yes" if name in here else "in part" if f"{name}_partial" in here else "no"
        cells = (Cell(name), Cell(_shape(printed)), Cell(_shape(source.shape), notes=note), Cell(hand))
        rows.append((*cells, Cell(source.url)))
    columns = ("set", "printed (N, inputs, outputs)", "published", "at hand", "address")
    return Table("uci_sources", "The regression sets", columns, tuple(rows))


def image_sources_table() -> Table:
    """Size and shape of each set of images, printed and as published, and where it comes from.

    Paper: tab:gen_mod_datasets.
    """
    here = set(image_names())
    rows = []
    for name, printed in PRINTED_IMAGES.items():
        source = IMAGE_SOURCES[name]
        count = source.train[0] + source.test[0]
        channels = source.train[3] if len(source.train) == 4 else 1
        ours = (count, channels, *source.train[1:3])
        hand = "yes" if name in here else "test part of 2018" if f"{name}_2018" in here else (
            "a third" if f"{name}_subset" in here else "no")  # fmt: skip
        note = () if ours == printed else (_count_note(name),)
        rows.append((Cell(name), Cell(_shape(printed)), Cell(_shape(ours), notes=note), Cell(hand),
                     Cell(source.files[0][0])))  # fmt: skip
    columns = ("set", "printed (N, C, height, width)", "published", "at hand", "address")
    return Table("image_sources", "The sets of images", columns, tuple(rows))


def _count_note(name: str) -> str:
    if name == "emnist":
        return "The split of letters, of which the authors took the first ten; the paper prints the size of MNIST."
    if name == "svhn":
        return "The cropped training and test parts; the paper prints all that the publishers have, extra images too."
    return "The paper prints another count."


def _shape(numbers: Sequence[int]) -> str:
    return " × ".join(f"{number:,}" for number in numbers)


def regression_times_table(paper: Results, sound: Results | None, times: Sequence[Mapping[str, str]] = ()) -> Table:
    """Seconds and emissions of one fit of d-VV: printed, and ours.

    ``times`` are records of where the time of a run of protocol paper went; with its energy, if that was measured.

    Paper: sec:appendix-implementation-details.
    """
    rate = _carbon_rate(times)
    rows = []
    for name in FULL_DATASETS:
        carbon, seconds = REGRESSION_TIMES[name]
        ours = spread_cell(_seconds(paper, "paper", name))
        emitted = EMPTY if rate is None or not isinstance(ours.value, float) else Cell(f"{rate * ours.value:.1e}")
        rest = spread_cell(_seconds(sound, "sound", name))
        rows.append((Cell(name), Cell(f"{carbon:.6f}"), Cell(seconds), emitted, ours, rest))
    columns = (
        "data", "printed: CO₂ (kg)", "printed: time (s)", "ours, protocol paper: CO₂ (kg)", "ours, protocol paper (s)",
        "ours, protocol sound (s)",
    )  # fmt: skip
    notes = (
        "One fit of d-VV. Ours: mean ± standard deviation over random splits. In protocol paper the trials of a data "
        "set train in one stack and share its time.",
        "Hardware: printed, an RTX 3080; ours, as the files *_provenance.csv say.",
        "Ours of CO₂: the run's, by codecarbon's estimate (nescio bench --energy), in proportion to the time. It hangs "
        "on the place that codecarbon takes the machine to be at, and on the power that it takes it to draw."
        if rate is not None
        else "Ours of CO₂: no record of it was given. nescio bench uci --energy --times FILE makes one, and nescio "
        "bench page --csv FILE shows it.",
    )
    return Table("paper_times", "Running times of regression", columns, tuple(rows), notes, digits=1)


def _carbon_rate(times: Sequence[Mapping[str, str]]) -> float | None:
    """Kilograms of CO₂ for a second of a worker of protocol paper, where they were measured."""
    of_paper = [row for row in times if row.get("protocol") == "paper" and row.get("kilograms_co2")]
    runs = {(row["commit"], row["date"], row["run_seconds"]): float(row["kilograms_co2"]) for row in of_paper}
    return sum(runs.values()) / sum(float(row["worker_seconds"]) for row in of_paper) if runs else None


def _seconds(results: Results | None, protocol: str, dataset: str) -> Iterable[float]:
    for group, datasets in (results or {}).items():
        if (group.protocol, group.split, group.metric) == (protocol, "standard", "seconds"):
            values = datasets.get(dataset, {}).get("d-vv")
            if values:
                return values.values()
    return ()
