"""What the pages show is run: Python blocks, command lines and links.

Blocks fenced as ``python`` run in order, one namespace per page, in an empty folder. A block after the comment
``<!-- not run -->`` is left out. Comments ``<!-- setup`` and ``<!-- check`` hold code that runs and is not shown.
Lines ``nescio fit ...``, ``predict ...`` and ``check ...`` of ``sh`` blocks run after the Python of their page.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nescio import DissipativeRegressor
from nescio.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
STEPS = 40  # enough to run through all phases; what the pages claim holds by construction or is checked there

PIECE = re.compile(
    r"(?P<skip><!-- not run -->\s*)?^```python\n(?P<shown>.*?)^```$|^<!-- (?:setup|check)\n(?P<hidden>.*?)^-->$",
    flags=re.MULTILINE | re.DOTALL,
)
SHELL = re.compile(r"^```sh\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def python_of(text: str) -> list[tuple[int, str]]:
    """Line numbers and sources of the pieces to run."""
    pieces = []
    for match in PIECE.finditer(text):
        if match["skip"] is None:
            group = "shown" if match["shown"] is not None else "hidden"
            pieces.append((text.count("\n", 0, match.start(group)), match[group]))
    return pieces


def commands_of(text: str) -> list[list[str]]:
    """Arguments of the ``nescio`` commands that work on tables."""
    lines = [line for block in SHELL.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    return [
        shlex.split(line)[1:] for line in lines if line.startswith(("nescio fit ", "nescio predict ", "nescio check "))
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_runs_as_it_is_written(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(DissipativeRegressor.__init__.__kwdefaults__, "max_steps", STEPS)
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "__page__"}
    for line, source in python_of(text):
        exec(compile("\n" * line + source, str(page), "exec"), namespace)
    for arguments in commands_of(text):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output


def test_the_pages_show_what_they_should():
    blocks = {page.name: len(python_of(page.read_text(encoding="utf-8"))) for page in PAGES}
    assert min(blocks[name] for name in ("README.md", "guide.md", "own-training-loop.md")) >= 2
    assert {words[0] for words in commands_of(PAGES[0].read_text(encoding="utf-8"))} == {"fit", "predict"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    assert [name for name in targets if not name.endswith(".png") and not (page.parent / name).exists()] == []


def test_pieces_are_found_skipped_and_hidden():
    text = "a\n```python\nx = 1\n```\n<!-- not run -->\n```python\nx = 2\n```\n<!-- check\nassert x == 1\n-->\n"
    assert python_of(text) == [(2, "x = 1\n"), (9, "assert x == 1\n")]
    assert python_of("```sh\nls\n```\n") == []
    assert commands_of("```sh\nnescio fit a.csv \\\n    --target y\nmake demo\n```\n") == [
        ["fit", "a.csv", "--target", "y"]
    ]
