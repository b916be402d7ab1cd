"""Two hosts on one machine: that they are separate, what fails there, what crosses."""

import json
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
from chapter3.launcher import ProcessFailed, launch
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
            hosts=hosts,
        )
        with pytest.raises(ValueError, match="processes=3 cannot run one on each of 2"):
            launch(PROCESSES / "evaluate.py", processes=3, hosts=hosts)
    assert [list(one.value.values()) for one in both] == [
        ["'host0'", "36.0"],
        ["'host1'", "36.0"],
    ]


def test_a_host_name_that_means_loopback_fails_at_the_first_collective():
    with (
        separate_hosts(name_is_loopback=True) as hosts,
        pytest.raises(ProcessFailed) as failed,
    ):
        launch(PROCESSES / "two_processes.py", hosts=hosts)
    # They have met: it is not the joining that fails.
    message = str(failed.value)
    assert "Gloo context initialization failed" in message
    assert "Connection refused, remote=[127.0.1.1]" in message


@pytest.fixture(scope="module")
def crossing():
    """By way: what the counters of the link say; and the times at 30 Mbit/s."""
    with separate_hosts() as hosts:
        for host in hosts:
            host.limit(30)
            assert "rate 30Mbit" in host.run("tc", "qdisc", "show", "dev", "cable")
        arguments = ("--sizes", "262144", "--kinds", "flat", "mixed", "hierarchical")
        worker = PROCESSES / "link_times.py"
        both = launch(worker, *arguments, "--most", "5", hosts=hosts)
        for host in hosts:
            host.limit(None)
            assert "tbf" not in host.run("tc", "qdisc", "show", "dev", "cable")
    return [one.value["all-reduce"] for one in both]


@pytest.mark.parametrize(
    ("way", "predicted"),
    [
        ("flat", ring_bytes("all-reduce", 2**18, 8)),
        ("mixed", 4 * ring_bytes("all-reduce", 2**18, 8)),
        ("hierarchical", 4 * ring_bytes("all-reduce", 2**16, 2)),
    ],
)
def test_the_link_carries_what_was_predicted_and_no_faster(crossing, way, predicted):
    for seen in crossing:
        (one,) = seen[way]
        # On top come headers, 66 bytes with each 1448, and confirmations. A packet
        # may be sent twice.
        assert 1.0 <= one["crossed"] / predicted < 1.2
        # The link lets no more through, however busy the machine is.
        assert one["seconds"] >= 0.9 * predicted / (30e6 / 8)


def test_the_program_measures_and_prints():
    with separate_hosts():
        pass
    before = links.FILE.read_bytes()
    done = subprocess.run(
        [
            *(sys.executable, str(ROOT / "examples/hosts/link_speed.py")),
            *("--speeds", "0", "--sizes", "4", "--most", "1"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2 and "'0' is not a whole number" in done.stderr
    assert links.FILE.read_bytes() == before


def test_the_measurements_agree_with_the_prediction():
    measured = links.Measurements.load()
    timings = measured.all_reduces()
    speeds = {t.megabits for t in timings}
    sizes = {t.nbytes for t in timings}
    assert len(timings) == len(speeds) * len(sizes) >= 25 and None in speeds
    for t in [*timings, *measured.steps()]:
        # Where the wire takes most of the time; below, the machine's own pace does.
        if t.predicted is not None and t.predicted > 5e-3:
            assert 0.8 < t.measured / t.predicted < 1.5, t
    assert 0 < measured.latency < 2e-3


def test_the_measurements_show_what_crosses():
    ways = links.Measurements.load().ways()
    predicted = {"flat": 1.75, "mixed": 7.0, "hierarchical": 1.0}
    assert {way.name for way in ways} == set(predicted)
    for way in ways:
        assert 1.0 <= way.crossed / way.nbytes / predicted[way.name] < 1.2
    slowest_first = sorted(ways, key=lambda way: -way.measured)
    large = [way.name for way in slowest_first if way.nbytes == 2**20]
    assert large == ["mixed", "flat", "hierarchical"]


def test_a_wrong_measurement_is_noticed(monkeypatch, tmp_path):
    found = json.loads(links.FILE.read_text())
    found["links"][-1]["all-reduce"]["flat"][-1]["seconds"] *= 2
    monkeypatch.setattr(links, "FILE", tmp_path / "links.json")
    links.Measurements(found).save()
    with pytest.raises(AssertionError, match="Timing"):
        test_the_measurements_agree_with_the_prediction()
