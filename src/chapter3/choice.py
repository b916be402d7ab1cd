"""Which strategy when: memory and time on the wire, from the formulas of the ledger."""

from dataclasses import dataclass

from chapter3.ledger import pipeline_bytes, tensor_bytes
from chapter3.memory import SHARDED, bytes_per_parameter, per_device
from chapter3.schedules import bubble
from chapter3.traffic import STEP_COLLECTIVES, ring_bytes, seconds

SHORT = 2  # bytes of a parameter, gradient or activation on the wire, in float16


@dataclass(frozen=True)
class Plan:
    """A model, a batch and a machine.

    Attributes:
        parameters: of the model.
        layers: number of transformer layers, each of two blocks (attention and MLP).
        width: width of the activations between layers.
        tokens: rows of the global batch in one step, over all sequences.
        devices: number of devices N.
        tensor: devices of a tensor-parallel group; divides N.
        stages: stages of a pipeline; divides N.
        microbatches: of the pipeline.
        fast: bytes per second inside a tensor-parallel group.
        slow: bytes per second between other devices.
        latency: seconds for each message to start.
    """

    parameters: float = 7.5e9
    layers: int = 36
    width: int = 4096
    tokens: int = 2**20
    devices: int = 64
    tensor: int = 8
    stages: int = 8
    microbatches: int = 32
    fast: float = 300e9
    slow: float = 25e9
    latency: float = 10e-6

    def __post_init__(self):
        """Check that the groups divide the devices."""
        for size in (self.tensor, self.stages):
            if size < 1 or self.devices % size:
                raise ValueError(
                    f"{self.tensor=} and {self.stages=} must divide {self.devices=}"
                )


@dataclass(frozen=True)
class Cost:
    """Of one strategy, per device and step.

    Attributes:
        kept: bytes of training state, mixed-precision Adam.
        sent: bytes on the wire.
        seconds: time on the wire if nothing overlaps.
        idle: share of the computing time in which a device waits for others.
    """

    kept: float
    sent: float
    seconds: float
    idle: float = 0.0


def costs(plan: Plan) -> dict[str, Cost]:
    """Compute the cost of every strategy by the formulas that the ledger checks.

    Activations are not in the memory, and computing is not in the time.
    """
    nbytes, n, link = SHORT * plan.parameters, plan.devices, _link(plan, plan.slow)
    found = {}
    for name in SHARDED:
        kinds = STEP_COLLECTIVES[name]
        found[name] = Cost(
            per_device(name, int(plan.parameters), n).total,
            sum(ring_bytes(kind, nbytes, n) for kind in kinds),
            sum(seconds(kind, nbytes, n, **link) for kind in kinds),
        )
    found[f"DP x TP {plan.tensor}"] = _tensor(plan)
    found[f"DP x pipeline {plan.stages}"] = _pipeline(plan)
    return found


def _link(plan: Plan, bandwidth: float) -> dict[str, float]:
    return {"latency": plan.latency, "bandwidth": bandwidth}


def _state(plan: Plan, parts: int) -> float:
    return bytes_per_parameter().total * plan.parameters / parts


def _tensor(plan: Plan) -> Cost:
    axes = {"data": plan.devices // plan.tensor, "model": plan.tensor}
    whole = SHORT * plan.tokens * plan.width
    blocks = 2 * plan.layers
    by_axis = tensor_bytes(axes, SHORT * plan.parameters, whole, blocks)
    reductions, activations = 2 * blocks - 1, whole / axes["data"]
    each = seconds("all-reduce", activations, plan.tensor, **_link(plan, plan.fast))
    gradients = SHORT * plan.parameters / plan.tensor
    over_data = seconds("all-reduce", gradients, axes["data"], **_link(plan, plan.slow))
    return Cost(
        _state(plan, plan.tensor), sum(by_axis.values()), reductions * each + over_data
    )


def _pipeline(plan: Plan) -> Cost:
    p, m = plan.stages, plan.microbatches
    data, link = plan.devices // p, _link(plan, plan.slow)
    ticks = 2 * (m + p - 1)
    activations = SHORT * plan.tokens * plan.width / data
    gradients = SHORT * plan.parameters / p
    return Cost(
        _state(plan, p),
        pipeline_bytes(p, m, activations) + ring_bytes("all-reduce", gradients, data),
        ticks * seconds("collective-permute", activations / m, 2, **link)
        + seconds("all-reduce", activations, p, **link)
        + seconds("all-reduce", gradients, data, **link),
        float(bubble(p, m)),
    )
