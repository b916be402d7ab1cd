"""The strategy ledger: for each strategy what a device keeps and what it sends.

Every number stands twice: predicted by a formula, and measured on a small stack of MLP
blocks. The measured bytes kept are those of the arrays' own shards, the measured bytes
sent are read from the compiled programs of one training step. The pipeline at run time
sends between programs: of it, they are recorded while it runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import PartitionSpec as P

from chapter3 import (
    fsdp,
    hlo,
    model,
    pipeline,
    pipeline_runtime,
    tensor_parallel,
    zero,
)
from chapter3.devices import device_mesh
from chapter3.reference import in_float64
from chapter3.schedules import one_forward_one_backward
from chapter3.traffic import ring_bytes

KINDS = ("parameters", "gradients", "optimizer")
FLOAT, SCALAR = 4, 4  # bytes of a float32 value; of the loss, and of Adam's counter


@dataclass(frozen=True)
class Entry:
    """One line of the ledger; bytes are per device.

    Attributes:
        strategy: its name.
        mesh: sizes of the mesh axes.
        kept: by kind of state, predicted and measured; empty for a single layer (see
            `chapter3.layer_ledger`).
        executed: collectives of one step by kind; of the pipeline at run time, the
            transfers between stages that the busiest device was the source of.
        sent: predicted and measured, for one step; if the devices differ, by the one
            that sends most.
        difference: largest difference of an updated parameter, or of the layer's
            output, from a single device.
        difference_float64: the same from a single device that computes in float64.
    """

    strategy: str
    mesh: Mapping[str, int]
    kept: Mapping[str, tuple[float, float]]
    executed: Mapping[str, int]
    sent: tuple[float, float]
    difference: float
    difference_float64: float

    @property
    def agrees(self) -> bool:
        """Whether all predictions are exactly what was measured."""
        pairs = [*self.kept.values(), self.sent]
        return all(predicted == measured for predicted, measured in pairs)


@dataclass(frozen=True)
class Problem:
    """The model and the batch of the ledger.

    Attributes:
        devices: number of devices N, also of layers, so that each can be a stage.
        width: width of the model d, a multiple of N.
        hidden: width inside a block h, a multiple of N.
        batch: rows of the batch, a multiple of N and of `microbatches`.
        microbatches: of the pipeline.
    """

    devices: int = 8
    width: int = 16
    hidden: int = 32
    batch: int = 64
    microbatches: int = 8

    @property
    def parameter_bytes(self) -> int:
        """Bytes S of all parameters (global)."""
        return FLOAT * self.devices * 2 * self.width * self.hidden

    @cached_property
    def references(self) -> tuple[Any, Any]:
        """Parameters after one step of Adam on one device, in float32 and float64."""
        arrays = self.arrays()
        float32 = jax.tree.map(np.asarray, _one_device_step(*arrays))
        return float32, in_float64(_one_device_step, *arrays)

    def arrays(self) -> tuple[model.Layers, jax.Array, jax.Array]:
        """Return the parameters, the inputs and the targets, on one device."""
        k_layers, k_x = jax.random.split(jax.random.key(11))
        layers = model.init_blocks(k_layers, self.devices, self.width, self.hidden)
        x = jax.random.normal(k_x, (self.batch, self.width))
        return layers, x, jnp.sin(x)


def entries(problem: Problem) -> list[Entry]:
    """Run one step of every strategy and write its line.

    Args:
        problem: sizes; `devices` many must be there.
    """
    n = problem.devices
    lines = [_plain(problem), *(_zero(problem, stage) for stage in range(4))]
    lines += [_regathering(problem), _tensor(problem, {"data": 1, "model": n}, False)]
    if n >= 4:
        grid = {"data": n // 2, "model": 2}
        lines += [_tensor(problem, grid, fsdp) for fsdp in (False, True)]
    return [*lines, _pipeline(problem), _pipeline_at_run_time(problem)]


def held(tree: Any) -> float:
    """Add up the bytes that the first device of a tree's arrays keeps."""
    return float(
        sum(leaf.addressable_shards[0].data.nbytes for leaf in jax.tree.leaves(tree))
    )


def difference(found: Any, expected: Any) -> float:
    """Return the largest difference between the leaves of two trees."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    return max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)


def _entry(
    strategy: str,
    mesh: Mapping[str, int],
    kept: tuple[float, float, float],
    sent: float,
    state: Mapping[str, Any],
    programs: list[Any],
    errors: tuple[float, float],
) -> Entry:
    executed: dict[str, int] = {}
    for program in programs:
        for kind, times in hlo.executed(program).items():
            executed[kind] = executed.get(kind, 0) + times
    measured = [held(state[kind]) for kind in KINDS]
    return Entry(
        strategy,
        mesh,
        dict(zip(KINDS, zip(kept, measured, strict=True), strict=True)),
        executed,
        (sent, sum(hlo.wire_bytes(program) for program in programs)),
        *errors,
    )


def _one_device_step(layers: model.Layers, x: Any, y: Any) -> Any:
    gradients = jax.grad(model.blocks_loss)(layers, x, y)
    optimizer = optax.adam(0.01)
    updates, _ = optimizer.update(gradients, optimizer.init(layers), layers)
    return optax.apply_updates(layers, updates)


def _differences(found: Any, problem: Problem) -> tuple[float, float]:
    """Compare updated parameters with those of one device, in float32 and float64.

    The pipeline's come stacked: one leaf with all layers instead of a list of layers.
    """
    float32, float64 = problem.references
    if isinstance(found, dict):
        float32, float64 = (
            jax.tree.map(lambda *leaves: np.stack(leaves), *layers)
            for layers in (float32, float64)
        )
    return difference(found, float32), difference(found, float64)


def _loss_bytes(problem: Problem) -> float:
    return ring_bytes("all-reduce", SCALAR, problem.devices)


def _plain(problem: Problem) -> Entry:
    n, s = problem.devices, problem.parameter_bytes
    mesh, optimizer = device_mesh({"data": n}), optax.adam(0.01)
    layers, x, y = problem.arrays()
    parameters = zero.place(layers, mesh, P())
    batch = zero.place((x, y), mesh, P("data"))
    state = zero.place(optimizer.init(layers), mesh, P())

    def step(parameters, state, x, y):
        value, gradients = jax.value_and_grad(model.blocks_loss)(parameters, x, y)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, gradients, value

    compiled: Any = jax.jit(step)
    new, _, gradients, _ = compiled(parameters, state, *batch)
    return _entry(
        "DP with jit",
        {"data": n},
        (s, s, 2 * s + SCALAR),
        ring_bytes("all-reduce", s + SCALAR, n),
        {"parameters": parameters, "gradients": gradients, "optimizer": state},
        [compiled.lower(parameters, state, *batch).compile()],
        _differences(new, problem),
    )


def _zero(problem: Problem, stage: int) -> Entry:
    n, s = problem.devices, problem.parameter_bytes
    mesh, optimizer = device_mesh({"data": n}), optax.adam(0.01)
    layers, x, y = problem.arrays()
    run = zero.training(stage, model.blocks_loss, optimizer, mesh)
    state, batch = run.init(layers), zero.place((x, y), mesh, P("data"))
    programs = [
        run.accumulate.lower(state, batch).compile(),
        run.apply.lower(state).compile(),
    ]
    kept = (
        s / n if stage == 3 else s,
        s / n if stage >= 2 else s,
        2 * (s / n if stage >= 1 else s) + SCALAR,
    )
    state_before = jax.tree.map(jnp.array, state)
    new = run.apply(run.accumulate(state, batch)[0])
    names = ("DP with shard_map", "ZeRO-1", "ZeRO-2", "ZeRO-3, gathered once")
    one = ring_bytes("all-gather", s, n) + ring_bytes("reduce-scatter", s, n)
    return _entry(
        names[stage],
        {"data": n},
        kept,
        (ring_bytes("all-reduce", s, n) if stage == 0 else one) + _loss_bytes(problem),
        state_before,
        programs,
        _differences(new["parameters"], problem),
    )


def _gradient_entry(
    problem: Problem,
    strategy: str,
    axes: Mapping[str, int],
    share: float,
    sent: float,
    gradients: Any,
    arguments: tuple[Any, ...],
) -> Entry:
    """Train one step of Adam with a strategy whose state is cut like its parameters."""
    s, optimizer = problem.parameter_bytes, optax.adam(0.01)

    def step(parameters, state, *batch):
        value, found = gradients(parameters, *batch)
        updates, state = optimizer.update(found, state, parameters)
        return optax.apply_updates(parameters, updates), state, found, value

    parameters, *batch = arguments
    compiled: Any = jax.jit(step)
    before = jax.jit(optimizer.init)(parameters)
    new, state, found, _ = compiled(parameters, before, *batch)
    return _entry(
        strategy,
        axes,
        (s * share, s * share, 2 * s * share + SCALAR),
        sent,
        {"parameters": new, "gradients": found, "optimizer": state},
        [compiled.lower(parameters, before, *batch).compile()],
        _differences(new, problem),
    )


def _regathering(problem: Problem) -> Entry:
    n, s = problem.devices, problem.parameter_bytes
    mesh = device_mesh({"data": n})
    layers, x, y = problem.arrays()
    loss = fsdp.regathering(model.block, lambda out, y: jnp.mean((out - y) ** 2))

    def local(shares, x, y):
        value, gradient = jax.value_and_grad(loss)(shares, x, y)
        mean = jax.tree.map(lambda g: g / n, gradient)
        return jax.lax.pmean(value, zero.AXIS), mean

    share = P(zero.AXIS)
    mapped = jax.shard_map(
        local, mesh=mesh, in_specs=(share,) * 3, out_specs=(P(), share)
    )
    arguments = (zero.place(layers, mesh, share), *zero.place((x, y), mesh, share))
    rounds = 2 * ring_bytes("all-gather", s, n) + ring_bytes("reduce-scatter", s, n)
    return _gradient_entry(
        problem,
        "ZeRO-3, gathered twice",
        {"data": n},
        1 / n,
        rounds + _loss_bytes(problem),
        jax.jit(mapped),
        arguments,
    )


def tensor_bytes(
    axes: Mapping[str, int],
    parameter_bytes: float,
    activation_bytes: float,
    layers: int,
) -> dict[str, float]:
    """Predict what each device sends over each axis in a step of DP x TP.

    Args:
        axes: sizes of "data" and "model".
        parameter_bytes: S, global.
        activation_bytes: bytes of the activations of the global batch at one layer.
        layers: number of blocks.

    Returns:
        Over "model", one all-reduce of a device's activations per block forward and one
        backward (not for the first block, whose input needs no gradient); over "data",
        one of its share of the gradients. The 4 bytes of the loss are not in it.
    """
    data, tensor = axes["data"], axes["model"]
    reductions = 2 * layers - 1
    return {
        "model": reductions * ring_bytes("all-reduce", activation_bytes / data, tensor),
        "data": ring_bytes("all-reduce", parameter_bytes / tensor, data),
    }


def _tensor(problem: Problem, axes: Mapping[str, int], with_fsdp: bool) -> Entry:
    mesh, count = device_mesh(axes), problem.devices
    layers, x, y = problem.arrays()
    weights = tensor_parallel.WEIGHTS_FSDP if with_fsdp else tensor_parallel.WEIGHTS
    shares = [
        {name: zero.place(w, mesh, weights[name]) for name, w in layer.items()}
        for layer in layers
    ]
    batch = zero.place((x, y), mesh, P("data", None))
    activations = FLOAT * problem.batch * problem.width
    by_axis = tensor_bytes(axes, problem.parameter_bytes, activations, count)
    parts = axes["model"] * (axes["data"] if with_fsdp else 1)
    name = "TP" if axes["data"] == 1 else f"{'FSDP' if with_fsdp else 'DP'} x TP"
    return _gradient_entry(
        problem,
        name,
        axes,
        1 / parts,
        sum(by_axis.values()) + ring_bytes("all-reduce", SCALAR, axes["data"]),
        tensor_parallel.gradients(mesh, count, fsdp=with_fsdp),
        (shares, *batch),
    )


def pipeline_bytes(stages: int, microbatches: int, activation_bytes: float) -> float:
    """Predict what each device sends in a step of the SPMD pipeline.

    Args:
        stages: p.
        microbatches: m.
        activation_bytes: bytes of the activations of the whole batch at one layer.

    Returns:
        In each of m+p-1 ticks a microbatch forward and one backward, idle or not, and
        its number (4 bytes) forward; then an all-reduce of the result.
    """
    ticks = microbatches + stages - 1
    each = activation_bytes / microbatches
    return ticks * (2 * each + 4) + ring_bytes("all-reduce", activation_bytes, stages)


def _pipeline(problem: Problem) -> Entry:
    p, m = problem.devices, problem.microbatches
    mesh = device_mesh({pipeline.AXIS: p})
    layers, x, y = problem.arrays()
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)
    chain = pipeline.pipeline(model.block, mesh, m)

    def loss(weights, x, y):
        return jnp.mean((chain(weights, x)[0] - y) ** 2)

    arguments = (
        zero.place(stacked, mesh, P(pipeline.AXIS)),
        *zero.place((x, y), mesh, P()),
    )
    activations = FLOAT * problem.batch * problem.width
    return _gradient_entry(
        problem,
        f"pipeline, m = {m}",
        {pipeline.AXIS: p},
        1 / p,
        pipeline_bytes(p, m, activations),
        jax.jit(jax.value_and_grad(loss)),
        arguments,
    )


def handed_over_bytes(stages: int, activation_bytes: float) -> float:
    """Predict what the busiest device of a pipeline at run time sends in a step.

    Args:
        stages: p, one device each.
        activation_bytes: bytes of the activations of the whole batch at one layer.

    Returns:
        A stage between two others sends all activations on and all their gradients
        back, once each. The first has nobody to send gradients to, the last no one to
        send activations to.
    """
    return min(stages - 1, 2) * activation_bytes


def _pipeline_at_run_time(problem: Problem) -> Entry:
    p, m, s = problem.devices, problem.microbatches, problem.parameter_bytes
    mesh, optimizer = device_mesh({"stage": p, "data": 1}), optax.adam(0.01)
    meshes = pipeline_runtime.sub_meshes(mesh, "stage")
    layers, x, y = problem.arrays()
    programs = pipeline_runtime.compile_stage(
        model.block, lambda out, y: jnp.mean((out - y) ** 2)
    )
    schedule = one_forward_one_backward(p, m)
    _, gradients, log = pipeline_runtime.run(programs, layers, (x, y), meshes, schedule)

    @jax.jit
    def update(gradient, state, parameters):
        updates, state = optimizer.update(gradient, state, parameters)
        return optax.apply_updates(parameters, updates), state

    states = []  # of each stage, on its device
    for layer, gradient, where in zip(layers, gradients, meshes, strict=True):
        parameters = zero.place(layer, where, P())
        new, moments = update(gradient, optimizer.init(parameters), parameters)
        states.append(dict(zip(KINDS, (new, gradient, moments), strict=True)))
    kept = (s / p, s / p, 2 * s / p + SCALAR)
    measured = [max(held(state[kind]) for state in states) for kind in KINDS]

    by_source: dict[frozenset[int], list[int]] = {}
    for transfer in log.transfers:
        if transfer.what in ("activation", "gradient"):
            by_source.setdefault(transfer.source, []).append(transfer.nbytes)
    busiest = max(by_source.values(), key=sum)
    activations = FLOAT * problem.batch * problem.width
    return Entry(
        "pipeline at run time",
        {"stage": p},
        dict(zip(KINDS, zip(kept, measured, strict=True), strict=True)),
        {"device_put": len(busiest)},
        (handed_over_bytes(p, activations), float(sum(busiest))),
        *_differences([state["parameters"] for state in states], problem),
    )
