"""The tree is the architecture: who may import whom, read from the source without running it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import nescio

SOURCE = Path(nescio.__file__).parent
LONGEST_MODULE = 300  # lines

ORDER = (
    ("_random", "_validation"),
    ("_files",),
    ("_archive", "_fields"),
    ("distributions",),
    ("densities", "networks", "metrics", "datasets"),
    ("pseudo_inputs", "objectives"),
    ("training",),
    ("calibration", "preprocessing"),
    ("estimators", "generative"),
    ("persistence", "testing", "export"),
    ("nescio",),  # the package itself, which gathers the public names
    ("benchmark",),
    ("report",),
    ("cli",),
)
"""A block may import from the lines above its own, not from its neighbours on the same line."""

RANK = {block: number for number, line in enumerate(ORDER) for block in line}
TORCHLESS = ("report", "datasets")
MAY_PRINT = ("cli", "benchmark")


def modules(root: Path) -> Iterator[tuple[str, ast.Module, str]]:
    """Dotted name, syntax tree and text of every module below ``root``, the folder of the package."""
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        text = path.read_text(encoding="utf-8")
        yield ".".join(["nescio", *parts]), ast.parse(text, str(path)), text


def block_of(name: str) -> str:
    """The block of a dotted name: ``nescio.objectives.priors`` lies in ``objectives``."""
    parts = name.split(".")
    return "nescio" if len(parts) == 1 or parts[1] == "__init__" else parts[1]


def imported(module: str, tree: ast.Module) -> Iterator[str]:
    """Dotted names of all that a module imports, also inside functions; relative ones made absolute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            if name == "nescio":  # a block by its name, or something that the package gathers
                yield from (f"nescio.{alias.name}" if alias.name in RANK else name for alias in node.names
                            if alias.name != "__version__")  # fmt: skip
            else:
                yield name


def order_faults(module: str, tree: ast.Module, text: str) -> Iterator[str]:
    """Imports against the order, and blocks that have no place in it."""
    own = block_of(module)
    if own not in RANK:
        yield f"{module}: '{own}' has no place in the order"
        return
    for name in imported(module, tree):
        if name.split(".")[0] != "nescio" or block_of(name) == own:
            continue
        other = block_of(name)
        if other not in RANK:
            yield f"{module}: imports {name}, which has no place in the order"
        elif RANK[other] >= RANK[own]:
            yield f"{module}: '{own}' may not import '{other}'"


def torch_faults(module: str, tree: ast.Module, text: str) -> Iterator[str]:
    """Modules that must do without torch and do not."""
    if block_of(module) in TORCHLESS:
        yield from (f"{module}: imports torch" for name in imported(module, tree) if name.split(".")[0] == "torch")


def print_faults(module: str, tree: ast.Module, text: str) -> Iterator[str]:
    """Calls of ``print`` where nothing may be printed."""
    if block_of(module) not in MAY_PRINT:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                yield f"{module}:{node.lineno}: prints"


def assert_faults(module: str, tree: ast.Module, text: str) -> Iterator[str]:
    """``assert`` statements, which ``python -O`` would drop."""
    yield from (f"{module}:{node.lineno}: asserts" for node in ast.walk(tree) if isinstance(node, ast.Assert))


def length_faults(module: str, tree: ast.Module, text: str) -> Iterator[str]:
    """Modules that hold more than one idea can need."""
    lines = len(text.splitlines())
    if lines > LONGEST_MODULE:
        yield f"{module}: {lines} lines, more than {LONGEST_MODULE}"


Check = Callable[[str, ast.Module, str], Iterator[str]]
CHECKS: tuple[Check, ...] = (order_faults, torch_faults, print_faults, assert_faults, length_faults)


def faults(root: Path, check: Check) -> list[str]:
    """All that one check finds below ``root``."""
    return [fault for module in modules(root) for fault in check(*module)]


@pytest.mark.parametrize("check", CHECKS)
def test_the_source_keeps_the_architecture(check):
    assert faults(SOURCE, check) == []


def test_the_checks_have_read_the_whole_package():
    names = {name for name, _, _ in modules(SOURCE)}
    assert {"nescio.__init__", "nescio.distributions.gamma", "nescio.estimators.dissipative"} <= names
    edges = {(block_of(name), block_of(other)) for name, tree, _ in modules(SOURCE) for other in imported(name, tree)}
    assert {("objectives", "distributions"), ("estimators", "training"), ("nescio", "estimators")} <= edges


WRONG_TWINS = [
    (order_faults, "distributions/gamma.py", "from nescio.networks import MLP", "may not import 'networks'"),
    (order_faults, "networks/mlp.py", "import nescio.densities.kde", "may not import 'densities'"),
    (order_faults, "objectives/loss.py", "from nescio.pseudo_inputs import LevelSet", "may not import 'pseudo_inputs'"),
    (
        order_faults,
        "training/loop.py",
        "def f():\n    from nescio.estimators import base",
        "may not import 'estimators'",
    ),
    (order_faults, "estimators/base.py", "from nescio import DissipativeRegressor", "may not import 'nescio'"),
    (order_faults, "estimators/base.py", "from nescio import persistence", "may not import 'persistence'"),
    (order_faults, "densities/kde.py", "from ..networks import mlp", "may not import 'networks'"),
    (order_faults, "report/page.py", "from nescio.cli import app", "may not import 'cli'"),
    (order_faults, "__init__.py", "from nescio.cli import app", "may not import 'cli'"),
    (order_faults, "utils/more.py", "x = 1", "'utils' has no place"),
    (order_faults, "cli/fit.py", "from nescio.helpers import x", "has no place"),
    (torch_faults, "report/page.py", "from torch import Tensor", "imports torch"),
    (torch_faults, "datasets/toy.py", "def f():\n    import torch.nn", "imports torch"),
    (print_faults, "estimators/base.py", "print(1)", "prints"),
    (assert_faults, "cli/fit.py", "def f(x):\n    assert x", "asserts"),
    (length_faults, "cli/fit.py", "\n" * (LONGEST_MODULE + 1), "301 lines"),
]


@pytest.mark.parametrize(("check", "path", "text", "words"), WRONG_TWINS)
def test_a_wrong_twin_is_flagged(check, path, text, words, tmp_path):
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    found = faults(tmp_path, check)
    assert len(found) == 1
    assert words in found[0]


def test_what_is_allowed_is_not_flagged(tmp_path):
    allowed = {
        "__init__.py": "from nescio.estimators import base\nfrom nescio.persistence import load",
        "_files.py": "from nescio._validation import InputError",
        "densities/kde.py": "import numpy\nfrom .base import Density\nfrom nescio.distributions import Gamma",
        "estimators/means.py": "from nescio.datasets.splits import folds\nfrom nescio import training",
        "persistence.py": "def f():\n    from nescio import __version__",
        "benchmark/run.py": "import torch\nfrom nescio import DissipativeRegressor\nprint(1)",
        "cli/fit.py": "from nescio import load\nfrom nescio.report import page\nprint(2)",
        "report/page.py": "import matplotlib\nfrom nescio.benchmark import records",
    }
    for path, text in allowed.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert [fault for check in CHECKS for fault in faults(tmp_path, check)] == []


FRESH = """
import random, sys
import numpy as np
import torch
import sklearn.mixture  # it loads pandas and rich where they are, and rich draws a number: not our doing

EXTRAS = {"matplotlib", "polars", "pandas", "typer", "jinja2"}
theirs = EXTRAS & set(sys.modules)

def settings():
    return (
        torch.get_rng_state().tolist(), repr(np.random.get_state()), random.getstate(),
        torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled(), repr(np.geterr()),
    )

before = settings()
import nescio
changed = [number for number, (old, new) in enumerate(zip(before, settings())) if old != new]
loaded = (EXTRAS & set(sys.modules)) - theirs
if changed or loaded:
    sys.exit(f"settings changed: {changed}; modules loaded: {loaded}")
"""


def test_importing_the_package_prints_seeds_sets_and_loads_nothing_extra():
    run = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
