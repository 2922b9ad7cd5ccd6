"""The forms in which tables are published, read into numbers; and one digest of the numbers, whatever their form."""

from __future__ import annotations

import csv
import hashlib
import io
import zipfile
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np

from nescio._validation import InputError

__all__ = ["FORMS", "Table", "digest_of", "member_of", "read_form"]

FORMS = ("blanks", "commas", "semicolons", "arff", "spreadsheet")


class Table(NamedTuple):
    """Numbers ``(N, C)`` as float64, and the names of the columns where the file has them."""

    values: np.ndarray
    header: tuple[str, ...]


def read_form(data: bytes, form: str) -> Table:
    """Read the bytes of one file.

    ``blanks``: numbers between blanks, no header. ``commas`` and ``semicolons``: a header, then rows; between
    semicolons the decimal sign may be a comma. ``arff``: names after ``@attribute``, rows after ``@data``.
    ``spreadsheet``: the first sheet of an ``.xls`` or ``.xlsx`` file, a header and rows; empty ones are dropped.
    """
    if form == "spreadsheet":
        return _spreadsheet(data)
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"the file is not text, as a table of form '{form}' should be ({error.reason}).") from None
    lines = [line for line in lines if line.strip()]
    if form == "blanks":
        return Table(_numbers([line.split() for line in lines]), ())
    if form == "arff":
        return _arff(lines)
    if form not in FORMS:
        raise InputError(f"form must be one of {', '.join(FORMS)}; got {form!r}.")
    header, *rows = csv.reader(lines, delimiter="," if form == "commas" else ";")
    if form == "semicolons":
        rows = [[cell.replace(",", ".") for cell in row] for row in rows]
    return Table(_numbers(rows), tuple(name.strip() for name in header))


def member_of(archive: bytes, name: str) -> bytes:
    """The file called ``name`` in any folder of a zip archive, or in a zip archive inside it."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as packed:
            entries = [entry for entry in packed.namelist() if not entry.startswith("__MACOSX/")]
            for entry in entries:
                if PurePosixPath(entry).name == name:
                    return packed.read(entry)
            for entry in entries:
                if entry.lower().endswith(".zip"):
                    try:
                        return member_of(packed.read(entry), name)
                    except InputError:
                        continue
    except zipfile.BadZipFile as error:
        raise InputError(f"the download is not a zip archive ({error}); the address may lead to a web page.") from None
    raise InputError(f"the archive holds no file '{name}'; the publisher may have changed it.")


def digest_of(values: np.ndarray) -> str:
    """SHA-256 of a table's numbers, each to nine digits: the same for the same numbers in any form of file.

    Nine digits are more than any of the published tables was measured to, and few enough that two ways to write or
    to read a number do not differ in them.

    >>> digest_of(np.array([[0.1 + 0.2, -0.0]])) == digest_of(np.array([[0.3, 0.0]]))
    True
    """
    digest = hashlib.sha256()
    rows = (np.asarray(values, dtype=np.float64) + 0.0).tolist()
    digest.update("\n".join(",".join(f"{value:.9g}" for value in row) for row in rows).encode())
    return digest.hexdigest()


def _arff(lines: list[str]) -> Table:
    lines = [line for line in lines if not line.lstrip().startswith("%")]
    marks = [number for number, line in enumerate(lines) if line.strip().lower() == "@data"]
    if not marks:
        raise InputError("the file has no line '@data', as an ARFF file should.")
    attributes = [line.split(None, 2)[1] for line in lines[: marks[0]] if line.lower().startswith("@attribute ")]
    return Table(
        _numbers([line.split(",") for line in lines[marks[0] + 1 :]]), tuple(n.strip("'\"") for n in attributes)
    )


def _spreadsheet(data: bytes) -> Table:
    try:
        import fastexcel  # noqa: F401  polars reads spreadsheets through it
        import polars
    except ModuleNotFoundError:
        raise InputError("this set is published as a spreadsheet, which needs: pip install 'nescio[data]'.") from None
    try:
        frame = polars.read_excel(data, sheet_id=1, engine="calamine", infer_schema_length=None)
        frame = frame.select([column for column in frame if column.null_count() < len(column)])
        frame = frame.filter(~polars.all_horizontal(polars.all().is_null())).cast(polars.Float64)
    except Exception as error:  # the reader's own errors have no common base
        reason = " ".join(str(error).split())[:120]
        raise InputError(f"the spreadsheet cannot be read ({reason}).") from None
    return Table(_finite(frame.to_numpy()), tuple(name.strip() for name in frame.columns))


def _numbers(rows: list[list[str]]) -> np.ndarray:
    if len({len(row) for row in rows}) != 1:
        raise InputError("the rows of the file do not all have the same number of cells; it may have been cut short.")
    try:
        return _finite(np.array(rows, dtype=np.float64))
    except ValueError as error:
        raise InputError(f"the file holds a cell that is not a number ({error}).") from None


def _finite(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise InputError("the file has gaps or infinite numbers, which the published table does not have.")
    return values
