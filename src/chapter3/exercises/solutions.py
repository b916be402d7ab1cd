"""Reference answers to the exercises."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3.exercises import clipping, transpose, two_axes, zero_one
from chapter3.zero import gather, own_share, scatter_mean


def transposed(x: jax.Array) -> jax.Array:
    """Exercise 1: from (rows, columns) to (columns, rows), both cut by rows."""

    def local(x):  # one device: (rows/N, columns)
        with jax.named_scope("columns_for_rows"):
            x = lax.all_to_all(x, "i", 1, 0, tiled=True)  # split, concat
        return x.T  # from (rows, columns/N) to (columns/N, rows)

    mesh, rows = transpose.mesh(), P("i", None)
    mapped = jax.shard_map(local, mesh=mesh, in_specs=rows, out_specs=rows)
    return mapped(x)


def clip(g: Any, max_norm: jax.Array) -> tuple[Any, jax.Array]:
    """Exercise 2: clip gradients in shares by their global norm."""

    def local(g, max_norm):  # one device: an eighth of each leaf
        squares = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(g))
        with jax.named_scope("global_norm"):
            norm = jnp.sqrt(lax.psum(squares, "data"))
        scale = jnp.minimum(1, max_norm / norm)
        return jax.tree.map(lambda leaf: scale * leaf, g), norm

    mesh, specs = clipping.mesh(), (P("data"), P())
    mapped = jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=specs)
    return mapped(g, max_norm)


def make_step() -> Callable:
    """Exercise 3: a step whose parameters are cut as before, by contract."""

    def loss(p, x, y):
        h = jax.nn.relu(x @ p["w1"] + p["b1"][None])  # (batch/data, hidden/model)
        return jnp.mean((h @ p["w2"] - y) ** 2)

    def step(p, x, y):
        gradients = jax.grad(loss)(p, x, y)
        return jax.tree.map(lambda w, g: w - 0.1 * g, p, gradients)

    mesh, specs = two_axes.mesh(), two_axes.SPECS
    kept = {name: NamedSharding(mesh, specs[name]) for name in specs}
    return jax.jit(step, out_shardings=kept)


def order(stage: int, stages: int, microbatches: int) -> list[tuple[str, int]]:
    """Exercise 4: the work of one stage, one forward one backward."""
    ahead = min(stages - stage, microbatches)
    work = [("F", i) for i in range(ahead)]
    for i in range(microbatches):
        work.append(("B", i))
        if ahead + i < microbatches:
            work.append(("F", ahead + i))
    return work


def zero1_step(params: Any, state: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Exercise 5: a step of Adam with the optimizer's state in shares."""

    def local(params, state, x, y):
        own = lax.pcast(params, "data", to="varying")  # else JAX sums it
        g = scatter_mean(jax.grad(zero_one.loss)(own, x, y))  # rows/N
        t = state["count"] + 1
        m, v = state["m"], state["v"]
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, v, g)
        n = t.astype(jnp.float32)

        def update(p, m, v):
            m, v = m / (1 - 0.9**n), v / (1 - 0.999**n)
            return p - 0.01 * m / (jnp.sqrt(v) + 1e-8)

        new = jax.tree.map(update, own_share(params), m, v)
        whole = gather(new, to="invarying")
        return whole, {"m": m, "v": v, "count": t}

    share, whole = P("data"), P()
    kept = {"m": share, "v": share, "count": whole}
    mapped = jax.shard_map(
        local,
        mesh=zero_one.mesh(),
        in_specs=(whole, kept, share, share),
        out_specs=(whole, kept),
    )
    return mapped(params, state, x, y)


def global_mean(load: Callable, files: int) -> np.ndarray:
    """Exercise 6: the mean over all files, each loaded by one process."""
    # A line for each device: three sums and a count.
    local = np.zeros((jax.local_device_count(), 4), np.float32)
    for k in range(jax.process_index(), files, jax.process_count()):
        rows = load(k)
        local[0] += [*rows.sum(axis=0), len(rows)]
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    cut, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    lines = jax.make_array_from_process_local_data(cut, local)
    add = jax.jit(lambda a: a.sum(axis=0), out_shardings=everywhere)
    sums = np.asarray(add(lines))
    return sums[:3] / sums[3]
