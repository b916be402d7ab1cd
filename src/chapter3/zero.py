"""Data parallelism and ZeRO-1, -2, -3: one training step, more and more of it sharded.

The state has three parts: parameters, gradients, and what the optimizer keeps. At each
stage one more of them is cut into N shares along dimension 0. A step is `accumulate`,
once for each microbatch, then `apply`; between the two the gradients are state too.

Source: “ZeRO: Memory Optimizations Toward Training Trillion Parameter Models”
(Rajbhandari and others, 2020).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXIS = "data"


@dataclass(frozen=True)
class Training:
    """The compiled parts of a training loop.

    Attributes:
        init: from the parameters (whole) to the state, placed on the mesh.
        accumulate: from the state and a sharded batch (x, y) to the state with the
            gradients added, and the loss.
        apply: from the state to the state after the update, gradients zero.
    """

    init: Any
    accumulate: Any
    apply: Any


def place(tree: Any, mesh: Mesh, spec: P) -> Any:
    """Put a copy of a tree on the mesh; scalars are replicated.

    A copy, because a step may donate it: `device_put` alone can make the caller's own
    array the part on the first device, and it would be deleted with the others.
    """

    def put(leaf):
        sharding = NamedSharding(mesh, spec if jnp.ndim(leaf) else P())
        return jax.device_put(jnp.array(leaf), sharding)

    return jax.tree.map(put, tree)


def gather(tree: Any, to: str = "varying") -> Any:
    """Collect all devices' shares: from (rows/N, ...) to (rows, ...) per device."""
    collect = partial(lax.all_gather, axis_name=AXIS, tiled=True, to=to)
    with jax.named_scope("gather"):
        return jax.tree.map(collect, tree)


def all_reduce_mean(tree: Any) -> Any:
    """Average over devices: of one shape before and after, and then equal on all."""
    with jax.named_scope("all_reduce"):
        return lax.pmean(tree, AXIS)


def scatter_mean(tree: Any) -> Any:
    """Average over devices, keep the own share: from (rows, ...) to (rows/N, ...)."""
    n = lax.axis_size(AXIS)
    with jax.named_scope("scatter"):
        return jax.tree.map(
            lambda g: lax.psum_scatter(g, AXIS, scatter_dimension=0, tiled=True) / n,
            tree,
        )


def own_share(tree: Any) -> Any:
    """Cut the own share out of what is whole on each device; no communication."""
    n, i = lax.axis_size(AXIS), lax.axis_index(AXIS)
    return jax.tree.map(
        lambda x: lax.dynamic_slice_in_dim(x, i * (len(x) // n), len(x) // n), tree
    )


def training(
    stage: int, loss: Callable, optimizer: optax.GradientTransformation, mesh: Mesh
) -> Training:
    """Build the step of stage 0 (plain data parallelism), 1, 2 or 3.

    Args:
        stage: 0 shards nothing, 1 the optimizer state, 2 the gradients too, 3 all.
        loss: of parameters and a batch (x, y): the mean over the batch it is given.
        optimizer: element-wise (as Adam is): it must not mix the shares.
        mesh: has one axis, "data", whose size divides dimension 0 of each parameter.
    """
    if stage not in (0, 1, 2, 3):
        raise ValueError(f"{stage=} must be 0, 1, 2 or 3")
    share, whole = P(AXIS), P()
    parameters_spec = share if stage >= 3 else whole
    optimizer_spec = share if stage >= 1 else whole
    n = mesh.shape[AXIS]

    def init(parameters):
        # Unsharded gradients differ on each device: they get a leading device axis.
        shape = (lambda p: p.shape) if stage >= 2 else (lambda p: (n, *p.shape))
        # Made where they belong, not whole on one device and then cut.
        shares = NamedSharding(mesh, share)

        def zeros():
            return jax.tree.map(lambda p: jnp.zeros(shape(p), p.dtype), parameters)

        wanted = jax.tree.map(
            lambda s: NamedSharding(mesh, optimizer_spec if s.ndim else whole),
            jax.eval_shape(optimizer.init, parameters),
        )
        placed = place(parameters, mesh, parameters_spec)
        return {
            "parameters": placed,
            "gradients": jax.jit(zeros, out_shardings=shares)(),
            "optimizer": jax.jit(optimizer.init, out_shardings=wanted)(placed),
        }

    def accumulate(parameters, gradients, x, y):
        full = (
            gather(parameters)
            if stage >= 3
            else lax.pcast(parameters, AXIS, to="varying")
        )
        value, new = jax.value_and_grad(loss)(full, x, y)  # of the local batch
        new = scatter_mean(new) if stage >= 2 else jax.tree.map(lambda g: g[None], new)
        return jax.tree.map(jnp.add, gradients, new), lax.pmean(value, AXIS)

    def apply(parameters, gradients, state):
        if stage >= 2:
            mean = gradients
        else:
            local = jax.tree.map(lambda g: g[0], gradients)
            mean = scatter_mean(local) if stage == 1 else all_reduce_mean(local)
        mine = own_share(parameters) if stage in (1, 2) else parameters
        updates, state = optimizer.update(mean, state, mine)
        new = optax.apply_updates(mine, updates)
        if stage in (1, 2):
            new = gather(new, to="invarying")
        return new, jax.tree.map(jnp.zeros_like, gradients), state

    def state_specs(state):
        return jax.tree.map(lambda s: optimizer_spec if s.ndim else whole, state)

    @partial(jax.jit, donate_argnums=0)
    def accumulate_state(state, batch):
        mapped = jax.shard_map(
            accumulate,
            mesh=mesh,
            in_specs=(parameters_spec, share, share, share),
            out_specs=(share, whole),
        )
        gradients, value = mapped(state["parameters"], state["gradients"], *batch)
        return state | {"gradients": gradients}, value

    @partial(jax.jit, donate_argnums=0)
    def apply_state(state):
        specs = (parameters_spec, share, state_specs(state["optimizer"]))
        mapped = jax.shard_map(apply, mesh=mesh, in_specs=specs, out_specs=specs)
        new = mapped(state["parameters"], state["gradients"], state["optimizer"])
        return dict(zip(("parameters", "gradients", "optimizer"), new, strict=True))

    return Training(init, accumulate_state, apply_state)
