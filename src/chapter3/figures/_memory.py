"""Figure of the training state per device."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from chapter3.figures._style import BLUE, FAINT, INK, ORANGE, SKY, WIDTH, styled
from chapter3.memory import SHARDED, TrainingState, per_device

_KINDS = {"parameters": BLUE, "gradients": SKY, "optimizer": ORANGE}
_HATCHES = {"parameters": "", "gradients": "---", "optimizer": "//"}


@styled
def draw_memory(
    parameter_count: int,
    devices: Sequence[int] = (1, 2, 4, 8, 16, 32, 64),
    capacity: float = 80e9,
    per_parameter: TrainingState | None = None,
) -> Figure:
    """Draw the bytes of training state per device, stacked by kind.

    One panel for each strategy, all on one scale, with a line at the memory of one
    device.

    Args:
        parameter_count: parameters of the whole model.
        devices: numbers of devices N.
        capacity: bytes of memory of one device.
        per_parameter: as in `chapter3.memory.per_device`.
    """
    figure = Figure(figsize=(WIDTH, 4.4))
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    places = range(len(devices))
    for panel, strategy in zip(panels.flat, SHARDED, strict=True):
        states = [
            per_device(strategy, parameter_count, n, per_parameter) for n in devices
        ]
        below = [0.0] * len(states)
        for kind, colour in _KINDS.items():
            heights = [getattr(state, kind) / 1e9 for state in states]
            panel.bar(
                places,
                heights,
                0.75,
                bottom=below,
                color=colour,
                edgecolor="#ffffff",
                linewidth=0.4,
                hatch=_HATCHES[kind],
                label=kind,
            )
            below = [b + h for b, h in zip(below, heights, strict=True)]
        panel.axhline(capacity / 1e9, color=INK, linewidth=1, linestyle="--")
        panel.set_title(f"{strategy}: {below[-1]:.1f} GB at N = {devices[-1]}")
        panel.set_xticks(places, [str(n) for n in devices])
        panel.tick_params(length=0)
        panel.grid(axis="y", color=FAINT, linewidth=0.5)
        panel.set_axisbelow(True)
    first = panels.flat[0]
    first.set_ylim(0, first.get_ylim()[1] * 1.02)
    panels[1, 1].text(
        len(devices) - 0.5,
        capacity / 1e9,
        f"{capacity / 1e9:.0f} GB",
        ha="right",
        va="bottom",
        fontsize=10,
    )
    figure.supxlabel("devices N", fontsize="medium")
    figure.supylabel("GB per device", fontsize="medium")
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return figure
