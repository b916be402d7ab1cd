"""One process of several: random numbers that must be equal, and that must differ."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.multihost_utils import process_allgather
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Array

from chapter3 import data_parallel
from chapter3.launcher import join, report
from chapter3.loading import load_batch
from chapter3.reference import linear_data
from chapter3.replicas import replicas_agree

step = jax.jit(data_parallel.step, static_argnums=3)


def init(key: Array) -> dict[str, Array]:
    """Draw the parameters of a linear model."""
    return {"w": jax.random.normal(key, (5, 1)), "b": jnp.zeros(1)}


def initialise_and_train(mesh: Mesh, key: Array) -> dict:
    """Train from parameters drawn with `key`, which should be the same everywhere."""
    by_rows, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    params = jax.jit(init, out_shardings=everywhere)(key)
    start = params["w"]
    batch = [load_batch(by_rows, a.shape, a.__getitem__) for a in linear_data(64)]
    losses = []
    for _ in range(30):
        params, loss = step(params, *batch, 0.1)
        losses.append(float(loss))
    return {
        "start": np.asarray(start)[:, 0].tolist(),
        "replicas agree": replicas_agree(start),
        "end": np.asarray(params["w"])[:, 0].tolist(),
        "losses": losses,
    }


def noise_for_own_rows(mesh: Mesh, key: Array) -> list[float]:
    """Draw a number for each row of this process; return those of all rows."""
    own = np.asarray(jax.random.normal(key, (jax.local_device_count(),)))
    by_rows = NamedSharding(mesh, P("data"))
    noise = jax.make_array_from_process_local_data(by_rows, own, (mesh.size,))
    return process_allgather(noise, tiled=True).tolist()


def noise_for_all_rows(mesh: Mesh, key: Array) -> list[float]:
    """Draw the numbers of all rows as one global array, which is sharded."""

    def draw(key):
        return jax.random.normal(key, (mesh.size,), out_sharding=P("data"))

    with jax.set_mesh(mesh):
        return process_allgather(jax.jit(draw)(key), tiled=True).tolist()


def main() -> None:
    """Join the other processes, draw in each way, report."""
    join()
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    process, key = jax.process_index(), jax.random.key(1)
    report(
        {
            "same seed": initialise_and_train(mesh, jax.random.key(0)),
            "seed = process": initialise_and_train(mesh, jax.random.key(process)),
            "same key": noise_for_own_rows(mesh, key),
            "folded": noise_for_own_rows(mesh, jax.random.fold_in(key, process)),
            "global": noise_for_all_rows(mesh, key),
        }
    )


if __name__ == "__main__":
    main()
