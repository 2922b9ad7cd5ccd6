"""Columns to numbers: what a frame holds is told from its types, and encoded by rules that its training rows set."""

from nescio.preprocessing.columns import KINDS, Column, shown_day
from nescio.preprocessing.encoder import ColumnEncoder, Encoded, fit_columns
from nescio.preprocessing.frames import is_frame, number_of_rows, shown_number

__all__ = [
    "KINDS",
    "Column",
    "ColumnEncoder",
    "Encoded",
    "fit_columns",
    "is_frame",
    "number_of_rows",
    "shown_day",
    "shown_number",
]
