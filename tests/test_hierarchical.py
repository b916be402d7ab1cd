"""Flat and hierarchical all-reduce: equal sums, and the bytes that leave a host."""

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from tolerances import FLOAT32_SUM

from chapter3 import hlo
from chapter3.crossing import crossing_bytes, pair_bytes
from chapter3.hierarchical import flat_all_reduce, hierarchical_all_reduce

BOTH = P(("host", "device"))


def summed(body, hosts, rows, mixed=False):
    """Build a sum over `hosts` hosts of 8 / hosts devices, and its argument."""
    devices = np.array(jax.devices()).reshape(hosts, -1)
    if mixed:
        devices = devices.T.reshape(devices.shape)
    mesh = Mesh(devices, ("host", "device"))
    values = np.random.default_rng(0).standard_normal((8 * rows, 3))
    x = jax.device_put(values.astype(np.float32), NamedSharding(mesh, BOTH))
    f = jax.jit(
        jax.shard_map(
            lambda v: body(v, "device", "host"), mesh=mesh, in_specs=BOTH, out_specs=P()
        )
    )
    owner = [device.id // (8 // hosts) for device in mesh.devices.flat]
    return f, x, values.reshape(8, rows, 3).sum(axis=0), owner


@pytest.mark.parametrize("hosts", [1, 2, 4, 8])
@pytest.mark.parametrize("body", [flat_all_reduce, hierarchical_all_reduce])
def test_it_is_the_sum(body, hosts):
    f, x, expected, _ = summed(body, hosts, rows=16)
    np.testing.assert_allclose(f(x), expected, **FLOAT32_SUM)
    assert f(x).sharding.is_fully_replicated


@pytest.mark.parametrize("hosts", [2, 4])
def test_it_sends_what_the_formula_says(hosts):
    f, x, _, owner = summed(hierarchical_all_reduce, hosts, rows=16)
    program, s = f.lower(x).compile(), 16 * 3 * 4
    assert hlo.executed(program) == {
        "reduce-scatter": 1,
        "all-reduce": 1,
        "all-gather": 1,
    }
    crossing = crossing_bytes(pair_bytes(program, 8), owner)
    around = 2 * (hosts - 1) / hosts * s  # to the next host
    expected = around * np.roll(np.eye(hosts), 1, axis=1)
    np.testing.assert_array_equal(crossing, expected)


@pytest.mark.parametrize(("mixed", "edges"), [(False, 1), (True, 4)])
def test_the_order_of_the_devices_decides_how_often_a_ring_crosses(mixed, edges):
    f, x, expected, owner = summed(flat_all_reduce, 2, rows=16, mixed=mixed)
    np.testing.assert_allclose(f(x), expected, **FLOAT32_SUM)
    crossing = crossing_bytes(pair_bytes(f.lower(x).compile(), 8), owner)
    each = 2 * 7 / 8 * 16 * 3 * 4
    np.testing.assert_array_equal(crossing, edges * each * (1 - np.eye(2)))


def test_rows_that_do_not_divide_are_refused():
    f, x, _, _ = summed(hierarchical_all_reduce, 2, rows=7)
    with pytest.raises(ValueError, match=r"x.shape\[0\]=7 must be a multiple of .* 4"):
        f.lower(x)


def test_permutes_and_all_to_alls_are_counted_pair_by_pair():
    mesh = jax.make_mesh((8,), ("i",))
    x = jax.device_put(np.zeros((64, 8), np.float32), NamedSharding(mesh, P("i")))

    def program(body):
        f = jax.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
        return jax.jit(f).lower(x).compile()

    ring = [(d, (d + 1) % 8) for d in range(8)]
    shifted = pair_bytes(program(lambda v: jax.lax.ppermute(v, "i", ring)), 8)
    np.testing.assert_array_equal(shifted, 256 * np.roll(np.eye(8), 1, axis=1))
    exchange = program(lambda v: jax.lax.all_to_all(v, "i", 1, 0, tiled=True))
    np.testing.assert_array_equal(pair_bytes(exchange, 8), 32 * (1 - np.eye(8)))


def test_one_host_number_for_each_device():
    with pytest.raises(ValueError, match="the number of devices, 8"):
        crossing_bytes(np.zeros((8, 8)), [0, 1])
