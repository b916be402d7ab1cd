"""Verdicts, stubs and answers of the exercises, and what their pages show."""

import os
import re
import subprocess
import sys

import pytest
from small_site import ROOT

from chapter3.exercises import NotAnsweredError, Verdict
from chapter3.exercises.verdict import WrongAnswerError, judge, run

STUBS = sorted((ROOT / "examples/exercises").glob("*.py"))
NUMBERS = {
    "transpose": 1,
    "clipping": 2,
    "two_axes": 3,
    "pipeline_order": 4,
    "zero_one": 5,
    "unequal_rows": 6,
}


def test_there_is_a_stub_for_each():
    assert {stub.stem for stub in STUBS} == set(NUMBERS)


def ran(path, *python):
    """Run a program with nothing of the tests' own settings."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("XLA_", "JAX_"))}
    return subprocess.run(
        [sys.executable, *python, path],
        env=clean,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("stub", STUBS, ids=lambda p: p.stem)
def test_a_stub_runs_and_says_that_it_is_not_answered(stub):
    done = ran(stub)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Exercise {NUMBERS[stub.stem]}: not answered yet\n"


def cells(text):
    """Split a stub into its cells, each with the mark of its kind."""
    parts = re.split(r"^# %%( \[markdown\])?\n", text, flags=re.MULTILINE)
    assert parts[0] == ""
    return list(zip(parts[1::2], (p.strip() for p in parts[2::2]), strict=True))


@pytest.mark.parametrize("stub", STUBS, ids=lambda p: p.stem)
def test_a_stub_is_a_notebook_whose_cells_are_those_of_the_page(stub):
    (mark, heading), *code = cells(stub.read_text())
    assert mark and heading.startswith(f"# # Exercise {NUMBERS[stub.stem]}\n")
    assert all(line.startswith("#") for line in heading.splitlines())
    assert [mark for mark, _ in code] == [None] * 3
    page = (ROOT / "docs/exercises.md").read_text()
    _, function, check = (text for _, text in code)
    assert f"{function}\n\n\n{check}\n```" in page
    assert f"<../examples/exercises/{stub.name}>`" in page


ANSWERS = {
    "transpose": "transposed",
    "two_axes": "compiled_step",
    "unequal_rows": "global_mean",
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answered_stub_passes_as_a_program(name, tmp_path):
    """Write the reference answer into the stub, as a reader would."""
    import inspect

    from chapter3.exercises import solutions

    stub = (ROOT / f"examples/exercises/{name}.py").read_text()
    if name == "two_axes":
        source = "compiled_step = solutions.make_step()"
    else:
        source = inspect.getsource(getattr(solutions, ANSWERS[name]))
    top = (
        "from collections.abc import Callable\nimport numpy as np\n"
        "from chapter3.exercises import solutions\n"
    )
    before, check = stub.rsplit("# %%", 1)
    answered = tmp_path / f"{name}.py"
    answered.write_text(f"{top}{before}\n{source}\n{check}")
    done = ran(answered)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Exercise {NUMBERS[name]}: passed\n")


def test_a_verdict_is_shown_whole_and_within_80_columns():
    verdict = Verdict(9, "failed", "Word " * 40 + "\n  indented", "the end " * 20)
    lines = str(verdict).splitlines()
    assert lines[0] == "Exercise 9: failed" and repr(verdict) == str(verdict)
    assert max(map(len, lines)) <= 80
    assert "    indented" in lines and any("Look at: the end" in line for line in lines)


def test_verdicts_of_what_a_check_does():
    def answer():
        raise ValueError("the reason\n---\nframes of JAX (/home/me/x.py:3)")

    assert judge(1, answer, lambda: "good") == Verdict(1, "passed", "good")

    def wrong():
        raise WrongAnswerError("because", "there")

    assert judge(1, answer, wrong) == Verdict(1, "failed", "because", "there")
    crashed = judge(1, answer, lambda: run(answer))
    assert crashed.text.splitlines() == [
        f"Your code raised an error, in line {answer.__code__.co_firstlineno + 1} "
        '(answer): `raise ValueError("the reason\\n---\\nframes of JAX '
        '(/home/me/x.py:3)")`',
        "ValueError: the reason",
    ]

    def unanswered():
        raise NotAnsweredError

    assert judge(1, answer, lambda: run(unanswered)).status == "not answered yet"


def test_a_long_message_is_shortened():
    def answer():
        raise ValueError("\n".join(map(str, range(100))))

    shown = judge(1, answer, lambda: run(answer)).text.splitlines()
    assert len(shown) == 10 and shown[1] == "ValueError: 0" and shown[-1] == "99"


def test_a_fault_of_a_check_is_not_taken_for_the_answers():
    def faulty():
        raise KeyError("a mistake of ours")

    with pytest.raises(KeyError, match="ours"):
        judge(1, lambda: None, faulty)


def test_interrupting_still_works():
    def answer():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge(1, answer, lambda: run(answer))
