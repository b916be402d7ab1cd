import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3 import device_mesh
from chapter3.replicas import replicas_agree

MESH = device_mesh({"data": 4, "model": 2})


def from_blocks(spec, shape, blocks):
    """Put `blocks[i]` on device i, whatever the sharding promises."""
    placed = [
        jax.device_put(b, d) for b, d in zip(blocks, MESH.devices.flat, strict=True)
    ]
    return jax.make_array_from_single_device_arrays(
        shape, NamedSharding(MESH, spec), placed
    )


@pytest.mark.parametrize("spec", [P(), P("data"), P(None, "model"), P("data", "model")])
def test_what_device_put_makes_agrees(spec):
    x = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    assert replicas_agree(jax.device_put(x, NamedSharding(MESH, spec)))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.bool_])
def test_one_other_value_on_one_device_is_found(dtype):
    blocks = [np.ones(3, dtype) for _ in range(8)]
    assert replicas_agree(from_blocks(P(), (3,), blocks))
    for device in range(8):
        changed = [b.copy() for b in blocks]
        changed[device][2] = 0
        assert not replicas_agree(from_blocks(P(), (3,), changed))


def test_only_copies_of_the_same_block_are_compared():
    by_data = [np.full(2, i // 2, np.float32) for i in range(8)]
    assert replicas_agree(from_blocks(P("data"), (8,), by_data))
    by_model = [np.full(2, i % 2, np.float32) for i in range(8)]
    assert not replicas_agree(from_blocks(P("data"), (8,), by_model))


def test_scalars_and_bits():
    assert replicas_agree(from_blocks(P(), (), [np.float32(1)] * 8))
    zeros = [np.float32(0)] * 7 + [np.float32(-0.0)]
    assert not replicas_agree(from_blocks(P(), (), zeros))
