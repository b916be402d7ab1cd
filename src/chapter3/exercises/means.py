"""Judge the means that the processes of exercise 6 report."""

from itertools import accumulate
from typing import Any

import numpy as np

from chapter3.exercises.verdict import Wrong

PROCESSES, COLUMNS = 2, 3


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
