"""Single-device references in float64, which distributed results must equal."""

from collections.abc import Callable
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
