"""Attention over a sequence that is cut across devices: ring attention and Ulysses.

Arrays have the shape (sequence, heads, width); along mesh axis "seq" each device holds
sequence/N positions of queries, keys and values.

Source: “Ring Attention with Blockwise Transformers for Near-Infinite Context” (Liu and
others, 2023); “DeepSpeed Ulysses: System Optimizations for Enabling Training of Extreme
Long Sequence Transformer Models” (Jacobs and others, 2023); the running softmax is that
of “Online normalizer calculation for softmax” (Milakov and Gimelshein, 2018).
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

AXIS = "seq"
Sequence = Float[Array, "positions heads width"]


def scores(q: Sequence, k: Sequence) -> Float[Array, "heads queries keys"]:
    """Return the scaled products of queries and keys."""
    return jnp.einsum("qhd,khd->hqk", q, k) / jnp.sqrt(q.shape[-1])


def attention(q: Sequence, k: Sequence, v: Sequence) -> Sequence:
    """Full attention on one device, without a mask: the reference."""
    return jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores(q, k)), v)


def ulysses(q: Sequence, k: Sequence, v: Sequence) -> Sequence:
    """Exchange positions for heads, attend to the whole sequence, exchange back.

    Four all-to-alls: of queries, keys, values, and the result. Call it inside
    `shard_map`, with blocks of shape (sequence/N, heads, width); N divides the heads.
    """

    def whole_sequence(x):  # (sequence/N, heads, width) -> (sequence, heads/N, width)
        with jax.named_scope("positions_to_heads"):
            return lax.all_to_all(x, AXIS, split_axis=1, concat_axis=0, tiled=True)

    out = attention(whole_sequence(q), whole_sequence(k), whole_sequence(v))
    with jax.named_scope("heads_to_positions"):
        return lax.all_to_all(out, AXIS, split_axis=0, concat_axis=1, tiled=True)


def ring_attention(q: Sequence, k: Sequence, v: Sequence) -> Sequence:
    """Keep the queries, and pass keys and values around the ring.

    N-1 permutes of keys and of values. In the forward pass no device holds more than
    two blocks of them; the backward pass that `grad` makes keeps them all, and the
    scores. The softmax is computed block by block, with a running maximum and sum. Call
    it inside `shard_map`, with blocks of shape (sequence/N, heads, width).
    """
    n = lax.axis_size(AXIS)
    to_next = [(j, (j + 1) % n) for j in range(n)]

    def add_block(state, k, v):
        best, total, out = state  # (heads, queries), the same, (heads, queries, width)
        s = scores(q, k)
        new_best = jnp.maximum(best, s.max(axis=-1))
        weight = jnp.exp(s - new_best[..., None])
        shrink = jnp.exp(best - new_best)
        total = total * shrink + weight.sum(axis=-1)
        out = out * shrink[..., None] + jnp.einsum("hqk,khd->hqd", weight, v)
        return new_best, total, out

    def step(carry, _):
        state, k, v = carry
        with jax.named_scope("pass_keys_and_values"):  # while this block is computed
            following = lax.ppermute((k, v), AXIS, to_next)
        return (add_block(state, k, v), *following), None

    shape = (q.shape[1], q.shape[0])  # (heads, queries)
    zeros = jnp.zeros(shape), jnp.zeros((*shape, v.shape[-1]))
    start = lax.pcast((jnp.full(shape, -jnp.inf), *zeros), AXIS, to="varying")
    (state, k, v), _ = lax.scan(step, (start, k, v), length=n - 1)
    _, total, out = add_block(state, k, v)
    return jnp.swapaxes(out / total[..., None], 0, 1)
