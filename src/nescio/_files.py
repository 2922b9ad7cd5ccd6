"""Files that are either whole or not there: written beside their place and renamed into it."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from nescio._validation import InputError

__all__ = ["check_destination", "make_folder", "written_beside"]


def check_destination(path: str | os.PathLike[str]) -> Path:
    """The real place of a file to be written; refuses one that cannot be written, before any work is done for it."""
    try:
        target = Path(os.path.realpath(path))  # a link stays, and what it points to is replaced
        if target.is_dir():
            raise InputError(f"'{path}' is a directory; give the name of a file.")
        if target.exists() and not target.is_file():
            raise InputError(f"'{path}' is not an ordinary file; give another name.")
        if not target.parent.is_dir():
            raise InputError(f"'{path}' cannot be written: there is no directory '{target.parent}'; create it first.")
        trial = _neighbour(target)
        try:
            trial.open("xb").close()
        finally:
            trial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"'{path}' cannot be written: {error.strerror}; choose another place.") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{os.fspath(path)!r} is not a file name: {error}.") from error
    return target


def make_folder(out: Path, page: str) -> None:
    """Make the folder of the option ``--out`` and see that ``page`` can be written in it, before minutes of work."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"--out '{out}' cannot be a folder: {reason}; choose another place.") from error
    check_destination(out / page)


def _neighbour(target: Path) -> Path:
    return target.parent / f".{secrets.token_hex(8)}.part"


@contextmanager
def written_beside(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes the name ``path`` when the block ends, all of it on the disk.

    Whatever goes wrong before that, an interrupt and a full disk included, leaves an older file as it was and nothing
    of the new one.
    """
    target = check_destination(path)
    temporary = _neighbour(target)
    try:
        with temporary.open("xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_directory(target.parent)


def _sync_directory(directory: Path) -> None:
    with suppress(OSError):  # not every system opens directories
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
