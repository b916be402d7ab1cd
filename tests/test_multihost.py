"""Several real processes: what they see, and that they compute as one."""

import runpy
import signal
import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from small_site import ROOT
from tolerances import FLOAT32_STEPS

from chapter3.fresh import run_python
from chapter3.launcher import launch
from chapter3.reference import descend, linear_data

PROCESSES = ROOT / "examples/processes"
MULTIHOST = runpy.run_path(str(ROOT / "examples/multihost.py"))


@pytest.fixture(scope="module", params=[(2, 4), (4, 2), (2, 1)], ids=str)
def demonstration(request):
    processes, devices = request.param
    started = launch(
        PROCESSES / "two_processes.py",
        "--steps=30",
        processes=processes,
        devices=devices,
    )
    return processes, devices, [one.value for one in started]


def test_every_process_sees_all_devices_and_owns_its_own(demonstration):
    processes, devices, seen = demonstration
    for number, s in enumerate(seen):
        assert (s["process"], s["processes"]) == (number, processes)
        assert s["devices"] == seen[0]["devices"] and s["collectives"] == "gloo"
        assert len(set(s["devices"])) == processes * devices
        own = slice(number * devices, (number + 1) * devices)
        assert s["local devices"] == s["devices"][own]
        assert s["owners"] == [n for n in range(processes) for _ in range(devices)]
    # Not a promise of JAX, but the page shows it: ids of processes are 2048 apart.
    assert seen[1]["devices"][devices] == 2048


def test_sums_span_all_processes_and_pmap_has_a_local_leading_axis(demonstration):
    processes, devices, seen = demonstration
    n = processes * devices
    for s in seen:
        assert s["type"] == f"float32[{n}@data]" and not s["fully addressable"]
        assert s["shard_map"] == s["jit"] == n * (n + 1) / 2
        assert s["pmap in"] == s["pmap out"] == [devices]
        assert s["pmap"] == [n * (n + 1) / 2] * devices
    given = [number for s in seen for number in s["this process gives"]]
    assert given == [*range(1, n + 1)]
    assert MULTIHOST["wrong_sums"](seen) == []


ZERO = {"w": np.zeros((5, 1)), "b": np.zeros(1)}


def test_training_equals_one_device_in_float64(demonstration):
    processes, _, seen = demonstration
    exact, losses = descend(ZERO, *linear_data(64), rate=0.1, steps=30)
    for number, s in enumerate(seen):
        each = 64 // processes
        assert s["rows"] == [number * each, (number + 1) * each]
        assert all(s[part] == seen[0][part] for part in ("w", "b", "losses"))
        np.testing.assert_allclose(s["w"], exact["w"][:, 0], **FLOAT32_STEPS)
        np.testing.assert_allclose(s["b"], exact["b"][0], **FLOAT32_STEPS)
        np.testing.assert_allclose(s["losses"], losses, **FLOAT32_STEPS)
        assert s["collectives of a step"] == {"all-reduce": 1}
        n = len(s["devices"])
        assert s["bytes sent per device"] == 2 * (n - 1) / n * 4 * (5 + 1 + 1)
    apart, from_float64 = MULTIHOST["differences"](seen, 64, 30, 0.1)
    assert apart == 0 and from_float64 < 1e-5


def test_the_program_notices_a_wrong_report(demonstration):
    processes, devices, seen = demonstration
    n = processes * devices
    forms = [{"jit": n}, {"shard_map": n}, {"pmap": [n] * devices}, {"pmap": []}]
    for wrong in forms:
        assert MULTIHOST["wrong_sums"]([*seen[:-1], seen[-1] | wrong]) == [
            processes - 1
        ]
    shifted = seen[-1] | {"b": seen[-1]["b"] + 1e-3}
    apart, from_float64 = MULTIHOST["differences"]([*seen[:-1], shifted], 64, 30, 0.1)
    assert apart == pytest.approx(1e-3) and from_float64 > 1e-4


@pytest.mark.parametrize(
    ("fault", "status", "said"),
    [
        # One process trains on other rows than it should; both fail at once.
        (
            "reference.linear_data = lambda n, f=reference.linear_data: tuple("
            "a + jax.process_index() for a in f(n))",
            1,
            "WRONG",
        ),
        ("data_parallel.step = None", 1, "of faulty.py failed after"),
    ],
    ids=["other rows", "an exception"],
)
def test_the_program_ends_with_status_1(tmp_path, fault, status, said):
    faulty = tmp_path / "faulty.py"
    faulty.write_text(
        "import runpy, jax\nfrom chapter3 import data_parallel, reference\n"
        f"{fault}\n"
        f"runpy.run_path({str(PROCESSES / 'two_processes.py')!r}, run_name='__main__')"
    )
    program = f"""
    import runpy, sys
    main = runpy.run_path({str(ROOT / "examples/multihost.py")!r})["main"]
    main.__globals__["WORKER"] = {str(faulty)!r}
    sys.argv = ["multihost.py", "--devices", "1", "--steps", "3"]
    sys.exit(main())
    """
    done = run_python(program)
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stderr


def test_arrays_of_several_processes_refuse_what_needs_all_of_them():
    spans = "spans non-addressable (non process local) devices"
    make = "jax.make_array_from_process_local_data"
    wanted = {
        "x": "Array(shape=(4,), dtype=float32)",
        "np.asarray(x)": spans,
        "x.tolist()": spans,
        "jax.device_get(x)": spans,
        "x[0]": "out sharding could not be resolved unambiguously",
        "list(x)": "AssertionError",
        "jax.pmap(lambda v: v)(full)": "cannot select an axis to squeeze out",
        "jax.device_put(x, jax.devices()[0])": "must be a fully addressable array",
        "float(x.sum())": "10.0",
        "process_allgather(x, tiled=True).tolist()": "[1.0, 2.0, 3.0, 4.0]",
        "process_allgather(x)": "only supports tiled=True",
        "process_allgather(local).tolist()": "[[1.0, 2.0], [3.0, 4.0]]",
        "broadcast_one_to_all(local).tolist()": "[1.0, 2.0]",
        "broadcast_one_to_all('text')": "TypeError",
        "assert_equal(local, 'they differ')": "AssertionError: they differ",
        f"{make}(by_rows, full).shape": "(8,)",
        f"{make}(by_rows, full, (4,)).shape": "(4,)",
        f"{make}(by_rows, full[:3], (4,))": "the process data has 3 elements",
        f"{make}(by_rows, local, (8,))": "Process addresses 4 elements",
        "jax.device_put(full + process, by_rows)": "is not the same on each process",
        "jax.device_put(local, by_rows)": "does not evenly divide",
        "jax.jit(lambda a: a, in_shardings=by_rows)(full)": "non-trivial shardings",
    }
    for one in launch(PROCESSES / "evaluate.py", *wanted, devices=2):
        for expression, text in wanted.items():
            assert text in one.value[expression], (expression, one.value[expression])


STARTS = {
    "initialize()": "ValueError: coordinator_address should be defined.",
    "initialize('localhost:1')": "ValueError: Number of processes must be defined.",
    "initialize('localhost:1', 2)": "ValueError: The process id of the current",
    "initialize('localhost', 2, 0)": "IndexError: list index out of range",
    "initialize('localhost:1', 2, 2)": "ValueError: process_id and num_processes must",
    "initialize('localhost:1', 2, '0')": "TypeError: process_id must be a nonnegative",
    "process_index() or jax.distributed.initialize('localhost:1', 1, 0)": (
        "RuntimeError: jax.distributed.initialize() must be called before any JAX calls"
    ),
}


def test_wrong_starts_say_what_the_page_shows():
    program = "import jax\n"
    for attempt in STARTS:
        where = "jax" if attempt.startswith("process") else "jax.distributed"
        program += f"try: {where}.{attempt}\n"
        program += "except Exception as e: print(f'{type(e).__name__}: {e}')\n"
    said = run_python(program, JAX_PLATFORMS="cpu").stdout.splitlines()
    for line, begins in zip(said, STARTS.values(), strict=True):
        assert line.startswith(begins)


def test_what_is_allowed_before():
    with socket.create_server(("localhost", 0)) as probe:
        port = probe.getsockname()[1]
    joined = run_python(
        f"""
        import jax
        jax.config.update("jax_num_cpu_devices", 3)
        double = jax.jit(lambda x: 2 * x)
        jax.distributed.initialize("localhost:{port}", 1, 0)
        print(jax.device_count(), double(3))
        """,
        JAX_PLATFORMS="cpu",
    )
    assert joined.stdout == "3 6", joined.stderr
    constant = run_python(
        "import jax; EPS = jax.numpy.float32(1e-6); jax.distributed.initialize()"
    )
    assert "must be called before any JAX calls" in constant.stderr


def test_a_process_that_waits_in_vain_is_aborted():
    """No coordinator, a host that does not exist, two processes with one number."""
    with (
        socket.create_server(("localhost", 0)) as one,
        socket.create_server(("localhost", 0)) as two,
    ):
        nobody, shared = (probe.getsockname()[1] for probe in (one, two))
    program = (
        "import jax\n"
        "try: jax.distributed.initialize({!r}, 2, {}, initialization_timeout=1)\n"
        "except BaseException: print('caught')"
    )
    starts = [
        program.format(f"localhost:{nobody}", 1),
        program.format(f"no-such-host.invalid:{nobody}", 1),
        program.format(f"localhost:{shared}", 0),
        program.format(f"localhost:{shared}", 0),
    ]
    with ThreadPoolExecutor(len(starts)) as pool:  # they only wait
        ended = pool.map(lambda start: run_python(start, JAX_PLATFORMS="cpu"), starts)
    for number, one in enumerate(ended):
        assert one.returncode == -signal.SIGABRT and one.stdout == ""
        if number < 2:
            assert "DEADLINE_EXCEEDED" in one.stderr and "RegisterTask" in one.stderr
        else:  # the first that is aborted may take the other's call with it
            assert "DEADLINE_EXCEEDED" in one.stderr or "CANCELLED" in one.stderr
