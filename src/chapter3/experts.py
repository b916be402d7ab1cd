"""Expert parallelism in miniature: tokens travel to their expert's device and back.

There are as many experts as devices, and each device holds one. A router picks one
expert for each token. A device may send at most `capacity` tokens to each expert, so
that all messages have the same size; tokens beyond that are dropped.

Source: “Switch Transformers: Scaling to Trillion Parameter Models with Simple and
Efficient Sparsity” (Fedus and others, 2021).
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int


def expert(
    tokens: Float[Array, "*batch width"],
    w_in: Float[Array, "width hidden"],
    w_out: Float[Array, "hidden width"],
) -> Float[Array, "*batch width"]:
    """One expert: a small two-layer network, applied to each token."""
    return jax.nn.relu(tokens @ w_in) @ w_out


def choose(
    tokens: Float[Array, "tokens width"], router: Float[Array, "width experts"]
) -> tuple[Int[Array, " tokens"], Float[Array, " tokens"]]:
    """Pick an expert for each token; return it and its softmax share (the gate)."""
    shares = jax.nn.softmax(tokens @ router)
    best = jnp.argmax(shares, axis=-1)
    return best, jnp.take_along_axis(shares, best[:, None], axis=-1)[:, 0]


def slots(
    chosen: Int[Array, " tokens"], experts: int, capacity: int
) -> Bool[Array, "tokens experts capacity"]:
    """Give each token a slot at its expert, first come first served.

    Returns:
        True where a token has that slot of that expert; a dropped token has none.
    """
    wanted = jax.nn.one_hot(chosen, experts, dtype=jnp.int32)
    place = jnp.cumsum(wanted, axis=0) - 1  # tokens before this one, at each expert
    has_slot = jax.nn.one_hot(place, capacity, dtype=jnp.int32) * wanted[:, :, None]
    return has_slot.astype(bool)


def dense(tokens, router, w_in, w_out) -> Array:
    """The reference on one device: each token through its expert, nothing dropped.

    Args:
        tokens: shape (tokens, width).
        router: shape (width, experts).
        w_in: shape (experts, width, hidden).
        w_out: shape (experts, hidden, width).
    """
    chosen, gate = choose(tokens, router)
    through_all = jax.vmap(expert, in_axes=(None, 0, 0), out_axes=1)
    results = through_all(tokens, w_in, w_out)  # (tokens, experts, width)
    own = jnp.take_along_axis(results, chosen[:, None, None], axis=1)[:, 0]
    return gate[:, None] * own


def routed(tokens, router, w_in, w_out, *, capacity: int, axis_name: str):
    """The same over a mesh axis, one expert on each device. Call it inside `shard_map`.

    Args:
        tokens: per device, shape (tokens per device, width).
        router: equal on each device, shape (width, experts).
        w_in: per device, shape (1, width, hidden): this device's expert.
        w_out: per device, shape (1, hidden, width).
        capacity: most tokens that one device sends to one expert.
        axis_name: mesh axis of as many devices as experts.

    Returns:
        The results, per device of the shape of `tokens`, zero for dropped tokens; which
        tokens were kept, per device; and how many were dropped on all devices together.
    """
    chosen, gate = choose(tokens, router)
    slot = slots(chosen, lax.axis_size(axis_name), capacity)  # (token, expert, slot)
    out = jnp.einsum("tec,tw->ecw", slot.astype(tokens.dtype), tokens)
    with jax.named_scope("to_experts"):  # (expert, slot, w) -> (sender, slot, w)
        arrived = lax.all_to_all(out, axis_name, 0, 0, tiled=True)
    results = expert(arrived, w_in[0], w_out[0])
    with jax.named_scope("back_to_tokens"):
        back = lax.all_to_all(results, axis_name, 0, 0, tiled=True)
    mixed = jnp.einsum("tec,ecw->tw", slot.astype(tokens.dtype), back)
    kept = jnp.any(slot, axis=(1, 2))
    dropped = lax.psum(jnp.sum(~kept), axis_name)
    return gate[:, None] * mixed, kept, dropped
