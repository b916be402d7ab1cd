"""Exercise 4: the order of work of one pipeline stage, one forward one backward."""

from itertools import islice
from typing import Any

from chapter3.exercises.verdict import Verdict, WrongAnswerError, judge, run
from chapter3.schedules import Schedule, Work, bubble, simulate

SIZES = ((4, 6), (4, 12), (4, 2), (3, 3), (2, 9), (8, 5), (1, 3))
"""Numbers of stages and microbatches with which an answer is tried."""
_WIDEST = 22  # ticks of a timeline that fit in a line


def check(order: Any) -> Verdict:
    """Judge an answer.

    Args:
        order: of the number of a stage, the number of stages p and that of microbatches
            m. Returns the stage's work in order: pairs of "F" or "B" and the number of
            a microbatch.
    """
    return judge(4, order, lambda: _check(order))


def _check(order: Any) -> str:
    shown = ""
    for stages, microbatches in SIZES:
        where = f"With {stages} stages and {microbatches} microbatches"
        orders = [
            _read(run(order, s, stages, microbatches), s, microbatches, where)
            for s in range(stages)
        ]
        try:
            plans = [simulate("yours", orders, microbatches, 1, b) for b in (1, 2)]
        except RuntimeError:
            raise WrongAnswerError(
                f"{where}, the stages wait for one another for ever. They stand so:\n"
                + "\n".join(_line(s, orders[s]) for s in range(stages)),
                "the order of the backwards: the last stage finishes microbatch 0 "
                "first, and each stage must take what arrives.",
            ) from None
        shown = shown or _timeline(plans[0])
        _check_memory(plans[0], orders, where)
        for plan in plans:
            _check_time(plan, orders, where)
    return (
        "Every stage does all its work once, none waits for ever, the bubble is "
        "(p-1)/(m+p-1) and stage s keeps at most p-s microbatches. For 4 stages and 6 "
        f"microbatches:\n{shown}"
    )


def _read(found: Any, stage: int, microbatches: int, where: str) -> list[Work]:
    """Check the work of one stage by itself."""
    try:
        some = islice(found, 4 * microbatches)  # even if it would never end
        work = [Work(phase, int(i), stage) for phase, i in some]
    except (TypeError, ValueError):
        raise WrongAnswerError(
            f"{where}, stage {stage} gave {str(found)[:60]}. The answer must be a list "
            'of pairs such as ("F", 0), ("B", 0).'
        ) from None
    where = f"{where}, stage {stage}"
    for i, item in enumerate(work):
        if item.phase not in ("F", "B"):
            raise WrongAnswerError(f'{where}: {item.phase!r} is neither "F" nor "B".')
        if not 0 <= item.microbatch < microbatches:
            raise WrongAnswerError(
                f"{where}: there is no microbatch {item.microbatch}; they are counted "
                f"from 0 to {microbatches - 1}.",
                "the warm-up, when there are fewer microbatches than stages.",
            )
        if item in work[:i]:
            raise WrongAnswerError(
                f"{where} does {_short(item)} twice.", _line(stage, work)
            )
        if item.phase == "B" and Work("F", item.microbatch, stage) not in work[:i]:
            raise WrongAnswerError(
                f"{where} does {_short(item)} before F{item.microbatch}, whose "
                "activations it needs.",
                _line(stage, work),
            )
    missing = [
        f"{phase}{i}"
        for phase in "FB"
        for i in range(microbatches)
        if Work(phase, i, stage) not in work
    ]
    if missing:
        raise WrongAnswerError(
            f"{where} never does {', '.join(missing)}.",
            "the end: the forwards that were ahead still need their backwards. "
            f"{_line(stage, work)}",
        )
    return work


def _check_memory(plan: Schedule, orders: list[list[Work]], where: str) -> None:
    """Check that no stage keeps more microbatches than p-s."""
    p, m = plan.devices, plan.microbatches
    peaks = [int(plan.peak_in_flight(s)) for s in range(p)]
    allowed = [min(p - s, m) for s in range(p)]
    over = [s for s in range(p) if peaks[s] > allowed[s]]
    if not over:
        return
    if all(peak == m for peak in peaks):
        raise WrongAnswerError(
            f"{where}, the order is valid, but every stage keeps the activations of "
            f"all {m} microbatches: this is GPipe.",
            "when the first backward comes: a stage should do it as soon as it can, "
            "to free what it keeps.",
        )
    s = over[0]
    text = (
        f"{where}, stage {s} keeps {peaks[s]} microbatches at one time; in 1F1B it is "
        f"at most {allowed[s]}."
    )
    kinds = {tuple((w.phase, w.microbatch) for w in order) for order in orders}
    if len(kinds) == 1:
        raise WrongAnswerError(
            f"{text} All stages have the same order.", "is `stage` used?"
        )
    if all(peaks[s] <= allowed[s] + 1 for s in range(p)):
        raise WrongAnswerError(
            text,
            f"the number of forwards at the start: one too many. {_line(s, orders[s])}",
        )
    raise WrongAnswerError(text, _line(s, orders[s]))


def _check_time(plan: Schedule, orders: list[list[Work]], where: str) -> None:
    """Check the bubble."""
    p, m = plan.devices, plan.microbatches
    wanted = bubble(p, m)
    if plan.idle_fraction <= wanted:
        return
    text = (
        f"{where}, everything is done, but the devices are idle for "
        f"{float(plan.idle_fraction):.3f} of the time instead of {float(wanted):.3f}:"
        f"\n{_timeline(plan)}"
    )
    for s, order in enumerate(orders):
        if _ahead(order) < min(p - s, m):
            raise WrongAnswerError(
                text,
                f"the warm-up: forwards of stage {s} before its first backward, which "
                f"is long in coming: {_ahead(order)}.",
            )
    raise WrongAnswerError(
        text,
        "the order of the backwards: is a stage waiting for one that comes late, while "
        "another is there?",
    )


def _ahead(order: list[Work]) -> int:
    """Count the forwards before the first backward."""
    return next(i for i, work in enumerate(order) if work.phase == "B")


def _short(work: Work) -> str:
    return f"{work.phase}{work.microbatch}"


def _line(stage: int, work: list[Work]) -> str:
    return f"stage {stage}: {' '.join(map(_short, work))}"


def _timeline(plan: Schedule) -> str:
    """Draw a schedule in text, one column for each tick."""
    rows = []
    for device in range(plan.devices):
        ticks = ["··"] * int(plan.length)
        for slot in plan.slots:
            if slot.device == device:
                ticks[int(slot.start)] = _short(slot.work)
        more = " …" if len(ticks) > _WIDEST else ""
        rows.append(f"stage {device}  {' '.join(ticks[:_WIDEST])}{more}")
    return "\n".join(rows)
