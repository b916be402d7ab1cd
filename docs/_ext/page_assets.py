"""One style sheet and one script for all pages, made from those of the theme.

The theme asks for some twenty files and 2.5 MB on a first visit, most of it icons and
rules that no page uses. The template `layout.html` loads the two files written here.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

STYLES = (
    "basic.css",
    "styles/pydata-sphinx-theme.css",
    "pygments.css",
    "styles/sphinx-book-theme.css",
    "mystnb.*.css",
    "sphinx-codeautolink.css",
    "sphinx-design.min.css",
    "site.css",
)
SCRIPTS = (
    "documentation_options.js",
    "doctools.js",
    "translations.js",  # of a language other than English
    "sphinx_highlight.js",
    "scripts/sphinx-book-theme.js",
    "scripts/bootstrap.js",
    "scripts/pydata-sphinx-theme.js",
)
LEFT_OUT = (
    "design-tabs.js",  # tabs that stay in step; there are none
    "exercise.css",  # site.css draws exercises and solutions like other boxes
)
_NOT_KEPT = re.compile(
    r"@import [^;]*;|/\*# sourceMappingURL=.*?\*/|/\*(?!!).*?\*/", re.DOTALL
)


def check_files(app: Sphinx, pagename, templatename, context, doctree) -> None:
    """Handle `html-page-context`: refuse a file that an extension adds and we drop."""
    for files, kept in (("css_files", STYLES), ("script_files", SCRIPTS)):
        for file in context.get(files, ()):
            name = str(getattr(file, "filename", file) or "")
            path = Path(name.removeprefix("_static/"))
            known = (*kept, *LEFT_OUT)
            if name and not any(path.match(pattern) for pattern in known):
                raise ExtensionError(
                    f"{name} is loaded by an extension, but page_assets.py does not "
                    "name it; add it there, or the pages will not have it"
                )


def styles(static: Path, used: set[str]) -> str:
    """Join the style sheets, without imports, comments and rules for unused classes.

    Args:
        static: folder of the files.
        used: words that may be names of classes: all in the pages and scripts.
    """
    parts = []
    for pattern in STYLES:
        (path,) = static.glob(pattern)
        text = re.sub(_NOT_KEPT, "", path.read_text()).replace("url(../", "url(")
        parts.append(re.sub(r"\s+", " ", text))
    return without_unused("\n".join(parts), used)


def without_unused(css: str, used: set[str]) -> str:
    """Drop the selectors that name a class that is not used, and rules left empty."""

    def keep(rule: re.Match[str]) -> str:
        selectors = re.split(r",(?![^(\[]*[)\]])", rule[1])
        kept = [s for s in selectors if "(" in s or set(_CLASS.findall(s)) <= used]
        return f"{','.join(kept)}{{{rule[2]}}}" if kept else ""

    return re.sub(r"([^{}@;]+)\{([^{}]*)\}", keep, css)


_CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")


def scripts(static: Path) -> str:
    """Join the scripts, in the order in which the theme runs them."""
    paths = (static / name for name in SCRIPTS)
    parts = (path.read_text() for path in paths if path.exists())
    return ";\n".join(re.sub(r"//# sourceMappingURL=.*", "", part) for part in parts)


def write(app: Sphinx, exception: Exception | None) -> None:
    """Handle `build-finished`: write both files."""
    if exception is None and app.builder.format == "html":
        out = Path(app.outdir)
        script = scripts(out / "_static")
        pages = [page.read_text(encoding="utf-8") for page in out.rglob("*.html")]
        used = set(re.findall(r"[\w-]+", "\n".join([script, *pages])))
        (out / "_static/page.css").write_text(styles(out / "_static", used))
        (out / "_static/page.js").write_text(script)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the handlers."""
    app.connect("html-page-context", check_files, priority=900)
    # After the theme, which writes its colours for code at this event too.
    app.connect("build-finished", write, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
