"""Which devices talk to which in a compiled program, and what crosses between hosts.

Of each collective the compiled program gives the groups of devices. In a ring, each
device of a group sends to the next one, the last to the first; so the order of the
devices decides how often a group crosses from one host to another.
"""

from collections.abc import Sequence

import numpy as np

from chapter3 import hlo


def pair_bytes(compiled, devices: int) -> np.ndarray:
    """Add up what each device sends to each other in one execution.

    Args:
        compiled: what `jax.jit(f).lower(*args).compile()` returns, or its text.
        devices: number of devices N of the program's mesh.

    Returns:
        Bytes, float64 of shape (N, N), sender first, by position in the mesh. Rings for
        all kinds but a permute, whose pairs are in the program, and an all-to-all, in
        which each device sends its part to each of the others.

    Raises:
        ValueError: as `chapter3.hlo.collectives`.
    """
    sent = np.zeros((devices, devices))
    for operation in hlo.collectives(compiled):
        if operation.kind == "collective-permute":
            for source, target in operation.groups:
                sent[source, target] += operation.times * operation.nbytes
            continue
        for group in operation.groups:
            for place, source in enumerate(group):
                if operation.kind == "all-to-all":
                    targets = [device for device in group if device != source]
                else:
                    targets = [group[(place + 1) % len(group)]]
                for target in targets:
                    sent[source, target] += operation.wire_bytes / len(targets)
    np.fill_diagonal(sent, 0.0)
    return sent


def crossing_bytes(sent: np.ndarray, hosts: Sequence[int]) -> np.ndarray:
    """Add up what each host sends to each other, all its devices together.

    Args:
        sent: what `pair_bytes` returns.
        hosts: for each position in the mesh, the number of its host; of an array of
            devices, `[d.process_index for d in mesh.devices.flat]`.

    Returns:
        Bytes, float64 of shape (H, H), sender first; zero on the diagonal.

    Raises:
        ValueError: `hosts` has not one entry for each device.
    """
    if len(hosts) != len(sent):
        raise ValueError(f"{len(hosts)=} must be the number of devices, {len(sent)}")
    belongs = np.eye(max(hosts) + 1)[list(hosts)]  # (N, H)
    crossing = belongs.T @ sent @ belongs
    np.fill_diagonal(crossing, 0.0)
    return crossing
