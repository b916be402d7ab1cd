"""Differentiate a stack of MLP blocks with tensor and data parallelism, and compare.

Runs on the accelerators of this machine if it has any, else on simulated CPU devices.
Prints for each mesh the bytes that a device sends over each axis, by formula and as
compiled, and the largest difference from one device. Ends with status 1 if one is
wrong.
"""

import sys

from chapter3.commandline import parser, positive, refuse


def arguments():
    """Read the command line."""
    options = parser(__doc__)
    options.add_argument("--layers", type=positive, default=4, help="how many")
    options.add_argument("--batch", type=positive, default=64, help="a multiple of N")
    return options.parse_args()


def main() -> int:
    """Measure every mesh, print the table, and return the exit status."""
    options = arguments()
    from chapter3.devices import find_devices

    n = len(find_devices(options.simulate))
    # JAX is used from here on: the devices are fixed.
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    from chapter3 import device_mesh, hlo, model, tensor_parallel, zero
    from chapter3.ledger import difference, tensor_bytes
    from chapter3.traffic import ring_bytes

    if options.batch % n:
        return refuse(f"{options.batch=} must be a multiple of the {n} devices")
    width = 2 * n
    layers = model.init_blocks(jax.random.key(0), options.layers, width, 2 * width)
    x = jax.random.normal(jax.random.key(1), (options.batch, width))
    y = jnp.sin(x)
    expected = jax.grad(model.blocks_loss)(layers, x, y)
    s = sum(leaf.nbytes for leaf in jax.tree.leaves(layers))

    columns = (
        f"{'over model':>11} {'formula':>9} {'over data':>10} {'formula':>9}  error"
    )
    print(f"{'mesh':>18} {columns}")
    wrong = False
    for data in (d for d in range(1, n + 1) if n % d == 0):
        axes = {"data": data, "model": n // data}
        mesh, cut = device_mesh(axes), tensor_parallel.WEIGHTS
        weights = [
            {name: zero.place(w, mesh, cut[name]) for name, w in layer.items()}
            for layer in layers
        ]
        batch = zero.place((x, y), mesh, P("data", None))
        step = tensor_parallel.gradients(mesh, options.layers)
        gap = difference(step(weights, *batch)[1], expected)
        sent = hlo.wire_bytes_by_axis(step.lower(weights, *batch).compile(), mesh)
        formula = tensor_bytes(axes, s, 4 * options.batch * width, options.layers)
        formula["data"] += ring_bytes("all-reduce", 4, data)  # the loss
        found = {axis: sent.get((axis,), 0.0) for axis in formula}
        wrong |= found != formula or not gap < 1e-4
        print(
            f"data {data} x model {n // data:<3} {found['model']:10.0f} "
            f"{formula['model']:9.0f} {found['data']:10.0f} {formula['data']:9.0f}"
            f"  {gap:.0e}"
        )
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
