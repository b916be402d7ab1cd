"""Figure of a collective: what every device holds before and after."""

from collections.abc import Mapping

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from chapter3.figures._style import INK, PALETTE, WIDTH, on, styled


@styled
def draw_exchange(before: jax.Array, after: jax.Array) -> Figure:
    """Draw the blocks of two sharded arrays side by side, a line for each device.

    A number has the colour of the device that held it before; a number that was not
    there before, for instance a sum, is drawn in bold on white.

    Args:
        before: input of the collective, with a different value in each place.
        after: its output, over the same devices; at most eight values per device.
    """
    blocks = [_blocks(before), _blocks(after)]
    origin = {
        value: device
        for device, block in blocks[0].items()
        for value in np.asarray(block).ravel().tolist()
    }
    figure = Figure(figsize=(WIDTH, 0.24 * len(blocks[0]) + 0.5))
    widths = [max(b.size for b in side.values()) for side in blocks]
    panels = figure.subplots(
        1, 2, width_ratios=[max(w, 3) for w in widths], gridspec_kw={"wspace": 0.12}
    )
    for panel, side, width, title in zip(
        panels, blocks, widths, ("before", "after"), strict=True
    ):
        _draw_side(panel, side, max(width, 3), origin)
        (shape,) = {block.shape for block in side.values()}
        panel.set_title(f"{title}: {shape}")
    panels[0].set_ylabel("device")
    return figure


def _blocks(array: jax.Array) -> Mapping[int, np.ndarray]:
    shards = sorted(array.addressable_shards, key=lambda shard: shard.device.id)
    return {shard.device.id: np.asarray(shard.data) for shard in shards}


def _draw_side(
    panel: Axes,
    blocks: Mapping[int, np.ndarray],
    width: int,
    origin: Mapping[float, int],
) -> None:
    for line, (_, block) in enumerate(blocks.items()):
        for place, value in enumerate(block.ravel().tolist()):
            known = value in origin
            colour = PALETTE[origin[value] % len(PALETTE)] if known else "#ffffff"
            panel.add_patch(
                Rectangle(
                    (place + 0.04, line - 0.42),
                    0.92,
                    0.84,
                    facecolor=colour,
                    edgecolor=INK,
                    linewidth=0.6,
                )
            )
            panel.text(
                place + 0.5,
                line,
                f"{value:g}",
                ha="center",
                va="center",
                fontsize=8.5,
                color=on(colour),
                fontweight="normal" if known else "bold",
            )
    panel.set_xlim(0, width)
    panel.set_ylim(len(blocks) - 0.5, -0.5)
    panel.set_yticks(range(len(blocks)), [str(device) for device in blocks])
    panel.set_xticks([])
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
