"""Figures of pipeline schedules."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, NullLocator

from chapter3.figures._style import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    SKY,
    VERMILION,
    WIDTH,
    YELLOW,
    on,
    styled,
)
from chapter3.schedules import (
    Schedule,
    bubble,
    gpipe,
    one_forward_one_backward,
)
from chapter3.timeline import Execution

_COLOURS = {"F": (BLUE, SKY), "B": (ORANGE, YELLOW)}


@styled
def draw_schedules(schedules: Sequence[Schedule]) -> Figure:
    """Draw schedules above one another, on one time axis.

    Each row is a device, each box one forward (blue) or backward (orange) with the
    number of its microbatch; a device's second chunk of stages is lighter. Hatched
    time is idle. The title gives the bubble as the simulation counted it.

    Args:
        schedules: simulated schedules of at most two chunks.
    """
    rows = [schedule.devices for schedule in schedules]
    figure = Figure(figsize=(WIDTH, 0.19 * sum(rows) + 0.46 * len(rows) + 0.3))
    panels = figure.subplots(
        len(rows), sharex=True, squeeze=False, height_ratios=rows
    ).flat
    longest = float(max(schedule.length for schedule in schedules))
    for panel, schedule in zip(panels, schedules, strict=True):
        _draw_one(panel, schedule, longest)
    panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    panels[-1].set_xlabel("time (ticks)")
    return figure


def _draw_one(panel: Axes, schedule: Schedule, longest: float) -> None:
    whole = float(schedule.length)
    panel.add_patch(
        Rectangle(
            (0, -0.5),
            whole,
            schedule.devices,
            facecolor="none",
            edgecolor=FAINT,
            hatch="////",
            linewidth=0,
        )
    )
    for slot in schedule.slots:
        colour = _COLOURS[slot.work.phase][slot.work.stage // schedule.devices]
        start, width = float(slot.start), float(slot.duration)
        panel.add_patch(
            Rectangle(
                (start, slot.device - 0.5),
                width,
                1,
                facecolor=colour,
                edgecolor="#ffffff",
                linewidth=0.6,
                clip_on=False,
            )
        )
        panel.text(
            start + width / 2,
            slot.device,
            str(slot.work.microbatch),
            ha="center",
            va="center",
            fontsize=8 if width >= 1 else 6.5,
            color=on(colour),
        )
    idle = schedule.idle_fraction
    panel.set_title(
        f"{schedule.name}, m = {schedule.microbatches}: "
        f"idle {idle} = {100 * float(idle):.0f} %"
    )
    panel.set_xlim(0, longest)
    panel.set_ylim(schedule.devices - 0.5, -0.5)
    panel.set_yticks(range(schedule.devices))
    panel.set_ylabel("device")
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)


@styled
def draw_timeline(
    executions: Sequence[Execution], forward: str, backward: str, devices: int
) -> Figure:
    """Draw when each device executed its forwards and backwards, as recorded.

    Boxes look as in `draw_schedules`. A device works in the order in which it was
    called, so that the boxes of a kind are numbered from left to right. Below stands
    how many devices were at work at each moment.

    Args:
        executions: from `chapter3.timeline.record`, in the order of their beginning.
        forward: name of the program that computes a forward.
        backward: likewise.
        devices: number of devices, drawn from the top.
    """
    figure = Figure(figsize=(WIDTH, 0.3 * devices + 1.2))
    panel, count = figure.subplots(2, sharex=True, height_ratios=(0.3 * devices, 0.6))
    looks = {forward: _COLOURS["F"][0], backward: _COLOURS["B"][0]}
    numbers: Counter[tuple[str, int]] = Counter()
    shown = [e for e in executions if e.program in looks]
    start = min(e.begin for e in shown)
    for e in shown:
        number = numbers[e.program, e.device]
        numbers[e.program, e.device] += 1
        begin, width = 1000 * (e.begin - start), 1000 * (e.end - e.begin)
        panel.add_patch(
            Rectangle(
                (begin, e.device - 0.5),
                width,
                1,
                facecolor=looks[e.program],
                edgecolor="#ffffff",
                linewidth=0.6,
            )
        )
        if width > 0.02 * 1000 * (shown[-1].end - start):
            panel.text(
                begin + width / 2,
                e.device,
                str(number),
                ha="center",
                va="center",
                fontsize=8,
                color=on(looks[e.program]),
            )
    changes = sorted([(e.begin, 1) for e in shown] + [(e.end, -1) for e in shown])
    times = [1000 * (time - start) for time, _ in changes]
    at_work = list(accumulate(change for _, change in changes))
    count.fill_between(times, at_work, step="post", color=GREEN, linewidth=0)
    count.set_ylim(0, devices)
    count.set_yticks(range(0, devices + 1, 2))
    count.grid(axis="y", color=FAINT, linewidth=0.5)
    count.set_xlabel("milliseconds")
    count.set_ylabel("at work")
    panel.set_xlim(0, times[-1])
    panel.set_ylim(devices - 0.5, -0.5)
    panel.set_yticks(range(devices))
    panel.set_ylabel("stage")
    for each in (panel, count):
        each.tick_params(length=0)
        each.spines[:].set_visible(False)
    return figure


_LINES = ((BLUE, "-"), (VERMILION, "--"), (GREEN, "-."), (INK, ":"))


@styled
def draw_bubble(
    devices: Sequence[int] = (2, 4, 8, 16), most_microbatches: int = 64
) -> Figure:
    """Draw the idle share of GPipe against the number of microbatches.

    Args:
        devices: numbers of devices p, one line each; at most four.
        most_microbatches: largest number of microbatches m.
    """
    figure = Figure(figsize=(WIDTH, 2.9))
    panel = figure.subplots()
    counts = range(1, most_microbatches + 1)
    for p, (colour, dashes) in zip(devices, _LINES, strict=False):
        shares = [float(bubble(p, m)) for m in counts]
        panel.plot(counts, shares, dashes, color=colour)
        panel.annotate(
            f"p = {p}",
            (4, shares[3]),
            (3, 4),
            textcoords="offset points",
            color=INK,
            fontsize=10,
        )
    panel.set_xscale("log", base=2)
    panel.set_xticks([2**k for k in range(most_microbatches.bit_length())])
    panel.xaxis.set_major_formatter("{x:.0f}")
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xlim(1, most_microbatches)
    panel.set_ylim(0, 1)
    panel.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.0f} %")
    panel.grid(axis="y", color=FAINT, linewidth=0.6)
    panel.set_xlabel("microbatches m")
    panel.set_ylabel("idle share")
    return figure


@styled
def draw_in_flight(devices: int = 4, most_microbatches: int = 16) -> Figure:
    """Draw the most microbatches whose activations the first device keeps.

    Both lines are counted in simulated schedules, GPipe and 1F1B.

    Args:
        devices: number of devices p.
        most_microbatches: largest number of microbatches m.
    """
    figure = Figure(figsize=(WIDTH, 2.6))
    panel = figure.subplots()
    counts = range(1, most_microbatches + 1)
    for schedule, (colour, dashes), mark in (
        (gpipe, _LINES[0], "o"),
        (one_forward_one_backward, _LINES[1], "s"),
    ):
        peaks = [float(schedule(devices, m).peak_in_flight(0)) for m in counts]
        panel.plot(counts, peaks, dashes, color=colour, marker=mark, clip_on=False)
        panel.annotate(
            schedule(devices, 1).name,
            (counts[-1], peaks[-1]),
            (8, 0),
            textcoords="offset points",
            color=INK,
            va="center",
        )
    panel.set_xlim(0, most_microbatches)
    panel.set_ylim(0, most_microbatches)
    panel.set_yticks(range(0, most_microbatches + 1, 4))
    panel.grid(axis="y", color=FAINT, linewidth=0.6)
    panel.set_xlabel("microbatches m")
    panel.set_ylabel("microbatches kept")
    return figure
