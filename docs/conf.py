"""How Sphinx builds the documentation: ``make docs``."""

from __future__ import annotations

from pathlib import Path

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
# The reproduction of the paper is a site of its own, copied in as it is, and so is the example of a card.
html_extra_path = [name for name in ("site", "examples") if (Path(__file__).parent / name).is_dir()]
