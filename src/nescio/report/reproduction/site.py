"""From pieces to a folder of pages: figures as SVG and PNG, tables, with records and sources beside them."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jinja2 import Environment

from nescio._files import written_beside
from nescio._validation import InputError
from nescio.benchmark.cells import Table
from nescio.benchmark.workshop import Unavailable, Workshop
from nescio.report.html import page_environment
from nescio.report.reproduction.items import GROUPS, ITEMS
from nescio.report.reproduction.piece import CANNOT, VERDICTS, Item, Piece
from nescio.report.style import METHOD_NAMES, figure_png, figure_svg
from nescio.report.tables import cell_text, note_letters, render, table_notes

__all__ = ["Outcome", "build_site", "make_piece"]

STATE = "site.json"
LARGEST_COPY = 2_000_000  # bytes of a file of records that is copied beside the page
SHORT = {
    "d-vv-swapped": "d-VV, values swapped", "elbo": "bound (ELBO)", "expected_log_likelihood": "“log p(y|x)”",
    "rmse": "RMSE of the mean", "rmse_variance": "RMSE of the variance", "rmse_sample": "RMSE of a drawn value",
    "kl_ood_inside": "E[KL] off the data", "log_likelihood": "log-likelihood", **METHOD_NAMES,
}  # fmt: skip
"""Names of the records in the words of the page."""


@dataclass(frozen=True)
class Outcome:
    """What the index says of a page: its verdict, the reason, its first picture, and whether it could be made."""

    slug: str
    verdict: str
    reason: str
    picture: str
    made: bool
    small: bool = False
    """Whether it rests on training that --quick cut short."""


def make_piece(item: Item, workshop: Workshop) -> tuple[Piece, bool]:
    """The item's piece; where it cannot be made, a card that says why. The flag tells which."""
    workshop.start()
    try:
        return item.make(workshop), True
    except (Unavailable, InputError) as error:
        reason = str(error)
    except Exception as error:
        reason = f"It failed: {type(error).__name__}: {error}"
    return Piece(CANNOT, reason[0].upper() + reason[1:]), False


def build_site(
    items: Sequence[Item], workshop: Workshop, out: Path, version: str, say: Callable[[str], None] = lambda text: None
) -> list[Outcome]:
    """Write the pages of ``items`` and the index and summary of all that the folder holds."""
    environment = page_environment(slug=lambda verdict: verdict.replace(" ", "-"))
    known = _read_state(out)
    done = []
    for number, item in enumerate(items, start=1):
        say(f"[{number}/{len(items)}] {item.label}")
        piece, made = make_piece(item, workshop)
        outcome = _write_item(environment, item, piece, made, workshop, out, version)
        known[item.label] = outcome
        done.append(outcome)
    listed = [(item, known.get(item.label)) for item in ITEMS]
    counts = {v: sum(o is not None and o.verdict == v for i, o in listed if i.group != "own") for v in VERDICTS}
    shared = {"version": version, "counts": counts, "root": ""}
    _write(out / "index.html", environment.get_template("site_index.html.j2").render(
        groups=[(words, [(i, o) for i, o in listed if i.group == name]) for name, words in GROUPS.items()],
        page="index", **shared,
    ))  # fmt: skip
    facts = {item.label: outcome for item, outcome in listed if outcome is not None and outcome.made}
    _write(
        out / "summary.html",
        environment.get_template("site_summary.html.j2").render(facts=facts, page="summary", **shared),
    )
    _write(out / STATE, json.dumps({label: asdict(each) for label, each in known.items()}, indent=1) + "\n")
    return done


def _read_state(out: Path) -> dict[str, Outcome]:
    try:
        stored = json.loads((out / STATE).read_text(encoding="utf-8"))
        return {label: Outcome(**fields) for label, fields in stored.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_beside(path) as handle:
        handle.write(content.encode() if isinstance(content, str) else content)


def _write_item(
    environment: Environment, item: Item, piece: Piece, made: bool, workshop: Workshop, out: Path, version: str
) -> Outcome:
    figures = []
    for drawn in piece.figures:
        name = f"{item.slug}-{drawn.name}"
        _write(out / "figures" / f"{name}.png", figure_png(drawn.figure))
        _write(out / "figures" / f"{name}.svg", figure_svg(drawn.figure, name))
        figures.append({"name": name, "caption": drawn.caption, "description": drawn.description,
                        "width": round(96 * float(drawn.figure.get_figwidth()))})  # fmt: skip
    numbers = piece.numbers or (render(piece.tables, "csv") if piece.tables else "")
    if numbers:
        _write(out / "records" / f"{item.slug}.csv", numbers)
    small = any("-quick" in name for name in workshop.computed)
    place = next(number for number, each in enumerate(ITEMS) if each.label == item.label)
    page = environment.get_template("site_item.html.j2").render(
        item=item,
        piece=piece,
        figures=figures,
        tables=[shown_table(table) for table in piece.tables],
        has_numbers=bool(numbers),
        small=small,
        files=[_record(workshop, name, out) for name in workshop.used],
        computed=workshop.computed,
        sources=[(name, _source(name, out)) for name in (*item.sources, _dotted(item))],
        before=ITEMS[place - 1] if place else None,
        after=ITEMS[place + 1] if place + 1 < len(ITEMS) else None,
        group=GROUPS[item.group],
        page="item",
        version=version,
    )
    _write(out / f"{item.slug}.html", page)
    picture = f"figures/{figures[0]['name']}.png" if figures else ""
    return Outcome(item.slug, piece.verdict, piece.reason, picture, made, small)


def shown_table(table: Table) -> dict[str, Any]:
    """A table as the template wants it: texts, values to sort by, letters of notes."""
    letters = note_letters(table)
    rows = []
    for row in table.rows:
        cells = []
        for place, cell in enumerate(row):
            text = cell_text(cell, table.digits)
            if place < table.labels:
                text = SHORT.get(text, text)
            number = cell.value if isinstance(cell.value, (int, float)) and math.isfinite(cell.value) else None
            cells.append({"text": text, "value": text if number is None else number, "best": cell.best,
                          "marks": [letters[note] for note in cell.notes]})  # fmt: skip
        rows.append(cells)
    theirs = [("published" in name or "printed" in name) and place >= table.labels
              for place, name in enumerate(table.columns)]  # fmt: skip
    columns = [_column(name) for name in table.columns]
    return {"table": table, "rows": rows, "columns": columns, "theirs": theirs, "notes": table_notes(table)}


def _column(name: str) -> str:
    """Our names of methods in heads of columns as they are written elsewhere."""
    method, comma, rest = name.partition(",")
    return SHORT.get(name, SHORT.get(method, method) + comma + rest)


def _record(workshop: Workshop, name: str, out: Path) -> Mapping[str, str]:
    """A file of records: copied beside the page where it is small, else named."""
    path = workshop.results / name
    size = path.stat().st_size
    if size > LARGEST_COPY:
        return {"name": f"results/{name}", "link": "", "size": f"{size / 1e6:.0f} MB, in the repository"}
    target = out / "records" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)
    words = ", ".join(filter(None, (f"{max(1, round(size / 1e3))} kB", workshop.made_by(name))))
    return {"name": f"results/{name}", "link": f"records/{name}", "size": words}


def _dotted(item: Item) -> str:
    return f"{item.make.__module__}.{item.make.__qualname__.split('.')[0]}"


def _source(dotted: str, out: Path) -> str:
    """Copy the module of a function beside the pages, as text that any browser shows; the link to it."""
    module = dotted
    while "." in module:
        try:
            found = find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is not None and found.origin:
            target = out / "source" / f"{module}.txt"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found.origin, target)
            return f"source/{module}.txt"
        module = module.rpartition(".")[0]
    return ""
