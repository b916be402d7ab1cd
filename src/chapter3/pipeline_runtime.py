"""A pipeline driven from Python: each stage is a program of its own, on its own mesh.

The stages are separate compiled functions, `device_put` moves activations from one
sub-mesh to the next, and JAX's asynchronous dispatch lets them overlap. The order of
the calls is that of a schedule, such as 1F1B.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3.schedules import Schedule, Work


@dataclass(frozen=True)
class Dispatched:
    """One call: the work, and when the call began and returned (seconds)."""

    work: Work
    begin: float
    end: float


def sub_meshes(mesh: Mesh, axis: str) -> list[Mesh]:
    """Cut a mesh into one mesh for each position along `axis`.

    Raises:
        ValueError: the mesh has no other axis.
    """
    along = mesh.axis_names.index(axis)
    kept = [k for k in range(len(mesh.axis_names)) if k != along]
    if not kept:
        raise ValueError(f"{mesh.axis_names=} needs an axis besides {axis!r}")
    names = tuple(mesh.axis_names[k] for k in kept)
    types = tuple(mesh.axis_types[k] for k in kept)
    return [
        Mesh(mesh.devices.take(i, along), names, axis_types=types)
        for i in range(mesh.shape[axis])
    ]


@dataclass(frozen=True)
class Programs:
    """The compiled functions of a pipeline; make them once with `compile_stage`."""

    forward: Callable
    final: Callable
    backward: Callable
    add: Callable


def compile_stage(stage: Callable, loss: Callable) -> Programs:
    """Compile what the stages run, each on the mesh of its inputs.

    Args:
        stage: of one stage's weights and an activation, to an activation.
        loss: of the last activation and the targets of a microbatch, to its mean.
    """

    def backward(w, x, cotangent):
        return jax.vjp(stage, w, x)[1](cotangent)

    return Programs(
        forward=jax.jit(stage),
        final=jax.jit(jax.value_and_grad(loss)),
        backward=jax.jit(backward),
        add=jax.jit(lambda a, b: jax.tree.map(jnp.add, a, b)),
    )


def run(
    programs: Programs,
    weights: Sequence[Any],
    batch: tuple[Any, Any],
    meshes: Sequence[Mesh],
    schedule: Schedule,
) -> tuple[Any, list[Any], list[Dispatched]]:
    """Run forward and backward of a batch in the order of a schedule.

    Args:
        programs: from `compile_stage`.
        weights: for each stage, on the host or on any device.
        batch: inputs and targets, shape (batch, ...) each.
        meshes: one for each stage, with one axis over which the microbatch is cut.
        schedule: for as many devices as stages, one stage each (chunks = 1).

    Returns:
        The mean loss, the gradients for each stage (on its mesh), and the calls in the
        order in which they were dispatched.

    Raises:
        ValueError: numbers of stages differ, or m does not divide the batch.
    """
    m = schedule.microbatches
    if not len(weights) == len(meshes) == schedule.devices or len(batch[0]) % m:
        raise ValueError(
            f"{len(weights)=}, {len(meshes)=} and {schedule.devices=} must be equal, "
            f"and {len(batch[0])=} a multiple of {m} microbatches"
        )
    rows = [NamedSharding(mesh, P(mesh.axis_names[0])) for mesh in meshes]
    whole = [NamedSharding(mesh, P()) for mesh in meshes]
    placed = [jax.device_put(w, s) for w, s in zip(weights, whole, strict=True)]
    xs, ys = (a.reshape(m, -1, *a.shape[1:]) for a in batch)
    last = len(meshes) - 1

    inputs: dict[tuple[int, int], Any] = {}  # activations kept for the backward
    arriving: dict[tuple[str, int, int], Any] = {}
    gradients: list[Any] = [None] * len(meshes)
    total, calls = 0.0, []
    # In order of time, as one host would issue them; ties go to the earlier stage.
    order = sorted(schedule.slots, key=lambda slot: (slot.start, slot.work.stage))
    start = time.perf_counter()
    for slot in order:
        begin = time.perf_counter() - start
        s, i = slot.work.stage, slot.work.microbatch
        if slot.work.phase == "F":
            x = jax.device_put(xs[i], rows[0]) if s == 0 else arriving.pop(("F", i, s))
            inputs[i, s] = x
            y = programs.forward(placed[s], x)
            if s < last:
                arriving["F", i, s + 1] = jax.device_put(y, rows[s + 1])
            else:
                value, g = programs.final(y, jax.device_put(ys[i], rows[s]))
                total, arriving["B", i, s] = total + value, g
        else:
            x, cotangent = inputs.pop((i, s)), arriving.pop(("B", i, s))
            dw, dx = programs.backward(placed[s], x, cotangent)
            so_far = gradients[s]
            gradients[s] = dw if so_far is None else programs.add(so_far, dw)
            if s > 0:
                arriving["B", i, s - 1] = jax.device_put(dx, rows[s - 1])
        calls.append(Dispatched(slot.work, begin, time.perf_counter() - start))
    mean = [jax.tree.map(lambda g: g / m, g) for g in gradients]
    return total / m, mean, calls
