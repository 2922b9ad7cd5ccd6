"""Tables written into a page between its own words: what stands there comes from records, never from a keyboard.

A table stands between ``<!-- table:NAME -->`` and ``<!-- end of table -->``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nescio._validation import InputError, join_names
from nescio.benchmark.cells import Table
from nescio.report.tables import render

__all__ = ["fill_tables"]

_PLACE = re.compile(r"<!-- table:(?P<name>\S+) -->.*?<!-- end of table -->", re.DOTALL)


def fill_tables(text: str, tables: Sequence[Table]) -> str:
    """The page with each of its places filled anew from the table of that name."""
    known = {table.name: table for table in tables}

    def table(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in known:
            raise InputError(f"the page asks for a table '{name}'; there are {join_names(sorted(known), 60)}.")
        return f"<!-- table:{name} -->\n\n{render([known[name]], 'md')}\n<!-- end of table -->"

    return _PLACE.sub(table, text)
