"""Take the sections out of the boxes that sphinx-exercise makes.

It puts the content of each exercise and solution into a section without a title, all of
them with the same id. Ids must be unique in a page, and sphinx-codeautolink takes a
section for one with a title and fails.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class NoSectionsInBoxes(SphinxTransform):
    """Replace such a section by its content."""

    default_priority = 500

    def apply(self, **kwargs: object) -> None:
        """Change the document."""
        for section in list(self.document.findall(nodes.section)):
            if isinstance(section.parent, nodes.Admonition):
                section["ids"], section["names"] = [], []  # else its first child's
                section.replace_self(section.children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_transform(NoSectionsInBoxes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
