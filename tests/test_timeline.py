import jax
import jax.numpy as jnp
import pytest

from chapter3.timeline import Execution, in_flight_together, record


def long(x):
    return jax.lax.fori_loop(0, 3000, lambda i, x: jnp.tanh(x + jnp.roll(x, 1)), x)


def test_names_devices_and_order():
    run = jax.jit(long)
    inputs = [jax.device_put(jnp.ones(1000), d) for d in jax.devices()[2:5]]
    jax.block_until_ready([run(x) for x in inputs])
    results, found = record(lambda: [run(x) for x in inputs])
    assert [r.device for r in results] == jax.devices()[2:5]
    assert {e.program for e in found} == {"jit_long"}
    assert sorted(e.device for e in found) == [2, 3, 4]
    assert len({e.run for e in found}) == 3
    assert all(e.begin < e.end for e in found)
    assert [e.begin for e in found] == sorted(e.begin for e in found)


def test_what_needs_another_result_begins_after_it():
    run = jax.jit(long)
    x = jax.device_put(jnp.ones(1000), jax.devices()[1])

    def chain():
        y = run(x)
        return run(jax.device_put(y, jax.devices()[2]))

    jax.block_until_ready(chain())
    _, found = record(chain)
    first, second = found
    assert (first.device, second.device) == (1, 2) and first.end <= second.begin
    assert in_flight_together(found) == []


def test_overlap_is_of_different_runs_on_different_devices():
    a = Execution("f", 1, 0, 0.0, 2.0)
    b = Execution("f", 2, 1, 1.0, 3.0)
    after = Execution("f", 3, 2, 2.0, 4.0)  # begins when a ends
    same_run = Execution("f", 1, 3, 0.0, 2.0)
    same_device = Execution("f", 4, 0, 1.0, 1.5)
    assert in_flight_together([a, b]) == [(a, b)]
    assert in_flight_together([a, after]) == []
    assert in_flight_together([a, same_run]) == []
    assert in_flight_together([a, same_device]) == []


def test_a_trace_without_executions_is_refused():
    with pytest.raises(RuntimeError, match="no execution in the trace of backend"):
        record(lambda: None)
