"""Single-device references in float64, which distributed results must equal."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float64


def f64(array: ArrayLike) -> np.ndarray:
    """Return `array` (any shape, JAX or NumPy) as a NumPy float64 array."""
    return np.asarray(array, dtype=np.float64)


def in_float64(f: Callable, *arguments: Any) -> Any:
    """Call a JAX function on one device with everything in float64.

    Args:
        f: of floating-point arrays, or trees of them; may be a gradient.
        *arguments: converted to float64.

    Returns:
        What `f` returns, as NumPy arrays. JAX computes in float32 again afterwards.
    """
    with jax.enable_x64(True):
        exact = jax.tree.map(lambda leaf: jnp.asarray(f64(leaf)), arguments)
        return jax.tree.map(np.asarray, f(*exact))


def mse(
    w: Float64[np.ndarray, " features"],
    x: Float64[np.ndarray, "batch features"],
    y: Float64[np.ndarray, " batch"],
) -> float:
    """Mean squared error of the linear model `x @ w` on one batch."""
    return float(np.mean((x @ w - y) ** 2))


def grad_mse(
    w: Float64[np.ndarray, " features"],
    x: Float64[np.ndarray, "batch features"],
    y: Float64[np.ndarray, " batch"],
) -> Float64[np.ndarray, " features"]:
    """Gradient of `mse` with respect to `w`, written by hand.

    Args:
        w: weights, shape (features,).
        x: inputs, shape (batch, features); the global batch or one device's shard.
        y: targets, shape (batch,).

    Returns:
        The vector 2/batch · xᵀ(x w - y), of shape (features,).
    """
    return 2 / len(x) * x.T @ (x @ w - y)


def linear_data(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Make a batch that a linear model can learn, the same each time.

    Args:
        rows: size of the global batch.

    Returns:
        Inputs, float32 of shape (rows, 5), and the targets that belong to them, which
        are `inputs @ [1, 2, 3, 4, 5] + 0.5`, float32 of shape (rows, 1).
    """
    x = np.random.default_rng(0).standard_normal((rows, 5)).astype(np.float32)
    return x, x @ np.arange(1, 6, dtype=np.float32)[:, None] + np.float32(0.5)


def descend(
    start: Mapping[str, ArrayLike], x: ArrayLike, y: ArrayLike, rate: float, steps: int
) -> tuple[dict[str, np.ndarray], list[float]]:
    """Train a linear model in float64, with the gradient written by hand.

    Args:
        start: parameters to start from: `w`, shape (features,) or (features, outputs),
            and `b`, shape () or (outputs,).
        x: inputs, shape (batch, features).
        y: targets, shape (batch,) or (batch, outputs).
        rate: learning rate.
        steps: of gradient descent, each on the whole batch.

    Returns:
        The parameters, and the mean squared error before each step.
    """
    w, b, x, y = (f64(a) for a in (start["w"], start["b"], x, y))
    losses = []
    for _ in range(steps):
        error = x @ w + b - y
        losses.append(float(np.mean(error**2)))
        w = w - rate * 2 / y.size * x.T @ error
        b = b - rate * 2 / y.size * error.sum(axis=0)
    return {"w": w, "b": b}, losses
