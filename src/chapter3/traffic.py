"""What collectives cost: bytes on the wire per device, and the time they take.

Every count is for the ring algorithm and for one device. A device sends as many bytes
as it receives; the count is of either, not of both together.

Source: “Bandwidth optimal all-reduce algorithms for clusters of workstations”
(Patarasuk and Yuan, 2009) for the ring; “Collective communication: theory, practice,
and experience” (Chan and others, 2007) for the time model.
"""

_FULL_ROUNDS = {
    # kind: times that (N-1)/N of the tensor passes through each device
    "all-reduce": 2,
    "reduce-scatter": 1,
    "all-gather": 1,
    "all-to-all": 1,
}

STEP_COLLECTIVES = {
    "DP": ("all-reduce",),
    "ZeRO-1": ("reduce-scatter", "all-gather"),
    "ZeRO-2": ("reduce-scatter", "all-gather"),
    "ZeRO-3, gathered once": ("all-gather", "reduce-scatter"),
    "ZeRO-3": ("all-gather", "all-gather", "reduce-scatter"),
}
"""The collectives of a step, each over all the parameters, by strategy."""


def ring_bytes(kind: str, nbytes: float, devices: int) -> float:
    """Count the bytes that each device sends in one collective.

    Args:
        kind: "all-reduce", "reduce-scatter", "all-gather", "all-to-all" or
            "collective-permute".
        nbytes: bytes S of the whole tensor on one device: for an all-gather its
            output, for a reduce-scatter its input, for the others either.
        devices: number of devices N that take part.

    Returns:
        Bytes per device, which is 2(N-1)/N·S for an all-reduce, S for a permute and
        (N-1)/N·S for the others.

    Raises:
        ValueError: unknown kind, or fewer than one device.

    >>> ring_bytes("all-reduce", 4096, devices=8)
    7168.0
    """
    if devices < 1:
        raise ValueError(f"{devices=} must be at least 1")
    if kind == "collective-permute":
        return float(nbytes)
    if kind not in _FULL_ROUNDS:
        raise ValueError(
            f"{kind=} is not one of {sorted([*_FULL_ROUNDS, 'collective-permute'])}"
        )
    return _FULL_ROUNDS[kind] * (devices - 1) * nbytes / devices


def ring_steps(kind: str, devices: int) -> int:
    """Count the messages that follow one another in a ring collective.

    An all-reduce takes 2(N-1) steps, a permute one, the others N-1. Arguments and
    errors are those of `ring_bytes`.
    """
    if kind == "collective-permute":
        return 1
    return round(ring_bytes(kind, devices, devices))


def seconds(
    kind: str, nbytes: float, devices: int, *, latency: float, bandwidth: float
) -> float:
    """Predict the time of one collective by the alpha-beta model.

    Args:
        kind: as in `ring_bytes`.
        nbytes: as in `ring_bytes`.
        devices: as in `ring_bytes`.
        latency: alpha, seconds for each message to start.
        bandwidth: bytes per second that one device can send (1/beta).

    Returns:
        Seconds, which is steps · alpha + bytes per device / bandwidth.

    Raises:
        ValueError: as `ring_bytes`, or a bandwidth that is not positive.
    """
    if bandwidth <= 0:
        raise ValueError(f"{bandwidth=} must be positive, in bytes per second")
    wire = ring_bytes(kind, nbytes, devices) / bandwidth
    return ring_steps(kind, devices) * latency + wire


def step_bytes(strategy: str, nbytes: float, devices: int) -> float:
    """Count the bytes that each device sends in one training step.

    Args:
        strategy: a key of `STEP_COLLECTIVES`.
        nbytes: bytes S of all parameters (global), which is also that of all gradients.
        devices: number of devices N.

    Returns:
        Bytes per device and step.

    Raises:
        ValueError: unknown strategy.

    >>> step_bytes("ZeRO-3", 1024, devices=8) / step_bytes("DP", 1024, devices=8)
    1.5
    """
    if strategy not in STEP_COLLECTIVES:
        raise ValueError(f"{strategy=} is not one of {list(STEP_COLLECTIVES)}")
    return sum(ring_bytes(kind, nbytes, devices) for kind in STEP_COLLECTIVES[strategy])
