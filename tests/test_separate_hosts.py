"""Two hosts on one machine: that they are separate, what fails there, what crosses."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from clusters import separate_hosts
from small_site import ROOT

from chapter3 import links
from chapter3._watching import Watched
from chapter3.launcher import launch
from chapter3.separate_hosts import two_hosts
from chapter3.traffic import ring_bytes

PROCESSES = ROOT / "examples/processes"


def there(pid):
    return Path(f"/proc/{pid}/ns/net").exists()


def test_each_has_its_own_name_address_and_network():
    with separate_hosts() as hosts:
        for host in hosts:
            assert host.run("hostname").strip() == host.name
            assert f"{host.address} {host.name}" in host.run("cat", "/etc/hosts")
            shown = host.run("ip", "-oneline", "-4", "address")
            assert host.address in shown and len(shown.splitlines()) == 2
        a, b = (Path(f"/proc/{host.pid}/ns/net").readlink() for host in hosts)
        assert len({a, b, Path("/proc/self/ns/net").readlink()}) == 3
    assert not any(there(host.pid) for host in hosts)


def test_nothing_stays_after_an_error():
    with pytest.raises(ZeroDivisionError), separate_hosts() as hosts:
        raise ZeroDivisionError
    assert not any(there(host.pid) for host in hosts)


def test_nothing_stays_when_the_program_is_killed():
    with separate_hosts():
        pass  # or skipped
    program = (
        "from chapter3.separate_hosts import two_hosts\n"
        "with two_hosts() as hosts:\n"
        "    print(*[host.pid for host in hosts], flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as killed:
        pids = [int(pid) for pid in killed.stdout.readline().split()]
        watched = [os.pidfd_open(pid) for pid in pids]
        killed.send_signal(signal.SIGKILL)
    for fd in watched:
        # Readable once that process has ended.

        assert select.select([fd], [], [], 10)[0]
        os.close(fd)


def test_what_the_machine_refuses_is_named(monkeypatch):
    monkeypatch.setattr(
        "chapter3.separate_hosts._SPLIT", ["unshare", "--no-such-option"]
    )
    with pytest.raises(RuntimeError, match=r"unshare --no-such-option .*option"):
        two_hosts().__enter__()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="unshare is not installed"):
        two_hosts().__enter__()


def test_one_process_on_each_computes_as_one_program():
    with separate_hosts() as hosts:
        both = launch(
            PROCESSES / "evaluate.py",
            "__import__('socket').gethostname()",
            "float(x.sum())",
            "[d.process_index for d in jax.make_mesh((2, 4), ('a', 'b')).devices.flat]",
            hosts=hosts,
        )
        with pytest.raises(ValueError, match="processes=3 cannot run one on each of 2"):
            launch(PROCESSES / "evaluate.py", processes=3, hosts=hosts)
    assert [list(one.value.values()) for one in both] == [
        [f"'host{process}'", "36.0", "[0, 0, 0, 0, 1, 1, 1, 1]"] for process in (0, 1)
    ]


def test_the_link_can_be_limited():
    with separate_hosts() as (host, _):
        for megabits, shown in [
            (30, "rate 30Mbit"),
            (1.5, "rate 1500Kbit"),
            (None, ""),
        ]:
            host.limit(megabits)
            told = host.run("tc", "qdisc", "show", "dev", "cable")
            assert shown in told and ("tbf" in told) == (megabits is not None)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """What the program of the measurements finds, with few sizes and calls."""
    with separate_hosts():
        pass  # or skipped
    file = tmp_path_factory.mktemp("links") / "links.json"
    program = str(ROOT / "examples/hosts/link_speed.py")
    few = ("--speeds", "30", "--sizes", "4", "262144", "--most", "3")
    done = subprocess.run(
        [sys.executable, program, *few, "--save", str(file)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = links.Measurements.load(file)
    assert done.stdout.splitlines() == list(found.lines())
    return found


def test_a_host_name_that_means_loopback_fails_at_the_first_collective(measured):
    # They have met: it is not the joining that fails.
    said = measured.found["name is loopback"]
    assert "Gloo context initialization failed" in said
    assert "Connection refused, remote=[127.0.1.1]" in said


@pytest.mark.parametrize(
    "also", ["", "Terminating process because the JAX distributed "]
)
def test_who_only_lost_the_coordinator_is_not_named_first(tmp_path, also):
    failed = "jax.errors.JaxRuntimeError: UNKNOWN: Gloo context initialization failed: "
    (tmp_path / "0.err").write_text(f"{failed}Connection refused")
    last = (
        f"\n{also}service detected errors\n:UNAVAILABLE:Stream removed" if also else ""
    )
    (tmp_path / "1.err").write_text(f"{failed}UNAVAILABLE:Stream removed{last}")
    watched = Watched(tmp_path, 2, returncodes={1: 1, 0: 1})
    assert watched.first_failed() == 0


WIRE = {
    "flat": ring_bytes("all-reduce", 1, 8),
    "mixed": 4 * ring_bytes("all-reduce", 1, 8),
    "hierarchical": 4 * ring_bytes("all-reduce", 1 / 4, 2),
}


def test_the_link_carries_what_was_predicted_and_no_faster(measured):
    ways = measured.ways()
    assert {way.name for way in ways} == set(WIRE)
    for way in ways:
        sent = WIRE[way.name] * way.nbytes
        # On top come headers, 66 bytes with each 1448, and acknowledgements. A packet
        # may be sent twice.
        assert 1.0 <= way.crossed / sent < 1.2
        # The link lets no more through, however busy the machine is.
        assert way.measured >= 0.9 * sent / (100e6 / 8)


def test_a_step_is_as_long_as_its_gradients_take(measured):
    free, limited = measured.steps()
    assert (free.megabits, limited.megabits) == (None, 30)
    assert limited.nbytes == 2**20  # read from the compiled program
    assert limited.measured >= 0.9 * 2**20 / (30e6 / 8)


def test_arguments_that_do_not_fit_are_refused():
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/hosts/link_speed.py"), "--speeds", "0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2 and "'0' is not a whole number" in done.stderr
