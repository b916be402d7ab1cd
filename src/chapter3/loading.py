"""Which rows of a global batch does this process load?"""

from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import Sharding
from jaxtyping import Array, Int, Shaped


def rows_of_process(
    sharding: Sharding, shape: tuple[int, ...]
) -> Int[np.ndarray, " rows"]:
    """Ask a sharding which rows the devices of this process hold.

    Do not work this out from `jax.process_index()`: how many different rows a process
    holds depends on the mesh, and two processes may hold the same ones.

    Args:
        sharding: of the global array, over devices of all processes.
        shape: global shape, (rows, ...).

    Returns:
        The indices of the rows, ascending, each once however many devices of this
        process hold it.

    Raises:
        ValueError: the shape does not divide as the sharding wants it (from JAX).
    """
    every = np.arange(shape[0])
    held = sharding.addressable_devices_indices_map(shape).values()
    return np.unique(np.concatenate([every[index[0]] for index in held if index]))


def load_batch(
    sharding: Sharding,
    shape: tuple[int, ...],
    read: Callable[[Int[np.ndarray, " rows"]], Shaped[np.ndarray, "rows ..."]],
) -> Shaped[Array, "batch ..."]:
    """Build one global array of rows that each process reads for itself.

    Args:
        sharding: of the global array.
        shape: its shape, (batch, ...).
        read: called once with the indices of this process's rows, ascending; returns
            them, shape (rows, ...). Must give the same row for the same index in all
            processes.

    Returns:
        The global array; every device holds its rows, nothing else was moved.

    Raises:
        ValueError: `read` returned another number of rows (from JAX).
    """
    local = read(rows_of_process(sharding, shape))
    return jax.make_array_from_process_local_data(sharding, local, shape)
