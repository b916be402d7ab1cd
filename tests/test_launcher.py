import json
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from leftovers import ON_LINUX

from chapter3.fresh import run_python
from chapter3.launcher import ProcessFailedError, free_port, launch

# Most of it needs no JAX in the processes, which therefore start quickly.
WITHOUT_JAX = """
import json, os, sys
from pathlib import Path
place = json.loads(os.environ["CHAPTER3_LAUNCH"])
number = place["process"]
def report(value):
    Path(place["folder"], f"{number}.json").write_text(json.dumps(value))
"""


def written(folder, source, beginning=WITHOUT_JAX):
    path = folder / "script.py"
    path.write_text(beginning + source)
    return path


def test_the_sum_over_two_processes_and_nothing_but_their_own_output(tmp_path):
    source = """
from chapter3.launcher import join, report
join()
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((8,), ("i",))
x = jax.device_put(jnp.arange(1.0, 9.0), NamedSharding(mesh, P("i")))
print("before")
total = float(jax.jit(jnp.sum)(x))  # here Gloo writes a line for each device
print("after")
report({"sum": total, "who": [jax.process_index(), jax.process_count()],
        "devices": [jax.device_count(), jax.local_device_count()]})
"""
    reports = launch(written(tmp_path, source, ""))
    assert [r.process for r in reports] == [0, 1]
    for number, found in enumerate(reports):
        assert found.value == {"sum": 36.0, "who": [number, 2], "devices": [8, 4]}
        assert found.output == "before\nafter"
        assert 0 < found.seconds < 120


@ON_LINUX  # where a process can have a host name of its own
def test_a_host_name_that_leads_nowhere_and_only_loopback_addresses(tmp_path):
    """Gloo by itself listens where the machine's name leads, or fails."""
    source = """
import os, socket
from pathlib import Path
try:  # a host name of its own for this process
    os.unshare(os.CLONE_NEWUTS | (os.CLONE_NEWUSER if os.geteuid() else 0))
    socket.sethostname("nowhere.invalid")
except OSError as error:
    refused = str(error)
else:
    refused = None
from chapter3.launcher import join, report
if refused:
    report({"not here": refused})
    raise SystemExit
join()
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
rows = NamedSharding(jax.make_mesh((8,), ("i",)), P("i"))
total = float(jax.jit(jnp.sum)(jax.device_put(jnp.ones(8), rows)))
mine = {os.readlink(f) for f in Path("/proc/self/fd").iterdir() if f.is_symlink()}
listens = []
for table in "tcp", "tcp6":
    for line in Path("/proc/self/net", table).read_text().splitlines()[1:]:
        entry = line.split()
        if entry[3] == "0A" and f"socket:[{entry[9]}]" in mine:
            listens.append(entry[1].split(":")[0])
report({"sum": total, "listens": listens})
"""
    for found in launch(written(tmp_path, source, "")):
        if "not here" in found.value:
            pytest.skip(found.value["not here"])
        assert found.value["sum"] == 8.0
        in_ipv6 = "0000000000000000FFFF0000"
        assert {a.removeprefix(in_ipv6) for a in found.value["listens"]} == {"0100007F"}


def test_arguments_output_and_nested_values(tmp_path):
    source = """
print("number", number)
report({"args": sys.argv[1:], "nested": [{"a": [1, None, 2.5, "é"]}]})
if number == 2: report("the last one counts")
"""
    reports = launch(written(tmp_path, source), "a b", "--c", processes=3)
    nested = {"args": ["a b", "--c"], "nested": [{"a": [1, None, 2.5, "é"]}]}
    assert [r.value for r in reports] == [nested, nested, "the last one counts"]
    assert [r.output for r in reports] == ["number 0", "number 1", "number 2"]


def test_without_a_report_there_is_none(tmp_path):
    assert [r.value for r in launch(written(tmp_path, ""), processes=1)] == [None]


def test_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--something")
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    source = """
report({k: v for k, v in os.environ.items() if k[:4] in ("XLA_", "JAX_", "FORC", "X")})
"""
    asked_for = {"X": "2", "XLA_FLAGS": "--a", "JAX_DISABLE_JIT": "1"}
    (found,) = launch(
        written(tmp_path, source), processes=1, devices=3, environment=asked_for
    )
    assert found.value == {
        "X": "2",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=3 --a",
        "JAX_DISABLE_JIT": "1",
        "JAX_PLATFORMS": "cpu",
    }


def test_much_output_blocks_nobody(tmp_path):
    source = """
for stream in sys.stdout, sys.stderr:
    stream.write("x" * 5_000_000 + "\\n")
"""
    for found in launch(written(tmp_path, source), seconds=30):
        assert found.output == "x" * 5_000_000


def test_launches_at_the_same_time_do_not_meet(tmp_path):
    source = """
import time; time.sleep(0.2)
report([sys.argv[1], place["coordinator"]])
"""
    script = written(tmp_path, source)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: launch(script, str(n)), range(4)))
    values = [[r.value for r in reports] for reports in found]
    assert [[name for name, _ in pair] for pair in values] == [
        [str(n)] * 2 for n in range(4)
    ]
    assert len({coordinator for pair in values for _, coordinator in pair}) == 4


def test_a_missing_script():
    with pytest.raises(FileNotFoundError, match=r"there is no script .*nowhere\.py"):
        launch("nowhere.py")


def test_a_value_that_json_cannot_hold(tmp_path):
    source = "from chapter3.launcher import report; report({1, 2})"
    with pytest.raises(ProcessFailedError, match="set is not JSON serializable"):
        launch(written(tmp_path, source, ""), processes=1)


def test_outside_a_launch_a_report_is_a_line():
    run = run_python("from chapter3.launcher import report; report({'a': [1.5]})")
    start, value = run.stdout.split(": ", 1)
    assert start == "process 0 of 1" and json.loads(value) == {"a": [1.5]}


def test_a_port_is_given_once_and_nobody_listens_there():
    with free_port() as one, free_port() as other:
        assert one != other
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", one))
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", one))
