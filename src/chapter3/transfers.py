"""What `device_put` moves between devices, seen from the arrays before and after it.

It belongs to no compiled program, so that there is no text in which to count its bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax


@dataclass(frozen=True)
class Transfer:
    """One array that was given another sharding.

    Attributes:
        what: a word for what it is.
        purpose: what it was moved for.
        source: ids of the devices that had the array.
        target: ids of the devices that have it now.
        nbytes: bytes that came to a device which did not have them before.
    """

    what: str
    purpose: object
    source: frozenset[int]
    target: frozenset[int]
    nbytes: int

    @classmethod
    def between(
        cls, before: jax.Array, after: jax.Array, what: str, purpose: object
    ) -> Transfer:
        """Compare an array with the same array as `device_put` returned it."""
        source, target = (
            frozenset(device.id for device in array.devices())
            for array in (before, after)
        )
        return cls(what, purpose, source, target, bytes_moved(before, after))


def bytes_moved(before: jax.Array, after: jax.Array) -> int:
    """Add up what each device has in `after` and did not have in `before`.

    Args:
        before: any shape; all its devices belong to this process.
        after: the same array with another sharding.

    Returns:
        Bytes, over all devices; a copy on each of two devices counts twice.
    """
    had = {shard.device: _block(before, shard) for shard in before.addressable_shards}
    moved = 0
    for shard in after.addressable_shards:
        block = _block(after, shard)
        known = 0  # elements of the block that were there
        if shard.device in had:
            pairs = zip(block, had[shard.device], strict=True)
            known = math.prod(
                len(range(max(new.start, old.start), min(new.stop, old.stop)))
                for new, old in pairs
            )
        moved += math.prod(map(len, block)) - known
    return moved * after.dtype.itemsize


def _block(array: jax.Array, shard: jax.Shard) -> list[range]:
    """Return which part of each dimension a shard holds."""
    parts = zip(shard.index, array.shape, strict=True)
    return [range(*part.indices(size)) for part, size in parts]
