"""One pass over the data: in which order, in which batches, and whose rows.

The order is a function of a seed and the number of the epoch, and of nothing else. So a
run that was interrupted and resumed sees the same batches as one that was not, and so
does a run on another number of devices or processes.
"""

from collections.abc import Iterator, Sequence

import jax
import numpy as np
from jax.sharding import NamedSharding
from jaxtyping import Int, Shaped

from chapter3.batches import pad_batch
from chapter3.loading import load_batch


def shuffled(seed: int, epoch: int, examples: int) -> Int[np.ndarray, " examples"]:
    """Return the order of the examples in one epoch, a permutation."""
    return np.random.default_rng([seed, epoch]).permutation(examples)


def batches(
    arrays: Sequence[Shaped[np.ndarray, "examples ..."]],
    order: Int[np.ndarray, " examples"],
    batch_size: int,
    sharding: NamedSharding,
) -> Iterator[tuple[jax.Array, ...]]:
    """Yield an epoch's batches, all of one size, as global arrays on the devices.

    The last batch is filled up with copies of example 0 that weigh nothing: real
    values, because 0 times a NaN is not 0.

    Args:
        arrays: the data on the host; only the rows of this process are read.
        order: which examples, in which order.
        batch_size: rows of a global batch, a multiple of the number of devices.
        sharding: of the batches, dimension 0 cut.

    Yields:
        For each of `arrays` an array of shape (batch_size, ...), and weights of shape
        (batch_size,), float32: 1 for an example, 0 for filling.
    """
    for start in range(0, len(order), batch_size):
        rows, weights = pad_batch(order[start : start + batch_size], batch_size)

        def of_batch(array, rows=rows):
            shape = (batch_size, *array.shape[1:])
            return load_batch(sharding, shape, lambda own: array[rows[own]])

        own_weights = load_batch(sharding, weights.shape, weights.__getitem__)
        yield (*map(of_batch, arrays), own_weights)
