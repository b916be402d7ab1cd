"""One process of several: load a batch that is split over data, copied over model.

The same shape of mesh twice, with the devices arranged in two ways: so that the
processes lie along the data axis, and so that they lie along the model axis.
"""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3.launcher import join, report
from chapter3.loading import load_batch
from chapter3.replicas import replicas_agree

SHAPE = (8, 2)


def read(rows: np.ndarray) -> np.ndarray:
    """Stand for reading rows of a file: row r is [10 r, 10 r + 1]."""
    return (10 * rows[:, None] + np.arange(SHAPE[1])).astype(np.float32)


def meshes() -> dict[str, Mesh]:
    """Arrange all devices in two ways; `grid` has a line for each process."""
    grid = np.array(jax.devices()).reshape(jax.process_count(), -1)
    arranged = {"data": grid.reshape(grid.T.shape), "model": grid.T}
    explicit = (AxisType.Explicit, AxisType.Explicit)
    return {
        along: Mesh(devices, ("data", "model"), axis_types=explicit)
        for along, devices in arranged.items()
    }


def load(mesh: Mesh) -> dict:
    """Load a batch; say what this process read and what its devices hold."""
    by_rows = NamedSharding(mesh, P("data"))
    read_here: list[int] = []

    def read_and_note(rows):
        read_here.extend(rows.tolist())
        return read(rows)

    batch = load_batch(by_rows, SHAPE, read_and_note)
    return {
        "rows read": read_here,
        "held": [
            (s.device.id, *s.index[0].indices(SHAPE[0])[:2])
            for s in batch.addressable_shards
        ],
        "type": str(jax.typeof(batch)),
        "sum": float(batch.sum()),
        "replicas agree": replicas_agree(batch),
    }


def load_by_callback(mesh: Mesh) -> dict:
    """Load the same batch with a function that JAX calls; say for which rows it did."""
    by_rows = NamedSharding(mesh, P("data"))
    calls: list[list[int]] = []

    def rows_of(index):
        rows = np.arange(SHAPE[0])[index[0]]
        calls.append(rows.tolist())
        return read(rows)

    batch = jax.make_array_from_callback(SHAPE, by_rows, rows_of)
    equal = (batch == load_batch(by_rows, SHAPE, read)).all()
    return {"calls": calls, "equal": bool(equal)}


def cut_by_process(mesh: Mesh) -> dict:
    """Wrong where processes lie along model: cut the batch by `process_index`."""
    each = SHAPE[0] // jax.process_count()
    rows = np.arange(each) + each * jax.process_index()
    by_rows = NamedSharding(mesh, P("data"))
    batch = jax.make_array_from_process_local_data(by_rows, read(rows))
    try:
        jax.make_array_from_process_local_data(by_rows, read(rows), SHAPE)
        refused = ""
    except ValueError as error:
        refused = str(error)
    return {
        "refused with the global shape": refused,
        "shape": batch.shape,
        "sum": float(batch.sum()),
        "replicas agree": replicas_agree(batch),
    }


def load_and_copy(mesh: Mesh) -> dict:
    """Read each row once, by one process only, and copy over model afterwards."""
    apart = load_batch(NamedSharding(mesh, P(("model", "data"))), SHAPE, read)
    by_rows = NamedSharding(mesh, P("data"))
    copied = jax.reshard(apart, by_rows)
    equal = (copied == load_batch(by_rows, SHAPE, read)).all()
    return {"type": str(jax.typeof(copied)), "equal": bool(equal)}


def main() -> None:
    """Join the other processes, load in both arrangements, report."""
    join()
    arranged = meshes()
    found: dict = {along: load(mesh) for along, mesh in arranged.items()}
    usual = jax.make_mesh(arranged["data"].devices.shape, ("data", "model"))
    found["make_mesh's is the first"] = usual == arranged["data"]
    found["callback"] = load_by_callback(arranged["data"])
    found["cut by process"] = cut_by_process(arranged["model"])
    found["read once"] = load_and_copy(arranged["model"])
    report(found)


if __name__ == "__main__":
    main()
