"""Every file of records is named on a page, with a command that makes it and works."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PAGES = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))))
RECORDS = sorted(path.name for path in ROOT.glob("results/*.csv") if not path.stem.endswith("_provenance"))
COMMANDS = sorted(set(re.findall(r"-m (nescio\.\w+\.\w+)", MAKEFILE + PAGES)))
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, flags=re.MULTILINE))


@pytest.mark.parametrize("name", RECORDS)
def test_a_file_of_records_is_on_a_page_and_a_command_writes_it(name):
    assert f"results/{name}" in PAGES
    assert re.search(rf"--(csv|times) (results/)?{re.escape(name)}", MAKEFILE + PAGES)


@pytest.mark.parametrize("module", COMMANDS)
def test_a_command_of_the_makefile_or_of_a_page_says_what_it_does_and_does_nothing_else(module, capsys):
    with pytest.raises(SystemExit) as end:
        import_module(module).main(["--help"])
    assert end.value.code == 0
    assert "options:" in capsys.readouterr().out


def test_every_target_is_listed_and_every_target_named_on_a_page_is_there():
    helped = set(re.findall(r'@echo "make ([a-z-]+)', MAKEFILE))
    assert helped == TARGETS - {"help", "setup", "lint", "types"}
    assert set(re.findall(r"`make ([a-z-]+)`", PAGES)) <= TARGETS
