"""``nescio demo`` from end to end, with hardly any training."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from nescio import report
from nescio._validation import InputError
from nescio.cli.demo import demo, fit_toy, table
from nescio.report.statistics import ToyStatistics, ToySummary

FILES = {"demo.html", *(f"{name}.{kind}" for name in ("toy", "std", "split") for kind in ("svg", "png"))}


def run(*arguments, cwd):
    command = [sys.executable, "-c", "from nescio.cli import main; main()", "demo", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, timeout=300)


def test_the_demo_prints_a_table_and_writes_all_files_and_nothing_else(tmp_path):
    done = run("--out", tmp_path / "new" / "folder", "--seed", 4, "--max-steps", 5, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no bar without a terminal, no warning
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == FILES
    assert os.listdir(tmp_path) == ["new"]
    rows = re.findall(r"^(standard|shifted) +(d-VV|VV) .*(?:met|missed)", done.stdout, flags=re.M)
    assert rows == [("standard", "d-VV"), ("standard", "VV"), ("shifted", "d-VV"), ("shifted", "VV")]
    assert "Level outside: " in done.stdout
    assert str(tmp_path / "new" / "folder" / "demo.html") in done.stdout
    page = (tmp_path / "new" / "folder" / "demo.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3
    assert "seed 4" in page


@pytest.mark.slow
def test_same_seed_same_files_whatever_was_there(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    (tmp_path / "second" / "demo.html").write_text("old")
    for name in ("first", "second"):
        assert run("--out", name, "--max-steps", 3, cwd=tmp_path).returncode == 0
    for name in FILES:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes(), name


def test_a_folder_that_cannot_be_is_one_sentence_and_exit_code_two_before_any_work(tmp_path):
    (tmp_path / "file").write_text("kept")
    done = run("--out", tmp_path / "file", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "cannot be a folder" in done.stderr
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize("place", ["file/below", "nul\0byte"])
def test_other_impossible_folders_are_named_too(tmp_path, place):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(InputError, match="cannot be a folder"):
        demo(out=tmp_path / place)


def test_wrong_numbers_are_refused_by_their_option_before_a_folder_is_made(tmp_path):
    with pytest.raises(InputError, match=r"--max-steps must be a whole number of at least 1; got 0\."):
        demo(out=tmp_path / "a", max_steps=0)
    with pytest.raises(InputError, match=r"--seed must be a whole number of at least 0; got -1\."):
        demo(out=tmp_path / "a", seed=-1)
    assert list(tmp_path.iterdir()) == []


def test_the_demo_without_its_packages_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.delattr(report, "page", raising=False)
    for name in ("nescio.report.page", "nescio.report.html"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(InputError, match=r"^the demo needs jinja2: pip install 'nescio\[cli\]'\.$"):
        demo(out=tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_both_methods_have_the_same_mean_and_the_level_is_the_error_of_a_lost_mean():
    ours, theirs = (fit_toy("shifted", method, 2, 5) for method in ("d-vv", "vv"))
    np.testing.assert_array_equal(ours.mean, theirs.mean)
    assert ours.level == theirs.level
    assert np.std(ours.y_data) < ours.level < 1.42 * np.std(ours.y_data)
    assert ours.hole == (4.0, 7.0)
    assert not np.any((ours.x_data > 4.0) & (ours.x_data < 7.0))
    assert not np.array_equal(ours.std, theirs.std)
    parts = np.hypot(ours.aleatoric_std, ours.epistemic_std)
    np.testing.assert_allclose(parts, ours.std, rtol=1e-6)


def test_the_table_lines_up_and_shows_a_miss_as_a_miss():
    text = table(
        [
            ToySummary("standard", "d-vv", 4.2, ToyStatistics(0.123, 1.5, 0.05, 1.8), None),
            ToySummary("shifted", "vv", 3.9, ToyStatistics(np.inf, 0.4, 0.71, 2.7), 1.5),
        ]
    ).splitlines()
    good, bad = text[3:5]
    assert [part.strip() for part in re.split(r" {2,}", good)] == [
        "standard", "d-VV", "0.12 met", "1.50 met", "5.0 % met", "1.80",
    ]  # fmt: skip
    assert [part.strip() for part in re.split(r" {2,}", bad)] == [
        "shifted", "VV", "inf missed", "0.40 missed", "71.0 % missed", "2.70 (1.50 x standard)",
    ]  # fmt: skip
    assert good.index("0.12") == bad.index("inf")
    assert text[2] == text[5]
