from fractions import Fraction
from itertools import pairwise

import pytest

from chapter3.schedules import (
    Work,
    bubble,
    gpipe,
    interleaved,
    naive,
    one_forward_one_backward,
)

STAGES = range(2, 9)


@pytest.mark.parametrize("p", STAGES)
def test_bubble_is_what_the_simulation_counts(p):
    for m in range(1, 65):
        assert gpipe(p, m).idle_fraction == bubble(p, m)
        assert one_forward_one_backward(p, m).idle_fraction == bubble(p, m)
        assert naive(p, m).idle_fraction == Fraction(p - 1, p)
        if m % p == 0:
            assert interleaved(p, m, chunks=2).idle_fraction == bubble(p, m, chunks=2)


@pytest.mark.parametrize("p", STAGES)
@pytest.mark.parametrize("backward", [2, 3])
def test_bubble_does_not_depend_on_what_a_backward_costs(p, backward):
    for m in (1, p, 4 * p):
        assert gpipe(p, m, backward).idle_fraction == bubble(p, m)
        assert one_forward_one_backward(p, m, backward).idle_fraction == bubble(p, m)
    for v in (1, 2, 3):
        assert interleaved(p, 2 * p, v, backward).idle_fraction == bubble(p, 2 * p, v)


def test_bubble_values():
    shown = [f"{float(bubble(4, m)):.3f}" for m in (1, 4, 16, 64)]
    assert shown == ["0.750", "0.429", "0.158", "0.045"]


@pytest.mark.parametrize("p", STAGES)
def test_activations_in_flight(p):
    for m in (1, 2, p, 64):
        for device in range(p):
            assert gpipe(p, m).peak_in_flight(device) == m
            peak = one_forward_one_backward(p, m).peak_in_flight(device)
            assert peak == min(m, p - device)


@pytest.mark.parametrize(
    "schedule",
    [
        naive(4, 4),
        gpipe(3, 5),
        gpipe(1, 2),
        one_forward_one_backward(5, 3),
        one_forward_one_backward(4, 8, backward=2),
        interleaved(4, 8, chunks=2),
        interleaved(2, 6, chunks=3, backward=2),
    ],
    ids=lambda s: f"{s.name}-{s.devices}-{s.microbatches}",
)
def test_schedule_is_possible(schedule):
    ends = {slot.work: slot.end for slot in schedule.slots}
    starts = {slot.work: slot.start for slot in schedule.slots}
    stages = schedule.devices * schedule.chunks
    # Everything is done once, forwards and backwards of every microbatch.
    assert len(ends) == len(schedule.slots) == 2 * stages * schedule.microbatches
    for work in ends:
        forward = Work("F", work.microbatch, work.stage)
        if work.phase == "F" and work.stage > 0:
            assert starts[work] >= ends[Work("F", work.microbatch, work.stage - 1)]
        if work.phase == "B":
            assert starts[work] >= ends[forward]
            if work.stage < stages - 1:
                assert starts[work] >= ends[Work("B", work.microbatch, work.stage + 1)]
    # A device does one thing at a time.
    for device in range(schedule.devices):
        own = [slot for slot in schedule.slots if slot.device == device]
        for before, after in pairwise(own):
            assert before.end <= after.start
        assert all(slot.work.stage % schedule.devices == device for slot in own)


def test_length_of_gpipe_is_m_plus_p_minus_1_each_way():
    assert gpipe(4, 8).length == 2 * (8 + 4 - 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gpipe(0, 4), "devices=0"),
        (lambda: naive(4, 0), "microbatches=0"),
        (lambda: one_forward_one_backward(4, -1), "microbatches=-1"),
        (lambda: interleaved(4, 6), "microbatches=6 must be a multiple of devices=4"),
        (lambda: interleaved(4, 8, chunks=0), "chunks=0"),
        (lambda: bubble(0, 1), "devices=0"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
