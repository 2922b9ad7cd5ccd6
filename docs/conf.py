"""How Sphinx builds the documentation: ``make docs``."""

from __future__ import annotations

import shutil
from pathlib import Path

from sphinx.application import Sphinx

import nescio

project = "nescio"
author = "The nescio developers"
copyright = "The nescio developers"
version = release = nescio.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "numpydoc",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "site", "examples"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
# Links to files of the repository have no page here, and docstrings of scikit-learn refer to its own manual.
suppress_warnings = ["myst.xref_missing", "ref.ref"]

autosummary_generate = True
autodoc_typehints = "none"  # they are in the signatures of the source; here they would bury the words
numpydoc_show_class_members = False
doctest_global_setup = "import numpy as np"
trim_doctest_flags = True

html_theme = "pydata_sphinx_theme"
html_title = "nescio"
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "logo": {"text": "nescio"},
    "navbar_center": [],
}
html_sidebars = {"**": ["globaltoc.html"]}
html_extra_path = ["examples"]


def copy_site(app: Sphinx, exception: Exception | None) -> None:
    """The reproduction of the paper is a site of its own, copied in as it is, where links of the pages expect it."""
    site = Path(app.confdir) / "site"
    if exception is None and app.builder.format == "html" and site.is_dir():
        shutil.copytree(site, Path(app.outdir) / "site", dirs_exist_ok=True)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("build-finished", copy_site)
