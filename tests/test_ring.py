from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from tolerances import FLOAT32_SUM

from chapter3 import device_mesh, hlo
from chapter3.ring import ring_all_reduce


def on_axis(axes, over, rows, columns=3):
    mesh, specs = device_mesh(axes), P(tuple(axes))
    values = np.random.default_rng(0).standard_normal((mesh.size * rows, columns))
    values = values.astype(np.float32)
    f = jax.jit(
        jax.shard_map(
            lambda v: ring_all_reduce(v, over),
            mesh=mesh,
            in_specs=specs,
            out_specs=specs,
        )
    )
    x = jax.device_put(values, NamedSharding(mesh, specs))
    return values.reshape(*axes.values(), rows, columns), f, x


@pytest.mark.parametrize(
    ("axes", "over"),
    [
        ({"i": 8}, "i"),
        ({"i": 3}, "i"),
        ({"i": 1}, "i"),
        ({"a": 4, "b": 2}, "a"),
        ({"a": 2, "b": 4}, "b"),
    ],
)
def test_equals_the_sum_and_sends_what_the_formula_says(axes, over):
    n = axes[over]
    blocks, f, x = on_axis(axes, over, rows=2 * n)
    axis = list(axes).index(over)
    expected = blocks.sum(axis=axis, keepdims=True, dtype=np.float64)
    result = np.asarray(f(x)).reshape(blocks.shape)
    np.testing.assert_allclose(
        result, np.broadcast_to(expected, blocks.shape), **FLOAT32_SUM
    )
    assert f(x).sharding.is_equivalent_to(x.sharding, 2)
    program = f.lower(x).compile()
    if n == 1:
        assert hlo.wire_bytes(program) == 0
    else:
        assert hlo.executed(program) == {"collective-permute": 2 * (n - 1)}
        held = 2 * n * 3 * 4  # bytes: float32[2n, 3]
        assert hlo.wire_bytes(program) == 2 * (n - 1) * held / n


def test_rows_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match=r"x.shape\[0\]=7 must be a multiple .* 8"):
        _, f, x = on_axis({"i": 8}, "i", rows=7)
        f.lower(x)


def test_gradient_is_that_of_a_sum():
    def total(x):
        ring = partial(ring_all_reduce, axis_name="b")
        return jnp.sum(jax.vmap(ring, axis_name="b")(x)[0] ** 2)

    x = jnp.arange(12.0).reshape(3, 4)[:, :3]
    by_sum = jax.grad(lambda x: jnp.sum(x.sum(axis=0) ** 2))(x)
    np.testing.assert_allclose(jax.grad(total)(x), by_sum, **FLOAT32_SUM)
