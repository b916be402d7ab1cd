"""Each page as a notebook to take away, which runs outside of the repository.

A page with code becomes `_sources/PAGE.ipynb`, offered in the theme's download menu.
Its first cell installs what the page needs, its second brings along the part of the
package that the page uses (see `embedding.py`), and then the page follows: text as
plain Markdown (`plain_markdown.py`), code as it is, outputs as they were when the site
was built. The outputs are kept, since they are small and the notebook can be read with
them before it is run, and without a computer that could run it. Nothing is executed
here.

Scripts in `examples/exercises/`, in the percent format, become `exercises/NAME.ipynb`
likewise. They have no outputs: the answers are the reader's.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

from embedding import Needs, install, needs, unpack
from page_execution import open_cache
from pages import Page, read_page, settings
from plain_markdown import WORDS, Cell, Text, Writer

logger = logging.getLogger(__name__)

ABOUT = """\
“{page}” of “{site}” as a notebook.
Run it from the top in a fresh kernel. This installs what the page was made with:"""


def add_notebook(app: Sphinx, pagename: str, templatename, context, doctree) -> None:
    """Handle `html-page-context`: write the notebook of a page that has code."""
    if doctree is None or app.builder.name != "html":
        return
    page = read_page(app.env, pagename)
    executed = _executed(app, page) if page else None
    if page is None or executed is None:
        return  # plain text, or not executed, which honest_build.py reports
    parts = _with_hidden_cells(page, list(_writer(app, pagename).parts(doctree)))
    cells = []
    for part in _joined(parts):
        match part:
            case Text(markdown=text):
                cells.append(new_markdown_cell(text))
            case Cell(index=index):
                cells.append(_code_cell(executed.cells[index]))
    title = app.env.titles[pagename].astext()
    notebook = _notebook(app, title, cells)
    _write(notebook, Path(app.outdir, "_sources", f"{pagename}.ipynb"))
    context["ipynb_source"] = f"{pagename}.ipynb"


def _executed(app: Sphinx, page: Page) -> NotebookNode | None:
    """Return the page with its outputs from the cache."""
    if "cache_of_pages" not in vars(app):
        path = Path(settings(app.env).execution_cache_path)
        vars(app)["cache_of_pages"] = open_cache(path)
    cache = vars(app)["cache_of_pages"]
    try:
        record = cache.match_cache_notebook(page.notebook)
    except KeyError:
        return None
    return cache.merge_match_into_notebook(page.notebook)[1] if record else None


def _writer(app: Sphinx, pagename: str) -> Writer:
    base = app.config.html_baseurl
    if base:
        base = f"{base.rstrip('/')}/{app.builder.get_target_uri(pagename)}"
    numbers = {
        key: app.config.numfig_format[kind] % ".".join(map(str, number))
        for kind, those in app.env.toc_fignumbers.get(pagename, {}).items()
        for key, number in those.items()
        if kind in app.config.numfig_format
    }
    words = WORDS | app.config.quiz_words | app.config.notebook_words
    return Writer(base, numbers, words)


def _with_hidden_cells(page: Page, parts: list[Text | Cell]) -> Iterator[Text | Cell]:
    """Put the cells that the page does not show where they stand in its source."""
    cells = page.notebook.cells
    shown = {part.index for part in parts if isinstance(part, Cell)}
    hidden = [
        i for i, c in enumerate(cells) if c.cell_type == "code" and i not in shown
    ]
    for part in parts:
        while hidden and (
            hidden[0] < part.index
            if isinstance(part, Cell)
            else part.line is not None and page.line(hidden[0]) < part.line
        ):
            yield Cell(hidden.pop(0))
        yield part
    yield from map(Cell, hidden)


def _joined(parts: Iterator[Text | Cell]) -> Iterator[Text | Cell]:
    """Join the text between two code cells, but let headings begin a cell."""
    texts: list[str] = []
    for part in parts:
        if texts and (isinstance(part, Cell) or part.heading):
            yield Text("\n\n".join(texts))
            texts = []
        if isinstance(part, Cell):
            yield part
        else:
            texts.append(part.markdown)
    if texts:
        yield Text("\n\n".join(texts))


def _code_cell(cell: NotebookNode) -> NotebookNode:
    outputs = [_output(o) for o in cell.get("outputs", []) if not _is_glue(o)]
    hidden = "hide-input" in cell.metadata.get("tags", [])
    return new_code_cell(
        cell.source,
        outputs=outputs,
        execution_count=cell.get("execution_count"),
        metadata={"jupyter": {"source_hidden": True}} if hidden else {},
    )


def _is_glue(output: NotebookNode) -> bool:
    """Whether an output only hands a value to the text, and shows nothing."""
    kinds = output.get("data", {})
    return bool(kinds) and all(k.startswith("application/papermill") for k in kinds)


def _output(output: NotebookNode) -> NotebookNode:
    about = output.get("metadata", {}).get("image/svg+xml", {})
    if "alt" in about:  # else the text form of a figure is its source
        output.data["text/plain"] = about["alt"]
        output.metadata = {}
    return output


def _notebook(app: Sphinx, title: str, cells: list[NotebookNode]) -> NotebookNode:
    """Put the two cells that prepare everything before those of a page."""
    found = needs(
        [cell.source for cell in cells if cell.cell_type == "code"], Path(app.confdir)
    )
    words = {"notebook": ABOUT} | app.config.notebook_words
    about = words["notebook"].format(page=title, site=app.config.project)
    first = [new_code_cell(install(found, about))]
    if found.files:
        first.append(_folded(found))
    notebook = new_notebook(cells=first + cells)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"  # a random one would differ in each build
    notebook.metadata = {
        "kernelspec": {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        },
        "language_info": {"name": "python"},
    }
    nbformat.validate(notebook)
    return notebook


def _folded(found: Needs) -> NotebookNode:
    metadata = {"jupyter": {"source_hidden": True}, "cellView": "form"}  # for Colab
    return new_code_cell(unpack(found), metadata=metadata)


def _write(notebook: NotebookNode, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)


# -- exercises -------------------------------------------------------------------------


def read_percent(script: str) -> list[NotebookNode]:
    """Read the cells of a script in the percent format.

    `# %%` opens a code cell and `# %% [markdown]` one of text in comments. What stands
    before the first of them is a header of Jupytext, or a docstring, and is left out.
    """
    cells = []
    for part in re.split(r"^(?=# %%)", script, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        if re.search(r"\[(markdown|md)\]", head):
            text = re.sub(r"^# ?", "", body.strip(), flags=re.MULTILINE)
            cells.append(new_markdown_cell(text))
        elif body.strip():
            cells.append(new_code_cell(body.strip()))
    return cells


def _exercises(app: Sphinx) -> list[Path]:
    return sorted(Path(app.confdir, "examples/exercises").glob("[a-z]*.py"))


def write_exercises(app: Sphinx, exception: Exception | None) -> None:
    """Handle `build-finished`: write the notebooks of the exercises."""
    if exception is not None or app.builder.name != "html":
        return
    for script in _exercises(app):
        cells = read_percent(script.read_text(encoding="utf-8"))
        headings = [
            found[1]
            for cell in cells
            if cell.cell_type == "markdown"
            and (found := re.search(r"^# +(.*)", cell.source, re.MULTILINE))
        ]
        if not headings:
            logger.warning("%s: no cell of text with a heading", script.name)
            continue
        notebook = _notebook(app, headings[0], cells)
        _write(notebook, Path(app.outdir, "exercises", f"{script.stem}.ipynb"))


class ExerciseRole(SphinxRole):
    """A link to the notebook of an exercise: {exercise-notebook}`name`."""

    def run(self) -> tuple[list[nodes.Node], list[Any]]:
        """Return the link."""
        name = f"exercises/{self.text}.ipynb"
        if self.text not in {script.stem for script in _exercises(self.env.app)}:
            logger.warning("there is no %s", name, location=self.get_location())
        link = nodes.reference("", "", nodes.literal("", name), refuri=name)
        return [link], []


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the setting `notebook_words`, the role and the handlers.

    `notebook_words` are those of another language: `ABOUT` as "notebook", and those of
    `plain_markdown.WORDS` that are not the quiz's.
    """
    app.add_config_value("notebook_words", {}, "html", types=[dict])
    app.add_role("exercise-notebook", ExerciseRole())
    # Before the theme, which makes its menu from `ipynb_source`.
    app.connect("html-page-context", add_notebook, priority=100)
    app.connect("build-finished", write_exercises)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
