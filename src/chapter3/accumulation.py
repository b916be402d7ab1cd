"""Gradient accumulation: a batch in several pieces, one after another.

A *loss sum* here is a function of parameters, inputs, targets and weights that adds up
weighted losses of examples. It is a sum and not a mean, so that pieces and devices can
be added up, and divided once at the end by the sum of the weights.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Shaped

AXIS = "data"


def in_blocks(
    batch: Shaped[Array, " batch *features"], pieces: int
) -> Shaped[Array, " pieces piece *features"]:
    """Cut a batch into consecutive pieces.

    For a device's own rows this is free. A *global* batch that is split over devices
    has to move for it: piece 0 is all on the first devices.
    """
    return batch.reshape(pieces, batch.shape[0] // pieces, *batch.shape[1:])


def strided(
    batch: Shaped[Array, " batch *features"], pieces: int
) -> Shaped[Array, " pieces piece *features"]:
    """Cut a batch into pieces of every `pieces`-th row; each device keeps its rows."""
    rows = batch.shape[0] // pieces
    return batch.reshape(rows, pieces, *batch.shape[1:]).swapaxes(0, 1)


def add_up(loss_sum: Callable, params: Any, pieces: Any) -> tuple[Any, Any]:
    """Sum value and gradient of a loss sum over pieces, in a loop.

    Args:
        loss_sum: of parameters, inputs, targets and weights.
        params: the parameters.
        pieces: inputs, targets and weights, each of shape (pieces, piece, ...).
    """

    def add(total, piece):
        new = jax.value_and_grad(loss_sum)(params, *piece)
        return jax.tree.map(jnp.add, total, new), None

    *_, weights = pieces
    zeros = jax.tree.map(jnp.zeros_like, (weights.sum(), params))
    return lax.scan(add, zeros, pieces)[0]


def reduced_each_time(
    loss_sum: Callable, pieces: int, split: Callable, params: Any, batch: Any
) -> tuple[Any, Any]:
    """Accumulate under `jit`: the compiler reduces over devices in every turn.

    Args:
        loss_sum: of parameters, inputs, targets and weights.
        pieces: their number.
        split: `in_blocks` or `strided`.
        params: replicated.
        batch: inputs, targets and weights, global, cut along dimension 0.

    Returns:
        Mean of the losses and its gradient, over all examples of the batch.
    """
    cut = jax.tree.map(partial(split, pieces=pieces), batch)
    sums, count = add_up(loss_sum, params, cut), batch[-1].sum()
    return jax.tree.map(lambda s: s / count, sums)


def reduced_once(
    loss_sum: Callable, pieces: int, mesh: Mesh, params: Any, batch: Any
) -> tuple[Any, Any, Array]:
    """Accumulate on each device, then reduce over the devices once.

    Args:
        loss_sum: of parameters, inputs, targets and weights.
        pieces: their number; it must divide the rows of each device.
        mesh: has an axis "data".
        params: replicated.
        batch: inputs, targets and weights, global, cut along "data".

    Returns:
        Sum of the losses, gradient of their *mean*, and sum of the weights.
    """

    def local(params, batch):
        # To differentiate with respect to the device's own copy keeps the sum over
        # devices out of the loop.
        own = jax.tree.map(lambda p: lax.pcast(p, AXIS, to="varying"), params)
        cut = jax.tree.map(partial(in_blocks, pieces=pieces), batch)
        value, gradient = add_up(loss_sum, own, cut)
        with jax.named_scope("reduce_once"):
            value, gradient, count = lax.psum((value, gradient, batch[-1].sum()), AXIS)
        return value, jax.tree.map(lambda g: g / count, gradient), count

    specs = {"in_specs": (P(), P(AXIS)), "out_specs": P()}
    return jax.shard_map(local, mesh=mesh, **specs)(params, batch)
