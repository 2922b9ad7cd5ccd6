"""Open a page in headless Chromium: what it said on the console, and how it lies at each width.

The page is shown in frames of the widths asked for, on a sheet of our own that measures them: a window cannot be as
narrow as a phone, and a page that forbids scripts can still be measured from outside.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["DESKTOP", "PHONE", "Look", "Visit", "needs_chromium", "screenshot", "visit"]

PHONE, DESKTOP = 375, 1280  # CSS pixels
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SECONDS = 120

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine; the page was not opened in a browser (apt install chromium)"
)

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--allow-file-access-from-files",
    "--hide-scrollbars",
    "--enable-logging=stderr",
)

SHEET = """<!doctype html><meta charset="utf-8"><title>sheet</title>
<style>body {{ margin: 0 }} iframe {{ border: 0; display: block }}</style>
{frames}<pre id="measured"></pre>
<script>
const textSize = (element) => {{
  const size = parseFloat(getComputedStyle(element).fontSize);
  const turned = element.ownerSVGElement && element.getScreenCTM();
  return turned ? size * Math.hypot(turned.a, turned.b) : size;
}};
const scrolls = (element) => {{
  for (let e = element.parentElement; e && e.tagName !== "BODY"; e = e.parentElement)
    if (["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX)) return true;
  return false;
}};
const name = (e) => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") + (e.className ? "." + e.className : "");
const measure = (frame) => {{
  const page = frame.contentDocument, root = page.documentElement, all = [...page.body.querySelectorAll("*")];
  const box = (e) => e.getBoundingClientRect();
  const written = all.filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) && box(e).width);
  const pictures = all.filter((e) => e.tagName === "svg" || e.tagName === "IMG");
  return {{
    width: frame.contentWindow.innerWidth,
    scroll_width: root.scrollWidth,
    height: root.scrollHeight,
    figures: pictures.filter((e) => box(e).width > 40 && box(e).height > 40).length,
    empty_figures: pictures.filter((e) => box(e).width <= 40 || box(e).height <= 40).length,
    smallest_text: Math.min(...written.map(textSize)),
    sticking_out: all.filter((e) => !e.ownerSVGElement && box(e).right > root.clientWidth + 1 && !scrolls(e)).map(name),
    dark: frame.contentWindow.matchMedia("(prefers-color-scheme: dark)").matches,
  }};
}};
addEventListener("load", () => {{
  const found = [...document.querySelectorAll("iframe")].map(measure);
  document.getElementById("measured").textContent = JSON.stringify(found);
}});
</script>
"""


@dataclass(frozen=True)
class Look:
    """How a page lies in a frame of ``width`` CSS pixels.

    ``scroll_width`` above ``width`` is a page that must be pushed sideways; ``sticking_out`` names the elements that do
    it. ``figures`` are the SVG and image elements that take up room, ``empty_figures`` those that do not.
    ``smallest_text`` is in pixels as they are seen, letters in scaled figures included.
    """

    width: int
    scroll_width: int
    height: int
    figures: int
    empty_figures: int
    smallest_text: float
    sticking_out: list[str]
    dark: bool


@dataclass(frozen=True)
class Visit:
    """What was said on the console (a page should say nothing), and a look at each width."""

    messages: list[str]
    looks: list[Look]


def visit(page: Path, widths: Sequence[int] = (PHONE, DESKTOP), *, dark: bool = False) -> Visit:
    """Open ``page``, a local file, at these widths, in the light or in the dark."""
    with tempfile.TemporaryDirectory() as folder:
        sheet = _sheet(Path(folder), page, [(width, 800) for width in widths])
        run = _chromium(Path(folder), sheet, dark, "--dump-dom")
    measured = re.search(r'<pre id="measured">(.*?)</pre>', run.stdout, flags=re.DOTALL)
    if run.returncode != 0 or measured is None or not measured[1]:
        raise RuntimeError(f"Chromium did not show '{page}' (exit code {run.returncode}): {run.stderr[-2000:]}")
    messages = re.findall(r":CONSOLE[^\]]*\] (.*)", run.stderr)
    return Visit(messages, [Look(**look) for look in json.loads(html.unescape(measured[1]))])


def screenshot(page: Path, out: Path, width: int, *, height: int | None = None, dark: bool = False) -> None:
    """Write a PNG of ``page``, ``width`` CSS pixels wide: all of it, or its first ``height`` pixels."""
    height = height or visit(page, [width], dark=dark).looks[0].height
    with tempfile.TemporaryDirectory() as folder:
        sheet = _sheet(Path(folder), page, [(width, height)])
        taken = Path(folder) / "taken.png"
        run = _chromium(Path(folder), sheet, dark, f"--window-size={width},{height}", f"--screenshot={taken}")
        if not taken.exists():
            raise RuntimeError(f"Chromium took no picture of '{page}': {run.stderr[-2000:]}")
        shutil.copyfile(taken, out)


def _sheet(folder: Path, page: Path, sizes: Sequence[tuple[int, int]]) -> Path:
    source = html.escape(page.resolve().as_uri(), quote=True)
    frames = "".join(f'<iframe src="{source}" width="{width}" height="{height}"></iframe>' for width, height in sizes)
    sheet = folder / "sheet.html"
    sheet.write_text(SHEET.format(frames=frames), encoding="utf-8")
    return sheet


def _chromium(folder: Path, sheet: Path, dark: bool, *options: str) -> subprocess.CompletedProcess[str]:
    if CHROMIUM is None:
        raise RuntimeError("no Chromium on this machine; mark the test with needs_chromium.")
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    profile = f"--user-data-dir={folder / 'profile'}"
    return subprocess.run(
        [CHROMIUM, *OPTIONS, scheme, profile, *options, sheet.as_uri()],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, "HOME": str(folder)},
    )


if __name__ == "__main__":  # a page and where its pictures go: the README's, by `make card`
    shown, place = Path(sys.argv[1]), sys.argv[2]
    screenshot(shown, Path(f"{place}-desktop.png"), DESKTOP, height=1_000)
    screenshot(shown, Path(f"{place}-phone.png"), PHONE, height=1_000, dark=True)
