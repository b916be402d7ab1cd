"""The two models of the strategies: a plain network, and a stack of MLP blocks."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

Layers = list[dict[str, Array]]


def init_mlp(key: Key[Array, ""], sizes: Sequence[int]) -> Layers:
    """Initialise a network of linear layers, `w` of shape (a, b) and `b` of shape (b,).

    Args:
        key: random key.
        sizes: widths, input first.
    """
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"w": jax.random.normal(k, (a, b)) / jnp.sqrt(a), "b": jnp.zeros(b)}
        for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def mlp(layers: Layers, x: Float[Array, "batch inputs"]) -> Float[Array, "batch out"]:
    """Apply the network: tanh between the layers, none after the last."""
    for layer in layers[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"][None])
    return x @ layers[-1]["w"] + layers[-1]["b"][None]


def mlp_loss(layers: Layers, x: Array, y: Array) -> Float[Array, ""]:
    """Mean squared error of `mlp` over the batch that is given."""
    return jnp.mean((mlp(layers, x) - y) ** 2)


def init_blocks(key: Key[Array, ""], layers: int, width: int, hidden: int) -> Layers:
    """Initialise residual MLP blocks, as in a transformer without its attention.

    Returns:
        For each block `w1` of shape (width, hidden) and `w2` of shape (hidden, width):
        2·width·hidden parameters.
    """
    blocks = []
    for k in jax.random.split(key, layers):
        k1, k2 = jax.random.split(k)
        w1 = jax.random.normal(k1, (width, hidden)) / jnp.sqrt(width)
        w2 = jax.random.normal(k2, (hidden, width)) / jnp.sqrt(hidden)
        blocks.append({"w1": w1, "w2": w2})
    return blocks


def block(
    weights: dict[str, Array], x: Float[Array, "batch width"]
) -> Float[Array, "batch width"]:
    """Apply one block: x + relu(x w1) w2."""
    return x + jax.nn.relu(x @ weights["w1"]) @ weights["w2"]


def blocks(
    layers: Layers, x: Float[Array, "batch width"]
) -> Float[Array, "batch width"]:
    """Apply all blocks."""
    for weights in layers:
        x = block(weights, x)
    return x


def blocks_loss(layers: Layers, x: Array, y: Array) -> Float[Array, ""]:
    """Mean squared error of `blocks` over the batch that is given."""
    return jnp.mean((blocks(layers, x) - y) ** 2)
