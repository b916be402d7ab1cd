"""Exercise 6: a mean over the rows of several processes that have different numbers.

The answer is sent as text to two new processes, each with four simulated devices.
"""

import ast
import inspect
import json
import re
import tempfile
import textwrap
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from chapter3.exercises.verdict import NotAnswered, Verdict, Wrong, judge
from chapter3.launcher import LaunchError, ProcessFailed, TimeLimit, launch

PROCESSES = 2
ROWS = (5, 1, 7, 2, 6)
"""Rows of each file."""
COLUMNS = 3
_WORKER = Path(__file__).with_name("_rows_worker.py")
_ALL_CALL = (
    "what only one process does (jax.process_index() == 0): computations on global "
    "arrays, and the functions of multihost_utils, must be called by every process, in "
    "the same order."
)


def check(global_mean: Callable, seed: int = 7, seconds: float = 40) -> Verdict:
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


def _check(global_mean: Callable, seed: int, seconds: float) -> str:
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
                _WORKER,
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
        Wrong: it is not one that was written with `def`.
        NotAnswered: it is still the stub.
    """
    try:
        lines, first = inspect.getsourcelines(function)
        source = textwrap.dedent("".join(lines))
        (tree,) = ast.parse(source).body
        if not isinstance(tree, ast.FunctionDef):
            raise TypeError("not a function that was written with def")
    except (TypeError, ValueError, OSError, SyntaxError):
        raise Wrong(
            "The answer must be a function that is written with `def` in a file or a "
            f"notebook's cell, but it is {str(function)[:60]}."
        ) from None
    raised = [n.exc for n in ast.walk(tree) if isinstance(n, ast.Raise)]
    if any(isinstance(e, ast.Name) and e.id == "NotAnswered" for e in raised):
        raise NotAnswered
    return tree.name, "\n" * (first - 1) + source


def _marks(folder: Path, mark: str) -> dict[int, Any]:
    """Read the marks of one kind that processes left, by their numbers."""
    return {
        int(path.stem.split("-")[1]): json.loads(path.read_text() or "{}")
        for path in sorted(folder.glob(f"{mark}-*.json"))
    }


def _explain(error: LaunchError, folder: Path, seconds: float) -> Wrong:
    """Say why the processes came to no result."""
    errors, returned = _marks(folder, "error"), _marks(folder, "returned")
    if isinstance(error, ProcessFailed):
        mark = errors.get(error.process)
        if mark is None or (returned and error.process not in returned):
            if returned:
                return _left_alone(returned)
            return Wrong(f"A process failed outside of your function. {error}")
        lines = mark["text"].splitlines()[:8]
        advice = ""
        if "NameError" in mark["text"]:
            advice = (
                "what your function uses: it is sent alone to the processes, without "
                "the other functions and imports of its file."
            )
        return Wrong(
            "\n".join(
                [
                    f"Your code raised an error on process {error.process}"
                    f"{mark['where']}",
                    *lines,
                ]
            ),
            advice,
        )
    if isinstance(error, TimeLimit) and len(_marks(folder, "entered")) == PROCESSES:
        stood = re.search(r"answer\.py, line (\d+), in \S+: (.*)", str(error))
        where = f", in line {stood[1]}: `{stood[2]}`" if stood else ""
        if returned:
            return _left_alone(returned, where)
        return Wrong(
            f"No process came to an end within {seconds:g} s. They stood in your "
            f"function{where}",
            "whether all processes call the same operations in the same order.",
        )
    return Wrong(
        f"The two processes did not get so far as to call your function within "
        f"{seconds:g} s. That is not your answer's fault.",
        "the load of this machine; or give more time: check(..., seconds=300).",
    )


def _left_alone(returned: Any, where: str = "") -> Wrong:
    done = " and ".join(map(str, returned))
    others = " and ".join(str(i) for i in range(PROCESSES) if i not in returned)
    return Wrong(
        f"Process {others} waits for ever{where}, for process {done}, which has "
        "returned already without taking part.",
        _ALL_CALL,
    )


def judge_reports(reports: list[Any], data: list[np.ndarray]) -> str:
    """Judge what the processes reported.

    Args:
        reports: for each process which files it loaded, and its result.
        data: the rows of each file.

    Raises:
        Wrong: a result is not the mean over all rows, or files were not shared out.
    """
    for process, report in enumerate(reports):
        if report.get("value") is None:
            if "spread" in report:
                raise Wrong(
                    "The result is a global array of which each process holds a part "
                    "only.",
                    "its sharding: ask for P() before you return, so that every "
                    "process has all of it.",
                )
            raise Wrong(
                f"Process {process} returned None. Every process must have the mean.",
                "is there a `return` that every process reaches?",
            )
    values = [np.asarray(report["value"]) for report in reports]
    for value in values:
        if value.shape != (COLUMNS,):
            raise Wrong(
                f"The result has the shape {value.shape} instead of {(COLUMNS,)}.",
                "over which axis the mean is taken: the rows, axis 0.",
            )
    loaded = [list(map(int, report["loaded"])) for report in reports]
    _check_mean(values, [[data[k] for k in files] for files in loaded], data)
    _check_loading(loaded, len(data))
    shares = " and ".join(str(sum(len(data[k]) for k in files)) for files in loaded)
    return (
        f"The mean over all {sum(map(len, data))} rows, on every process, though they "
        f"loaded {shares} rows; each file was loaded once."
    )


def _check_mean(
    values: list[np.ndarray], local: list[list[np.ndarray]], data: list[np.ndarray]
) -> None:
    """Compare with the right mean, and with those of typical mistakes."""

    def equal(a: Any, b: Any) -> bool:
        return np.allclose(a, b, rtol=1e-5, atol=1e-5)

    every = np.concatenate(data).astype(np.float64)
    right = every.mean(axis=0)
    if all(equal(value, right) for value in values):
        return
    rows = [np.concatenate([*own, np.zeros((0, COLUMNS))]) for own in local]
    counts = [len(r) for r in rows]
    if not all(equal(value, values[0]) for value in values):
        own = all(
            len(r) and equal(v, r.mean(axis=0))
            for v, r in zip(values, rows, strict=True)
        )
        raise Wrong(
            "The processes do not agree: "
            + ("each returned the mean of the rows that it loaded itself." if own else
               " and ".join(str(np.round(v, 4).tolist()) for v in values) + "."),
            "what brings the sums of all processes together; a NumPy array is known to "
            "its own process only.",
        )  # fmt: skip
    padded = sum(r.sum(axis=0) for r in rows) / (PROCESSES * max(counts))
    cut = np.concatenate([r[: min(counts)] for r in rows])
    mistakes = {
        "the mean of the processes' means: a row of the process with few rows counts "
        "for more": np.mean([r.mean(axis=0) for r in rows if len(r)], axis=0),
        "the mean of the files' means: a row of a short file counts for more": np.mean(
            [d.mean(axis=0) for d in data], axis=0
        ),
        "the sum, not divided by the number of rows": every.sum(axis=0),
        "the sum divided by the number of processes": every.sum(axis=0) / PROCESSES,
        "the sum divided by the number of devices": every.sum(axis=0) / 8,
        "the sum divided by the number of files": every.sum(axis=0) / len(data),
        "divided by too many rows: those that were added as padding count": padded,
        **{
            f"the mean of the rows of process {i} alone": r.mean(axis=0)
            for i, r in enumerate(rows)
            if len(r)
        },
        **{
            f"the sum over process {i}, divided by the number of all rows": r.sum(
                axis=0
            )
            / len(every)
            for i, r in enumerate(rows)
            if len(r)
        },
        f"over the first {min(counts)} rows of each process; the others were cut off": (
            cut.mean(axis=0) if len(cut) else right
        ),
        **{
            f"over the files up to number {k} only": part
            for k, part in enumerate(
                s / n
                for s, n in zip(
                    accumulate(d.sum(axis=0) for d in data),
                    accumulate(map(len, data)),
                    strict=True,
                )
            )
        },
    }
    for what, wrong in mistakes.items():
        if equal(values[0], wrong):
            raise Wrong(
                f"All processes return the same, but it is {what}.",
                "the sum over all rows, divided by the number of all rows: both must "
                "be added up over the processes.",
            )
    raise Wrong(
        f"All processes return {np.round(values[0], 4).tolist()}, but the mean is "
        f"{np.round(right, 4).tolist()}.",
        "whether every row is in the sum, once.",
    )


def _check_loading(loaded: list[list[int]], files: int) -> None:
    """Check that each file was loaded by one process, once."""
    for k in range(files):
        times = sum(own.count(k) for own in loaded)
        if times != 1:
            raise Wrong(
                f"The mean is right, but file {k} was loaded {times} times "
                f"(process 0 loaded {loaded[0]}, process 1 {loaded[1]}). With much "
                "data that is what makes the start slow.",
                "which files a process takes: for instance those with "
                "k % jax.process_count() == jax.process_index().",
            )
    if not all(loaded):
        raise Wrong(
            f"The mean is right, but one process loaded all files: {loaded}.",
            "sharing the files out between the processes.",
        )
