"""One look for all figures of the chapter."""

import functools
from collections.abc import Callable

import matplotlib.style
from matplotlib.figure import Figure

WIDTH = 5.3
"""Inches. At phone width such a figure is shown at seven tenths of its size."""

INK = "#000000"
FAINT = "#c9c9c9"
BLUE, ORANGE, GREEN, YELLOW = "#0072b2", "#e69f00", "#009e73", "#f0e442"
SKY, VERMILION, PURPLE, GREY = "#56b4e9", "#d55e00", "#cc79a7", "#999999"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW, GREY)
"""Eight colours, one for each device, told apart by colour-blind readers too.

Source: “Color Universal Design” (Okabe and Ito, 2008).
"""

RC = {
    "font.size": 11,
    "font.sans-serif": ["DejaVu Sans"],
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.labelsize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 4,
    "hatch.linewidth": 0.6,
    "figure.constrained_layout.use": True,
    "savefig.transparent": True,
    # Text stays text: crisp at each size, searchable, translatable, and small.
    "svg.fonttype": "none",
    "svg.hashsalt": "chapter3",  # the same figure gives the same file
}


def styled[**P](draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Make a drawing function use the chapter's look and not the reader's settings."""

    @functools.wraps(draw)
    def in_style(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with matplotlib.style.context(RC, after_reset=True):
            return draw(*args, **kwargs)

    return in_style


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour such as "#0072b2", from 0 to 1.

    Source: “Web Content Accessibility Guidelines 2.2”, relative luminance.
    """
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def on(colour: str) -> str:
    """Return black or white, whichever has more contrast on `colour`."""
    # Contrast with black and white is equal at luminance 0.179.
    return INK if luminance(colour) > 0.179 else "#ffffff"
