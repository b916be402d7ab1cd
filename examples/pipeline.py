"""Run a GPipe pipeline over all devices, and show who worked when.

Runs on the accelerators of this machine if it has any, else on simulated CPU devices.
Prints the recorded activity of each stage, the idle share with its formula, and the
largest difference of result and gradient from running the stages one after another.
Ends with status 1 if one is wrong.
"""

import sys

from chapter3.commandline import parser, positive, refuse


def arguments():
    """Read the command line."""
    options = parser(__doc__)
    options.add_argument("--microbatches", type=positive, default=8, help="m")
    options.add_argument(
        "--batch", type=positive, default=64, help="a multiple of them"
    )
    return options.parse_args()


def main() -> int:
    """Run the pipeline, print what it recorded, and return the exit status."""
    options = arguments()
    from chapter3.devices import find_devices

    p = len(find_devices(options.simulate))
    # JAX is used from here on: the devices are fixed.
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import PartitionSpec as P

    from chapter3 import device_mesh, hlo, model, pipeline, zero
    from chapter3.ledger import difference
    from chapter3.schedules import bubble

    m = options.microbatches
    if options.batch % m:
        return refuse(f"{options.batch=} must be a multiple of {m} microbatches")
    layers = model.init_blocks(jax.random.key(0), p, 16, 32)
    x = jax.random.normal(jax.random.key(1), (options.batch, 16))
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)
    mesh = device_mesh({pipeline.AXIS: p})
    chain = pipeline.pipeline(model.block, mesh, m)
    weights = zero.place(stacked, mesh, P(pipeline.AXIS))
    inputs = zero.place(x, mesh, P())

    run = jax.jit(chain)
    out, log = run(weights, inputs)
    log = np.asarray(log)
    for stage, line in enumerate(log):
        shown = " ".join(f"{i:2}" if i >= 0 else " ." for i in line)
        print(f"stage {stage}: {shown}")

    gradient = jax.jit(jax.grad(lambda w, x: jnp.mean(chain(w, x)[0] ** 2)))
    expected = jax.grad(lambda w: jnp.mean(model.blocks(w, x) ** 2))(layers)
    expected = jax.tree.map(lambda *leaves: jnp.stack(leaves), *expected)
    gaps = (
        difference(out, model.blocks(layers, x)),
        difference(gradient(weights, inputs), expected),
    )
    idle, formula = pipeline.idle_share(log), float(bubble(p, m))
    permutes = hlo.executed(run.lower(weights, inputs).compile())
    print(f"idle {idle:.4f}, formula {formula:.4f}; collectives {permutes}")
    print(f"difference: result {gaps[0]:.0e}, gradient {gaps[1]:.0e}")
    return int(abs(idle - formula) > 1e-9 or not max(gaps) < 1e-3)


if __name__ == "__main__":
    sys.exit(main())
