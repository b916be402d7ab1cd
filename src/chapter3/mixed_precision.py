"""Adam in mixed precision: 16 bytes of state for each parameter.

Forward and backward use float16 or bfloat16 copies of the parameters; the optimizer
keeps a float32 master copy and two float32 moments. Small updates would be lost if they
were added to the short type.

Source: “Mixed Precision Training” (Micikevicius and others, 2018).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax


class MixedState(NamedTuple):
    """What the step keeps for each parameter: 2 + 2 + 4 + 4 + 4 bytes.

    Attributes:
        parameters: in the short type, for the forward and backward pass.
        gradients: in the short type.
        master: float32.
        moments: the optimizer's own state: two float32 trees and a step counter.
    """

    parameters: Any
    gradients: Any
    master: Any
    moments: Any


def cast(tree: Any, dtype: Any) -> Any:
    """Convert every leaf to `dtype`."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype), tree)


def init(
    parameters: Any, optimizer: optax.GradientTransformation, dtype: Any = jnp.float16
) -> MixedState:
    """Make the state from float32 parameters."""
    short = cast(parameters, dtype)
    master = jax.tree.map(jnp.array, parameters)
    gradients = jax.tree.map(jnp.zeros_like, short)
    return MixedState(short, gradients, master, optimizer.init(master))


def step(
    state: MixedState,
    loss: Callable,
    optimizer: optax.GradientTransformation,
    x: Any,
    y: Any,
    scale: float = 1.0,
) -> tuple[MixedState, Any]:
    """Compute the gradient in the short type, and update in float32.

    Args:
        state: from `init` or the step before.
        loss: of parameters and a batch.
        optimizer: the one that `init` was given.
        x: inputs, in the short type.
        y: targets, in the short type.
        scale: factor for the loss during the backward pass, divided out again in
            float32: keeps small gradients from vanishing in float16.

    Returns:
        The new state, its gradients zero again, and the loss.
    """

    def scaled(parameters):
        return scale * loss(parameters, x, y)

    value, new = jax.value_and_grad(scaled)(state.parameters)
    gradients = cast(jax.tree.map(jnp.add, state.gradients, new), jnp.float32)
    gradients = jax.tree.map(lambda g: g / scale, gradients)
    updates, moments = optimizer.update(gradients, state.moments, state.master)
    master = optax.apply_updates(state.master, updates)
    short = jax.tree.map(lambda m, p: m.astype(p.dtype), master, state.parameters)
    zero = jax.tree.map(jnp.zeros_like, state.gradients)
    return MixedState(short, zero, master, moments), value / scale
