import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from chapter3 import mixed_precision as mp
from chapter3 import model
from chapter3.memory import bytes_per_parameter

pytestmark = pytest.mark.usefixtures("optax_promotes")

OPTIMIZER = optax.adam(1e-3)


def problem():
    blocks = model.init_blocks(jax.random.key(0), 2, 8, 16)
    x = jax.random.normal(jax.random.key(1), (32, 8))
    return blocks, x, jnp.sin(x)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_sixteen_bytes_for_each_parameter(dtype):
    blocks, x, y = problem()
    state = mp.init(blocks, OPTIMIZER, dtype)
    step = jax.jit(lambda s, x, y: mp.step(s, model.blocks_loss, OPTIMIZER, x, y))
    short = (x.astype(dtype), y.astype(dtype))
    memory = step.lower(state, *short).compile().memory_analysis()
    count = sum(leaf.size for leaf in jax.tree.leaves(blocks))
    expected = bytes_per_parameter("adam", "float16").total * count + 4  # a counter
    assert expected == 16 * count + 4
    assert memory.argument_size_in_bytes == expected + sum(a.nbytes for a in short)


def test_small_updates_are_not_lost():
    blocks, x, y = problem()
    state = mp.init(blocks, optax.sgd(1e-6), jnp.float16)
    step = jax.jit(lambda s, x, y: mp.step(s, model.blocks_loss, optax.sgd(1e-6), x, y))
    for _ in range(5):
        state, _ = step(state, x.astype(jnp.float16), y.astype(jnp.float16))
    # Each update is far below what float16 can add to a value of size one ...
    moved = np.abs(np.asarray(state.master[0]["w1"]) - np.asarray(blocks[0]["w1"]))
    assert 0 < moved.max() < 1e-4
    # ... and the short copy is the master copy, rounded.
    rounded = state.master[0]["w1"].astype(jnp.float16)
    np.testing.assert_array_equal(state.parameters[0]["w1"], rounded)


def test_it_trains_like_float32():
    blocks, x, y = problem()
    state, plain, moments = mp.init(blocks, OPTIMIZER), blocks, OPTIMIZER.init(blocks)
    step = jax.jit(lambda s, x, y: mp.step(s, model.blocks_loss, OPTIMIZER, x, y))
    for _ in range(30):
        state, mixed = step(state, x.astype(jnp.float16), y.astype(jnp.float16))
        value, gradients = jax.value_and_grad(model.blocks_loss)(plain, x, y)
        updates, moments = OPTIMIZER.update(gradients, moments, plain)
        plain = optax.apply_updates(plain, updates)
    # float16 keeps three digits.
    np.testing.assert_allclose(mixed, value, rtol=2e-2)
