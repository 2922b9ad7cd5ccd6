"""The list of the paper's figures and tables, the cards, the pages; statistics and drawings on made-up arrays."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
import re
import shutil
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import browser
from browser import DESKTOP, PHONE, needs_chromium, visit
from nescio._validation import InputError
from nescio.benchmark import workshop as workshop_module
from nescio.benchmark.cells import Cell, Table
from nescio.benchmark.setting_tables import regression_times_table
from nescio.benchmark.toy_runs import save_curves
from nescio.benchmark.toy_tables import counts, desiderata_table
from nescio.benchmark.workshop import Unavailable, Workshop
from nescio.report.reproduction import image_drawings, items, regression_pages, site, toy_drawings
from nescio.report.reproduction.diagrams import regression_model, v3ae_model
from nescio.report.reproduction.piece import CANNOT, OURS, VERDICTS, Item
from nescio.report.style import METHOD_COLOURS, METHOD_NAMES, figure_svg

ROOT = Path(__file__).parents[2]
ALL_METHODS = ("d-vv", "vv", "skafte", "mean-variance", "d-vv-one-prior", "deep-ensemble", "mc-dropout", "ncp", "bbb",
               "gp")  # fmt: skip
PAGES = ("index", "fig-toy-result", "fig-vv-pgm-regression", "own-descent", "tab-uci", "summary")


def record(method, data, seed, *numbers):
    names = ("rms_log", "ratio", "low_ratio", "kl_share")
    return {"method": method, "data": data, "seed": str(seed), **dict(zip(names, map(str, numbers), strict=True))}


GOOD, BAD = (0.2, 1.5, 0.85, 1.0), (0.3, 0.4, 0.7, 0.0)


@pytest.fixture(scope="module")
def committed(tmp_path_factory, fits):
    """A folder with made-up toy curves and records, and the real records of protocol paper."""
    folder = tmp_path_factory.mktemp("results")
    by_name = {}
    for fit in fits:
        if fit.method == "d-vv":
            kl = np.where((fit.x < -3) | (fit.x > 13), 1e-3, 5.0)
            for method in ALL_METHODS:
                by_name[f"{fit.data}/{method}"] = dataclasses.replace(fit, method=method, kl=kl)
    save_curves(folder / "toy_curves.npz", by_name)
    (folder / "figures").mkdir()
    as_run = {
        f"{data}/{method}": dataclasses.replace(by_name[f"{data}/vv"], method=method)
        for data in ("standard", "shifted")
        for method in ("d-vv-as-run", "vv-as-run")
    }
    save_curves(folder / "figures" / "toy_paper.npz", as_run)
    rows = [record("d-vv", data, seed, *GOOD) for data in ("standard", "shifted") for seed in range(3)]
    rows += [record("vv", data, seed, *BAD) for data in ("standard", "shifted") for seed in range(3)]
    rows += [record("gp", "standard", 0, 0.2, 1.5, 0.85, math.nan)]
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    (folder / "toy.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "uci_paper.csv").write_bytes((ROOT / "results" / "uci_paper.csv").read_bytes())
    return folder


@pytest.fixture
def results(committed, tmp_path):
    """A copy to change."""
    return Path(shutil.copytree(committed, tmp_path / "results"))


@pytest.fixture(scope="module")
def made(committed, tmp_path_factory):
    """A small site: its folder, its outcomes and its workshop."""
    folder = tmp_path_factory.mktemp("made")
    workshop = Workshop(committed, folder / "keep", quick=True)
    wanted = [
        "fig:toy_result",
        "fig:vv_pgm_regression",
        "own:descent",
        "own:desiderata",
        "tab:uci",
        "tab:runtime_gen_models",
    ]
    out = folder / "site"
    return out, site.build_site(items.find_items(wanted), workshop, out, "0.0.test"), workshop


def test_every_figure_and_table_of_the_paper_is_on_the_list_once_and_numbered_in_order():
    page = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
    labels = set(re.findall(r"`((?:fig|tab):[\w:-]*\w)`", page))
    listed = [item.label for item in items.ITEMS]
    assert len(set(listed)) == len(listed)
    ours = {label for label in listed if label.startswith("own:")} | {"tab:runtime_regression"}
    assert set(listed) - ours == labels
    for kind, count in (("Figure", 15), ("Table", 21)):
        numbers = [item.number for item in items.ITEMS if re.fullmatch(rf"{kind} \d+", item.number)]
        assert numbers == [f"{kind} {number}" for number in range(1, count + 1)]
    assert len({item.slug for item in items.ITEMS}) == len(listed)


def test_every_source_that_a_page_names_is_there():
    for item in items.ITEMS:
        for dotted in (*item.sources, site._dotted(item)):
            path = ROOT / "src" / (dotted.replace(".", "/") + ".py")
            parent = ROOT / "src" / (dotted.rpartition(".")[0].replace(".", "/") + ".py")
            assert path.is_file() or f" {dotted.rpartition('.')[2]}" in parent.read_text(encoding="utf-8"), dotted


def test_names_are_labels_or_their_ends_and_unknown_ones_are_refused():
    assert [item.label for item in items.find_items(["tab-uci", "sketch"])] == ["fig:sketch", "tab:uci"]
    assert items.find_items(["all"]) == items.find_items([]) == list(items.ITEMS)
    with pytest.raises(InputError, match=r"'figure 3' is no item; there are all, 'fig:sketch', "):
        items.find_items(["figure 3"])


def test_what_cannot_be_made_is_a_card_with_the_reason_and_the_rest_goes_on(tmp_path):
    def missing(workshop):
        raise Unavailable("the moon is not at hand.")

    def broken(workshop):
        raise ZeroDivisionError("by nought")

    workshop = Workshop(tmp_path, tmp_path)
    for make, words in ((missing, "The moon is not at hand."), (broken, "It failed: ZeroDivisionError: by nought")):
        piece, done = site.make_piece(Item("fig:x", "Figure 0", "x", "toy", "", make), workshop)
        assert (piece.verdict, piece.reason, done) == (CANNOT, words, False)


def test_an_axis_of_scores_reaches_as_far_as_the_whiskers_and_leaves_room_for_the_ordinary_ones():
    plain = np.arange(101.0)
    assert image_drawings.score_range(plain, plain + 20.0) == (0.0, 120.0)
    wild = np.concatenate([plain, [1e6]])  # the quartiles of a hundred and two values: 25.25 and 75.75
    assert image_drawings.score_range(plain, wild) == (0.0, pytest.approx(75.75 + 1.5 * 50.5))
    assert image_drawings.score_range(plain, 1e4 * plain) == (0.0, 400.0)
    assert image_drawings.score_range(plain, -1e4 * plain) == (-300.0, 100.0)


def test_arrays_are_computed_once_and_say_what_made_them(tmp_path, monkeypatch):
    made = {"commit": "0123abc", "versions": "one", "hardware": "an abacus", "date": "2026-01-02"}
    monkeypatch.setattr(workshop_module, "provenance", lambda: made)
    results = tmp_path / "results"
    workshop = Workshop(results, results / "figures")
    calls = []
    make = lambda: calls.append(1) or {"curve": np.arange(3.0)}
    for _ in range(2):
        found = workshop.arrays("waves", make)
        assert list(found) == ["curve"]  # what made them is not among them
        np.testing.assert_array_equal(found["curve"], np.arange(3.0))
    assert len(calls) == 1
    assert workshop.made_by("figures/waves.npz") == "made 2026-01-02 at 0123abc on an abacus"
    np.savez(results / "figures" / "bare.npz", curve=np.arange(3.0))
    assert workshop.made_by("figures/bare.npz") == workshop.made_by("toy.csv") == ""


def test_a_site_has_pages_pictures_numbers_and_sources_and_its_links_hold(made):
    out, outcomes, _ = made
    assert [outcome.made for outcome in outcomes] == [True, True, True, False, True, True]
    assert all(outcome.verdict in (*VERDICTS, OURS) for outcome in outcomes)
    for page in out.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r'(?:href|src)="([^"#]+)(?:#[^"]*)?"', text):
            there = (out / unescape(link)).is_file()
            not_made = re.fullmatch(r"(?:fig|tab|own)-[\w-]+\.html", link) is not None
            assert there or not_made, (page.name, link)
        assert not re.search(r'<link|@import|src="https?:|url\(', text), page.name
    assert (out / "figures" / "fig-toy-result-bands.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert (out / "figures" / "fig-toy-result-bands.png").read_bytes().startswith(b"\x89PNG")
    assert (
        (out / "records" / "fig-toy-result.csv").read_text(encoding="utf-8").startswith("x,true_std,mean/d-vv/standard")
    )
    assert "def fit_toy" in (out / "source" / "nescio.benchmark.toy_runs.txt").read_text(encoding="utf-8")


def test_a_page_names_its_records_and_says_what_was_computed_here(made):
    out, _, workshop = made
    assert "results/toy_curves.npz" in (out / "fig-toy-result.html").read_text(encoding="utf-8")
    assert "descent.npz" in (out / "own-descent.html").read_text(encoding="utf-8")
    card = (out / "tab-runtime-gen-models.html").read_text(encoding="utf-8")
    assert "images.csv is not among the results" in card
    assert "could not be run here" in card
    assert (workshop.keep / "descent.npz").is_file()


def test_a_second_run_keeps_what_the_first_made_and_computes_nothing_twice(made, monkeypatch):
    out, _, workshop = made
    monkeypatch.setattr("nescio.benchmark.gallery_runs.descent_path", lambda: pytest.fail("computed again"))
    site.build_site(items.find_items(["own:descent"]), workshop, out, "0.0.test")
    state = json.loads((out / "site.json").read_text(encoding="utf-8"))
    assert {"fig:toy_result", "own:descent", "tab:uci"} <= state.keys()
    assert 'href="tab-uci.html"' in (out / "index.html").read_text(encoding="utf-8")
    assert "nescio reproduce fig:sketch" in (out / "index.html").read_text(encoding="utf-8")


def test_the_toy_verdict_follows_the_records(results, tmp_path):
    from nescio.report.reproduction.toy_pages import toy_result

    verdict = lambda: toy_result(Workshop(results, tmp_path, quick=True)).verdict
    assert verdict() == "holds in part"  # of the authors' own form nothing is known
    text = (results / "toy.csv").read_text(encoding="utf-8")
    lines = [",".join(record("d-vv-as-run", data, 0, *GOOD)) for data in ("standard",)]
    lines += [",".join(record("d-vv-as-run", data, 0, *GOOD).values()) for data in ("standard", "shifted")]
    (results / "toy_paper.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert verdict() == "holds"
    (results / "toy.csv").write_text(text.replace("d-vv,shifted,1,0.2", "d-vv,shifted,1,0.3"), encoding="utf-8")
    assert verdict() == "holds in part"
    for seed in (0, 1):
        text = text.replace(f"vv,standard,{seed},0.3,0.4,0.7,0.0", f"vv,standard,{seed},0.2,1.4,0.9,1.0")
    (results / "toy.csv").write_text(text, encoding="utf-8")
    assert verdict() == "does not hold"


def test_the_table_of_wishes_counts_seeds_and_leaves_out_a_prior_that_is_not_there():
    rows = [record("d-vv", "standard", 0, *GOOD), record("d-vv", "standard", 1, 0.2, 0.9, 0.85, 1.0)]
    rows.append(record("gp", "shifted", 0, 0.2, 1.5, 0.85, math.nan))
    assert counts(rows) == {("d-vv", "standard"): (1, 2), ("gp", "shifted"): (0, 1)}
    ours, theirs = desiderata_table(rows).rows
    assert (ours[4].value, ours[4].second) == (pytest.approx(1.2), 1)
    assert (ours[7].value, ours[8].value, theirs[7].value, theirs[8].value) == ("1 of 2", "1 of 2", "0 of 1", "1 of 1")
    assert theirs[6].value is None


def test_a_shown_table_sorts_by_numbers_and_sets_published_columns_apart():
    row = (Cell("mean-variance"), Cell(1234.5, 0.25), Cell(math.inf, notes=("Wrong.",)))
    table = Table("t", "T", ("method", "d-vv, ours", "d-VV, published"), (row,), ("All.",))
    shown = site.shown_table(table)
    assert shown["columns"] == ["method", "d-VV, ours", "d-VV, published"]
    assert shown["theirs"] == [False, False, True]
    assert [cell["value"] for cell in shown["rows"][0]] == ["mean-variance network", 1234.5, "inf"]
    assert [cell["text"] for cell in shown["rows"][0]][1] == "1234.50 ± 0.25"
    assert shown["rows"][0][2]["marks"] == ["a"]
    assert shown["notes"] == ["All.", "(a) Wrong."]


@pytest.mark.parametrize(
    ("far", "none", "verdict"), [(0.5, 0.9, "holds"), (0.01, 0.9, "holds in part"), (0.5, 0.01, "does not hold")]
)
def test_the_judgement_of_the_rim_is_what_the_numbers_say(far, none, verdict):
    rows = [
        (Cell(data), Cell(f"boundary-samples={kind}"), Cell(value))
        for data in ("ccpp", "wine_white")
        for kind, value in (("none", none), ("boundary", 0.1), ("far", far))
    ]
    table = Table("t", "T", ("data", "variant", "kl_ood_inside"), tuple(rows), labels=2)
    assert regression_pages._judge_boundary(table)[0] == verdict


def test_running_times_stand_beside_the_printed_ones(committed, tmp_path):
    workshop = Workshop(committed, tmp_path)
    table = regression_times_table(workshop.uci("uci_paper.csv"), None)
    boston = next(row for row in table.rows if row[0].value == "boston")
    assert boston[2].value == 15.969
    with (committed / "uci_paper.csv").open() as file:
        of_boston = {"dataset": "boston", "split": "standard", "method": "d-vv", "metric": "seconds"}
        seconds = [float(row["value"]) for row in csv.DictReader(file) if of_boston.items() <= row.items()]
    assert len(seconds) == 3
    assert boston[4].value == pytest.approx(sum(seconds) / 3, rel=1e-12)
    assert (boston[3].value, boston[5].value) == (None, None)
    run = {"protocol": "paper", "kilograms_co2": "0.006", "commit": "a", "date": "b", "run_seconds": "300.0"}
    times = [{**run, "worker_seconds": "500.0"}, {**run, "worker_seconds": "100.0"}]
    times.append({**run, "run_seconds": "20.0", "kilograms_co2": "0.0004", "worker_seconds": "40.0"})
    emitted = next(row[3].value for row in regression_times_table(workshop.uci("uci_paper.csv"), None, times).rows)
    assert float(emitted) == pytest.approx(1e-5 * sum(seconds) / 3, abs=5e-7)
    for other in (
        [{**run, "protocol": "sound", "worker_seconds": "1"}],
        [{"protocol": "paper", "worker_seconds": "1"}],
    ):
        assert regression_times_table(workshop.uci("uci_paper.csv"), None, other) == table


def test_all_methods_have_a_name_and_a_colour():
    from nescio.benchmark.image_methods import IMAGE_METHODS
    from nescio.benchmark.names import METHODS

    assert set(METHODS) <= METHOD_COLOURS.keys() & METHOD_NAMES.keys()
    assert set(IMAGE_METHODS) <= METHOD_NAMES.keys()


def test_drawings_have_a_panel_for_each_pair_and_the_same_text_twice(fits):
    pairs = [[fit for fit in fits if fit.method == method] for method in ("d-vv", "vv")]
    assert len(toy_drawings.bands(pairs).axes) == 4
    assert len(toy_drawings.stds(pairs, [4.2, 3.9]).axes) == 2
    assert len(toy_drawings.split(pairs[0]).axes) == 2
    for draw in (regression_model, v3ae_model):
        assert figure_svg(draw(), "m") == figure_svg(draw(), "m")


def test_a_workshop_takes_committed_arrays_before_kept_ones_before_fresh_ones(tmp_path):
    workshop = Workshop(tmp_path / "results", tmp_path / "keep", quick=True)
    fresh = workshop.arrays("a", lambda: {"x": np.array([1.0])})
    again = workshop.arrays("a", lambda: pytest.fail("computed twice"))
    assert fresh["x"] == again["x"] == 1.0
    assert (workshop.used, workshop.computed) == ([], ["a-quick.npz"])
    (tmp_path / "results" / "figures").mkdir(parents=True)
    np.savez(tmp_path / "results" / "figures" / "a.npz", x=np.array([2.0]))
    assert workshop.arrays("a", lambda: {})["x"] == 2.0
    assert workshop.used == ["figures/a.npz"]
    with pytest.raises(Unavailable, match=r"images\.csv is not among the results"):
        workshop.rows("images.csv")


@needs_chromium
def test_a_table_sorts_by_a_click_and_a_slider_moves_the_points(made, tmp_path):
    out, *_ = made
    page = (out / "tab-uci.html").read_text(encoding="utf-8")
    click = '<script>document.querySelectorAll("th button")[2].click()</script></body>'
    (tmp_path / "sorted.html").write_text(page.replace("</body>", click), encoding="utf-8")
    shown = browser._chromium(tmp_path, tmp_path / "sorted.html", False, "--dump-dom").stdout
    body = shown[shown.index("<tbody>") : shown.index("</tbody>")]
    column = [float(re.findall(r'<td [^>]*data-value="([^"]*)"', row)[0]) for row in body.split("</tr>")[:-1]]
    assert column == sorted(column)
    assert len(set(column)) > 3
    page = (out / "own-descent.html").read_text(encoding="utf-8")
    push = '<script>slider.value = 5; slider.dispatchEvent(new Event("input"))</script></body>'
    (tmp_path / "pushed.html").write_text(page.replace("</body>", push), encoding="utf-8")
    shown = browser._chromium(tmp_path, tmp_path / "pushed.html", False, "--dump-dom").stdout
    assert re.search(r'<output id="number">5</output>', shown)


@needs_chromium
def test_pages_are_silent_and_fit_phone_and_desktop(made):
    out, *_ = made
    for name in PAGES:
        seen = visit(out / f"{name}.html", (PHONE, DESKTOP))
        assert seen.messages == [], name
        for look in seen.looks:
            assert look.scroll_width <= look.width, (name, look)
            assert look.sticking_out == [], (name, look)
            assert look.empty_figures == 0, (name, look)
            assert look.smallest_text >= 9.5, (name, look)
    assert visit(out / "fig-toy-result.html", (DESKTOP,)).looks[0].figures == 6
