import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3 import device_mesh
from chapter3.transfers import Transfer, bytes_moved

MESH = device_mesh({"data": 4, "model": 2})
SHAPE, WHOLE = (8, 4), 8 * 4 * 4  # and bytes of the array
SPECS = [P(), P("data"), P(None, "model"), P("data", "model"), P("model", "data")]
SPECS += [P(("data", "model")), P(None, "data")]


def moved(before, after):
    array = jax.device_put(jnp.ones(SHAPE), NamedSharding(MESH, before))
    return bytes_moved(array, jax.device_put(array, NamedSharding(MESH, after)))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (P("data"), P("data"), 0),
        (P(), P("data", "model"), 0),  # each device has its block already
        (P("data"), P("data", "model"), 0),
        (P("data"), P(), 8 * 3 / 4 * WHOLE),  # each had a quarter
        (P("data", "model"), P(("data", "model")), WHOLE / 2),  # and half of its row
    ],
    ids=str,
)
def test_bytes_that_were_not_there(before, after, expected):
    assert moved(before, after) == expected


@pytest.mark.parametrize(
    ("before", "after"), list(itertools.permutations(SPECS, 2)), ids=str
)
def test_element_by_element(before, after):
    places = np.arange(WHOLE // 4).reshape(SHAPE)
    had, has = (
        NamedSharding(MESH, spec).devices_indices_map(SHAPE) for spec in (before, after)
    )
    new = [
        np.setdiff1d(places[has[device]], places[had[device]])
        for device in MESH.devices.flat
    ]
    assert moved(before, after) == 4 * sum(map(len, new))


def test_from_one_device_to_another():
    before = jax.device_put(jnp.ones(6), jax.devices()[1])
    there = jax.device_put(before, jax.devices()[3])
    found = Transfer.between(before, there, "activation", "a test")
    assert (found.source, found.target, found.nbytes) == ({1}, {3}, 24)
    stays = jax.device_put(before, jax.devices()[1])
    assert Transfer.between(before, stays, "activation", "a test").nbytes == 0
