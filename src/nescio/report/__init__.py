"""Records and models as pages: tables, figures, the card of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nescio.report.card_page import card

__all__ = ["card"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: a table of text need not wait for matplotlib."""
    if name != "card":
        raise AttributeError(f"module 'nescio.report' has no attribute {name!r}")
    from nescio.report.card_page import card

    return card
