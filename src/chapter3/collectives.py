"""Each collective: its result, its bytes by formula, its bytes as compiled."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3 import hlo
from chapter3.devices import device_mesh
from chapter3.traffic import ring_bytes


@dataclass(frozen=True)
class Operation:
    """A collective along one mesh axis.

    Attributes:
        body: what a device does, given its block (float32[1, width]) and the axis name.
        kind: what the compiled program calls it.
        expected: the same in NumPy, from the blocks of the N devices of a group, shape
            (N, width), to what each of them holds afterwards, N rows.
    """

    body: Callable
    kind: str
    expected: Callable[[np.ndarray], np.ndarray]


def _to_next(block, axis):
    n = lax.axis_size(axis)
    return lax.ppermute(block, axis, [(j, (j + 1) % n) for j in range(n)])


def _transposed(blocks):
    n = len(blocks)
    return blocks.reshape(n, n, -1).swapaxes(0, 1).reshape(n, -1)


OPERATIONS = {
    "psum": Operation(
        lax.psum, "all-reduce", lambda b: np.tile(b.sum(axis=0), (len(b), 1))
    ),
    "all_gather": Operation(
        lambda v, axis: lax.all_gather(v, axis, axis=1, tiled=True),
        "all-gather",
        lambda b: np.tile(b.ravel(), (len(b), 1)),
    ),
    "psum_scatter": Operation(
        lambda v, axis: lax.psum_scatter(v, axis, scatter_dimension=1, tiled=True),
        "reduce-scatter",
        lambda b: b.sum(axis=0).reshape(len(b), -1),
    ),
    "all_to_all": Operation(
        lambda v, axis: lax.all_to_all(v, axis, 1, 1, tiled=True),
        "all-to-all",
        _transposed,
    ),
    "ppermute": Operation(
        _to_next, "collective-permute", lambda b: np.roll(b, 1, axis=0)
    ),
}
"""The collectives by the name of JAX's function."""


@dataclass(frozen=True)
class Measured:
    """What `measure` found; bytes are per device.

    Attributes:
        held: bytes that a device holds before.
        predicted: bytes it sends, by the ring formula.
        compiled: bytes it sends, as read from the compiled program.
        correct: whether every device's result is the expected one.
    """

    held: int
    predicted: float
    compiled: float
    correct: bool


def measure(name: str, axes: Mapping[str, int], over: str, width: int) -> Measured:
    """Run one collective on a mesh, check its result, and count its bytes twice.

    Args:
        name: a key of `OPERATIONS`.
        axes: sizes of the mesh axes by name.
        over: the axis along which the devices communicate.
        width: values on each device (float32), a multiple of the size of that axis.
    """
    operation, n = OPERATIONS[name], axes[over]
    mesh, blocks = device_mesh(axes), P(tuple(axes))

    def body(block):  # one device: float32[1, width]
        result = operation.body(block, over)
        equal = set(axes) - jax.typeof(result).manual_axis_type.varying
        return lax.pcast(result, tuple(equal), to="varying") if equal else result

    run = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=blocks, out_specs=blocks))
    values = np.random.default_rng(0).integers(0, 99, (mesh.size, width))
    values = values.astype(np.float32)  # small integers: sums are exact
    x = jax.device_put(jnp.asarray(values), NamedSharding(mesh, blocks))

    grid = values.reshape(*axes.values(), width)
    groups = np.moveaxis(grid, list(axes).index(over), -2)  # (..., N, width)
    expected = np.stack(
        [operation.expected(g) for g in groups.reshape(-1, n, width)]
    ).reshape(*groups.shape[:-1], -1)
    result = np.asarray(run(x)).reshape(*axes.values(), -1)
    result = np.moveaxis(result, list(axes).index(over), -2)

    whole = 4 * width * (n if operation.kind == "all-gather" else 1)
    return Measured(
        held=4 * width,
        predicted=ring_bytes(operation.kind, whole, n),
        compiled=hlo.wire_bytes(run.lower(x).compile()),
        correct=np.array_equal(result, expected),
    )
