"""Figures of a slow link between hosts: times, and who talks over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from chapter3.figures._style import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    WIDTH,
    styled,
)

if TYPE_CHECKING:
    from chapter3.links import Timing

_COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)


def _label(megabits: float | None) -> str:
    return "no limit" if megabits is None else f"{megabits:g} Mbit/s"


@styled
def draw_link_times(
    timings: Sequence[Timing], predict: Callable[[float, float], float]
) -> Figure:
    """Draw the times of all-reduces by size, a line for each speed of the link.

    Args:
        timings: measured, drawn as marks.
        predict: gives the line: from Mbit/s and bytes, the seconds.
    """
    figure = Figure(figsize=(WIDTH, 3.6))
    panel = figure.subplots()
    speeds = list(dict.fromkeys(t.megabits for t in timings))
    for number, speed in enumerate(speeds):
        some = [t for t in timings if t.megabits == speed]
        sizes = [t.nbytes for t in some]
        colour = _COLOURS[number % len(_COLOURS)]
        panel.plot(
            sizes,
            [1e3 * t.measured for t in some],
            "osD^vP"[number % 6],
            color=colour,
            markersize=6,
        )
        if speed is not None:
            between = np.geomspace(min(sizes), max(sizes), 100)
            times = [1e3 * predict(speed, nbytes) for nbytes in between]
            panel.plot(between, times, color=colour, linewidth=1.2)
        panel.annotate(
            _label(speed),
            (sizes[-1], 1e3 * some[-1].measured),
            (7, 0),
            textcoords="offset points",
            fontsize=9.5,
            va="center",
        )
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.yaxis.set_major_formatter("{x:g}")
    panel.set_xticks([2**k for k in range(12, 23, 2)], _sizes(range(12, 23, 2)))
    panel.set_xlabel("bytes that each device holds")
    panel.set_ylabel("one all-reduce, ms")
    panel.margins(x=0.06)
    panel.grid(color=FAINT, linewidth=0.5)
    return figure


def _sizes(exponents: Sequence[int]) -> list[str]:
    return [f"{2 ** (k % 10)} {('', 'KiB', 'MiB')[k // 10]}" for k in exponents]


@styled
def draw_link_steps(
    timings: Sequence[Timing], compute: float, predict: Callable[[float], float]
) -> Figure:
    """Draw the times of training steps by the speed of the link.

    Args:
        timings: measured steps; those without a limit are left out.
        compute: seconds of a step without communication.
        predict: gives the line: from Mbit/s, the seconds.
    """
    figure = Figure(figsize=(WIDTH, 2.9))
    panel = figure.subplots()
    some = [(t.megabits, t) for t in timings if t.megabits is not None]
    some.sort(key=lambda pair: pair[0])
    speeds = [speed for speed, _ in some]
    panel.axhline(1e3 * compute, color=INK, linewidth=1, linestyle="--")
    panel.text(
        0.01,
        1e3 * compute * 1.07,
        "computing alone",
        transform=panel.get_yaxis_transform(),
        fontsize=9.5,
        va="bottom",
    )
    between = np.geomspace(min(speeds), max(speeds), 100)
    panel.plot(
        between,
        [1e3 * predict(speed) for speed in between],
        color=BLUE,
        linewidth=1.2,
        label="predicted",
    )
    panel.plot(
        speeds,
        [1e3 * t.measured for _, t in some],
        "o",
        color=BLUE,
        markersize=6,
        label="measured",
    )
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xticks(speeds, [f"{speed:g}" for speed in speeds])
    panel.minorticks_off()
    panel.yaxis.set_major_formatter("{x:g}")
    panel.set_xlabel("speed of the link, Mbit/s")
    panel.set_ylabel("one training step, ms")
    panel.grid(color=FAINT, linewidth=0.5)
    panel.legend()
    return figure


@styled
def draw_pairs(sent: Mapping[str, np.ndarray], hosts: Sequence[int]) -> Figure:
    """Draw who sends to whom, and mark what crosses from host to host.

    Args:
        sent: by title, what `chapter3.crossing.pair_bytes` returns, shape (N, N).
        hosts: for each device, the number of its host; those of a host in a row.
    """
    n = len(hosts)
    figure = Figure(figsize=(WIDTH, 0.9 + WIDTH / len(sent)))
    panels = figure.subplots(1, len(sent), squeeze=False, sharey=True)[0]
    for panel, (title, pairs) in zip(panels, sent.items(), strict=True):
        for a, host in enumerate(hosts):
            for b, other in enumerate(hosts):
                if not pairs[a, b]:
                    continue
                crosses = host != other
                panel.add_patch(
                    Rectangle(
                        (b, a),
                        1,
                        1,
                        facecolor=VERMILION if crosses else SKY,
                        edgecolor=INK,
                        hatch="///" if crosses else "",
                        linewidth=0.5,
                    )
                )
        for place in range(1, n):
            if hosts[place] != hosts[place - 1]:
                panel.axhline(place, color=INK, linewidth=1.2)
                panel.axvline(place, color=INK, linewidth=1.2)
        panel.set_xlim(0, n)
        panel.set_ylim(n, 0)
        panel.set_aspect("equal")
        panel.set_xticks(np.arange(n) + 0.5, [str(d) for d in range(n)])
        panel.set_yticks(np.arange(n) + 0.5, [str(d) for d in range(n)])
        panel.tick_params(length=0, labelsize=9)
        panel.spines[:].set_visible(True)
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("receives", fontsize=10)
    panels[0].set_ylabel("device sends", fontsize=10)
    return figure
