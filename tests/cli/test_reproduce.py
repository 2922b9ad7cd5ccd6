"""``nescio reproduce`` from the command line."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from nescio.cli import app


def run(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


def test_a_few_pages_are_made_and_named(tmp_path):
    done = run("vv_pgm_regression", "gamma_prior", "--out", tmp_path / "s", "--results", tmp_path, "--quick")
    assert done.exit_code == 0, done.output
    assert "2 of 2 pages" in done.output
    assert {"index.html", "summary.html", "fig-gamma-prior.html"} <= {path.name for path in (tmp_path / "s").iterdir()}
    assert (tmp_path / "s" / "data" / "gamma_prior.npz").is_file()


def test_what_is_missing_leaves_a_card_and_tells_by_the_exit_code(tmp_path, monkeypatch):
    monkeypatch.delenv("NESCIO_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = run(
        "tab:metrics-vae", "fig:entropy_pigs", "vv_pgm_v3ae", "--out", tmp_path / "s", "--results", tmp_path, "--quick"
    )
    assert done.exit_code == 1
    assert "1 of 3 pages" in done.output
    assert "Not made: fig:entropy_pigs: The image set 'mnist' is not here: NESCIO_DATA is not set" in done.output
    card = (tmp_path / "s" / "tab-metrics-vae.html").read_text(encoding="utf-8")
    assert "could not be run here" in card


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["nothing"], "'nothing' is no item"), (["uci", "--results", "nowhere"], "--results 'nowhere' is not a folder")],
)
def test_a_mistake_is_one_sentence_before_any_work(arguments, words, tmp_path):
    done = run(*arguments, "--out", tmp_path / "s")
    assert done.exit_code == 2
    assert words in done.output
    assert not (tmp_path / "s").exists()
