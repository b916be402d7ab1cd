"""Pipeline schedules: who computes what and when, found by simulation.

A schedule is made in two steps. Each device gets the order of its own work; then the
simulation starts every piece as early as the device is free and what it needs is there.
Time is counted in ticks: the forward of one microbatch through one stage takes one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple


class Work(NamedTuple):
    """One stage's forward or backward of one microbatch.

    Attributes:
        phase: "F" (forward) or "B" (backward).
        microbatch: number of the microbatch, from 0.
        stage: number of the stage, from 0; with interleaving there are more stages
            than devices, and stage s lives on device s mod devices.
    """

    phase: str
    microbatch: int
    stage: int


class Slot(NamedTuple):
    """A piece of work with its place and time (in ticks)."""

    work: Work
    device: int
    start: Fraction
    duration: Fraction

    @property
    def end(self) -> Fraction:
        """Time at which the work is done."""
        return self.start + self.duration


@dataclass(frozen=True)
class Schedule:
    """A simulated schedule.

    Attributes:
        name: what the field calls it.
        devices: number of devices p.
        microbatches: number of microbatches m.
        chunks: stages on each device v; 1 unless interleaved.
        slots: all work, in the order in which each device does it.
    """

    name: str
    devices: int
    microbatches: int
    chunks: int
    slots: tuple[Slot, ...]

    @cached_property
    def length(self) -> Fraction:
        """Ticks from the first start to the last end."""
        return max(slot.end for slot in self.slots)

    @property
    def idle_fraction(self) -> Fraction:
        """Share of all devices' time that is idle, from 0 to 1 (the bubble)."""
        busy = sum((slot.duration for slot in self.slots), Fraction(0))
        return 1 - busy / (self.devices * self.length)

    def peak_in_flight(self, device: int) -> Fraction:
        """Most microbatches whose activations `device` keeps at one time.

        A forward adds the activations of one stage, its backward frees them. With
        interleaving a stage is 1/chunks of what the device holds, and counts so.
        """
        held = peak = 0
        for slot in self.slots:
            if slot.device == device:
                held += 1 if slot.work.phase == "F" else -1
                peak = max(peak, held)
        return Fraction(peak, self.chunks)


def gpipe(devices: int, microbatches: int, backward: int = 1) -> Schedule:
    """All forwards, then all backwards; the bubble is (p-1)/(m+p-1).

    Args:
        devices: number of devices p, one stage each.
        microbatches: number of microbatches m.
        backward: ticks of one backward; a forward takes 1.

    Raises:
        ValueError: fewer than one device or microbatch.

    Source: “GPipe: Efficient Training of Giant Neural Networks using Pipeline
    Parallelism” (Huang and others, 2019).

    >>> gpipe(4, 4).idle_fraction
    Fraction(3, 7)
    """
    _check(devices, microbatches)
    all_of = range(microbatches)
    orders = [
        [Work("F", i, s) for i in all_of] + [Work("B", i, s) for i in all_of]
        for s in range(devices)
    ]
    return simulate("GPipe", orders, microbatches, 1, backward)


def naive(devices: int, microbatches: int = 1, backward: int = 1) -> Schedule:
    """Model parallelism without microbatches: one device works, the others wait.

    The batch is not split, so that a stage's forward takes as long as `microbatches`
    microbatches would: the time can be compared with that of the other schedules. The
    bubble is (p-1)/p. Arguments and errors are those of `gpipe`.
    """
    _check(devices, microbatches)
    orders = [[Work("F", 0, s), Work("B", 0, s)] for s in range(devices)]
    return simulate("naive", orders, 1, 1, backward, ticks=Fraction(microbatches))


def one_forward_one_backward(
    devices: int, microbatches: int, backward: int = 1
) -> Schedule:
    """1F1B: each backward as early as possible; the bubble is that of GPipe.

    Stage s keeps the activations of at most p-s microbatches instead of all m.
    Arguments and errors are those of `gpipe`.

    Source: “PipeDream-Flush” in “Memory-Efficient Pipeline-Parallel DNN Training”
    (Narayanan and others, 2021).
    """
    _check(devices, microbatches)
    orders = []
    for s in range(devices):
        forwards = [Work("F", i, s) for i in range(microbatches)]
        backwards = [Work("B", i, s) for i in range(microbatches)]
        orders.append(_alternate(forwards, backwards, devices - 1 - s))
    return simulate("1F1B", orders, microbatches, 1, backward)


def interleaved(
    devices: int, microbatches: int, chunks: int = 2, backward: int = 1
) -> Schedule:
    """Interleaved 1F1B: several smaller stages on each device.

    The bubble is (p-1)/(v·m+p-1), for v times the traffic between stages.

    Args:
        devices: number of devices p.
        microbatches: number of microbatches m, a multiple of p.
        chunks: stages on each device v; each takes 1/v tick forward.
        backward: ticks of a backward through all chunks of a device.

    Raises:
        ValueError: fewer than one of anything, or m is not a multiple of p.

    Source: “Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM” (Narayanan and others, 2021), section 2.2.
    """
    _check(devices, microbatches)
    if chunks < 1 or microbatches % devices:
        raise ValueError(
            f"{microbatches=} must be a multiple of {devices=}, and {chunks=} at least "
            "1; pad the batch or change the number of microbatches"
        )
    orders = []
    for d in range(devices):
        # Groups of p microbatches go through chunk 0, then through chunk 1, and so on.
        turns = [
            (group + i, chunk)
            for group in range(0, microbatches, devices)
            for chunk in range(chunks)
            for i in range(devices)
        ]
        forwards = [Work("F", i, c * devices + d) for i, c in turns]
        backwards = [Work("B", i, (chunks - 1 - c) * devices + d) for i, c in turns]
        ahead = 2 * (devices - 1 - d) + (chunks - 1) * devices
        orders.append(_alternate(forwards, backwards, ahead))
    ticks = Fraction(1, chunks)
    return simulate("interleaved 1F1B", orders, microbatches, chunks, backward, ticks)


def bubble(devices: int, microbatches: int, chunks: int = 1) -> Fraction:
    """Idle share by the closed formula: (p-1)/(v·m+p-1).

    It holds for GPipe and 1F1B (chunks v = 1) and for interleaved 1F1B. The `gpipe` and
    `interleaved` simulations are checked against it.

    >>> [f"{float(bubble(4, m)):.3f}" for m in (1, 4, 16, 64)]
    ['0.750', '0.429', '0.158', '0.045']
    """
    _check(devices, microbatches)
    return Fraction(devices - 1, chunks * microbatches + devices - 1)


def _check(devices: int, microbatches: int) -> None:
    if devices < 1 or microbatches < 1:
        raise ValueError(f"{devices=} and {microbatches=} must be at least 1")


def _alternate(forwards: list[Work], backwards: list[Work], ahead: int) -> list[Work]:
    """Do `ahead` forwards, then one forward and one backward in turn, then the rest."""
    ahead = min(ahead, len(forwards))
    pairs = zip(forwards[ahead:], backwards, strict=False)
    rest = backwards[len(forwards) - ahead :]
    return [*forwards[:ahead], *(w for pair in pairs for w in pair), *rest]


def _needs(work: Work, last_stage: int) -> Iterable[Work]:
    """Name the work that must be done before `work` can start."""
    phase, i, s = work.phase, work.microbatch, work.stage
    if phase == "F":
        return [Work("F", i, s - 1)] if s > 0 else []
    after = [Work("B", i, s + 1)] if s < last_stage else []
    return [Work("F", i, s), *after]


def simulate(
    name: str,
    orders: list[list[Work]],
    microbatches: int,
    chunks: int,
    backward: int,
    ticks: Fraction = Fraction(1),
) -> Schedule:
    """Start each device's work in its order, as early as possible.

    Args:
        name: of the schedule.
        orders: for each device its work, in the order in which it does it.
        microbatches: number of microbatches m.
        chunks: stages on each device v.
        backward: time of one backward, counted in forwards.
        ticks: how many ticks one forward takes.

    Raises:
        RuntimeError: the devices wait for one another.
    """
    last_stage = len(orders) * chunks - 1
    done: dict[Work, int] = {}
    free = [0] * len(orders)
    waiting = [list(reversed(order)) for order in orders]
    slots = []
    while any(waiting):
        before = len(slots)
        for device, todo in enumerate(waiting):
            while todo and all(w in done for w in _needs(todo[-1], last_stage)):
                work = todo.pop()
                ready = [done[w] for w in _needs(work, last_stage)]
                start = max([free[device], *ready])
                duration = 1 if work.phase == "F" else backward
                slots.append(Slot(work, device, start * ticks, duration * ticks))
                done[work] = free[device] = start + duration
        if len(slots) == before:
            stuck = [f"{todo[-1]}" for todo in waiting if todo]
            raise RuntimeError(
                f"{name}: the devices wait for one another; next would be "
                f"{', '.join(stuck)}"
            )
    return Schedule(name, len(orders), microbatches, chunks, tuple(slots))
