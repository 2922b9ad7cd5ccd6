"""The manual builds without a warning, and its guide opens in a browser at phone and desktop width."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from browser import needs_chromium, visit

ROOT = Path(__file__).parents[1]
PAGES = ("index", "guide", "maths", "methods", "api", "images", "results", "reproduction")


@pytest.fixture(scope="module")
def manual(tmp_path_factory) -> Path:
    """The folder of built pages."""
    pytest.importorskip("sphinx", reason="Sphinx is not installed; the manual was not built")
    out = tmp_path_factory.mktemp("manual")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    run = subprocess.run(
        [*command, "-d", str(out / "trees"), str(ROOT / "docs"), str(out / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    return out / "html"


@pytest.mark.slow
def test_every_page_is_there_and_the_reference_names_what_is_public(manual):
    import nescio

    assert all((manual / f"{page}.html").is_file() for page in PAGES)
    reference = (manual / "api.html").read_text(encoding="utf-8")
    assert [name for name in nescio.__all__ if name[0] != "_" and f"nescio.{name}" not in reference] == []


@needs_chromium
@pytest.mark.slow
def test_the_guide_opens_in_a_browser_and_is_never_wider_than_the_screen(manual):
    found = visit(manual / "guide.html")
    assert [words for words in found.messages if "[PST]" not in words] == []  # the theme tells its mode
    for look in found.looks:
        assert look.scroll_width <= look.width
        assert look.smallest_text >= 9.0
