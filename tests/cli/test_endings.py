"""How the program ends: when its reader has gone, and when it has something to note but fails."""

from __future__ import annotations

import os
import subprocess
import sys

import polars as pl
import pytest
from typer.testing import CliRunner

from nescio.cli import app

CODE = "from nescio.cli import main; main()"


@pytest.mark.skipif(os.name == "nt", reason="signals have no numbers there")
def test_a_reader_that_has_gone_ends_the_program_in_silence():
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, "data", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()  # before the first line
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(timeout=120) == 141  # as a shell reports a program that SIGPIPE ended
    process.stderr.close()


def test_notes_are_printed_before_the_sentence_of_a_failure(tmp_path):
    rows = {"size": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "price": [1.0, None, 2.0, None, 4.0, None]}
    pl.DataFrame(rows).write_csv(tmp_path / "t.csv")
    out = tmp_path / "m.nescio"
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "t.csv"), "--target", "price", "--out", str(out)])
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "Note: 3 of 6 rows lack 'price' and are left out.",
        f"Error: '{tmp_path / 't.csv'}' has 3 rows with a target; at least 4 are needed to fit.",
    ]
