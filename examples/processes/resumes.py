"""Training on several processes that goes on from its last checkpoint when restarted.

    resumes.py FOLDER STEPS [kill PROCESS STEP | kill-while-saving PROCESS STEP]

The last three arguments make a process kill itself, as `kill -9` would, before it
computes a step or while the checkpoint of a step is being written.
"""

import json
import os
import signal
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import optax
import orbax.checkpoint as ocp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3.launcher import join, report

folder, steps = Path(sys.argv[1]), int(sys.argv[2])
fate, victim, fatal = sys.argv[3:] or ("", "", "")

join()
mesh = jax.make_mesh((jax.device_count(),), ("data",))
optimizer = optax.adam(1e-2)


def init() -> dict:
    """Make parameters and optimizer state; under jit, each device makes its share."""
    params = {"w": jnp.zeros((16, 4)), "b": jnp.zeros(4)}
    return {"params": params, "optimizer": optimizer.init(params)}


def sharding(leaf: jax.ShapeDtypeStruct) -> NamedSharding:
    """Cut matrices by rows, as in FSDP; keep the rest everywhere."""
    return NamedSharding(mesh, P("data", None) if leaf.ndim == 2 else P())


@jax.jit
def train_step(state: dict, step: jax.Array) -> dict:
    """Take one step on a batch that depends on its number alone."""
    x = jax.random.normal(jax.random.key(step), (64, 16), out_sharding=P("data", None))
    y = jnp.sin(x[:, :4])

    def loss(params):
        w = jax.reshard(params["w"], P(None, None))  # gathered
        return jnp.mean((x @ w + params["b"] - y) ** 2)

    gradients = jax.grad(loss)(state["params"])
    updates, moments = optimizer.update(gradients, state["optimizer"])
    return {
        "params": optax.apply_updates(state["params"], updates),
        "optimizer": moments,
    }


def note(did: str, step: int) -> None:
    """Write down what happened, on process 0 only."""
    if jax.process_index() == 0:
        with folder.with_suffix(".log").open("a") as log:
            print(json.dumps([did, step]), file=log)


def die_if(at: str, step: int) -> None:
    """Do what `kill -9` does, if it is this process's fate here; first all get here."""
    if [fate, fatal] == [at, str(step)]:
        wait_for_all = ocp.multihost.get_barrier_sync_fn()
        wait_for_all(key=f"{at} {step}", timeout_ms=60_000)
        if victim == str(jax.process_index()):
            os.kill(os.getpid(), signal.SIGKILL)


def barrier(*, key: str, timeout_ms: int) -> None:
    """Wait for the others, as Orbax does between writing and putting in place."""
    if "write_complete" in key:
        die_if("kill-while-saving", step)
    ocp.multihost.get_barrier_sync_fn()(key=key, timeout_ms=timeout_ms)


options = ocp.CheckpointManagerOptions(
    async_options=ocp.AsyncOptions(barrier_sync_fn=barrier)
)
with jax.set_mesh(mesh), ocp.CheckpointManager(folder, options=options) as manager:
    shapes = jax.eval_shape(init)
    shardings = jax.tree.map(sharding, shapes)
    start = manager.latest_step() or 0
    if start:
        wanted = jax.tree.map(
            lambda leaf, sharding: leaf.update(sharding=sharding), shapes, shardings
        )
        state = manager.restore(start, args=ocp.args.StandardRestore(wanted))
        note("restored", start)
    else:
        state = jax.jit(init, out_shardings=shardings)()
    for step in range(start + 1, steps + 1):
        die_if("kill", step)
        state = jax.block_until_ready(train_step(state, step))
        note("computed", step)
        if step % 3 == 0:
            manager.save(step, args=ocp.args.StandardSave(state))
            manager.wait_until_finished()  # so that we know what is complete when
            note("saved", step)
whole = jax.jit(lambda s: s, out_shardings=NamedSharding(mesh, P()))(state["params"])
report({name: leaf.tolist() for name, leaf in whole.items()})
