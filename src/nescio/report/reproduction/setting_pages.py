"""Pages of settings: parameters, data sets and running times."""

from __future__ import annotations

from nescio.benchmark.cells import Table
from nescio.benchmark.image_tables import image_times_tables, printed_times_table
from nescio.benchmark.published_times import GENERATIVE_TIMES, REGRESSION_TIMES
from nescio.benchmark.setting_tables import (
    GENERATORS,
    generator_table,
    image_sources_table,
    regression_times_table,
    uci_sources_table,
)
from nescio.benchmark.workshop import Workshop
from nescio.report.reproduction.piece import FAILS, HOLDS, PART, Piece

__all__ = [
    "image_sources", "image_times", "image_times_without", "latent_generator", "regression_generator",
    "regression_times", "uci_sources",
]  # fmt: skip


PAPER_TIMES = "uci_paper_times.csv"


def _generator(kind: str) -> Piece:
    printed, ours = GENERATORS[kind]
    same = all(f"{each.steps} {each.step_size:g}" == f"{printed[1]} {printed[3]}" for each in ours.values())
    return Piece(
        PART if same else FAILS,
        "The numbers are in the code, but they are not what was run: the published runs took unit steps down the "
        "log-density, and used the tolerance as a gate of the opposite sense."
        if same
        else "The defaults of the code are not those of the table.",
        (
            "Printed, a step is δ∇p(x). In more than a few dimensions p is so small that nothing moves, and on a "
            "narrow component so large that points leave the world; the authors' code does neither. Both are here.",
        ),
        tables=(generator_table(kind),),
    )


def regression_generator(workshop: Workshop) -> Piece:
    """Parameters of the generator for regression."""
    return _generator("regression")


def latent_generator(workshop: Workshop) -> Piece:
    """Parameters of the generator in the space of codes."""
    return _generator("codes")


def _sources(table: Table, words: str, found: str) -> Piece:
    other = [str(row[0].value) for row in table.rows if row[2].notes]
    lacking = [str(row[0].value) for row in table.rows if row[3].value != "yes"]
    return Piece(
        PART if other or lacking else HOLDS,
        f"{len(table.rows) - len(other)} of {len(table.rows)} {words} are those of the publishers; not "
        f"{_listed(other)}. Not whole here: {_listed(lacking)}.",
        (found,),
        tables=(table,),
    )


def uci_sources(workshop: Workshop) -> Piece:
    """The regression sets."""
    return _sources(
        uci_sources_table(),
        "counts",
        "Of boston the authors' loader took the first row for a header; the count of protein looks like a misprint. "
        "Every file is checked by a digest when it is read.",
    )


def image_sources(workshop: Workshop) -> Piece:
    """The sets of images."""
    found = "nescio data get fetches what is not at hand, where there is a network."
    return _sources(image_sources_table(), "sizes", found)


def _listed(names: list[str]) -> str:
    return ", ".join(names) if names else "none"


def regression_times(workshop: Workshop) -> Piece:
    """Running times of regression."""
    paper = workshop.uci("uci_paper.csv")
    sound = workshop.uci("uci_sound.csv") if workshop.has("uci_sound.csv") else None
    times = workshop.rows(PAPER_TIMES) if workshop.has(PAPER_TIMES) else []
    table = regression_times_table(paper, sound, times)
    ours = {str(row[0].value): row[4].value for row in table.rows if isinstance(row[4].value, float)}
    measured = any(row[3].value is not None for row in table.rows)
    faster = [name for name, value in ours.items() if isinstance(value, float) and value < REGRESSION_TIMES[name][1]]
    return Piece(
        PART,
        f"The same training takes us less time on {len(faster)} of {len(ours)} sets, with other hardware, and all "
        f"trials of a set in one stack. Emissions were {'estimated' if measured else 'not measured'}.",
        ("Times are of a machine as much as of a method: read orders of magnitude.",),
        tables=(table,),
    )


def _image_times(workshop: Workshop, method: str) -> Piece:
    rows = workshop.rows("images.csv")
    tables = (*image_times_tables(row for row in rows if row["method"] == method), printed_times_table(method))
    wanted = ("overhead_pseudo_inputs", "fashion_mnist")
    found = [float(row["value"]) for row in rows if (row["metric"], row["dataset"]) == wanted]
    with_, without = (GENERATIVE_TIMES[name]["fashion_mnist"][1] for name in ("d-v3ae", "v3ae"))
    said = f"The paper's own numbers give {with_ / without - 1:+.0%} on FashionMNIST"
    if found:
        said += f"; ours {sum(found) / len(found):+.0%}, over {len(found)} runs"
    return Piece(
        HOLDS if found and sum(found) / len(found) <= 0.6 else PART,
        said + ".",
        ("On CIFAR and SVHN the paper's d-V3AE was trained without pseudo-inputs, whatever its table is called.",),
        tables=tables,
    )


def image_times(workshop: Workshop) -> Piece:
    """Running times of image models with pseudo-inputs."""
    return _image_times(workshop, "d-v3ae")


def image_times_without(workshop: Workshop) -> Piece:
    """Running times of image models without them."""
    return _image_times(workshop, "v3ae")
