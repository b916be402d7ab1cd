"""What becomes of a launch when something fails; each within a time limit."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest
from leftovers import ON_LINUX, living
from needs import wait_until
from small_site import ROOT

from chapter3 import launcher
from chapter3.fresh import run_python
from chapter3.launcher import LaunchError, ProcessFailedError, TimeLimitError, launch

PROCESSES = ROOT / "examples/processes"
LIMIT = 100  # seconds; a machine with other work needs many times its usual time
JOIN = "from chapter3.launcher import join, report; join(); import jax\n"


def written(folder, source):
    path = folder / "script.py"
    path.write_text(source)
    return path


def failed(script, *arguments, **options):
    with pytest.raises(ProcessFailedError) as caught:
        launch(script, *arguments, seconds=LIMIT, **options)
    return caught.value


def hung(script, *where, **options):
    """Launch what hangs, until the limit was long enough to come to these places."""
    for seconds in (4, 16, 64):
        with pytest.raises(TimeLimitError) as caught:
            launch(script, seconds=seconds, **options)
        if all(place in str(caught.value) for place in where):
            break
    return caught.value


@pytest.mark.parametrize("number", [0, 1])
def test_an_exception_before_a_collective(number):
    error = failed(PROCESSES / "raises.py", str(number))
    assert (error.process, error.returncode) == (number, 1)
    assert "FileNotFoundError: there is no file batch-2.npy" in str(error)
    assert "in read_batch" in str(error)
    assert f"process {1 - number}" in str(error)
    assert "C++" not in str(error) and "  @ " not in str(error)
    assert "Gloo" not in str(error)


@pytest.mark.parametrize("number", [0, 1])
def test_kill_9(tmp_path, number):
    source = f"""
import os, signal, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
rows = NamedSharding(jax.make_mesh((8,), ("i",)), P("i"))
x = jax.device_put(jnp.arange(8.0), rows)
for step in range(10):
    if step == 5 and jax.process_index() == {number}:
        os.kill(os.getpid(), signal.SIGKILL)
    float(jax.jit(jnp.sum)(x))
"""
    error = failed(written(tmp_path, JOIN + source))
    assert (error.process, error.returncode) == (number, -signal.SIGKILL)
    assert "killed by SIGKILL" in str(error)


def test_a_collective_in_one_process_only():
    error = hung(PROCESSES / "skips_a_collective.py", "float(largest", "in shutdown")
    assert error.running == [0, 1]
    first, second = str(error).split("process 0")[1].split("process 1")
    assert "skips_a_collective.py, line" in first and "float(largest(losses))" in first
    assert "in shutdown" in second  # of jax.distributed: it waits for the other


def test_one_process_ends_without_joining(tmp_path):
    source = """
import json, os
if json.loads(os.environ["CHAPTER3_LAUNCH"])["process"] == 1:
    raise SystemExit(0)
"""
    error = failed(written(tmp_path, source + JOIN))
    assert (error.process, error.returncode) == (1, 0)
    assert "process 1 of script.py failed" in str(error)
    assert "ended without join()" in str(error)


def test_one_process_never_comes_to_join(tmp_path):
    source = """
import json, os, time
while json.loads(os.environ["CHAPTER3_LAUNCH"])["process"] == 1:
    time.sleep(0.01)
"""
    error = hung(written(tmp_path, source + JOIN), "in _join_launch", "time.sleep")
    first, second = str(error).split("process 0")[1].split("process 1")
    assert "in _join_launch\n        jax.distributed.initialize" in first
    assert "script.py, line 4, in <module>\n        time.sleep(0.01)" in second


def test_two_processes_with_the_same_number(tmp_path):
    source = """
import json, os, jax
address = json.loads(os.environ["CHAPTER3_LAUNCH"])["coordinator"]
jax.distributed.initialize(address, 2, 0, initialization_timeout=1)
"""
    error = failed(written(tmp_path, source))
    assert error.returncode in (-signal.SIGABRT, -signal.SIGSEGV, 1)
    assert "jax.distributed.initialize(address, 2, 0" in str(error)


def test_another_number_of_processes_counts_in_process_0_alone(tmp_path):
    source = """
import json, os
from chapter3.launcher import join, report
number = json.loads(os.environ["CHAPTER3_LAUNCH"])["process"]
join(num_processes=2 + number)
import jax
report([jax.process_count(), jax.device_count()])
"""
    reports = launch(written(tmp_path, source), seconds=LIMIT)
    assert [r.value for r in reports] == [[2, 8], [2, 8]]


@pytest.mark.parametrize("size", ["equal", "sizes"])
def test_collectives_in_another_order(size):
    script = PROCESSES / "other_order.py"
    if size == "equal":  # nobody can see it but who checks the numbers
        sums = [r.value["sum"] for r in launch(script, seconds=LIMIT)]
        right = [r.value["sum"] for r in launch(script, "right", seconds=LIMIT)]
        assert right == [36.0, 36.0] and sums != right
    else:
        assert "data size doesn't match" in str(failed(script, size))


@contextmanager
def taken_by_a_silent_listener(_=None):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@contextmanager
def taken_by_a_listener_without_time(_=None):
    """Its queue is full, so that a connection is neither accepted nor refused."""
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as listener,
        ExitStack() as s,
    ):
        address = listener.getsockname()
        try:
            for _ in range(9):
                s.enter_context(socket.create_connection(address, timeout=0.2))
        except TimeoutError:
            yield address[1]
        else:
            pytest.skip("this system accepts connections beyond the queue")


@contextmanager
def taken_by_another_coordinator(free_port):
    with free_port() as port:
        program = f"""
import jax, time
jax.distributed.initialize("127.0.0.1:{port}", 1, 0)
print("ready", flush=True)
time.sleep(1000)
"""
        other = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE
        )
        assert other.stdout is not None
        with other.stdout:
            assert b"ready" in other.stdout.readline()
            try:
                yield port
            finally:
                other.kill()
                other.wait()


@pytest.mark.parametrize(
    "taken",
    [
        taken_by_a_silent_listener,
        taken_by_a_listener_without_time,
        taken_by_another_coordinator,
    ],
)
def test_a_taken_port_is_not_the_end(tmp_path, monkeypatch, taken):
    tried, free_port = [], launcher.free_port

    @contextmanager
    def first_the_taken_one():
        with free_port() as port:
            tried.append(port if tried else busy)
            yield tried[-1]

    monkeypatch.setattr(launcher, "free_port", first_the_taken_one)
    with taken(free_port) as busy:
        source = JOIN + "report(jax.device_count())"
        reports = launch(written(tmp_path, source), seconds=LIMIT)
    assert [r.value for r in reports] == [8, 8]
    assert len(tried) == 2 and tried[1] != busy


def test_three_taken_ports_are(tmp_path, monkeypatch):
    tried = []

    @contextmanager
    def always_taken():
        with taken_by_a_silent_listener() as port:
            tried.append(port)
            yield port

    monkeypatch.setattr(launcher, "free_port", always_taken)
    error = failed(written(tmp_path, JOIN), processes=1)
    assert len(tried) == 3
    assert error.process == 0
    assert f"Address already in use: 127.0.0.1:{tried[-1]}" in str(error)


def test_a_coordinator_that_cannot_bind_is_tried_again(tmp_path):
    """A port may be taken after the check: then JAX itself says so, and crashes."""
    with taken_by_a_silent_listener() as port:
        source = f"""
import json, os, jax
from pathlib import Path
place = json.loads(os.environ["CHAPTER3_LAUNCH"])
mark = Path({str(tmp_path / "tried")!r})
if not mark.exists() and place["process"] == 0:
    mark.touch()
    address = "127.0.0.1:{port}"
    jax.distributed.initialize(address, 2, 0, coordinator_bind_address=address)
"""
        launch(written(tmp_path, source), seconds=LIMIT)
    assert (tmp_path / "tried").exists()


def test_a_workers_own_taken_port_is_its_failure(tmp_path):
    source = f"""
import socket
if jax.process_index() == 0:
    with open({str(tmp_path / "runs")!r}, "a") as runs:
        runs.write("run ")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        socket.create_server(taken.getsockname())
"""
    error = failed(written(tmp_path, JOIN + source))
    assert error.process == 0 and "Address already in use" in str(error)
    assert (tmp_path / "runs").read_text() == "run "


def test_a_syntax_error(tmp_path):
    error = failed(written(tmp_path, "print('a'\n"))
    assert error.returncode == 1 and "SyntaxError: '(' was never closed" in str(error)


def test_an_exit_status(tmp_path):
    source = "import sys; print('no disk', file=sys.stderr); sys.exit(3)"
    error = failed(written(tmp_path, source), processes=3)
    assert error.returncode == 3
    assert "exit status 3" in str(error) and "no disk" in str(error)


@pytest.mark.parametrize(
    ("way", "status"),
    [("sys.exit(3)", 3), ("sys.exit('no disk')", 1), ("raise SystemExit(True)", 1)],
)
def test_an_exit_status_after_joining(tmp_path, way, status):
    """The other process waits; JAX would let this one wait for it at its end."""
    source = f"""
import sys
from jax.experimental import multihost_utils
def main():
    try:
        sys.exit(5)
    except SystemExit:
        print("went on")
    multihost_utils.sync_global_devices("both are here")
    if jax.process_index() == 1:
        {way}
    multihost_utils.sync_global_devices("one is missing")
main()
"""
    error = failed(written(tmp_path, JOIN + source))
    assert (error.process, error.returncode) == (1, status)
    assert ("no disk" in str(error)) == ("no disk" in way)


def test_an_exit_status_of_0_is_a_normal_end(tmp_path):
    source = "import sys; print('done'); sys.exit()"
    reports = launch(written(tmp_path, JOIN + source), seconds=LIMIT)
    assert [report.output for report in reports] == ["done", "done"]


def test_who_dies_first_is_named(tmp_path):
    """The others then die of it at the same moment, by SIGABRT, as JAX has it."""
    source = """
import json, os, signal, time
number = json.loads(os.environ["CHAPTER3_LAUNCH"])["process"]
if number == 2:
    os.kill(os.getpid(), signal.SIGKILL)
os.kill(os.getpid(), signal.SIGABRT)
"""
    error = failed(written(tmp_path, source), processes=3)
    assert error.process == 2


SLEEPS = """
import os, subprocess, sys, time
from pathlib import Path
child = subprocess.Popen(["sleep", "1000"], start_new_session="apart" in sys.argv)
Path(sys.argv[1], str(os.getpid())).touch()
while "stay" in sys.argv:
    time.sleep(0.01)
"""


@ON_LINUX
@pytest.mark.parametrize("apart", ["", "apart"])
def test_a_grandchild_does_not_stay(tmp_path, monkeypatch, apart):
    monkeypatch.setenv("THIS_TEST", str(tmp_path))
    launch(written(tmp_path, SLEEPS), str(tmp_path), apart, seconds=LIMIT)
    assert living(f"THIS_TEST={tmp_path}\0") == []


@ON_LINUX
@pytest.mark.parametrize("how", ["kill -9", "kill -9 of its group", "interrupt"])
def test_nothing_stays_when_the_caller_is_killed(tmp_path, how):
    started, temporary = tmp_path / "started", tmp_path / "temporary"
    started.mkdir()
    temporary.mkdir()
    script = written(tmp_path, SLEEPS)
    program = f"""
import signal
from chapter3.launcher import launch
# What a shell starts in the background ignores the signal, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
launch({str(script)!r}, {str(started)!r}, "apart", "stay")
"""
    environment = os.environ | {"THIS_TEST": str(tmp_path), "TMPDIR": str(temporary)}
    caller = subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    wait_until(
        lambda: caller.poll() or len(list(started.iterdir())) == 2, "workers", LIMIT
    )
    caller_guard_workers_children = living(f"THIS_TEST={tmp_path}\0")
    assert len(caller_guard_workers_children) == 1 + 1 + 2 + 2
    if how == "kill -9":
        caller.kill()
    elif how == "interrupt":
        caller.send_signal(signal.SIGINT)
    else:
        os.killpg(caller.pid, signal.SIGKILL)
    caller.wait(LIMIT)
    wait_until(lambda: not living(f"THIS_TEST={tmp_path}\0"), "nobody left", LIMIT)
    wait_until(lambda: not list(temporary.iterdir()), "an empty folder", LIMIT)


@ON_LINUX
def test_a_killed_guard_is_no_hang(tmp_path, monkeypatch):
    monkeypatch.setenv("THIS_TEST", str(tmp_path))
    source = f"""
import os, signal, time
if {str(tmp_path)!r} == os.environ["THIS_TEST"]:
    guard = os.getppid()  # not later: when it is gone, that is another process
    time.sleep(0.2)
    os.kill(guard, signal.SIGKILL)
time.sleep(1000)
"""
    with pytest.raises(
        LaunchError, match=r"guards those of script\.py: killed by SIGK"
    ):
        launch(written(tmp_path, source), seconds=LIMIT)
    wait_until(lambda: not living(f"THIS_TEST={tmp_path}\0"), "nobody left", LIMIT)


GUARD = "import os, subprocess, sys; from chapter3 import _guard\n"


@ON_LINUX
def test_a_worker_whose_guard_is_already_gone_does_not_start():
    source = GUARD + "_guard._die_with(os.getpid()); print('started')"
    done = run_python(source)  # no process is its own parent
    assert (done.returncode, done.stdout) == (1, "")


@ON_LINUX
def test_a_child_that_may_not_be_killed_does_not_hold_up_the_guard():
    source = """
mine, others = (subprocess.Popen(["sleep", "1000"]) for _ in range(2))
kill = os.kill
def refuse(pid, number):
    if pid == others.pid:
        raise PermissionError
    kill(pid, number)
os.kill = refuse
_guard._kill_all({})
print(os.path.exists(f"/proc/{mine.pid}"), others.poll())
kill(others.pid, 9)
"""
    assert run_python(GUARD + source, seconds=LIMIT).stdout == "False None"


def test_the_stacks_of_plain_python_too(tmp_path):
    source = """
import time
def wait():
    while True:
        time.sleep(0.01)
wait()
"""
    error = hung(written(tmp_path, source), "time.sleep", processes=1)
    assert "script.py, line 6, in <module>\n        wait()" in str(error)
    assert "script.py, line 5, in wait\n        time.sleep(0.01)" in str(error)
