"""Figure of what each device holds: blocks of arrays, read from real shardings."""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from chapter3.figures._style import FAINT, INK, PALETTE, WIDTH, styled


@dataclass(frozen=True)
class Holding:
    """Which block of an array each device holds.

    Attributes:
        shape: global shape, of two or three dimensions; the first of three is drawn as
            slabs above one another.
        blocks: by device id, the index of its block in the global array.
    """

    shape: tuple[int, ...]
    blocks: Mapping[int, tuple[slice, ...]]


def holding(array: jax.Array) -> Holding:
    """Read from an array's addressable shards which device holds which block."""
    blocks = {shard.device.id: shard.index for shard in array.addressable_shards}
    return Holding(array.shape, blocks)


@styled
def draw_holdings(rows: Mapping[str, Mapping[str, Holding]], devices: int) -> Figure:
    """Draw, for each strategy and device, the blocks that the device holds.

    Args:
        rows: by strategy, the arrays by name; every strategy names the same arrays.
        devices: devices with ids 0 to devices-1 are drawn, side by side.
    """
    figure = Figure(figsize=(WIDTH, 1.12 * len(rows) + 0.2))
    panels = figure.subplots(len(rows), devices, squeeze=False)
    for line, (strategy, arrays) in zip(panels, rows.items(), strict=True):
        for device, panel in enumerate(line):
            _draw_device(panel, arrays, device)
        line[0].set_title(strategy, fontweight="bold")
    for device, panel in enumerate(panels[-1]):
        panel.set_xlabel(f"device {device}")
    return figure


def _draw_device(panel: Axes, arrays: Mapping[str, Holding], device: int) -> None:
    for place, (name, held) in enumerate(arrays.items()):
        slabs = held.shape[0] if len(held.shape) == 3 else 1
        gap = 0.06 if slabs > 1 else 0
        height = (1 - gap * (slabs - 1)) / slabs
        for slab in range(slabs):
            bottom = 1 - (slab + 1) * height - slab * gap
            block = _in_slab(held, device, slab)
            panel.add_patch(
                Rectangle(
                    (1.25 * place, bottom), 1, height, facecolor="none", edgecolor=FAINT
                )
            )
            if block is not None:
                (top, tall), (left, wide) = block
                panel.add_patch(
                    Rectangle(
                        (1.25 * place + left, bottom + height * (1 - top - tall)),
                        wide,
                        height * tall,
                        facecolor=PALETTE[device % len(PALETTE)],
                        edgecolor=INK,
                        linewidth=0.8,
                    )
                )
        panel.text(1.25 * place + 0.5, -0.08, name, ha="center", va="top")
    panel.set_xlim(-0.05, 1.25 * len(arrays) - 0.2)
    panel.set_ylim(-0.35, 1.03)
    panel.set_xticks([])
    panel.set_yticks([])
    panel.spines[:].set_visible(False)


def _in_slab(held: Holding, device: int, slab: int):
    """Return the block's rows and columns in one slab, as (start, extent) in [0, 1]."""
    if device not in held.blocks:
        return None
    *front, rows, columns = held.blocks[device]
    if front and slab not in range(*front[0].indices(held.shape[0])):
        return None
    return [
        (cut.indices(size)[0] / size, len(range(*cut.indices(size))) / size)
        for cut, size in zip((rows, columns), held.shape[-2:], strict=True)
    ]
