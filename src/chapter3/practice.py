"""The problem of section 3.9, and its solution on one device in NumPy float64.

Linear regression, y = X w + b with a little noise. Parameters are a dictionary of `w`,
shape (features,), and `b`, shape (), as `chapter3.data_parallel` takes them.
"""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from chapter3.reference import f64


class Problem(NamedTuple):
    """Data, the parameters behind it, and parameters to start from.

    Attributes:
        x: inputs, float32, shape (examples, features).
        y: targets, float32, shape (examples,).
        true: the parameters that made the targets.
        start: other random parameters.
    """

    x: jax.Array
    y: jax.Array
    true: dict[str, jax.Array]
    start: dict[str, jax.Array]


def problem(devices: int) -> Problem:
    """Make 100 examples for each device, of 5 features, with noise of deviation 0.1.

    Args:
        devices: how many devices will share the data; with it the data change.
    """
    features, examples = 5, 100 * devices
    key, for_w, for_b, for_x, for_noise = jax.random.split(jax.random.key(0), 5)
    true = {
        "w": jax.random.normal(for_w, (features,)),
        "b": jax.random.normal(for_b, ()),
    }
    x = jax.random.normal(for_x, (examples, features))
    noise = 0.1 * jax.random.normal(for_noise, (examples,))
    y = x @ true["w"] + true["b"] + noise

    _, for_w, for_b = jax.random.split(key, 3)
    start = {
        "w": jax.random.normal(for_w, (features,)),
        "b": jax.random.normal(for_b, ()),
    }
    return Problem(x, y, true, start)


def descend(
    start: dict[str, Array],
    x: Float[Array, "examples features"],
    y: Float[Array, " examples"],
    rate: float,
    epochs: int,
) -> tuple[dict[str, np.ndarray], list[float]]:
    """Train in float64 with the gradient written by hand: what the others must equal.

    Args:
        start: parameters to start from.
        x: all inputs.
        y: all targets.
        rate: learning rate.
        epochs: steps of gradient descent, each on all examples.

    Returns:
        The parameters, and the loss before each step.
    """
    w, b, x64, y64 = (f64(a) for a in (start["w"], start["b"], x, y))
    losses = []
    for _ in range(epochs):
        error = x64 @ w + b - y64
        losses.append(float(np.mean(error**2)))
        w = w - rate * 2 / len(y64) * x64.T @ error
        b = b - rate * 2 / len(y64) * error.sum()
    return {"w": w, "b": b}, losses
