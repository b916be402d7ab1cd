"""Make a build that looks right be right.

Stock Sphinx turns green when a failed build is repeated (it does not read an unchanged
page again), keeps half-written pages of a build that was killed, and shows code without
output when execution was switched off. None of these passes here.
"""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from pages import read_page

logger = logging.getLogger(__name__)

CELL_TAGS = {
    "hide-input",
    "hide-output",
    "remove-cell",
    "remove-input",
    "remove-output",
}
"""Tags that MyST-NB acts on and the pages may use; another one is a typing error."""


def _mark(app: Sphinx) -> Path:
    return Path(app.doctreedir, "unfinished")


def forget_unfinished_build(app: Sphinx, config: Config) -> None:
    """Handle `config-inited`: read all again if the last build did not succeed."""
    mark = _mark(app)
    if mark.exists():
        Path(app.doctreedir, "environment.pickle").unlink(missing_ok=True)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()


def note_success(app: Sphinx, exception: Exception | None) -> None:
    """Handle `build-finished`: the next build may rely on this one."""
    if exception is None and app._warncount == 0:
        _mark(app).unlink(missing_ok=True)


def remove_former_pages(app: Sphinx, exception: Exception | None) -> None:
    """Handle `build-finished`: a page whose source is gone must not stay published."""
    if exception is None and app.builder.format == "html":
        made_by_sphinx = {"genindex", "py-modindex", "search"}
        for path in Path(app.outdir).glob("*.html"):
            if path.stem not in app.env.found_docs | made_by_sphinx:
                path.unlink()


def check_tags(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Handle `env-before-read-docs`: report cell tags that would have no effect."""
    for page in filter(None, (read_page(env, name) for name in docnames)):
        for number, cell in enumerate(page.notebook.cells):
            for option in set(cell.metadata) - {"tags"}:
                logger.warning(
                    "unknown cell option %r; tags are written :tags: [hide-input]",
                    option,
                    location=(page.docname, page.line(number)),
                )
            for tag in set(cell.metadata.get("tags", [])) - CELL_TAGS:
                logger.warning(
                    "unknown cell tag %r; known are %s",
                    tag,
                    ", ".join(sorted(CELL_TAGS)),
                    location=(page.docname, page.line(number)),
                )


def check_page(app: Sphinx, doctree: nodes.document) -> None:
    """Handle `doctree-read`: report unexecuted cells, and images without words."""
    name = app.env.docname
    cells = [n for n in doctree.findall(nodes.container) if _is_code(n)]
    run = getattr(app.env, "nb_metadata", {}).get(name, {}).get("exec_data")
    if cells and not (run and run["succeeded"]):
        logger.warning(
            "%d code cells, and none was executed: is execution switched off?",
            len(cells),
            location=name,
        )
    for image in doctree.findall(nodes.image):
        if not image.get("alt", "").strip():
            logger.warning(
                "image without alt text: %s", image.get("uri"), location=image
            )


def _is_code(node: nodes.Element) -> bool:
    return node.get("nb_element") == "cell_code"


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the handlers."""
    app.connect("config-inited", forget_unfinished_build)
    app.connect("env-before-read-docs", check_tags)
    app.connect("doctree-read", check_page)
    app.connect("build-finished", remove_former_pages)
    app.connect("build-finished", note_success)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
