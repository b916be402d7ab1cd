"""Train a linear model on all devices in three forms, and compare them.

Runs on the accelerators of this machine if it has any, else on simulated CPU devices.
Prints a line for each form: loss, largest difference from a float64 reference,
collectives of a step and bytes sent per device. Ends with status 1 if a form is wrong.
"""

import sys
from typing import Any

import numpy as np

from chapter3.commandline import parser, positive


def arguments():
    """Read the command line."""
    options = parser(__doc__)
    options.add_argument(
        "--batch-per-device", type=positive, default=32, help="examples"
    )
    options.add_argument("--steps", type=positive, default=20, help="of training")
    options.add_argument("--rate", type=float, default=0.1, help="learning rate")
    return options.parse_args()


def main() -> int:
    """Train, print the table, and return the exit status."""
    options = arguments()
    from chapter3.devices import find_devices

    devices = find_devices(options.simulate)
    # JAX is used from here on: the devices are fixed.
    import jax
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    from chapter3 import data_parallel, device_mesh, hlo
    from chapter3.reference import descend

    n, rate = len(devices), options.rate
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n * options.batch_per_device, 10)).astype(np.float32)
    y = (x @ rng.standard_normal((10, 5)) + 0.3).astype(np.float32)
    start = {"w": np.zeros((10, 5), np.float32), "b": np.zeros(5, np.float32)}
    reference, losses = descend(start, x, y, rate, options.steps)

    mesh = device_mesh({"data": n})
    start = jax.device_put(start, NamedSharding(mesh, P()))
    batch = jax.device_put((x, y), NamedSharding(mesh, P("data")))
    by_device = [a.reshape(n, -1, a.shape[-1]) for a in (x, y)]
    forms: dict[str, tuple[Any, Any]] = {
        "jit": (jax.jit(data_parallel.step, static_argnums=3), (*batch, rate)),
        "shard_map": (data_parallel.shard_map_step(mesh, rate), batch),
        "pmap": (data_parallel.pmap_step(rate), by_device),
    }

    print(f"{n} devices of platform {devices[0].platform}, {options.steps} steps")
    print(f"{'form':10} {'loss':>9} {'difference':>11} {'sent':>6}  collectives")
    wrong = False
    for name, (step, data) in forms.items():
        params, value = start, np.inf
        program = step.lower(params, *data).compile()
        for _ in range(options.steps):
            params, value = step(params, *data)
            if name == "pmap":  # all copies are equal: go on with the first
                params, value = jax.tree.map(lambda leaf: leaf[0], (params, value))
        expected = (reference["w"], reference["b"], losses[-1])
        pairs = zip((params["w"], params["b"], value), expected, strict=True)
        difference = max(np.abs(np.asarray(a) - r).max() for a, r in pairs)
        ok = difference < 1e-4  # float32 sums in another order
        wrong |= not ok
        kinds = ", ".join(f"{k} x {v}" for k, v in hlo.executed(program).items())
        print(
            f"{name:10} {float(value):9.5f} {difference:11.1e} "
            f"{hlo.wire_bytes(program):6.0f}  {kinds or 'none'}"
            f"{'' if ok else '  WRONG'}"
        )
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
