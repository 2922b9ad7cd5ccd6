"""``nescio demo``: the paper's toy regression, d-VV beside VV, as a table, figures and a page."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nescio._files import make_folder, written_beside
from nescio._validation import InputError, check_integer

if TYPE_CHECKING:
    from nescio.report.statistics import ToyFit, ToySummary

__all__ = ["demo", "fit_toy"]

DATA = ("standard", "shifted")
METHODS = ("d-vv", "vv")
PAGE = "demo.html"
WORKERS = 2


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figures and the page.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Of the data and of the fits.")] = 0,
    max_steps: Annotated[int | None, typer.Option(help="Longest training of each phase.", show_default=False)] = None,
) -> None:
    """Show on a toy problem what a model says where it has seen nothing: a table, three figures and a page."""
    figures, page, statistics = _report()
    check_integer("--seed", seed, least=0)
    if max_steps is not None:
        check_integer("--max-steps", max_steps, least=1)
    make_folder(out, PAGE)

    began = time.perf_counter()
    fits = _fit_all(seed, max_steps)
    seconds = time.perf_counter() - began
    summaries = statistics.summarise(fits)
    drawings = {
        "toy": figures.toy_figure(fits),
        "std": figures.std_figure(fits),
        "split": figures.split_figure(fits),
    }
    images = {name: figures.figure_png(figure) for name, figure in drawings.items()}
    vectors = {name: figures.figure_svg(figure, name) for name, figure in drawings.items()}
    rows = {fit.data: len(fit.x_data) for fit in fits}
    files = {f"{name}.png": image for name, image in images.items()}
    files |= {f"{name}.svg": text.encode() for name, text in vectors.items()}
    files[PAGE] = page.demo_page(vectors, summaries, page.Setting(rows, seed, max_steps, _version())).encode()
    for name, content in files.items():
        with written_beside(out / name) as handle:
            handle.write(content)

    levels = {line.data: line.level for line in summaries}
    typer.echo(
        f"Toy regression, seed {seed}: {rows['standard']} points with x from 0 to 10 (standard), and the "
        f"{rows['shifted']} of them that are not between 4 and 7 (shifted).\n"
        f"Level outside: {levels['standard']:.2f} (standard), "
        f"{levels['shifted']:.2f} (shifted).\n\n{table(summaries)}\n\n"
        f"{len(fits)} fits in {seconds:.0f} s. Open {out / PAGE} in a browser; the figures lie beside it."
    )


def fit_toy(data: str, method: str, seed: int, max_steps: int | None) -> ToyFit:
    """Fit one method to one data set and predict on the grid."""
    from nescio.benchmark import toy_runs

    return toy_runs.fit_toy(data, method, seed, **({} if max_steps is None else {"max_steps": max_steps}))


def table(summaries: Sequence[ToySummary]) -> str:
    """The numbers with a verdict on each target, as aligned text."""
    from nescio.report.figures import METHOD_NAMES
    from nescio.report.statistics import LARGEST_DEVIATION, LARGEST_RMS_LOG, SMALLEST_RATIO

    head = [
        ("data", "method", "inside: RMS of", "smallest outside /", "far outside:", "mean std on"),
        ("", "", "log(std / true std)", "largest inside", "most off the level", "4 < x < 7"),
    ]
    body = [
        (
            line.data,
            METHOD_NAMES[line.method],
            _judged(f"{line.statistics.rms_log:.2f}", line.statistics.rms_log_met),
            _judged(f"{line.statistics.ratio:.2f}", line.statistics.ratio_met),
            _judged(f"{100 * line.statistics.deviation:.1f} %", line.statistics.deviation_met),
            f"{line.statistics.hole_std:.2f}" + ("" if line.rise is None else f" ({line.rise:.2f} x standard)"),
        )
        for line in summaries
    ]
    foot = [
        ("target", "", f"at most {LARGEST_RMS_LOG:g}", f"at least {SMALLEST_RATIO:g}",
         f"at most {100 * LARGEST_DEVIATION:g} %", ""),
    ]  # fmt: skip
    lines = [*head, *body, *foot]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head[0]))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([*text[: len(head)], rule, *text[len(head) : -len(foot)], rule, *text[-len(foot) :]])


def _judged(number: str, met: bool) -> str:
    return f"{number} {'met' if met else 'missed'}"


def _fit_all(seed: int, max_steps: int | None) -> list[ToyFit]:
    """All fits in two processes of one thread each, the long ones first; in the order of the table."""
    from joblib import Parallel, delayed, parallel_config
    from tqdm import tqdm

    tasks = [(data, method) for method in METHODS for data in DATA]
    found: dict[tuple[str, str], ToyFit] = {}
    with parallel_config(backend="loky", n_jobs=WORKERS, inner_max_num_threads=1):
        runs = Parallel(return_as="generator_unordered")(delayed(fit_toy)(*task, seed, max_steps) for task in tasks)
        for fit in tqdm(runs, total=len(tasks), desc="fits", unit="fit", disable=None):
            found[fit.data, fit.method] = fit
    return [found[data, method] for data in DATA for method in METHODS]


def _report() -> tuple[Any, Any, Any]:
    try:
        from nescio.report import figures, page, statistics
    except ModuleNotFoundError as error:
        raise InputError(f"the demo needs {error.name}: pip install 'nescio[cli]'.") from error
    return figures, page, statistics


def _version() -> str:
    from nescio import __version__

    return __version__
