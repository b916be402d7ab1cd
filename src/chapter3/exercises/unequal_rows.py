"""Exercise 6: a mean over the rows of several processes that have different numbers.

The answer is sent as text to two new processes, each with four simulated devices.
"""

import ast
import inspect
import json
import re
import tempfile
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from chapter3.exercises.means import COLUMNS, PROCESSES, judge_reports
from chapter3.exercises.verdict import (
    NotAnsweredError,
    Verdict,
    WrongAnswerError,
    judge,
)
from chapter3.last_words import how_it_ended
from chapter3.launcher import LaunchError, ProcessFailedError, TimeLimitError, launch

ROWS = (5, 1, 7, 2, 6)
"""Rows of each file."""
_WORKER = "chapter3.exercises._rows_worker"
_ALL_CALL = (
    "what only one process does (jax.process_index() == 0): computations on global "
    "arrays, and the functions of multihost_utils, must be called by every process, in "
    "the same order, and as often: also where one process has more files than another."
)


def check(global_mean: Any, seed: int = 7, seconds: float = 40) -> Verdict:
    """Judge an answer; takes a few seconds, for it starts two processes.

    Args:
        global_mean: of `load` and the number of files. `load(k)` returns the rows of
            file k, float32, shape (rows, 3). Returns the mean over the rows of all
            files, shape (3,), on every process. Written with `def`; it may use `jax`,
            `jnp`, `np`, `lax`, `NamedSharding`, `P`, `multihost_utils`, and what it
            imports itself.
        seed: of the random rows.
        seconds: time limit.
    """
    return judge(6, global_mean, lambda: _check(global_mean, seed, seconds))


def _check(global_mean: Any, seed: int, seconds: float) -> str:
    name, source = _source(global_mean)
    random = np.random.default_rng(seed)
    # Files differ in their level, so that no mean of a part equals that of all.
    data = [
        (random.standard_normal((rows, COLUMNS)) + 3 * k).astype(np.float32)
        for k, rows in enumerate(ROWS)
    ]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "answer.py").write_text(source)
        for k, rows in enumerate(data):
            np.save(folder / f"{k}.npy", rows)
        try:
            reports = launch(
                str(getattr(find_spec(_WORKER), "origin", None)),
                made,
                name,
                str(len(data)),
                processes=PROCESSES,
                devices=4,
                seconds=seconds,
            )
        except LaunchError as error:
            raise _explain(error, folder, seconds) from None
    return judge_reports([report.value for report in reports], data)


def _source(function: Any) -> tuple[str, str]:
    """Take the text of a function, on the lines on which it stands in its file.

    Raises:
        WrongAnswerError: it is not one that was written with `def`.
        NotAnsweredError: it is still the stub.
    """
    try:
        lines, first = inspect.getsourcelines(function)
        source = textwrap.dedent("".join(lines))
        (tree,) = ast.parse(source).body
        if not isinstance(tree, ast.FunctionDef):
            raise TypeError("not a function that was written with def")
    except (TypeError, ValueError, OSError, SyntaxError):
        raise WrongAnswerError(
            "The answer must be a function that is written with `def` in a file or a "
            f"notebook's cell, but it is {str(function)[:60]}."
        ) from None
    raised = [n.exc for n in ast.walk(tree) if isinstance(n, ast.Raise)]
    if any(isinstance(e, ast.Name) and e.id == "NotAnsweredError" for e in raised):
        raise NotAnsweredError
    return tree.name, "\n" * (first - 1) + source


def _marks(folder: Path, mark: str) -> dict[int, Any]:
    """Read the marks of one kind that processes left, by their numbers."""
    return {
        int(path.stem.split("-")[1]): json.loads(path.read_text() or "{}")
        for path in sorted(folder.glob(f"{mark}-*.json"))
    }


def _explain(error: LaunchError, folder: Path, seconds: float) -> WrongAnswerError:
    """Say why the processes came to no result."""
    errors, returned = _marks(folder, "error"), _marks(folder, "returned")
    if isinstance(error, ProcessFailedError):
        if error.process in errors:
            return _raised(error.process, errors[error.process])
        if "Received data size doesn't match" in str(error):
            return WrongAnswerError(
                "The processes took part in one operation with arrays of different "
                "shapes, and the runtime gave up.",
                "what each process hands over: with different numbers of rows it must "
                "be something that has one shape, such as sums and a count.",
            )
        if returned:
            return _left_alone(returned)
        ending = how_it_ended(error.returncode)
        words = str(error).partition("It wrote:")[2].partition("The others:")[0]
        return WrongAnswerError(
            f"Process {error.process} ended before your function returned: {ending}. "
            f"It wrote:\n{words.strip()}"
        )
    if (
        isinstance(error, TimeLimitError)
        and len(_marks(folder, "entered")) == PROCESSES
    ):
        stood = re.search(r"answer\.py, line (\d+), in \S+\n\s*(.*)", str(error))
        where = f", in line {stood[1]}: `{stood[2]}`" if stood else ""
        if returned:
            return _left_alone(returned, where)
        return WrongAnswerError(
            f"No process came to an end within {seconds:g} s. They stood in your "
            f"function{where}",
            "whether all processes call the same operations in the same order.",
        )
    return WrongAnswerError(
        f"The two processes did not get so far as to call your function within "
        f"{seconds:g} s. That is not your answer's fault.",
        "the load of this machine; or give more time: check(..., seconds=300).",
    )


def _raised(process: int, mark: Any) -> WrongAnswerError:
    """Show the error that the answer raised on one process."""
    advice = ""
    if "NameError" in mark["text"]:
        advice = (
            "what your function uses: it is sent alone to the processes, without the "
            "other functions and imports of its file."
        )
    head = f"Your code raised an error on process {process}{mark['where']}"
    return WrongAnswerError("\n".join([head, *mark["text"].splitlines()[:8]]), advice)


def _left_alone(returned: Any, where: str = "") -> WrongAnswerError:
    done = " and ".join(map(str, returned))
    others = " and ".join(str(i) for i in range(PROCESSES) if i not in returned)
    return WrongAnswerError(
        f"Process {others} waits for ever{where}, for process {done}, which has "
        "returned already without taking part.",
        _ALL_CALL,
    )
