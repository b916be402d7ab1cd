"""One style sheet and one script for all pages, made from those of the theme.

The theme asks for some twenty files and 2.5 MB on a first visit, most of it icons that
no page uses. The template `layout.html` loads the two files that are written here.
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
ICONS = {
    *("angle-left", "angle-right", "arrow-up", "bars", "circle-half-stroke", "code"),
    *("download", "expand", "file", "file-lines", "file-pdf", "home", "language"),
    *("list", "magnifying-glass", "moon", "sun"),
}
"""Font Awesome's icons on the theme's buttons; `fa-solid-900.woff2` has only these."""

_NOT_KEPT = re.compile(r"@import [^;]*;|/\*# sourceMappingURL=.*?\*/")
_ICON_RULE = re.compile(r"((?:\.fa-[\w-]+,?)+)\{--fa:[^}]*\}")


def check_files(app: Sphinx, pagename, templatename, context, doctree) -> None:
    """Handle `html-page-context`: refuse a file that an extension adds and we drop."""
    for files, kept in (("css_files", STYLES), ("script_files", SCRIPTS)):
        for file in context.get(files, ()):
            name = str(getattr(file, "filename", file) or "")
            path = Path(name.removeprefix("_static/"))
            if name and not any(path.match(pattern) for pattern in kept):
                raise ExtensionError(
                    f"{name} is loaded by an extension, but page_assets.py does not "
                    "name it; add it there, or the pages will not have it"
                )


def styles(static: Path) -> str:
    """Join the style sheets, without imports and without rules for unused icons."""
    parts = []
    for pattern in STYLES:
        (path,) = static.glob(pattern)
        text = re.sub(_NOT_KEPT, "", path.read_text())
        parts.append(text.replace("url(../", "url("))
    return _ICON_RULE.sub(_keep_icon, "\n".join(parts))


def _keep_icon(rule: re.Match[str]) -> str:
    names = re.findall(r"\.fa-([\w-]+)", rule[1])
    return rule[0] if ICONS & set(names) else ""


def scripts(static: Path) -> str:
    """Join the scripts, in the order in which the theme runs them."""
    paths = (static / name for name in SCRIPTS)
    parts = (path.read_text() for path in paths if path.exists())
    return ";\n".join(re.sub(r"//# sourceMappingURL=.*", "", part) for part in parts)


def write(app: Sphinx, exception: Exception | None) -> None:
    """Handle `build-finished`: write both files."""
    if exception is None and app.builder.format == "html":
        static = Path(app.outdir, "_static")
        (static / "page.css").write_text(styles(static))
        (static / "page.js").write_text(scripts(static))


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the handlers."""
    app.connect("html-page-context", check_files, priority=900)
    # After the theme, which writes its colours for code at this event too.
    app.connect("build-finished", write, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
