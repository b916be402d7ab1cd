"""Sphinx configuration (sources in docs/, this file at the top: sphinx-build -c .).

The Makefile calls it once for each edition; see the README.
"""

import sys
from importlib import metadata  # not version(): that is a Sphinx setting
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "docs/_ext"))

from input_digest import input_digest
from inventories import inventory

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "_build"

# -- project ---------------------------------------------------------------------------
project = "Distributed computing in JAX"
author = "the authors of “Distributed computing in JAX”"
project_copyright = f"2026, {author}. Text and figures CC BY 4.0, code Apache-2.0"
version = release = f"for JAX {metadata.version('jax')}"
editions = {"en": "English"}

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx_book_theme",  # for its directives in builders that write no HTML
    "sphinx_codeautolink",
    "sphinx_design",
    "sphinx_exercise",
    "editions",
    "exercise_boxes",
    "honest_build",
    "mathml",
    "notebooks",
    "page_assets",
    "page_execution",
    "quiz",
]
exclude_patterns = ["_*"]
nitpicky = True
numfig = True

# -- pages and their execution ---------------------------------------------------------
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_cache_path = str(BUILD / "executed" / input_digest(ROOT))
nb_execution_timeout = 120
nb_output_stderr = "error"
nb_merge_streams = True
nb_render_markdown_format = "myst"
nb_code_prompt_show = "Show the code"
nb_code_prompt_hide = "Hide the code"
nb_mime_priority_overrides = [("gettext", "image/svg+xml", 1)]

# -- links to other projects -----------------------------------------------------------
intersphinx_mapping = {
    name: (url, inventory(ROOT / f"docs/_inventories/{name}.txt", BUILD))
    for name, url in {
        "jax": "https://docs.jax.dev/en/latest/",
        "numpy": "https://numpy.org/doc/stable/",
        "optax": "https://optax.readthedocs.io/en/latest/",
        "python": "https://docs.python.org/3/",
    }.items()
}
codeautolink_concat_default = True  # a cell knows what the cells above imported
autodoc_default_options = {"no-value": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say what an argument is
default_role = "code"
napoleon_use_ivar = True

# -- HTML ------------------------------------------------------------------------------
html_theme = "sphinx_book_theme"
html_title = project
html_static_path = ["docs/_static"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}
html_math_renderer = "mathml"
html_copy_source = True
html_show_sphinx = False
templates_path = [str(ROOT / "docs/_templates")]
html_theme_options = {
    "article_header_end": ["language-switcher.html", "article-header-buttons.html"],
    "navbar_persistent": [],  # one search field is enough
    "show_toc_level": 2,
    "use_fullscreen_button": False,
}
