"""Judge the means that the processes of exercise 6 report."""

from typing import Any

import numpy as np

from chapter3.exercises.verdict import WrongAnswerError

PROCESSES, COLUMNS = 2, 3


def judge_reports(reports: list[Any], data: list[np.ndarray]) -> str:
    """Judge what the processes reported.

    Args:
        reports: for each process which files it loaded, and its result.
        data: the rows of each file.

    Raises:
        WrongAnswerError: a result is not the mean over all rows, or files were not
            shared out.
    """
    for process, report in enumerate(reports):
        if report.get("value") is None:
            if "spread" in report:
                raise WrongAnswerError(
                    "The result is a global array of which each process holds a part "
                    "only.",
                    "its sharding: ask for P() before you return, so that every "
                    "process has all of it.",
                )
            raise WrongAnswerError(
                f"Process {process} returned None. Every process must have the mean.",
                "is there a `return` that every process reaches?",
            )
    values = [np.asarray(report["value"]) for report in reports]
    for value in values:
        if value.shape != (COLUMNS,):
            raise WrongAnswerError(
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
    right, found = every.mean(axis=0), values[0]
    if all(equal(value, right) for value in values):
        return
    rows = [np.concatenate([*own, np.zeros((0, COLUMNS))]) for own in local]
    if not all(equal(value, found) for value in values):
        shown = " and ".join(str(np.round(v, 4).tolist()) for v in values)
        pairs = zip(values, rows, strict=True)
        if all(len(r) and equal(v, r.mean(axis=0)) for v, r in pairs):
            shown = "each returned the mean of the rows that it loaded itself"
        raise WrongAnswerError(
            f"The processes do not agree: {shown}.",
            "what brings the sums of all processes together; a NumPy array is known to "
            "its own process only.",
        )
    for what, wrong in _mistakes(every, rows, data).items():
        if equal(found, wrong):
            raise WrongAnswerError(
                f"All processes return the same, but it is {what}.",
                "the sum over all rows, divided by the number of all rows: both must "
                "be added up over the processes.",
            )
    raise WrongAnswerError(
        f"All processes return {np.round(found, 4).tolist()}, but the mean is "
        f"{np.round(right, 4).tolist()}.",
        "whether every row is in the sum, once.",
    )


def _mistakes(
    every: np.ndarray, rows: list[np.ndarray], data: list[np.ndarray]
) -> dict[str, np.ndarray]:
    """Compute what typical mistakes return in place of the mean.

    Args:
        every: all rows.
        rows: those that each process loaded.
        data: those of each file.
    """
    total, some = every.sum(axis=0), [r for r in rows if len(r)]
    fewest = min(map(len, rows))
    mistakes = {
        "the mean of the processes' means: a row of the process with few rows counts "
        "for more": np.mean([r.mean(axis=0) for r in some], axis=0),
        "the mean of the files' means: a row of a short file counts for more": np.mean(
            [d.mean(axis=0) for d in data], axis=0
        ),
        "the sum, not divided by the number of rows": total,
        "the sum divided by the number of processes": total / PROCESSES,
        "the sum divided by the number of devices": total / 8,
        "the sum divided by the number of files": total / len(data),
    }
    for number in range(len(every) + 1, 10 * len(every)):
        mistakes[
            f"the sum divided by {number} instead of by the {len(every)} rows, as if "
            "rows of padding counted"
        ] = total / number
    for i, r in enumerate(rows):
        if len(r):
            mistakes[f"the mean of the rows of process {i} alone"] = r.mean(axis=0)
            mistakes[f"the sum over process {i}, divided by the number of all rows"] = (
                r.sum(axis=0) / len(every)
            )
    if fewest:
        cut = np.concatenate([r[:fewest] for r in rows])
        mistakes[
            f"the mean of the first {fewest} rows of each process; the others were cut "
            "off"
        ] = cut.mean(axis=0)
    return mistakes


def _check_loading(loaded: list[list[int]], files: int) -> None:
    """Check that each file was loaded by one process, once."""
    for k in range(files):
        times = sum(own.count(k) for own in loaded)
        if times != 1:
            raise WrongAnswerError(
                f"The mean is right, but file {k} was loaded {times} times "
                f"(process 0 loaded {loaded[0]}, process 1 {loaded[1]}). With much "
                "data that is what makes the start slow.",
                "which files a process takes: for instance those with "
                "k % jax.process_count() == jax.process_index().",
            )
    if not all(loaded):
        raise WrongAnswerError(
            f"The mean is right, but one process loaded all files: {loaded}.",
            "sharing the files out between the processes.",
        )
