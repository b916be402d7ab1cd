"""Figure of a batch on several processes: who reads which rows, and who holds them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from chapter3.figures._style import FAINT, INK, PALETTE, WIDTH, on, styled

_GAP = 0.6  # of a column, between two processes


@dataclass(frozen=True)
class Loaded:
    """What one process did for one batch.

    Attributes:
        process: its index.
        rows: the rows of the global batch that it read.
        held: by device id, the first row that the device holds and the one after the
            last.
    """

    process: int
    rows: Sequence[int]
    held: Mapping[int, tuple[int, int]]


@styled
def draw_loading(cases: Mapping[str, Sequence[Loaded]]) -> Figure:
    """Draw which rows each process read, and which of them each device holds.

    A column is a device, and its height the whole batch, first row on top. What a
    process read is grey behind its devices; what a device holds is coloured.

    Args:
        cases: by title, all processes in order.
    """
    tall = max(_rows(loaded) for loaded in cases.values())
    figure = Figure(figsize=(WIDTH, (0.21 * tall + 0.85) * len(cases)))
    panels = figure.subplots(len(cases), 1, squeeze=False)[:, 0]
    for panel, (title, loaded) in zip(panels, cases.items(), strict=True):
        _draw_case(panel, loaded)
        panel.set_title(title, fontweight="bold")
    return figure


def _rows(loaded: Sequence[Loaded]) -> int:
    return max(stop for one in loaded for _, stop in one.held.values())


def _draw_case(panel: Axes, loaded: Sequence[Loaded]) -> None:
    left, rows = 0.0, _rows(loaded)
    for one in loaded:
        colour = PALETTE[one.process % len(PALETTE)]
        wide = len(one.held)
        for row in one.rows:
            panel.add_patch(Rectangle((left, row), wide, 1, facecolor=FAINT))
        panel.text(
            left + wide / 2,
            -0.3,
            f"process {one.process} reads rows {_ranges(one.rows)}",
            ha="center",
            va="bottom",
            fontsize=10,
        )
        for place, (device, (start, stop)) in enumerate(one.held.items()):
            x = left + place
            panel.add_patch(
                Rectangle((x, 0), 1, rows, facecolor="none", edgecolor=INK, lw=0.5)
            )
            for row in range(start, stop):
                panel.add_patch(
                    Rectangle((x, row), 1, 1, facecolor=colour, edgecolor=INK, lw=0.8)
                )
                panel.text(
                    x + 0.5,
                    row + 0.53,
                    str(row),
                    ha="center",
                    va="center",
                    fontsize=10,
                    color=on(colour),
                )
            panel.text(
                x + 0.5, rows + 0.25, str(device), ha="center", va="top", fontsize=10
            )
        left += wide + _GAP
    panel.set_xlim(-0.05, left - _GAP + 0.05)
    panel.set_ylim(rows + 1.1, -1.4)
    panel.axis("off")


def _ranges(rows: Sequence[int]) -> str:
    """Write ascending rows as "0–3", or "0–1, 4"."""
    starts = [r for r in rows if r - 1 not in rows]
    ends = [r for r in rows if r + 1 not in rows]
    runs = zip(starts, ends, strict=True)
    return ", ".join(f"{a}–{b}" if b > a else f"{a}" for a, b in runs)
