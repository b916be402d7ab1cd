import subprocess

import pytest

from chapter3.fresh import run_python, run_python_each


def test_output_status_and_error():
    run = run_python("import sys; print('out'); print('err', file=sys.stderr); exit(3)")
    assert (run.stdout, run.stderr, run.returncode) == ("out", "err", 3)


def test_devices_and_platform_are_not_inherited(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--something")
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    shown = run_python(
        "import os; print([k for k in os.environ if k[:4] in ('XLA_', 'JAX_')])",
        JAX_PLATFORMS="cpu",
    )
    assert shown.stdout == "['JAX_PLATFORMS']"


def test_errors_are_plain_text(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a Jupyter kernel
    assert run_python("1/0").stderr.splitlines()[-1].startswith("ZeroDivisionError")


def test_time_limit():
    with pytest.raises(subprocess.TimeoutExpired):
        run_python("while True: pass", seconds=1)


def test_each_in_order():
    runs = run_python_each(
        {"a": ("print(1)", {}), "b": ("import os; print(os.environ['X'])", {"X": "2"})}
    )
    assert {name: run.stdout for name, run in runs.items()} == {"a": "1", "b": "2"}
