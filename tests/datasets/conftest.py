"""Files as the publishers write theirs, made on the spot."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest


def _xlsx(rows, trailing_blanks: bool = False) -> bytes:
    book = pytest.importorskip("openpyxl").Workbook()
    for row in rows:
        book.active.append(list(row))
    if trailing_blanks:  # the energy set's spreadsheet has such cells
        book.active.cell(row=len(rows) + 3, column=6).value = None
        book.active.cell(row=1, column=6).number_format = "0.00"
    book.create_sheet("second").append([99.0])
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def _xls(rows) -> bytes:
    book = pytest.importorskip("xlwt").Workbook()
    sheet = book.add_sheet("Sheet1")
    for number, row in enumerate(rows):
        for column, value in enumerate(row):
            sheet.write(number, column, value)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def _published(form: str, values: np.ndarray, names: tuple[str, ...]) -> bytes:
    """A file as the publishers write theirs."""
    if form == "blanks":
        return "\r\n".join("   ".join(f"{value: .16e}" for value in row) + " " for row in values.tolist()).encode()
    if form == "commas":
        return "\n".join([",".join(names), *(",".join(map(repr, row)) for row in values.tolist())]).encode()
    if form == "semicolons":
        header = ";".join(f'"{name}"' for name in names)
        return "\n".join([header, *(";".join(map(repr, row)) for row in values.tolist()), ""]).encode()
    if form == "decimal commas":
        rows = [";".join(repr(value).replace(".", ",") for value in row) for row in values.tolist()]
        return "\r\n".join([";".join(names), *rows]).encode("utf-8-sig")
    if form == "arff":
        attributes = [f"@ATTRIBUTE '{name.replace(' ', '_')}' REAL" for name in names]
        rows = [",".join(map(repr, row)) for row in values.tolist()]
        return "\n".join(
            ["% a comment, with, commas", "@RELATION kin8nm", "", *attributes, "@DATA", *rows, ""]
        ).encode()
    if form == "xls":
        return _xls([names, *values.tolist()])
    return _xlsx([names, *values.tolist()], trailing_blanks=True)


def _zipped(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


@pytest.fixture(scope="session")
def published():
    """Makes the bytes of a table in one of the published forms."""
    return _published


@pytest.fixture(scope="session")
def xlsx():
    """Makes the bytes of a spreadsheet."""
    return _xlsx


@pytest.fixture(scope="session")
def zipped():
    """Makes the bytes of an archive."""
    return _zipped
