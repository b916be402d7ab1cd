"""FSDP, which is ZeRO-3: parameters live in shares and are gathered for use.

Three ways to the gradient, for parameters cut along dimension 0 over mesh axis "data".
All are called inside `shard_map`; each returns the mean loss over the global batch, and
the device's share of the mean gradient.

Source: “ZeRO: Memory Optimizations Toward Training Trillion Parameter Models”
(Rajbhandari and others, 2020), and “PyTorch FSDP: Experiences on Scaling Fully Sharded
Data Parallel” (Zhao and others, 2023).
"""

from collections.abc import Callable
from typing import Any

import jax
from jax import lax

from chapter3.zero import AXIS, gather, scatter_mean


def by_hand(loss: Callable, shares: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Gather, differentiate with the full parameters, reduce-scatter the gradient.

    Args:
        loss: of full parameters and a batch: the mean over the batch it is given.
        shares: per device, each leaf of shape (rows/N, ...).
        x: per device, the inputs of its part of the batch.
        y: per device, the targets of its part.
    """
    full = gather(shares)
    value, gradient = jax.value_and_grad(loss)(full, x, y)
    return lax.pmean(value, AXIS), scatter_mean(gradient)


def by_transposition(loss: Callable, shares: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Put the gather inside the loss, and let autodiff write the reduce-scatter.

    The transpose of `all_gather` is `psum_scatter`. It *sums* over devices, so that the
    gradient of a mean must still be divided by N. Arguments are those of `by_hand`.
    """
    value, gradient = jax.value_and_grad(lambda s: loss(gather(s), x, y))(shares)
    n = lax.axis_size(AXIS)
    return lax.pmean(value, AXIS), jax.tree.map(lambda g: g / n, gradient)


def regathering(layer: Callable, finish: Callable) -> Callable:
    """Make a loss whose layers drop what they gathered, and gather again in backward.

    `jax.checkpoint` saves the input of each layer and nothing else. In the backward
    pass each layer is computed anew, which gathers its parameters again. So no layer
    has to be whole between the two; how many are at one time is up to the compiler.

    Args:
        layer: of a layer's full parameters and its input.
        finish: of the last layer's output and the targets, to the loss.

    Returns:
        A loss of the list of the layers' *shares* and a batch; differentiate it and
        divide by N, as in `by_transposition`.
    """

    @jax.checkpoint
    def gathered_layer(shares, x):
        return layer(gather(shares), x)

    def loss(layers, x, y):
        for shares in layers:
            x = gathered_layer(shares, x)
        return finish(x, y)

    return loss
