"""Paper, source and ``docs/equations.md`` name the same labels; ``docs/deviations.md`` names every deviation."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "nescio"
DOCS = ROOT / "docs"

_LISTED = """
    alg:pig
    eq:appendix_v3ae_loss eq:dissipative_loss eq:dissipative_loss_expanded eq:student-t eq:v3ae_entropy_loss
    eq:v3ae_loss eq:variational_objective_vv
    fig:aleatoric_epistemic_split_toy fig:entropy_pigs fig:gamma_prior fig:mean_regularisation fig:pi_placement
    fig:re-encoding fig:re_encoding_ood_detection_plots fig:re_encoding_ood_detection_plots_emnist
    fig:re_encoding_ood_detection_plots_kmnist fig:show_vae_samples fig:sketch fig:toy_result
    fig:vae_variance_plots fig:vv_pgm_regression fig:vv_pgm_v3ae
    sec:appendix-boundary-samples sec:appendix-generative-models-experiments sec:appendix-implementation-details
    sec:appendix-number-pseudo-inputs sec:appendix-ood-detection sec:appendix-pig-influence
    sec:appendix-pseudo-inputs-generator sec:appendix-regression-experiments
    sec:appendix-sensitivity-hyperparameters sec:appendix-student-t sec:appendix:vv_elbo_closed_form
    sec:conclusion sec:generative_models sec:introduction sec:ood_pi_training sec:regression
    tab:boundary-samples tab:gen_mod_datasets tab:metrics-vae tab:n_steps_influence_on_pig tab:pig-comparison
    tab:regression_pig_parameters tab:runtime_gen_models tab:runtime_gen_models_wout_pi
    tab:threshold_influence_on_pig tab:uci tab:uci_benchmarks_elbo tab:uci_benchmarks_log_p
    tab:uci_benchmarks_mean_rmse tab:uci_benchmarks_noise_kl tab:uci_benchmarks_sample_rmse
    tab:uci_benchmarks_sources tab:uci_benchmarks_variance_rmse tab:uci_not_shifted tab:uci_shifted
    tab:vae_pig_parameters
"""
PAPER_LABELS = frozenset(_LISTED.split())
"""All labels of the paper's LaTeX source, which is not part of this repository."""

LABEL = r"(?:eq|sec|alg|tab|fig):[\w:-]*\w"
CITATION = re.compile(rf"Paper:\s+({LABEL}(?:,\s+{LABEL})*)")


def labels_cited(text: str) -> set[str]:
    """The labels of all ``Paper:`` lines in a text: ``Paper: a.``, or ``Paper: a, b.``"""
    return {label for listed in CITATION.findall(text) for label in re.findall(LABEL, listed)}


def docstrings(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    """Dotted names and docstrings of a module or class, and of all that is defined in it."""
    yield name, ast.get_docstring(node) or ""  # type: ignore[arg-type]
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from docstrings(child, f"{name}.{child.name}")


def cited_in_source() -> set[tuple[str, str]]:
    """Pairs (label, dotted name) of the whole source."""
    pairs = set()
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        for name, text in docstrings(ast.parse(path.read_text(encoding="utf-8")), module):
            pairs |= {(label, name) for label in labels_cited(text)}
    return pairs


def sections() -> dict[str, str]:
    """The parts of ``docs/equations.md`` by their headings."""
    parts = re.split(r"^## (.+)$", (DOCS / "equations.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def table() -> list[tuple[str, str, str]]:
    """Rows (label, function, test) of what is implemented."""
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \|$", sections()["Implemented"], flags=re.MULTILINE)
    return [tuple(row) for row in rows]


def named(heading: str) -> list[str]:
    """Labels in the part of ``docs/equations.md`` that has no functions."""
    first_column = re.findall(rf"^\| `({LABEL})`", sections()[heading], flags=re.MULTILINE)
    return first_column or re.findall(rf"`({LABEL})`", sections()[heading])


@functools.cache
def functions_in(path: str) -> frozenset[str]:
    """Names of the tests in a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def resolve(dotted: str) -> object:
    """The object with this dotted name."""
    module, rest = dotted, []
    while True:
        try:
            found = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
    return functools.reduce(getattr, rest, found)


def test_the_page_and_the_source_name_the_same_functions_for_the_same_labels():
    rows = [(label, function) for label, function, _ in table()]
    assert len(rows) == len(set(rows))
    assert set(rows) == cited_in_source()


def test_every_paper_line_is_in_a_docstring_and_has_the_one_form():
    everywhere, lines = set(), 0
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        everywhere |= labels_cited(text)
        lines += text.count("Paper:") - len(CITATION.findall(text))
    assert lines == 0
    assert everywhere == {label for label, _ in cited_in_source()}


@pytest.mark.parametrize(("label", "function", "test"), table())
def test_a_row_leads_to_a_function_that_cites_the_label_and_to_a_test_that_exists(label, function, test):
    assert label in labels_cited(inspect.getdoc(resolve(function)) or "")
    path, _, name = test.partition("::")
    assert name.startswith("test_")
    assert name in functions_in(path)


def test_every_label_of_the_paper_has_one_place_on_the_page():
    implemented = {label for label, _, _ in table()}
    others = [label for heading in sections() if heading != "Implemented" for label in named(heading)]
    assert len(others) == len(set(others))
    assert not implemented & set(others)
    assert implemented | set(others) == PAPER_LABELS


def test_labels_are_read_as_they_are_written():
    text = (
        "Paper: eq:student-t.  Shapes. Paper:\n    sec:appendix:vv_elbo_closed_form (the sum). Paper: alg:pig, tab:uci."
    )
    assert labels_cited(text) == {"eq:student-t", "sec:appendix:vv_elbo_closed_form", "alg:pig", "tab:uci"}
    assert labels_cited("see eq:student-t") == set()


def test_every_file_with_a_deviation_is_named_on_the_page_of_deviations():
    page = (DOCS / "deviations.md").read_text(encoding="utf-8")
    named_files = set(re.findall(r"`(src/nescio/[\w/]+\.py)`", page))
    departing = {
        path.relative_to(ROOT).as_posix()
        for path in SOURCE.rglob("*.py")
        if "Deviation:" in path.read_text(encoding="utf-8")
    }
    assert departing <= named_files
    assert all((ROOT / name).is_file() for name in named_files)
    assert set(re.findall(rf"`({LABEL})`", page)) <= PAPER_LABELS
