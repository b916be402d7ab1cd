"""A matrix product that communicates while it computes.

Both functions compute x @ w where the devices hold rows of x and columns of w, and each
wants all rows of its own columns. The plain one gathers x and multiplies once. The
other multiplies one block of rows at a time and passes the blocks around the ring
meanwhile: the same bytes, in N-1 messages, each of which can hide behind a product.

Source: “Overlap Communication with Dependent Computation via Decomposition in Large
Deep Learning Models” (Wang and others, 2023).
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

AXIS = "model"


def gather_then_multiply(
    x: Float[Array, "rows inner"], w: Float[Array, "inner columns"]
) -> Float[Array, "all_rows columns"]:
    """Collect all rows, then multiply. Call it inside `shard_map`.

    Args:
        x: per device, shape (rows/N, inner).
        w: per device, shape (inner, columns/N).

    Returns:
        Per device, shape (rows, columns/N).
    """
    with jax.named_scope("gather_rows"):
        return lax.all_gather(x, AXIS, tiled=True) @ w


def multiply_and_pass_on(
    x: Float[Array, "rows inner"], w: Float[Array, "inner columns"]
) -> Float[Array, "all_rows columns"]:
    """The same, one block at a time. Arguments and result as `gather_then_multiply`."""
    n, i = lax.axis_size(AXIS), lax.axis_index(AXIS)
    from_next = [((j + 1) % n, j) for j in range(n)]

    def put(out, block, owner):
        return lax.dynamic_update_index_in_dim(out, block @ w, owner % n, axis=0)

    def step(t, carry):
        out, block = carry
        with jax.named_scope("pass_rows"):  # while this block is being multiplied
            following = lax.ppermute(block, AXIS, from_next)
        return put(out, block, i + t), following

    empty = jnp.zeros((n, x.shape[0], w.shape[1]), x.dtype)
    start = (lax.pcast(empty, AXIS, to="varying"), x)
    out, last = lax.fori_loop(0, n - 1, step, start)
    return put(out, last, i + n - 1).reshape(n * x.shape[0], w.shape[1])
