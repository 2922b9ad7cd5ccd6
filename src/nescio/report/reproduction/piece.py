"""What a page of the site is made of: an item of the list, and the piece that its maker returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from matplotlib.figure import Figure

from nescio.benchmark.cells import Table
from nescio.benchmark.workshop import Workshop

__all__ = ["CANNOT", "FAILS", "HOLDS", "OURS", "PART", "VERDICTS", "Drawn", "Item", "Piece"]

HOLDS, PART, FAILS, CANNOT = "holds", "holds in part", "does not hold", "could not be run here"
OURS = "ours"  # not in the paper: nothing to hold
VERDICTS = (HOLDS, PART, FAILS, CANNOT)


@dataclass(frozen=True)
class Drawn:
    """A figure with its file's name, what to see in it, and words for those who cannot see it."""

    name: str
    figure: Figure
    caption: str
    description: str


@dataclass(frozen=True)
class Piece:
    """Our version of an item, and what we make of it.

    ``found`` are paragraphs. ``numbers`` is CSV text of what is drawn, where no table has it. ``played`` is the data of
    a slider, as JSON text.
    """

    verdict: str
    reason: str
    found: tuple[str, ...] = ()
    figures: tuple[Drawn, ...] = ()
    tables: tuple[Table, ...] = ()
    numbers: str = ""
    played: str = ""


@dataclass(frozen=True)
class Item:
    """A numbered figure or table of the paper, or one of ours.

    ``claim``: what the paper says with it, in our words. ``sources``: functions that compute and draw it.
    """

    label: str
    number: str
    title: str
    group: str
    claim: str
    make: Callable[[Workshop], Piece]
    sources: tuple[str, ...] = field(default=())

    @property
    def slug(self) -> str:
        """The page's name: the label with what a file name cannot have replaced."""
        return self.label.replace(":", "-").replace("_", "-")
