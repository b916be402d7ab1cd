"""Figures of the strategy ledger, and of the choice that follows from its formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from chapter3.figures._style import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PALETTE,
    SKY,
    VERMILION,
    WIDTH,
    on,
    styled,
)

if TYPE_CHECKING:
    from chapter3.ledger import Entry

_LOOK = {
    "parameters": (BLUE, ""),
    "gradients": (SKY, "---"),
    "optimizer": (ORANGE, "//"),
}


@styled
def draw_ledger(entries: Sequence[Entry]) -> Figure:
    """Draw for each strategy the measured bytes kept (stacked) and bytes sent."""
    figure = Figure(figsize=(WIDTH, 0.3 * len(entries) + 1.0))
    kept, sent = figure.subplots(1, 2, sharey=True)
    places = range(len(entries))
    left = np.zeros(len(entries))
    for kind, (colour, hatch) in _LOOK.items():
        sizes = np.array([entry.kept[kind][1] for entry in entries]) / 1024
        kept.barh(
            places,
            sizes,
            0.7,
            left,
            color=colour,
            hatch=hatch,
            edgecolor="#ffffff",
            linewidth=0.4,
            label=kind,
        )
        left = left + sizes
    bytes_sent = [entry.sent[1] / 1024 for entry in entries]
    sent.barh(places, bytes_sent, 0.7, color=GREEN)
    kept.set_yticks(places, [entry.strategy for entry in entries])
    kept.invert_yaxis()
    kept.set_title("kept, KiB per device")
    sent.set_title("sent per step, KiB")
    for panel in (kept, sent):
        panel.grid(axis="x", color=FAINT, linewidth=0.5)
        panel.set_axisbelow(True)
        panel.tick_params(length=0)
    handles, labels = kept.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


@styled
def draw_choice(
    choices: Mapping[str, tuple[float, float]], capacity: float = 80e9
) -> Figure:
    """Draw strategies by the state that a device keeps and the time on the wire.

    Args:
        choices: by strategy, bytes kept per device and seconds of communication.
        capacity: bytes of memory of a device; what is to the right does not fit.
    """
    figure = Figure(figsize=(WIDTH, 3.4))
    panel = figure.subplots()
    panel.axvline(capacity / 1e9, color=INK, linewidth=1, linestyle="--")
    by_memory = sorted(choices.items(), key=lambda choice: -choice[1][0])
    for number, (name, (kept, seconds)) in enumerate(by_memory):
        fits = kept <= capacity
        panel.plot(
            kept / 1e9,
            seconds,
            "osD^vPX*"[number % 8],
            color=BLUE if fits else VERMILION,
            markersize=7,
            markerfacecolor=BLUE if fits else "none",
        )
        panel.annotate(
            name,
            (kept / 1e9, seconds),
            (0, -17 if number % 2 else 8),  # neighbours above and below in turn
            textcoords="offset points",
            fontsize=9.5,
            ha="center",
        )
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.xaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_locator(NullLocator())
    panel.margins(x=0.12, y=0.18)
    panel.text(
        capacity / 1e9,
        1.01,
        f"{capacity / 1e9:.0f} GB",
        transform=panel.get_xaxis_transform(),
        ha="center",
        va="bottom",
        fontsize=9,
    )
    panel.set_xlabel("training state, GB per device")
    panel.set_ylabel("on the wire, s per step")
    panel.grid(color=FAINT, linewidth=0.5)
    return figure


@styled
def draw_activity(log: np.ndarray) -> Figure:
    """Draw which microbatch each stage worked on at each tick, as a run recorded it.

    Args:
        log: shape (stages, ticks): the number of the microbatch, or -1 for idle.
    """
    stages, ticks = log.shape
    figure = Figure(figsize=(WIDTH, 0.3 * stages + 0.6))
    panel = figure.subplots()
    panel.set_facecolor("none")
    for stage in range(stages):
        for tick in range(ticks):
            if (microbatch := int(log[stage, tick])) < 0:
                continue
            colour = PALETTE[microbatch % len(PALETTE)]
            panel.barh(
                stage, 1, 0.92, tick, color=colour, edgecolor="#ffffff", linewidth=0.6
            )
            panel.text(
                tick + 0.5,
                stage,
                str(microbatch),
                ha="center",
                va="center",
                fontsize=9,
                color=on(colour),
            )
    panel.set_xlim(0, ticks)
    panel.set_ylim(stages - 0.5, -0.5)
    panel.set_yticks(range(stages))
    panel.set_xticks(range(ticks + 1))
    panel.set_xlabel("tick")
    panel.set_ylabel("stage")
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    return figure
