"""Simulated devices, and meshes over the first of them."""

import math
import os
import re
from collections.abc import Mapping

import jax
from jax.sharding import AxisType, Mesh

_FLAG = "--xla_force_host_platform_device_count"


def simulate_devices(count: int = 8) -> list[jax.Device]:
    """Give this process `count` simulated CPU devices.

    Call it before JAX is used for the first time: the number of devices is fixed when
    JAX initialises its backend, which the first array, the first `jax.devices()` or
    the first random key does. Importing `jax` does not do it.

    Other content of `XLA_FLAGS` is kept. The platform is set to CPU, so that a machine
    with a GPU runs the examples as the pages show them.

    Args:
        count: number of devices; every page of the chapter uses 8.

    Returns:
        The devices, in the order of `jax.devices()`.

    Raises:
        RuntimeError: the environment names another number of devices, or JAX was
            already initialised with other devices. The message says what was found
            and what to do.

    Source: JAX documentation, “Configuration options” (`jax_num_cpu_devices`).
    """
    flags = os.environ.get("XLA_FLAGS", "")
    named = re.findall(rf"{_FLAG}=(\S*)", flags)
    if named and named[-1] != str(count):
        raise RuntimeError(
            f"XLA_FLAGS already asks for {named[-1]} devices, but {count} are needed "
            f"here (XLA_FLAGS={flags!r}). Take {_FLAG}={named[-1]} out of XLA_FLAGS, "
            "or set it to the number needed, and start Python again."
        )
    configured = jax.config.jax_num_cpu_devices
    if configured not in (-1, count):
        raise RuntimeError(
            f"jax_num_cpu_devices is {configured}, but {count} devices are needed "
            "here. Take the setting (or the variable JAX_NUM_CPU_DEVICES) away and "
            "start Python again."
        )
    if not named:
        os.environ["XLA_FLAGS"] = f"{flags} {_FLAG}={count}".strip()
    jax.config.update("jax_platforms", "cpu")

    devices = jax.devices()
    if len(devices) != count or devices[0].platform != "cpu":
        raise RuntimeError(
            f"JAX was initialised before with {len(devices)} device(s) of platform "
            f"{devices[0].platform!r}, and cannot change to {count} CPU devices now. "
            "Restart Python (in a notebook: restart the kernel) and call "
            "simulate_devices() before anything else uses JAX."
        )
    return devices


def find_devices(simulate: int | None = None) -> list[jax.Device]:
    """Take this machine's accelerators if it has any, else eight simulated devices.

    For programs that run anywhere; the pages call `simulate_devices`. If the
    environment asks for another number of CPU devices, it gets that. Call it before JAX
    is used for the first time.

    Args:
        simulate: use this many simulated CPU devices in any case.

    Returns:
        The devices, in the order of `jax.devices()`.

    Raises:
        RuntimeError: as `simulate_devices`.
    """
    if simulate is not None:
        return simulate_devices(simulate)
    asked_for = _FLAG in os.environ.get("XLA_FLAGS", "")
    if not asked_for and jax.config.jax_num_cpu_devices == -1:
        # Of CPU devices only: the number of accelerators is what it is.
        jax.config.update("jax_num_cpu_devices", 8)
    return jax.devices()


def device_mesh(
    axes: Mapping[str, int], axis_type: AxisType = AxisType.Explicit
) -> Mesh:
    """Build a mesh over the first devices of this process.

    Args:
        axes: size of each mesh axis by its name, slowest-varying first, for instance
            `{"data": 4, "model": 2}`.
        axis_type: the type of every axis; Explicit is JAX's own default.

    Returns:
        A mesh over the first `prod(sizes)` devices of `jax.devices()`.

    Raises:
        ValueError: there are fewer devices than the axes ask for.
    """
    needed = math.prod(axes.values())
    devices = jax.devices()
    if needed > len(devices):
        raise ValueError(
            f"a mesh of {dict(axes)} needs {needed} devices, but there are "
            f"{len(devices)}; use smaller axes, or simulate_devices({needed}) first"
        )
    return jax.make_mesh(
        tuple(axes.values()),
        tuple(axes),
        axis_types=(axis_type,) * len(axes),
        devices=devices[:needed],
    )
