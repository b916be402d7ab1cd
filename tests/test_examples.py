"""The programs of examples/, run as a reader runs them."""

import os
import subprocess
import sys

import pytest
from small_site import ROOT

RUNS = [
    ("data_parallel.py", ["--steps", "3"], "8 devices of platform cpu"),
    ("data_parallel.py", ["--simulate", "2", "--steps", "2"], "2 devices"),
    ("collectives.py", ["--width", "64"], "ppermute      model of 4x2"),
    ("collectives.py", ["--simulate", "3"], "3 devices"),
    ("fsdp.py", ["--steps", "2"], "8 devices of platform cpu"),
    ("tensor_parallel.py", ["--simulate", "4"], "data 2 x model 2"),
    ("pipeline.py", ["--simulate", "4"], "idle 0.2727, formula 0.2727"),
    ("strategy_ledger.py", ["--simulate", "4", "--devices", "16"], "pipeline, m = 4"),
    (
        "multihost.py",
        ["--processes", "3", "--devices", "1", "--rows", "6"],
        "rows 4 to 5",
    ),
    ("train.py", ["--simulate", "4", "--epochs", "2"], "epoch   2  loss 0.0"),
]

REFUSED = [
    ("data_parallel.py", ["--simulate", "0"], "is not a whole number from 1 on"),
    ("data_parallel.py", ["--steps", "-3"], "is not a whole number from 1 on"),
    ("collectives.py", ["--width", "7"], "width=7 must be a multiple of the 8 devices"),
    ("collectives.py", ["--simulate", "1"], "at least two devices"),
    ("fsdp.py", ["--width", "12"], "width=12 must be a multiple of the 8 devices"),
    ("tensor_parallel.py", ["--batch", "9"], "must be a multiple of the 8 devices"),
    ("pipeline.py", ["--microbatches", "7"], "must be a multiple of 7 microbatches"),
    ("strategy_ledger.py", ["--tensor", "7"], "must divide"),
    ("multihost.py", ["--rows", "9"], "rows=9 must be a multiple of 8 devices"),
    ("train.py", ["--rate", "0"], "is not a number above 0"),
    ("train.py", ["--distributed"], "Start it with srun, mpirun"),
]


def run(name, *options):
    """Run an example with nothing of the tests' own settings."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("XLA_", "JAX_"))}
    return subprocess.run(
        [sys.executable, ROOT / "examples" / name, *options],
        env=clean,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(("name", "options", "shown"), RUNS)
def test_it_runs_and_its_checks_pass(name, options, shown):
    done = run(name, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert shown in done.stdout and done.stderr == ""


@pytest.mark.parametrize(("name", "options", "reason"), REFUSED)
def test_arguments_that_do_not_fit_are_refused_with_the_reason(name, options, reason):
    done = run(name, *options)
    assert done.returncode == 2, done.stdout + done.stderr
    assert reason in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name
)
def test_help(path):
    done = run(path.name, "--help")
    assert done.returncode == 0 and "--simulate" in done.stdout
    assert any(path.name == name for name, _, _ in RUNS), "every example is run here"


@pytest.mark.parametrize(
    ("name", "module", "broken"),
    [
        # A wrong formula, a step that does not learn, one that does not communicate.
        ("collectives.py", "chapter3.collectives", "ring_bytes = lambda k, s, n: s"),
        ("data_parallel.py", "chapter3.data_parallel", "update = lambda p, g, r: p"),
        ("data_parallel.py", "jax.lax", "pmean = lambda x, axis: x"),
    ],
)
def test_a_wrong_result_ends_with_status_1(name, module, broken):
    program = (
        f"import sys, runpy, importlib; m = importlib.import_module({module!r})\n"
        f"exec({broken!r}, vars(m))\n"
        f"sys.argv = [{name!r}]\n"
        f"runpy.run_path({str(ROOT / 'examples' / name)!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={k: v for k, v in os.environ.items() if k != "XLA_FLAGS"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
