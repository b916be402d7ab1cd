"""How many bytes of training state each device keeps, by strategy."""

from dataclasses import dataclass

import numpy as np

MOMENTS = {"sgd": 0, "momentum": 1, "adam": 2}
"""Number of values that an optimizer keeps for each parameter."""

SHARDED = {
    "DP": (),
    "ZeRO-1": ("optimizer",),
    "ZeRO-2": ("gradients", "optimizer"),
    "ZeRO-3": ("parameters", "gradients", "optimizer"),
}
"""The kinds of state of which each device keeps only its share, by strategy."""

_WIDTHS = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}


@dataclass(frozen=True)
class TrainingState:
    """Bytes of training state, by kind.

    The unit is bytes: per parameter when it comes from `bytes_per_parameter`, per
    device when it comes from `per_device`. Activations are not part of it.

    Attributes:
        parameters: the values that the forward pass uses.
        gradients: one per parameter.
        optimizer: moments and, in mixed precision, the master copy of the parameters.
    """

    parameters: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        """Sum of the three kinds, in the same unit."""
        return self.parameters + self.gradients + self.optimizer


def itemsize(dtype: str) -> int:
    """Return the bytes of one value of `dtype`, bfloat16 and float8 included."""
    return _WIDTHS.get(dtype) or np.dtype(dtype).itemsize


def bytes_per_parameter(
    optimizer: str = "adam", dtype: str = "float16", state_dtype: str = "float32"
) -> TrainingState:
    """Count the bytes of state that one parameter costs.

    Parameters and gradients are kept in `dtype`. The optimizer keeps its moments in
    `state_dtype`, and a master copy of the parameter too if the two types differ.

    Args:
        optimizer: a key of `MOMENTS`.
        dtype: type of parameters and gradients.
        state_dtype: type of what the optimizer keeps.

    Returns:
        Bytes per parameter, 16 in total for the defaults (mixed-precision Adam).

    Raises:
        ValueError: unknown optimizer.

    Source: “ZeRO: Memory Optimizations Toward Training Trillion Parameter Models”
    (Rajbhandari and others, 2020), section 3.1.

    >>> bytes_per_parameter()
    TrainingState(parameters=2, gradients=2, optimizer=12)
    >>> bytes_per_parameter("sgd", dtype="float32").total
    8
    """
    if optimizer not in MOMENTS:
        raise ValueError(f"{optimizer=} is not one of {sorted(MOMENTS)}")
    kept = MOMENTS[optimizer] + (dtype != state_dtype)
    return TrainingState(itemsize(dtype), itemsize(dtype), kept * itemsize(state_dtype))


def per_device(
    strategy: str,
    parameter_count: int,
    devices: int,
    per_parameter: TrainingState | None = None,
) -> TrainingState:
    """Count the bytes of training state that each device keeps between two steps.

    Args:
        strategy: a key of `SHARDED`.
        parameter_count: parameters of the whole model (global).
        devices: number of devices N that share the state.
        per_parameter: bytes per parameter; mixed-precision Adam if not given.

    Returns:
        Bytes per device. A sharded kind counts 1/N of the global bytes, as if the
        parameters divided evenly; what ZeRO-3 gathers for a moment is not included.

    Raises:
        ValueError: unknown strategy, or fewer than one device.

    >>> per_device("ZeRO-3", 1_000_000, devices=8).total
    2000000.0
    """
    if strategy not in SHARDED:
        raise ValueError(f"{strategy=} is not one of {list(SHARDED)}")
    if devices < 1:
        raise ValueError(f"{devices=} must be at least 1")
    each = per_parameter or bytes_per_parameter()
    share = {kind: devices if kind in SHARDED[strategy] else 1 for kind in vars(each)}
    return TrainingState(
        **{kind: parameter_count * b / share[kind] for kind, b in vars(each).items()}
    )
