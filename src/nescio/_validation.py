"""Argument checks and the wording of all errors: what, which argument or column, what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

__all__ = [
    "ROW",
    "InputError",
    "NumericalError",
    "RowError",
    "check_fraction",
    "check_integer",
    "check_one_of",
    "check_positive",
    "check_random_state",
    "check_same_shape",
    "check_widths",
    "counted",
    "join_names",
]


class InputError(ValueError):
    """A mistake of the caller's, told in one sentence."""


ROW = "\0"


class RowError(InputError):
    """A mistake in one row of a table; ``sentence`` has ``ROW`` where the row is named."""

    def __init__(self, sentence: str, row: int, word: str = "row") -> None:
        super().__init__(sentence.replace(ROW, f"{word} {row}"))
        self.sentence, self.row, self.word = sentence, row, word

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.sentence, self.row, self.word)

    def in_file(self, rows: np.ndarray) -> RowError:
        """The same of a file, of which the table has the ``rows``, counted from 0: its rows are told from 1."""
        return type(self)(self.sentence, int(rows[self.row]) + 1, "data row")


class NumericalError(ArithmeticError):
    """A training run that left the finite numbers and could not be brought back."""


def check_same_shape(**tensors: Tensor) -> None:
    """Refuse tensors whose shapes differ: ``(N,)`` against ``(N, 1)`` would broadcast to ``(N, N)``."""
    shapes = [tensor.shape for tensor in tensors.values()]
    if any(shape != shapes[0] for shape in shapes):  # not as a set: a hash would tie a compiled step to one size
        listed = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in tensors.items())
        raise InputError(f"these tensors must have one shape: {listed}; reshape or expand them first.")


def check_positive(name: str, value: float, *, above: float = 0.0, why: str = "") -> float:
    """Refuse a number that is not finite or not larger than ``above``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= above:
        reason = f" {why}" if why else ""
        raise InputError(f"{name} must be a finite number that exceeds {above:g}{reason}; got {value!r}.")
    return float(value)


def check_fraction(name: str, value: float) -> float:
    """Refuse a number outside the open interval (0, 1)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value < 1.0:
        raise InputError(f"{name} must lie strictly between 0 and 1; got {value!r}.")
    return float(value)


def check_integer(name: str, value: Any, *, least: int) -> int:
    """Refuse what is not a whole number of at least ``least``."""
    whole = hasattr(value, "__index__") and not isinstance(value, bool) and not hasattr(value, "__len__")
    if not whole or int(value) < least:
        raise InputError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return int(value)


def check_widths(name: str, value: Any, *, least: int = 0) -> list[int]:
    """Refuse what is no list of the widths of at least ``least`` hidden layers."""
    if not hasattr(value, "__iter__"):
        raise InputError(f"{name} must be a list of whole numbers, one for each hidden layer; got {value!r}.")
    widths = [check_integer(name, width, least=1) for width in value]
    if len(widths) < least:
        raise InputError(f"{name} must hold {least} or more widths of hidden layers; got {value!r}.")
    return widths


def check_random_state(value: Any) -> None:
    """Refuse what no seed can be made of."""
    if value is not None and not any(hasattr(value, name) for name in ("__index__", "randint", "integers")):
        raise InputError(f"random_state must be None, a whole number or a generator of numpy; got {value!r}.")


def check_one_of(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Refuse a word that is not on the list."""
    words = list(allowed)
    if value not in words:
        raise InputError(f"{name} must be one of {join_names(words)}; got {value!r}.")
    return str(value)


def counted(number: int, noun: str) -> str:
    """A number of things, with thousands apart.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def join_names(names: Iterable[object], limit: int = 5) -> str:
    """Quote and join names for a message, the first ``limit`` of them.

    >>> join_names(["a", "b"])
    "'a', 'b'"
    >>> join_names(range(7), limit=2)
    "'0', '1' and 5 more"
    """
    listed = [f"'{name}'" for name in names]
    if len(listed) <= limit:
        return ", ".join(listed)
    return f"{', '.join(listed[:limit])} and {len(listed) - limit} more"
