"""The problem of section 3.9.

Linear regression, y = X w + b with a little noise. Parameters are a dictionary of `w`,
shape (features,), and `b`, shape (), as `chapter3.data_parallel` takes them.
"""

from typing import NamedTuple

import jax


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
