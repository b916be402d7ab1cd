"""The pages of the site as notebooks, read exactly as MyST-NB will read them."""

import sys
from dataclasses import dataclass
from pathlib import Path

from myst_nb.core.config import NbParserConfig
from myst_nb.core.read import create_nb_reader
from nbformat import NotebookNode
from sphinx.environment import BuildEnvironment


def settings(env: BuildEnvironment) -> NbParserConfig:
    """Return MyST-NB's settings, which it keeps on Sphinx's environment."""
    return vars(env)["mystnb_config"]


@dataclass(frozen=True)
class Page:
    """One page with code cells.

    Attributes:
        docname: its name in Sphinx, for instance "3-2-device-management".
        path: its source.
        notebook: its cells.
        config: MyST-NB's settings for it, with those of its front matter.
    """

    docname: str
    path: Path
    notebook: NotebookNode
    config: NbParserConfig

    def line(self, cell: int) -> int:
        """Line of the source on which a cell (counted from 0) is opened."""
        lines = self.notebook.metadata.get("source_map", [])
        return lines[cell] if cell < len(lines) else 1


def read_page(env: BuildEnvironment, docname: str) -> Page | None:
    """Read a page; None if it is plain text without code cells."""
    path = Path(env.doc2path(docname))
    text = path.read_text(encoding="utf-8")
    config = settings(env)
    reader = create_nb_reader(str(path), vars(env)["myst_config"], config, text)
    if reader is None:
        return None
    notebook = reader.read(text)
    overrides = dict(notebook.metadata.get(config.metadata_key, {}))
    overrides.pop("output_folder", None)
    try:
        config = config.copy(**overrides)
    except (TypeError, ValueError) as error:
        sys.exit(f"{path.name}, front matter, {config.metadata_key}: {error}")
    return Page(docname, path, notebook, config)
