"""Figure of one array: which devices hold which block, replicas included."""

from collections.abc import Mapping

import jax
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from chapter3.figures._style import INK, PALETTE, WIDTH, on, styled


@styled
def draw_sharding(arrays: Mapping[str, jax.Array], columns: int = 3) -> Figure:
    """Draw matrices as blocks, each with the ids of the devices that hold it.

    Args:
        arrays: by title; two-dimensional, of any sharding.
        columns: panels side by side.
    """
    rows = -(-len(arrays) // columns)
    tall = max(a.shape[0] / a.shape[1] for a in arrays.values())
    height = min(2.2, max(0.7, 1.5 * tall)) + 0.35
    figure = Figure(figsize=(WIDTH, height * rows))
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for panel, (title, array) in zip(panels, arrays.items(), strict=False):
        _draw_matrix(panel, array)
        panel.set_title(title, fontfamily="monospace", fontsize=9)
    for panel in figure.axes:
        panel.axis("off")
    return figure


def _draw_matrix(panel: Axes, array: jax.Array) -> None:
    rows, columns = array.shape
    holders: dict[tuple[int, int, int, int], list[int]] = {}
    for shard in array.addressable_shards:
        (top, below, _), (left, right, _) = (
            cut.indices(size)
            for cut, size in zip(shard.index, array.shape, strict=True)
        )
        holders.setdefault((top, below, left, right), []).append(shard.device.id)
    for (top, below, left, right), ids in holders.items():
        colour = PALETTE[min(ids) % len(PALETTE)]
        panel.add_patch(
            Rectangle(
                (left, top),
                right - left,
                below - top,
                facecolor=colour,
                edgecolor=INK,
                linewidth=0.8,
            )
        )
        panel.text(
            (left + right) / 2,
            (top + below) / 2,
            _list(sorted(ids)),
            ha="center",
            va="center",
            fontsize=9,
            color=on(colour),
        )
    panel.set_xlim(-0.05, columns + 0.05)
    panel.set_ylim(rows + 0.05, -0.05)


def _list(ids: list[int]) -> str:
    """Write ids as "0-7", "0,2,4,6" over two lines, or "3"."""
    if len(ids) > 2 and ids == list(range(ids[0], ids[-1] + 1)):
        return f"{ids[0]}–{ids[-1]}"
    half = -(-len(ids) // 2) if len(ids) > 2 else len(ids)
    lines = [ids[:half], ids[half:]]
    return "\n".join(",".join(map(str, line)) for line in lines if line)
