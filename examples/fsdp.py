"""Train with ZeRO at every stage, from data parallelism to FSDP, and compare.

Runs on the accelerators of this machine if it has any, else on simulated CPU devices.
Prints for each stage the bytes that a device keeps, the bytes it sends in a step, and
the largest difference from training on one device. Ends with status 1 if a formula or a
result is wrong.
"""

import sys

from chapter3.commandline import parser, positive, refuse


def arguments():
    """Read the command line."""
    options = parser(__doc__)
    options.add_argument("--layers", type=positive, default=4, help="how many")
    options.add_argument("--width", type=positive, default=32, help="a multiple of N")
    options.add_argument("--steps", type=positive, default=5, help="of training")
    return options.parse_args()


def main() -> int:
    """Train, print the table, and return the exit status."""
    options = arguments()
    from chapter3.devices import find_devices

    devices = find_devices(options.simulate)
    # JAX is used from here on: the devices are fixed.
    import jax
    import jax.numpy as jnp
    import optax
    from jax.sharding import PartitionSpec as P

    from chapter3 import device_mesh, hlo, model, zero
    from chapter3.ledger import difference, held

    n, width = len(devices), options.width
    if width % n:
        return refuse(f"{width=} must be a multiple of the {n} devices")
    layers = model.init_blocks(jax.random.key(0), options.layers, width, 2 * width)
    x = jax.random.normal(jax.random.key(1), (8 * n, width))
    y, optimizer = jnp.sin(x), optax.adam(1e-2)

    expected, state = layers, optimizer.init(layers)
    for _ in range(options.steps):
        gradients = jax.grad(model.blocks_loss)(expected, x, y)
        updates, state = optimizer.update(gradients, state, expected)
        expected = optax.apply_updates(expected, updates)

    mesh = device_mesh({"data": n})
    batch = zero.place((x, y), mesh, P("data"))
    s = sum(leaf.nbytes for leaf in jax.tree.leaves(layers))
    print(f"{n} devices of platform {devices[0].platform}, {s // 4} parameters")
    print(
        f"{'stage':6} {'kept':>9} {'formula':>9} {'sent':>9} {'formula':>9}  difference"
    )
    wrong = False
    for stage in range(4):
        run = zero.training(stage, model.blocks_loss, optimizer, mesh)
        state = run.init(layers)
        programs = (run.accumulate.lower(state, batch), run.apply.lower(state))
        sent = sum(hlo.wire_bytes(program.compile()) for program in programs)
        kept = held(state)
        cut = [
            n if stage >= k else 1 for k in (3, 2, 1)
        ]  # parameters, gradients, moments
        kept_formula = s / cut[0] + s / cut[1] + 2 * s / cut[2] + 4
        sent_formula = 2 * (n - 1) / n * (s + 4)
        for _ in range(options.steps):
            state, _ = run.accumulate(state, batch)
            state = run.apply(state)
        gap = difference(state["parameters"], expected)
        wrong |= kept != kept_formula or sent != sent_formula or not gap < 1e-4
        print(
            f"{stage:<6} {kept:9.0f} {kept_formula:9.0f} {sent:9.0f} "
            f"{sent_formula:9.0f}  {gap:.0e}"
        )
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
