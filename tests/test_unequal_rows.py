"""The self-check of exercise 6 is fed right and wrong answers.

The answers are sent to other processes as text, and find there the names that they use.
"""

import jax
import numpy as np
import pytest
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from small_site import ROOT

from chapter3.exercises import NotAnsweredError, means, solutions, unequal_rows
from chapter3.exercises.verdict import WrongAnswerError
from embedding import needs


def gathered(load, files):
    rows = [load(k) for k in range(files) if k % 2 == jax.process_index()]
    rows = np.concatenate(rows)
    line = np.append(rows.sum(axis=0), np.float32(len(rows)))
    total = multihost_utils.process_allgather(line).sum(axis=0)
    return total[:3] / total[3]


@pytest.mark.parametrize("answer", [solutions.global_mean, gathered])
def test_right_answers_pass(answer):
    verdict = unequal_rows.check(answer, seconds=300)
    assert verdict.status == "passed", verdict
    assert "loaded 18 and 3 rows" in verdict.text


def mean_of_means(load, files):
    rows = [load(k) for k in range(files) if k % 2 == jax.process_index()]
    mean = np.concatenate(rows).mean(axis=0)
    return multihost_utils.process_allgather(mean).mean(axis=0)


def all_by_everyone(load, files):
    return np.concatenate([load(k) for k in range(files)]).mean(axis=0)


def spread(load, files):
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    local = np.zeros((4, 3), np.float32)
    return jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), local)


def raising(load, files):
    rows = [load(k) for k in range(files) if k % 2 == jax.process_index()]
    if jax.process_index() == 1:
        rows[99]
    return multihost_utils.process_allgather(rows[0]).mean(axis=0)


def shapes_that_differ(load, files):
    rows = [load(k) for k in range(files) if k % 2 == jax.process_index()]
    return multihost_utils.process_allgather(np.concatenate(rows)).mean(axis=(0, 1))


def leaving(load, files):
    import os

    if jax.process_index() == 0:
        os._exit(3)
    return multihost_utils.process_allgather(load(0))[0]


def with_a_helper(load, files):
    return mean_of_means(load, files)


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (mean_of_means, "it is the mean of the processes' means"),
        (all_by_everyone, "The mean is right, but file 0 was loaded 2 times"),
        (spread, "a global array of which each process holds a part only"),
        (raising, "raised an error on process 1, in line"),
        (shapes_that_differ, "one operation with arrays of different shapes"),
        (leaving, "Process 0 ended before your function returned: exit status 3"),
        (with_a_helper, "NameError: name 'mean_of_means' is not defined"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_wrong_answers_fail_and_the_mistake_is_named(answer, diagnosis):
    verdict = unequal_rows.check(answer, seconds=300)
    assert verdict.status == "failed"
    assert diagnosis in verdict.text, verdict
    assert "/tmp" not in str(verdict) and "_rows_worker" not in str(verdict)


def only_process_0(load, files):
    if jax.process_index() == 0:
        mean = np.concatenate([load(k) for k in range(files)]).mean(axis=0)
        return multihost_utils.process_allgather(mean).mean(axis=0)


def test_a_hang_is_ended_and_explained():
    verdict = unequal_rows.check(only_process_0, seconds=15)
    assert verdict.status == "failed"
    assert "Process 0 waits for ever, in line" in verdict.text, verdict
    assert "process_allgather(mean)" in verdict.text
    assert "for process 1, which has returned already" in verdict.text
    assert "must be called by every process" in verdict.look


def test_a_machine_that_is_too_slow_is_not_the_answers_fault():
    verdict = unequal_rows.check(gathered, seconds=0.2)
    assert "That is not your answer's fault" in verdict.text


def test_no_process_is_started_for_what_is_no_function():
    for answer in (lambda load, files: 0, 3, np.add):
        verdict = unequal_rows.check(answer)
        assert verdict.status == "failed" and "with `def`" in verdict.text


def test_unanswered():
    def answer(load, files):
        """Say what it returns."""
        raise NotAnsweredError

    assert unequal_rows.check(answer).status == "not answered yet"


FILES = ([0, 2, 4], [1, 3])


def data(seed):
    random = np.random.default_rng(seed)
    rows = [random.standard_normal((n, 3)) + 3 * k for k, n in enumerate((5, 1, 7, 2))]
    return [r.astype(np.float32) for r in [*rows, random.standard_normal((6, 3)) - 5]]


def reported(values, loaded=FILES):
    values = [None if v is None else np.asarray(v, float).tolist() for v in values]
    return [{"value": v, "loaded": own} for v, own in zip(values, loaded, strict=True)]


def own_rows(rows, process):
    return np.concatenate([rows[k] for k in FILES[process]])


def everything(rows):
    return np.concatenate(rows).astype(float)


def padded(rows):
    return everything(rows).sum(axis=0) / (2 * 18)


def cut(rows):
    return np.concatenate([own_rows(rows, i)[:3] for i in (0, 1)]).mean(axis=0)


MISTAKES = {
    "mean of files' means": (
        lambda r: [np.mean([f.mean(axis=0) for f in r], axis=0)] * 2,
        "the mean of the files' means",
    ),
    "own rows": (
        lambda r: [own_rows(r, i).mean(axis=0) for i in (0, 1)],
        "each returned the mean of the rows that it loaded itself",
    ),
    "own sums": (
        lambda r: [own_rows(r, i).sum(axis=0) for i in (0, 1)],
        "The processes do not agree",
    ),
    "sum": (lambda r: [everything(r).sum(axis=0)] * 2, "the sum, not divided"),
    "by processes": (
        lambda r: [everything(r).sum(axis=0) / 2] * 2,
        "divided by the number of processes",
    ),
    "by devices": (
        lambda r: [everything(r).sum(axis=0) / 8] * 2,
        "divided by the number of devices",
    ),
    "own sum by all": (
        lambda r: [own_rows(r, 0).sum(axis=0) / 21] * 2,
        "the sum over process 0, divided by the number of all rows",
    ),
    "one process": (
        lambda r: [own_rows(r, 0).mean(axis=0)] * 2,
        "the mean of the rows of process 0 alone",
    ),
    "padding": (
        lambda r: [padded(r)] * 2,
        "divided by 36 instead of by the 21 rows",
    ),
    "cut off": (lambda r: [cut(r)] * 2, "the others were cut off"),
    "something": (lambda r: [np.ones(3)] * 2, "but the mean is ["),
    "none on one": (
        lambda r: [everything(r).mean(axis=0), None],
        "Process 1 returned None",
    ),
    "one number": (lambda r: [everything(r).mean()] * 2, "has the shape () instead"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_wrong_means_are_named(name):
    values, diagnosis = MISTAKES[name]
    for seed in range(5):
        rows = data(seed)
        with pytest.raises(WrongAnswerError) as caught:
            means.judge_reports(reported(values(rows)), rows)
        assert diagnosis in caught.value.diagnosis


def test_files_must_be_shared_out():
    for loaded, diagnosis in (
        (([0, 1, 2, 3, 4], []), "one process loaded all files"),
        (([0, 2, 4], [1, 3, 3]), "file 3 was loaded 2 times"),
        (([0, 2], [1, 3]), "file 4 was loaded 0 times"),
    ):
        rows = data(0)
        right = [everything(rows).mean(axis=0)] * 2
        with pytest.raises(WrongAnswerError) as caught:
            means.judge_reports(reported(right, loaded), rows)
        assert diagnosis in caught.value.diagnosis


def test_a_notebook_of_the_exercise_brings_the_worker_along():
    stub = (ROOT / "examples/exercises/unequal_rows.py").read_text()
    assert "src/chapter3/exercises/_rows_worker.py" in needs([stub], ROOT).files
