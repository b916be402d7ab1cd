"""What a self-check answers: not answered yet, passed, or failed with the reason.

A check never raises for a wrong answer. It hands the answer's code to `run`, which
turns an error of that code into a verdict, and raises `WrongAnswerError` where a result
does not fit; `judge` makes the verdict of either.
"""

import inspect
import re
import textwrap
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax

NOT_ANSWERED, PASSED, FAILED = "not answered yet", "passed", "failed"
_MOST_LINES = 8


class NotAnsweredError(Exception):
    """What a stub raises until its reader has written the answer."""


class WrongAnswerError(Exception):
    """A result that does not fit.

    Args:
        diagnosis: the mistake, in a sentence or two.
        look: what to look at; may be empty.
    """

    def __init__(self, diagnosis: str, look: str = "") -> None:
        super().__init__(diagnosis)
        self.diagnosis, self.look = diagnosis, look


class CrashError(Exception):
    """The answer's own code raised an error, which is the cause."""


@dataclass(frozen=True)
class Verdict:
    """What a check says about an answer; printing it shows all of it.

    Attributes:
        exercise: number of the exercise.
        status: "not answered yet", "passed" or "failed".
        text: what was found: what was checked, or the mistake.
        look: if it failed, what to look at; may be empty.
    """

    exercise: int
    status: str
    text: str = ""
    look: str = ""

    def __str__(self) -> str:
        parts = [self.text, f"Look at: {self.look}" if self.look else ""]
        lines = [line for part in parts for line in part.splitlines()]
        wrapped = (
            textwrap.fill(
                line,
                80,
                initial_indent="  ",
                subsequent_indent="  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            for line in lines
        )
        return "\n".join([f"Exercise {self.exercise}: {self.status}", *wrapped])

    __repr__ = __str__


def judge(exercise: int, answer: Any, check: Callable[[], str]) -> Verdict:
    """Run a check and make its verdict.

    Args:
        exercise: number of the exercise.
        answer: what the reader wrote.
        check: says what was found to be right, or raises `WrongAnswerError`, or what
            `run` raises.
    """
    try:
        return Verdict(exercise, PASSED, check())
    except NotAnsweredError:
        return Verdict(exercise, NOT_ANSWERED)
    except WrongAnswerError as wrong:
        return Verdict(exercise, FAILED, wrong.diagnosis, wrong.look)
    except CrashError as crashed:
        assert crashed.__cause__ is not None
        return Verdict(exercise, FAILED, *_last_lines(answer, crashed.__cause__))


def expect_function(answer: Any) -> None:
    """Check that an answer can be called.

    Raises:
        WrongAnswerError: it cannot.
    """
    if not callable(answer):
        raise WrongAnswerError(f"The answer must be a function, but it is {answer!r}.")


def run(answer: Any, *arguments: Any) -> Any:
    """Call what the reader wrote, and wait for its result.

    Raises:
        WrongAnswerError: it is not a function, or it returned nothing.
        CrashError: it raised an error.
        NotAnsweredError: it is still the stub.
    """
    expect_function(answer)
    try:
        result = answer(*arguments)
        if not isinstance(result, Iterator):
            jax.block_until_ready(result)
    except NotAnsweredError:
        raise
    except Exception as error:
        raise CrashError from error
    if result is None:
        raise WrongAnswerError(
            "The function returned None.", "is there a `return` at its end?"
        )
    return result


def _last_lines(answer: Any, error: BaseException) -> tuple[str, str]:
    """Describe an error: the answer's last own line in it, type, message; what to do.

    No places on this machine, no stack of the check or of JAX.
    """
    where = ""
    file = _file(answer)
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    if own:
        where = f", in line {own[-1].lineno} ({own[-1].name}): `{own[-1].line}`"
    message = str(error).split("\n---")[0].strip()
    message = re.sub(r"\s*\(/\S+\)|This error occurs at source:.*", "", message)
    lines = f"{type(error).__name__}: {message}".splitlines()
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES // 2], "...", *lines[-_MOST_LINES // 2 :]]
    return "\n".join([f"Your code raised an error{where}", *lines]), _advice(message)


def _advice(message: str) -> str:
    """Say what a frequent error of JAX means for an answer."""
    if "requires a non-empty mesh" in message:
        return (
            "what you gave to jax.jit: a PartitionSpec says nothing of a mesh; make "
            "NamedSharding(mesh, spec) of each."
        )
    if "all_to_all split_axis" in message:
        return (
            "the shape of a block, (rows/8, columns): which of its dimensions is to be "
            "cut into eight pieces?"
        )
    if "out_specs which require replication" in message:
        return (
            "the value that you return by P(): JAX cannot see that it is equal on all "
            "devices. Is the sum over the devices (psum) missing? If you gathered it "
            "with all_gather, say to='invarying' there. (check_vma=False repairs "
            "neither.)"
        )
    return ""


def _file(answer: Any) -> str | None:
    """Name the file, or notebook cell, in which the answer stands."""
    function = inspect.unwrap(getattr(answer, "func", answer))
    code = getattr(function, "__code__", None)
    return None if code is None else code.co_filename
