"""What checks found, apart from how they were made: lines with bounds, a table, records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

__all__ = ["Check", "ContractError", "Report"]


class ContractError(AssertionError):
    """A model that breaks the contract; ``report`` has the checks, and the message their table."""

    def __init__(self, report: Report) -> None:
        super().__init__(f"the model breaks the contract:\n{report.table()}")
        self.report = report


@dataclass(frozen=True)
class Check:
    """One line of a report: the worst ``value`` found, and between which bounds it must lie."""

    name: str
    value: float | None
    """None where the check could not be made; ``note`` says why."""
    lower: float
    upper: float
    note: str
    """What the value is, and over how many points or rows."""

    @property
    def passed(self) -> bool | None:
        """Whether the value lies within its bounds; None where there is none."""
        return None if self.value is None else bool(self.lower <= self.value <= self.upper)

    @property
    def bounds(self) -> str:
        """The bounds in words."""
        if math.isinf(self.upper):
            return f"at least {self.lower:.3g}"
        return f"at most {self.upper:.3g}" if self.lower <= 0.0 else f"{self.lower:.3g} to {self.upper:.3g}"


@dataclass(frozen=True)
class Report:
    """All checks of one model."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed; one that could not be made does not count."""
        return all(check.passed is not False for check in self.checks)

    def table(self) -> str:
        """The checks as text, a line for each."""
        words = {True: "ok", False: "FAILED", None: "not checked"}
        cells = [("check", "found", "must be", "", "")]
        for check in self.checks:
            found = "" if check.value is None else f"{check.value:.4g}"
            bounds = "" if check.value is None else check.bounds
            cells.append((check.name, found, bounds, words[check.passed], check.note))
        widths = [max(len(row[column]) for row in cells) for column in range(4)]
        lines = ["  ".join([*(f"{cell:{w}}" for cell, w in zip(row, widths, strict=False)), row[4]]) for row in cells]
        return "\n".join(line.rstrip() for line in lines)

    def records(self) -> list[dict[str, Any]]:
        """The checks as plain values, one record for each."""
        return [
            {"check": c.name, "value": c.value, "lower": c.lower, "upper": c.upper, "passed": c.passed, "note": c.note}
            for c in self.checks
        ]
