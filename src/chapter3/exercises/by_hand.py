"""The step of exercise 5 by hand, in float64, and what typical mistakes make of it."""

from typing import Any

import numpy as np

from chapter3.reference import f64

RATE, BETA1, BETA2, EPSILON = 1e-2, 0.9, 0.999, 1e-8
SHAPES = {"w1": (16, 32), "w2": (32, 8)}


def rows(*arrays: np.ndarray, devices: int = 8) -> list[tuple[np.ndarray, ...]]:
    """Cut arrays by rows; one tuple of parts for each device."""
    return list(zip(*(np.split(a, devices) for a in arrays), strict=True))


def mix(beta: float, before: Any, new: Any) -> dict[str, np.ndarray]:
    """Compute beta·before + (1 - beta)·new, leaf by leaf."""
    return {k: beta * f64(before[k]) + (1 - beta) * new[k] for k in SHAPES}


def close(found: Any, wanted: Any, atol: float) -> bool:
    """Compare trees of float32 results with float64 ones, 1e-4 relative.

    Args:
        found: float32.
        wanted: float64.
        atol: absolute difference allowed, small against what one step adds.
    """
    return all(
        np.allclose(f64(found[k]), f64(wanted[k]), rtol=1e-4, atol=atol) for k in SHAPES
    )


def adam(
    params: Any, state: Any, t: float, rate: float = RATE, under_root: bool = False
) -> dict[str, np.ndarray]:
    """Update the parameters from the new moments at step t, in float64.

    With t infinite there is no correction of the bias.
    """
    new = {}
    for k, p in params.items():
        m = f64(state["m"][k]) / (1 - BETA1**t)
        v = f64(state["v"][k]) / (1 - BETA2**t)
        root = np.sqrt(v + EPSILON) if under_root else np.sqrt(v) + EPSILON
        new[k] = f64(p) - rate * m / root
    return new


def gradient(params: Any, x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Differentiate `loss` by hand, in float64."""
    w1, w2 = f64(params["w1"]), f64(params["w2"])
    h = np.tanh(f64(x) @ w1)
    d_out = 2 * (h @ w2 - f64(y)) / y.size
    return {"w1": f64(x).T @ (d_out @ w2.T * (1 - h**2)), "w2": h.T @ d_out}
