"""The self-check of exercise 4 is fed right and wrong answers."""

import itertools

import pytest

from chapter3.exercises import NotAnsweredError, pipeline_order, solutions
from chapter3.schedules import one_forward_one_backward


def forwards(numbers):
    return [("F", i) for i in numbers]


def backwards(numbers):
    return [("B", i) for i in numbers]


def alternating(stage, stages, microbatches, ahead=lambda p, s: p - 1 - s):
    first = min(ahead(stages, stage), microbatches)
    work = forwards(range(first))
    for i in range(microbatches - first):
        work += [("F", first + i), ("B", i)]
    return work + backwards(range(microbatches - first, microbatches))


def from_the_package(stage, stages, microbatches):
    plan = one_forward_one_backward(stages, microbatches)
    mine = [slot.work for slot in plan.slots if slot.device == stage]
    return [(work.phase, work.microbatch) for work in mine]


@pytest.mark.parametrize(
    "answer",
    [
        solutions.order,
        alternating,
        from_the_package,
        lambda s, p, m: iter(alternating(s, p, m)),
    ],
)
def test_right_answers_pass_and_are_drawn(answer):
    verdict = pipeline_order.check(answer)
    assert verdict.status == "passed", verdict
    assert "stage 3  ·· ·· ·· F0 B0 F1 B1" in str(verdict)


def with_ahead(ahead):
    return lambda s, p, m: alternating(s, p, m, ahead)


def gpipe(s, p, m):
    return forwards(range(m)) + backwards(range(m))


def last_in_first_out(s, p, m):
    first = min(p - s, m)
    work = forwards(range(first)) + backwards(reversed(range(first)))
    return work + [w for i in range(first, m) for w in (("F", i), ("B", i))]


def without_minimum(s, p, m):
    return solutions.order(s, p, max(p, m))


def crashing(s, p, m):
    return [("F", i) for i in range(m)] + ("B", 0)


WRONG = {
    "GPipe": (gpipe, "keeps the activations of all 6 microbatches: this is GPipe"),
    "no warm-up": (with_ahead(lambda p, s: 0), "idle for 0.750 of the time"),
    "short warm-up": (
        with_ahead(lambda p, s: max(p - 2 - s, 0)),
        "idle for 0.571 of the time instead of 0.333",
    ),
    "long warm-up": (
        with_ahead(lambda p, s: p - s),
        "stage 0 keeps 5 microbatches at one time; in 1F1B it is at most 4",
    ),
    "the first stage's order everywhere": (
        lambda s, p, m: alternating(0, p, m),
        "All stages have the same order",
    ),
    "the last stage's order everywhere": (
        lambda s, p, m: alternating(p - 1, p, m),
        "idle for 0.750 of the time",
    ),
    "stages upside down": (
        with_ahead(lambda p, s: s),
        "the stages wait for one another for ever",
    ),
    "no end": (
        lambda s, p, m: alternating(s, p, m)[: 2 * m - (p - 1 - s)],
        "stage 0 never does B3, B4, B5",
    ),
    "backwards the other way round": (last_in_first_out, "idle for 0.714 of the time"),
    "too few microbatches": (without_minimum, "there is no microbatch 2"),
    "backward first": (
        lambda s, p, m: [w for i in range(m) for w in (("B", i), ("F", i))],
        "does B0 before F0",
    ),
    "twice": (
        lambda s, p, m: [*alternating(s, p, m), ("F", 0)],
        "stage 0 does F0 twice",
    ),
    "without end": (
        lambda s, p, m: itertools.cycle(alternating(s, p, m)),
        "stage 0 does F0 twice",
    ),
    "another letter": (lambda s, p, m: [("f", 0)], "is neither"),
    "numbers alone": (lambda s, p, m: list(range(m)), "must be a list of pairs"),
    "a number": (lambda s, p, m: m, "must be a list of pairs"),
    "nothing": (lambda s, p, m: None, "returned None"),
    "an empty list": (lambda s, p, m: [], "never does F0, F1"),
    "a crash": (crashing, "in line"),
    "no function": ("F0", "must be a function"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers_fail_and_the_mistake_is_named(name):
    answer, diagnosis = WRONG[name]
    verdict = pipeline_order.check(answer)
    assert verdict.status == "failed"
    assert diagnosis in verdict.text, verdict


def test_a_crash_shows_the_line_and_the_error():
    text = pipeline_order.check(crashing).text
    assert 'return [("F", i) for i in range(m)] + ("B", 0)' in text
    assert "TypeError: can only concatenate list" in text


def test_unanswered():
    def answer(stage, stages, microbatches):
        raise NotAnsweredError

    assert pipeline_order.check(answer).status == "not answered yet"
