"""A ring all-reduce, written with nothing but messages to the next device."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Shaped


def ring_all_reduce(
    x: Shaped[Array, " rows *rest"], axis_name: str
) -> Shaped[Array, " rows *rest"]:
    """Sum `x` over a mesh axis, in two rounds of a ring. Call it inside `shard_map`.

    Each device cuts its array into N pieces. In the first round (a reduce-scatter) the
    pieces travel once around the ring and collect a term at every stop; then each
    device has one finished piece. In the second round (an all-gather) the finished
    pieces travel around. Each of the 2(N-1) steps sends one piece, S/N bytes.

    Args:
        x: per device, shape (rows, ...); rows a multiple of the axis size N.
        axis_name: the mesh axis.

    Returns:
        The sum, per device, of the shape of `x`. It is equal on all devices, but its
        type stays varying: JAX cannot know that it is.

    Raises:
        ValueError: N does not divide the rows.

    Source: “Bandwidth optimal all-reduce algorithms for clusters of workstations”
    (Patarasuk and Yuan, 2009).
    """
    n, i = lax.axis_size(axis_name), lax.axis_index(axis_name)
    if x.shape[0] % n:
        raise ValueError(f"{x.shape[0]=} must be a multiple of the axis size {n}")
    to_next = [(j, (j + 1) % n) for j in range(n)]

    def send(pieces, index):
        piece = lax.dynamic_index_in_dim(pieces, index % n, keepdims=False)
        with jax.named_scope("ring"):
            return lax.ppermute(piece, axis_name, to_next)

    def collect(step, pieces):
        # Device i sends the piece that it has just added to, and adds to the next one.
        arrived = send(pieces, i - step)
        return pieces.at[(i - step - 1) % n].add(arrived)

    def pass_on(step, pieces):
        # Device i begins with piece i+1, the one that it has finished.
        arrived = send(pieces, i + 1 - step)
        return pieces.at[(i - step) % n].set(arrived)

    pieces = x.reshape(n, x.shape[0] // n, *x.shape[1:])
    pieces = lax.fori_loop(0, n - 1, collect, pieces)
    pieces = lax.fori_loop(0, n - 1, pass_on, pieces)
    return jnp.reshape(pieces, x.shape)
