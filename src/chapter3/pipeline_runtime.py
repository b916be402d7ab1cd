"""A pipeline driven from Python: each stage is a program of its own, on its own mesh.

The stages are separate compiled functions, `device_put` moves activations from one
sub-mesh to the next, and JAX's asynchronous dispatch lets them overlap. The order of
the calls is that of a schedule, such as 1F1B. What is moved is written down while it
happens, since no compiled program contains it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3.schedules import Schedule, Work
from chapter3.transfers import Transfer


@dataclass(frozen=True)
class Log:
    """What a run did, in the order in which Python did it.

    Attributes:
        calls: forwards and backwards, as they were dispatched.
        transfers: what was handed from one device to another for them.
    """

    calls: list[Work]
    transfers: list[Transfer]


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
) -> tuple[Any, list[Any], Log]:
    """Run forward and backward of a batch in the order of a schedule.

    Args:
        programs: from `compile_stage`.
        weights: for each stage, on the host or on any device.
        batch: inputs and targets, shape (batch, ...) each.
        meshes: one for each stage, with one axis over which the microbatch is cut.
        schedule: for as many devices as stages, one stage each (chunks = 1).

    Returns:
        The mean loss, the gradients for each stage (on its mesh), and the log.

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
    xs, ys = (jnp.reshape(a, (m, -1, *a.shape[1:])) for a in batch)
    last = len(meshes) - 1

    given: dict[Work, Any] = {}  # what each piece of work gets from elsewhere
    gradients: list[Any] = [None] * len(meshes)
    total, log = 0.0, Log([], [])

    def move(what, array, work):
        """Put an array where `work` needs it, and write down what that moved."""
        there = jax.device_put(array, rows[work.stage])
        log.transfers.append(Transfer.between(array, there, what, work))
        return there

    # In order of time, as one host would issue them; ties go to the earlier stage.
    for slot in sorted(schedule.slots, key=lambda slot: (slot.start, slot.work.stage)):
        work = slot.work
        phase, i, s = work
        if phase == "F":
            if s == 0:
                given[work] = move("input", xs[i], work)
            y = programs.forward(placed[s], given[work])  # kept for the backward
            if s < last:
                following = Work("F", i, s + 1)
                given[following] = move("activation", y, following)
            else:
                targets = move("target", ys[i], work)
                value, given[Work("B", i, s)] = programs.final(y, targets)
                total += value
        else:
            x, cotangent = given.pop(Work("F", i, s)), given.pop(work)
            dw, dx = programs.backward(placed[s], x, cotangent)
            so_far = gradients[s]
            gradients[s] = dw if so_far is None else programs.add(so_far, dw)
            if s > 0:
                following = Work("B", i, s - 1)
                given[following] = move("gradient", dx, following)
        log.calls.append(work)
    mean = [jax.tree.map(lambda g: g / m, g) for g in gradients]
    return total / m, mean, log
