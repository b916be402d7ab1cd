"""Show a figure on a page: never without its number, caption and alternative text."""

import io
import re
from dataclasses import dataclass

import matplotlib.style
from matplotlib.figure import Figure

from chapter3.figures._style import RC


@dataclass(frozen=True)
class ShownFigure:
    """What `show` returns: a figure that Jupyter and MyST-NB know how to display."""

    svg: str
    name: str
    alt: str
    caption: str
    wide: bool = False

    def _repr_mimebundle_(self, include=None, exclude=None):
        about = {"name": self.name, "alt": self.alt, "caption": self.caption}
        about |= {"classes": "wide"} if self.wide else {}
        return {"image/svg+xml": self.svg}, {"image/svg+xml": about}


def show(
    figure: Figure, *, name: str, alt: str, caption: str, wide: bool = False
) -> ShownFigure:
    """Show a figure as the value of a cell.

    Args:
        figure: what one of the drawing functions returned.
        name: label for references, `fig-` first, for instance "fig-bubble".
        alt: the figure in words, for who cannot see it: what is drawn and what it
            says, in plain text.
        caption: what to see in it; MyST markup.
        wide: keep it readable on a phone by scrolling it sideways, not by shrinking it.

    Returns:
        An object that displays as a vector image. On a page of the site it becomes a
        numbered figure.

    Raises:
        ValueError: an empty text, a name without `fig-`, or one text used for both.
    """
    if not name.startswith("fig-"):
        raise ValueError(f"{name=} must begin with 'fig-'")
    if not alt.strip() or not caption.strip() or alt.strip() == caption.strip():
        raise ValueError(
            f"{name}: a figure needs a caption that says what to see, and an alt text "
            "that says what is drawn to who cannot see it; both, and not the same"
        )
    file = io.StringIO()
    with matplotlib.style.context(RC, after_reset=True):
        figure.savefig(
            file,
            format="svg",
            bbox_inches="tight",
            pad_inches=0.03,
            metadata={"Date": None, "Creator": None},
        )
    svg = _compact(file.getvalue())
    return ShownFigure(svg, name, alt.strip(), caption.strip(), wide)


def _compact(svg: str) -> str:
    """Halve the size: no prolog, no metadata, no digits that no screen shows."""
    svg = re.sub(
        r"<metadata>.*?</metadata>\s*", "", svg[svg.index("<svg") :], flags=re.S
    )
    svg = re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", svg)
    return re.sub(r"\s*\n\s*", "\n", svg)
