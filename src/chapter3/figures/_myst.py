"""Turn what `show` displays into a numbered figure of a MyST-NB page.

MyST-NB finds this class by the entry point `myst_nb.mime_renderers` of this package; a
reader who does not build a site never imports it.
"""

import re
from dataclasses import replace

from docutils import nodes
from myst_nb.core.render import MimeData, NbElementRenderer, create_figure_context


class FigureRenderer:
    """Render SVG output that carries a caption, and leave other output alone."""

    # A catalogue for translators is made by a builder of its own, which would else take
    # the plain text of the output and lose caption and alternative text.
    mime_priority_overrides = (("gettext", "image/svg+xml", 1),)

    @staticmethod
    def handle_mime(
        renderer: NbElementRenderer, data: MimeData, inline: bool
    ) -> list[nodes.Node] | None:
        """Return the figure, or None if this output is not one of ours."""
        about = data.output_metadata.get("image/svg+xml", {})
        if inline or data.mime_type != "image/svg+xml" or "caption" not in about:
            return None
        image = {"alt": about["alt"], **_size(data.string)}
        with_alt = {**data.cell_metadata, "mystnb": {"image": image}}
        options = {k: v for k, v in about.items() if k != "alt"}
        page = renderer.renderer
        holder = nodes.Element()
        with (
            page.current_node_context(holder),
            create_figure_context(page, options, data.line or 0),
        ):
            bare = replace(data, cell_metadata=with_alt, output_metadata={})
            for node in renderer.render_image(bare):
                node["loading"] = "lazy"  # a figure is loaded when it comes into view
                page.current_node.append(node)
        return holder.children


def _size(svg: str) -> dict[str, str]:
    """Width and height in pixels, so that the page keeps the place free."""
    sizes = re.findall(r'\b(width|height)="([\d.]+)pt"', svg[: svg.index(">")])
    return {name: str(round(float(points) * 4 / 3)) for name, points in sizes}
