"""Do devices that should hold the same values hold the same values?"""

import itertools
import zlib

import numpy as np
from jax import Shard
from jax.experimental import multihost_utils
from jaxtyping import Array, Shaped


def replicas_agree(array: Shaped[Array, "..."]) -> bool:
    """Compare, across all processes, the blocks that a sharding says are equal.

    JAX takes a sharding at its word. If two processes fill the same block with
    different values, nothing complains, and each goes on with its own. This sends a
    checksum of each block around and is cheap enough for a check every few steps.

    A collective operation: call it in every process, at the same point.

    Args:
        array: global, of any sharding that gives each process equally many blocks.

    Returns:
        Whether blocks with the same index are equal to the last bit; the same answer in
        every process.
    """
    fingerprints = [_fingerprint(s, array.shape) for s in array.addressable_shards]
    own = np.array(fingerprints, np.uint32)
    everyones = multihost_utils.process_allgather(own).reshape(-1, own.shape[1])
    found: dict[tuple[int, ...], int] = {}
    return all(
        found.setdefault(tuple(place), checksum) == checksum
        for *place, checksum in everyones.tolist()
    )


def _fingerprint(shard: Shard, shape: tuple[int, ...]) -> list[int]:
    """List where a block begins and ends in each dimension, and its checksum."""
    cuts = (cut.indices(n)[:2] for cut, n in zip(shard.index, shape, strict=True))
    return [*itertools.chain(*cuts), zlib.crc32(np.asarray(shard.data).tobytes())]
