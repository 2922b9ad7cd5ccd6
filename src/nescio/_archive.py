"""The container of saved models: a zip of stored members with fixed names, read without trusting a byte of it."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import BinaryIO

from nescio._files import written_beside
from nescio._validation import InputError, join_names

__all__ = ["read_archive", "write_archive"]

_END = struct.Struct("<4s4H2LH")  # the end record of a zip without a comment
_LARGEST_DIRECTORY = 4_096  # bytes of its central directory: two members take about 150
_EPOCH = (1980, 1, 1, 0, 0, 0)  # no time of writing: the same model is the same file
_FAULTS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)
"""What ``zipfile`` raises on bytes that are no zip, or not quite."""


def write_archive(path: str | os.PathLike[str], members: Mapping[str, bytes], limits: Mapping[str, int]) -> None:
    """Write the members in this order, beside ``path`` first, and rename."""
    for name, data in members.items():
        if len(data) > limits[name]:
            raise InputError(f"the model's {name} has {len(data)} bytes; at most {limits[name]} can be saved.")
    with written_beside(path) as handle, zipfile.ZipFile(handle, "w", zipfile.ZIP_STORED, allowZip64=False) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)


def read_archive(path: str | os.PathLike[str], limits: Mapping[str, int]) -> dict[str, bytes]:
    """The members named in ``limits``, none of them larger than it says; anything else is refused in one sentence."""
    with _open(path) as handle:
        try:
            return _read(handle, path, limits)
        except InputError:
            raise
        except _FAULTS:
            raise InputError(f"'{path}' is damaged: it is not a whole zip archive; save the model again.") from None


def _open(path: str | os.PathLike[str]) -> BinaryIO:
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"'{path}' is a directory; give the file that save wrote.")
        if not stat.S_ISREG(mode):
            raise InputError(f"'{path}' is not an ordinary file; give the file that save wrote.")
        return open(path, "rb")
    except FileNotFoundError:
        raise InputError(f"there is no file '{path}'.") from None
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}.") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{os.fspath(path)!r} is not a file name: {error}.") from None


def _read(handle: BinaryIO, path: str | os.PathLike[str], limits: Mapping[str, int]) -> dict[str, bytes]:
    _check_frame(handle, path, sum(limits.values()))
    with zipfile.ZipFile(handle) as archive:
        members = archive.infolist()
        names = [member.filename for member in members]
        for name in names:
            if name not in limits:
                raise InputError(f"'{path}' is not a saved model: it has an unexpected member {ascii(name)[:80]}.")
        if len(set(names)) < len(names):
            raise InputError(f"'{path}' is not a saved model: a member is there twice.")
        if len(names) < len(limits):
            raise InputError(f"'{path}' is not a saved model: it lacks {join_names(sorted(set(limits) - set(names)))}.")
        return {member.filename: _read_member(archive, member, path, limits[member.filename]) for member in members}


def _check_frame(handle: BinaryIO, path: str | os.PathLike[str], limit: int) -> None:
    """Refuse what is no zip of ours from its first and last bytes, before anything is read because a file says so."""
    size = handle.seek(0, os.SEEK_END)
    handle.seek(0)
    if handle.read(2) != b"PK":
        raise InputError(f"'{path}' is not a saved model: it is not a zip archive.")
    if size > limit + 2 * _LARGEST_DIRECTORY:
        raise InputError(f"'{path}' is too large for a saved model: {size} bytes, and at most {limit} are read.")
    handle.seek(max(size - _END.size, 0))
    signature, *_, directory, offset, _ = _END.unpack(handle.read(_END.size))
    if signature != b"PK\x05\x06" or offset + directory + _END.size != size:
        raise InputError(f"'{path}' is truncated or has bytes added to it; save the model again.")
    if directory > _LARGEST_DIRECTORY:
        raise InputError(f"'{path}' is not a saved model: it has too many members.")


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: str | os.PathLike[str], limit: int) -> bytes:
    if member.flag_bits & 0x1:
        raise InputError(f"'{path}' is encrypted, which a saved model never is.")
    if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
        raise InputError(f"'{path}' has compressed members, which a saved model never has.")
    if member.file_size > limit:
        raise InputError(
            f"'{path}' is too large: its {member.filename} has {member.file_size} bytes of {limit} allowed."
        )
    with archive.open(member) as stream:
        return stream.read(limit + 1)  # to the end, which compares the CRC; one that ends early is an EOFError
