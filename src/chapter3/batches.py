"""Batches whose size no number of devices divides."""

import numpy as np
from jaxtyping import Float32, Shaped


def pad_batch(
    batch: Shaped[np.ndarray, " batch *features"], multiple: int
) -> tuple[Shaped[np.ndarray, " padded *features"], Float32[np.ndarray, " padded"]]:
    """Pad a batch to a multiple of the number of devices, and say which rows count.

    Pad to the size of the other batches to keep `jit` from compiling the step once more
    for the last one. Divide sums over the batch by the sum of the weights, never by the
    padded size, and never take the mean of the devices' means.

    Args:
        batch: the examples, shape (batch, ...), on the host.
        multiple: what the padded size must be a multiple of: the number of devices, or
            the size of the other batches.

    Returns:
        The batch with rows of zeros behind it, shape (padded, ...), and weights of
        shape (padded,), 1 for an example and 0 for padding.

    Raises:
        ValueError: an empty batch, or a multiple below 1.

    >>> padded, weights = pad_batch(np.ones((5, 2)), multiple=4)
    >>> padded.shape, weights.tolist()
    ((8, 2), [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    """
    if len(batch) == 0 or multiple < 1:
        raise ValueError(f"{len(batch)=} and {multiple=} must be at least 1")
    missing = -len(batch) % multiple
    padding = [(0, missing)] + [(0, 0)] * (batch.ndim - 1)
    weights = np.pad(np.ones(len(batch), np.float32), (0, missing))
    return np.pad(batch, padding), weights
