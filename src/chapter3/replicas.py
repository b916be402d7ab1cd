"""Do devices that should hold the same values hold the same values?"""

import zlib

import numpy as np
from jax.experimental import multihost_utils
from jaxtyping import Array, Shaped


def replicas_agree(array: Shaped[Array, "..."]) -> bool:
    """Compare, across all processes, the blocks that a sharding says are equal.

    JAX takes a sharding at its word. If two processes fill the same block with
    different values, nothing complains, and each goes on with its own. This sends a
    checksum of each block around and is cheap enough for a check every few steps.

    A collective operation: call it in every process, at the same point.

    Args:
        array: global, of any sharding.

    Returns:
        Whether blocks with the same index are equal to the last bit; the same answer in
        every process.

    Raises:
        ValueError: the processes hold different numbers of blocks.
    """
    blocks = [
        [
            start
            for cut, n in zip(shard.index, array.shape, strict=True)
            for start in cut.indices(n)[:2]
        ]
        + [zlib.crc32(np.asarray(shard.data).tobytes())]
        for shard in array.addressable_shards
    ]
    own = np.array(blocks, np.int64).astype(np.uint32)
    gathered = multihost_utils.process_allgather(own)
    found: dict[tuple[int, ...], int] = {}
    lines = gathered.reshape(-1, own.shape[1]).tolist()
    return all(found.setdefault(tuple(where), crc) == crc for *where, crc in lines)
