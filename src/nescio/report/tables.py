"""Tables as text, Markdown, CSV, JSON or one self-contained page; no statistics here."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from nescio._validation import check_one_of
from nescio.benchmark.cells import Cell, Table

__all__ = ["FORMATS", "cell_text", "note_letters", "render", "table_notes"]


def render(tables: Sequence[Table], form: str) -> str:
    """All tables in one text of this form."""
    return FORMATS[check_one_of("format", form, FORMATS)](tables)


def _number(value: float, digits: int) -> str:
    """A number with so many decimals, or with an exponent where it is very large.

    >>> _number(-0.6142, 2), _number(1.0e11, 2), _number(float("nan"), 2)
    ('-0.61', '1.0e+11', 'nan')
    """
    if not math.isfinite(value):
        return str(value)
    return f"{value:.1e}" if abs(value) >= 1e5 else f"{value:.{digits}f}"


def cell_text(cell: Cell, digits: int) -> str:
    """A cell in words: the value, with its spread, interval or second number."""
    if cell.value is None:
        return ""
    if isinstance(cell.value, str):
        return cell.value
    text = _number(cell.value, digits)
    if cell.spread is not None and not math.isnan(cell.spread):
        text += f" ± {_number(cell.spread, digits)}"
    if cell.interval is not None:
        text += f" [{_number(cell.interval[0], digits)}, {_number(cell.interval[1], digits)}]"
    return text if cell.second is None else f"{text} / {cell.second}"


def note_letters(table: Table) -> dict[str, str]:
    """A letter for each note of a cell, in the order in which they come."""
    notes = dict.fromkeys(note for row in table.rows for cell in row for note in cell.notes)
    return {note: chr(ord("a") + number) for number, note in enumerate(notes)}


def _grid(table: Table, emphasise: Callable[[str], str], mark: Callable[[str], str]) -> list[list[str]]:
    letters = note_letters(table)
    grid = [list(table.columns)]
    for row in table.rows:
        line = []
        for cell in row:
            text = cell_text(cell, table.digits)
            text = emphasise(text) if cell.best else text
            line.append(text + (mark("".join(letters[note] for note in cell.notes)) if cell.notes else ""))
        grid.append(line)
    return grid


def table_notes(table: Table) -> list[str]:
    """The notes of a table, those of cells with their letters."""
    return [*table.notes, *(f"({letter}) {note}" for note, letter in note_letters(table).items())]


def _text(tables: Sequence[Table]) -> str:
    parts = []
    for table in tables:
        grid = _grid(table, lambda text: f"{text}*", lambda letters: f" ({letters})")
        widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if column < table.labels else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in grid
        ]
        rule = "-" * (sum(widths) + 2 * len(widths) - 2)
        best = any(cell.best for row in table.rows for cell in row)
        notes = [*table_notes(table), *(["* the best, or marked as said above."] if best else [])]
        parts.append("\n".join([table.title, rule, lines[0], rule, *lines[1:], rule, *notes]))
    return "\n\n".join(parts) + "\n"


def _markdown(tables: Sequence[Table]) -> str:
    parts = []
    for table in tables:
        grid = _grid(table, lambda text: f"**{text}**", lambda letters: f"<sup>{letters}</sup>")
        safe = [[cell.replace("|", "\\|") for cell in line] for line in grid]
        lines = ["| " + " | ".join(line) + " |" for line in safe]
        ruler = "|" + "---|" * table.labels + "---:|" * (len(table.columns) - table.labels)
        notes = [f"- {note}" for note in table_notes(table)]
        parts.append("\n".join([f"### {table.title}", "", lines[0], ruler, *lines[1:], "", *notes]))
    return "\n\n".join(parts) + "\n"


def _csv(tables: Sequence[Table]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("table", "row", "column", "value", "spread", "low", "high", "second", "best", "notes"))
    for table in tables:
        for row in table.rows:
            label = " / ".join(cell_text(cell, 0) for cell in row[: table.labels])
            for column, cell in zip(table.columns[table.labels :], row[table.labels :], strict=True):
                if cell.value is not None:
                    low, high = cell.interval or (None, None)
                    writer.writerow(
                        (table.name, label, column, cell.value, cell.spread, low, high, cell.second, int(cell.best),
                         " ".join(cell.notes))
                    )  # fmt: skip
    return text.getvalue()


def _json(tables: Sequence[Table]) -> str:
    """JSON as its standard has it: what is not a finite number is written as a word."""

    def plain(value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        return [plain(each) for each in value] if isinstance(value, (tuple, list)) else value

    listed = [
        {
            "name": table.name,
            "title": table.title,
            "columns": list(table.columns),
            "labels": table.labels,
            "rows": [[{key: plain(value) for key, value in cell._asdict().items() if value not in (None, (), False)}
                      for cell in row] for row in table.rows],
            "notes": list(table.notes),
        }
        for table in tables
    ]  # fmt: skip
    return json.dumps(listed, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _html(tables: Sequence[Table]) -> str:
    from markupsafe import Markup, escape

    from nescio.report.html import page_template

    shown = []
    for table in tables:
        letters = note_letters(table)
        rows = [
            [
                {
                    "text": cell_text(cell, table.digits),
                    "best": cell.best,
                    "mark": Markup("<sup>") + escape("".join(letters[n] for n in cell.notes)) + Markup("</sup>")
                    if cell.notes
                    else "",
                }
                for cell in row
            ]
            for row in table.rows
        ]
        shown.append({"table": table, "rows": rows, "notes": table_notes(table)})
    return page_template("bench.html.j2").render(tables=shown) + "\n"


FORMATS: dict[str, Callable[[Sequence[Table]], str]] = {
    "text": _text,
    "md": _markdown,
    "csv": _csv,
    "json": _json,
    "html": _html,
}
