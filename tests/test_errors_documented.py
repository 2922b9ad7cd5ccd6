"""Errors, the page that lists them and the tests that reach them keep in step."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "nescio"
PAGE = ROOT / "docs" / "errors.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ERRORS = ("InputError", "RowError", "NumericalError", "SystemExit", "_end")
HOLE = "\0"  # where a message has a value of the moment

TABLE_TOOL = [
    *("_archive.py", "_files.py", "_validation.py", "calibration.py", "export.py", "persistence.py"),
    *(f"cli/{name}.py" for name in ("__init__", "card", "check", "csv_cells", "demo", "export", "fit", "predict")),
    "cli/tables.py",
    *("networks/stack.py", "training/devices.py", "training/loop.py", "report/card_page.py", "report/card_table.py"),
    *(f"{folder}/*.py" for folder in ("estimators", "preprocessing", "testing")),
]
"""Modules whose errors a user of tables can meet: as a sentence of the command line, or of fit, predict, save, load."""

UNLISTED = {
    "state.py": "files that were altered: 'cannot be loaded' of the page stands for all of them",
    "state_columns.py": "as above",
    "state_conformal.py": "as above",
    "state_core.py": "as above",
    "together.py": "stacks of models, for benchmarks",
}
"""Modules whose messages need not be on the page, and why; those of theirs that a user meets may be."""


def wordings(node: ast.expr) -> list[str]:
    """A message as it stands in the source, with holes for its values; several where the source chooses."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values)]
    if isinstance(node, ast.IfExp):
        return wordings(node.body) + wordings(node.orelse)
    raise AssertionError(f"write the message in the call itself, line {node.lineno}: {ast.unparse(node)}")


def templates(path: Path) -> list[str]:
    """The messages of the errors that a module makes."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    errors = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in ERRORS]
    return [message for call in errors for message in wordings(call.args[0]) if message != f"Error: {HOLE}"]


def fits(message: str, example: str) -> bool:
    return re.fullmatch(".*".join(re.escape(part) for part in message.split(HOLE)), example) is not None


def owner(example: str) -> str | None:
    """The template that an example on the page is of: of those that fit, the one that begins most like it."""
    fitting = [message for message in ALL if fits(message, example)]
    return max(fitting, key=lambda one: (len(one.split(HOLE)[0]), len(one.replace(HOLE, ""))), default=None)


def listed() -> list[str]:
    """The messages in the first column of the page's tables."""
    return re.findall(r"^\| `(.+?)` \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)


MODULES = sorted({path for glob in TABLE_TOOL for path in SOURCE.glob(glob)})
KNOWN = {path: found for path in MODULES if (found := templates(path))}
ALL = sorted({message for messages in KNOWN.values() for message in messages})
SHOWN = {example: owner(example) for example in listed()}


@pytest.mark.parametrize("path", KNOWN, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_error_of_the_table_tool_is_on_the_page(path):
    missing = [message.replace(HOLE, "…") for message in KNOWN[path] if message not in SHOWN.values()]
    assert missing == [] or path.name in UNLISTED


def test_every_error_on_the_page_is_made_by_the_source():
    assert [example for example, message in SHOWN.items() if message is None] == []
    assert len(listed()) == len(SHOWN) > 150  # no sentence twice


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name
)
def test_errors_quoted_on_other_pages_are_made_by_the_source(page):
    sentences = re.findall(r"Error: ([^\n`]+[.?])", page.read_text(encoding="utf-8"))
    assert [one for one in sentences if owner(one) is None and owner(f"Error: {one}") is None] == []


RUN = 10  # characters: a part of a message as long as this, and found in no other, is taken as quoted from it


def quoted() -> str:
    """All texts in the other tests, less the marks of regular expressions."""
    texts = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if path != Path(__file__) else []
        texts += [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return "\n".join(texts).replace("\\", "")


def test_every_error_on_the_page_is_quoted_by_a_test():
    texts = quoted()
    runs = {message: {m[k : k + RUN] for m in message.split(HOLE) for k in range(len(m) - RUN + 1)} for message in ALL}
    bare = []
    for message in sorted({message for message in SHOWN.values() if message is not None}):
        own = runs[message].difference(*(runs[other] for other in ALL if other != message))
        if not any(run in texts for run in own or runs[message]):
            bare.append(message.replace(HOLE, "…"))
    assert bare == []


def test_an_example_belongs_to_the_closest_of_the_messages_that_fit():
    deep = "'m' cannot be loaded: its manifest is nested too deeply."
    assert owner(deep) == deep.replace("'m'", f"'{HOLE}'")
    assert owner(deep.replace("deeply", "deep")) == f"'{HOLE}' cannot be loaded: {HOLE}"
    assert owner("it would not do.") is None
    choice = ast.parse('f"{a} is {b}." if a else "none"', mode="eval").body
    assert wordings(choice) == [f"{HOLE} is {HOLE}.", "none"]
