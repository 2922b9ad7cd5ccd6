"""Checked reading of what a file says: each value and array is asked for by name and kind, nothing is left over."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from nescio._validation import InputError, join_names

__all__ = ["Fields", "Tensors", "is_text"]

_MOST = 2**53  # whole numbers beyond this are not exact in every reader of JSON


class Fields:
    """One object of a manifest; ``where`` names it in messages.

    >>> Fields({"k": 5}, "support").whole("k", least=1)
    5
    >>> Fields({"k": True}, "support").whole("k", least=1)
    Traceback (most recent call last):
    ...
    nescio._validation.InputError: the manifest's support.k must be a whole number of at least 1; got True.
    """

    def __init__(self, values: Any, where: str = "") -> None:
        self._where = where
        if not isinstance(values, dict):
            raise InputError(f"the manifest's {where or 'content'} must be an object; got {_shown(values)}.")
        self._values = dict(values)

    def _take(self, name: str) -> Any:
        if name not in self._values:
            raise InputError(f"the manifest lacks {self._path(name)}.")
        return self._values.pop(name)

    def _path(self, name: str) -> str:
        return f"{self._where}.{name}" if self._where else name

    def _refuse(self, name: str, rule: str, value: Any) -> InputError:
        return InputError(f"the manifest's {self._path(name)} must be {rule}; got {_shown(value)}.")

    def section(self, name: str) -> Fields:
        """An object inside this one."""
        return Fields(self._take(name), self._path(name))

    def optional_section(self, name: str) -> Fields | None:
        """An object inside this one, or None where null is written or nothing."""
        if self._values.get(name) is None:
            self._values.pop(name, None)
            return None
        return self.section(name)

    def whole(self, name: str, *, least: int, most: int = _MOST) -> int:
        """A whole number within bounds."""
        value = self._take(name)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            bounds = f"of at least {least}" if most == _MOST else f"between {least} and {most}"
            raise self._refuse(name, f"a whole number {bounds}", value)
        return value

    def optional_whole(self, name: str, *, least: int) -> int | None:
        """A whole number, or None where null is written."""
        if name in self._values and self._values[name] is None:
            self._take(name)
            return None
        return self.whole(name, least=least)

    def number(self, name: str, *, least: float = -math.inf, above: float = -math.inf, most: float = math.inf) -> float:
        """A finite number within bounds."""
        value = self._take(name)
        try:
            number = math.nan if isinstance(value, bool) or not isinstance(value, (int, float)) else float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number) or number < least or number <= above or number > most:
            raise self._refuse(name, "a finite number within its bounds", value)
        return number

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._take(name)
        if not isinstance(value, bool):
            raise self._refuse(name, "true or false", value)
        return value

    def optional_flag(self, name: str) -> bool | None:
        """True or false, or None where nothing is written."""
        return self.flag(name) if name in self._values else None

    def text(self, name: str) -> str:
        """A string of well-formed Unicode."""
        value = self._take(name)
        if not is_text(value):
            raise self._refuse(name, "a text", value)
        return str(value)

    def word(self, name: str, allowed: Iterable[str]) -> str:
        """One of some words."""
        words, value = list(allowed), self._take(name)
        if not isinstance(value, str) or value not in words:
            raise self._refuse(name, f"one of {join_names(words, 12)}", value)
        return value

    def names(self, name: str, count: int) -> list[str] | None:
        """``count`` names, or None where null is written."""
        value = self._take(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != count or not all(map(is_text, value)):
            raise self._refuse(name, f"null or a list of {count} names", value)
        return list(value)

    def optional_names(self, name: str) -> list[str] | None:
        """Any number of names, or None where nothing is written."""
        value = self._values.get(name)
        return self.names(name, len(value) if isinstance(value, list) else 1) if name in self._values else None

    def widths(self, name: str) -> list[int]:
        """Widths of layers: at most 1,000 whole numbers of at least 1."""
        value = self._take(name)
        whole = isinstance(value, list) and all(isinstance(one, int) and not isinstance(one, bool) for one in value)
        if not whole or len(value) > 1_000 or not all(1 <= one <= _MOST for one in value):
            raise self._refuse(name, "a list of whole numbers of at least 1", value)
        return list(value)

    def peek(self, name: str) -> Any:
        """What stands under a name, unchecked and still to be asked for; None where nothing does."""
        return self._values.get(name)

    def rest(self) -> dict[str, Any]:
        """All that has not been asked for."""
        values, self._values = self._values, {}
        return values

    def done(self) -> None:
        """Refuse what nobody asked for."""
        if self._values:
            raise InputError(f"the manifest has an unknown entry {_shown(self._path(next(iter(self._values))))}.")


class Tensors:
    """The arrays of a file; each must have the shape and the type that the manifest says, and be finite."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self._arrays = dict(arrays)

    def take(self, name: str, shape: tuple[int, ...], dtype: Any = np.float32, *, positive: bool = False) -> np.ndarray:
        """The array called ``name``."""
        if name not in self._arrays:
            raise InputError(f"the model file lacks the tensor {_shown(name)}.")
        array = self._arrays.pop(name)
        if array.shape != shape or array.dtype != dtype:
            raise InputError(
                f"the tensor {_shown(name)} must be {np.dtype(dtype).name} of shape {shape}; "
                f"it is {array.dtype.name} of shape {array.shape}."
            )
        if not np.isfinite(array).all():
            raise InputError(f"the tensor {_shown(name)} holds NaN or infinity; the model file is damaged.")
        if positive and not (array > 0).all():
            raise InputError(f"the tensor {_shown(name)} must be positive; the model file is damaged.")
        return array

    def done(self) -> None:
        """Refuse what nobody asked for."""
        if self._arrays:
            raise InputError(f"the model file has an unexpected tensor {_shown(min(self._arrays))}.")


def is_text(value: Any) -> bool:
    """Whether this is a string that can be printed and written: a lone surrogate cannot."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _shown(value: Any) -> str:
    """A value as a message shows it: on one line, in ASCII, not too long."""
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _MOST:
        return "a very large number"
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
