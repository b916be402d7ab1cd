"""Train a network data-parallel; stop it at any time, start it again, lose nothing.

Runs on the accelerators of this machine if it has any, else on simulated CPU devices;
with --distributed as one of several processes. Batches may be accumulated in pieces,
the last one may be short. With --checkpoints the training is saved after each epoch,
and goes on from the last saved one when the program is started again: the result is the
same, bit for bit, on as many devices and with the same --accumulate. Prints the mean
losses of each epoch and a digest of the parameters.
"""

import hashlib
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from tqdm import tqdm

from chapter3 import device_mesh
from chapter3.accumulation import reduced_once
from chapter3.commandline import natural, parser, positive, positive_number, refuse
from chapter3.devices import find_devices
from chapter3.epochs import batches, shuffled
from chapter3.model import init_mlp, mlp

SIZES = [16, 64, 64, 8]


def arguments():
    """Read the command line."""
    options = parser(__doc__)
    options.add_argument("--epochs", type=positive, default=10, help="in all")
    options.add_argument(
        "--examples", type=positive, default=1000, help="to learn from"
    )
    options.add_argument("--batch-size", type=positive, default=128, help="global")
    options.add_argument(
        "--accumulate", type=positive, default=1, help="pieces of a batch"
    )
    options.add_argument(
        "--rate", type=positive_number, default=0.01, help="learning rate"
    )
    options.add_argument("--seed", type=natural, default=0, help="of data and order")
    options.add_argument(
        "--checkpoints", type=Path, metavar="FOLDER", help="save here, and resume"
    )
    options.add_argument(
        "--distributed", action="store_true", help="join the other processes"
    )
    return options.parse_args()


def devices_of(options) -> list[jax.Device]:
    """Join the other processes, if there are any, and find all devices."""
    if not options.distributed:
        return find_devices(options.simulate)
    from chapter3.launcher import join

    if options.simulate is not None:  # devices of each process
        jax.config.update("jax_num_cpu_devices", options.simulate)
        jax.config.update("jax_platforms", "cpu")
    try:
        join()
    except ValueError as error:
        start = "Start it with srun, mpirun, or chapter3.launcher.launch."
        sys.exit(refuse(f"{error} {start}"))
    return jax.devices()


def make_data(examples: int, seed: int, part: int):
    """Make inputs and targets on the host; part 0 to train, 1 to test."""
    x = np.random.default_rng([seed, part]).standard_normal((examples, SIZES[0]))
    y = np.sin(x @ np.ones((SIZES[0], SIZES[-1])) / 4)
    return x.astype(np.float32), y.astype(np.float32)


def loss_sum(params, x, y, weights):
    """Add up the examples' losses, each times its weight."""
    return jnp.sum(weights * jnp.mean((mlp(params, x) - y) ** 2, axis=1))


def make_state(optimizer, seed: int, whole: NamedSharding):
    """Make parameters and optimizer state, the same on each device."""

    def init(key):
        params = init_mlp(key, SIZES)
        return {"params": params, "optimizer": optimizer.init(params)}

    return jax.jit(init, out_shardings=whole)(jax.random.key(seed))


def make_step(optimizer, mesh, pieces: int):
    """Compile a step: of state, totals of the epoch, and batch, to the first two."""

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(state, totals, batch):
        params = state["params"]
        value, gradient, count = reduced_once(loss_sum, pieces, mesh, params, batch)
        updates, moments = optimizer.update(gradient, state["optimizer"], params)
        state = {"params": optax.apply_updates(params, updates), "optimizer": moments}
        totals = {"loss": totals["loss"] + value, "count": totals["count"] + count}
        return state, totals

    return step


@partial(jax.jit, donate_argnums=1)
def measure(params, totals, batch):
    """Add a batch to the totals without learning from it."""
    return {
        "loss": totals["loss"] + loss_sum(params, *batch),
        "count": totals["count"] + batch[-1].sum(),
    }


def mean(totals) -> float:
    """Wait for the devices, and read the mean: once in an epoch, not in each step."""
    return float(totals["loss"]) / float(totals["count"])


def save(manager, epoch: int, state, settings) -> None:
    """Begin to save; the writing goes on while the next epoch runs."""
    parts = ocp.args.Composite(
        state=ocp.args.StandardSave(state), settings=ocp.args.JsonSave(settings)
    )
    manager.save(epoch, args=parts)


def saved_settings(manager):
    """Read the settings of the last saved epoch; None if there is none."""
    if manager.latest_step() is None:
        return None
    parts = ocp.args.Composite(settings=ocp.args.JsonRestore())
    return manager.restore(manager.latest_step(), args=parts).settings


def resume(manager, state):
    """Return the last saved state and its epoch, or the given state and 0.

    The saved state goes to where the given one lies, whatever devices it was saved on.
    """
    epoch = manager.latest_step()
    if epoch is None:
        return state, 0
    like = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
    parts = ocp.args.Composite(state=ocp.args.StandardRestore(like))
    return manager.restore(epoch, args=parts).state, epoch


def digest(state) -> str:
    """Shorten all parameters to twelve digits: equal digests, equal to the bit."""
    parts = [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(state["params"])]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]


def progress(steps, epoch: int, total: int):
    """Show a bar while steps are dispatched: in process 0, if this is a terminal."""
    silent = None if jax.process_index() == 0 else True  # None: but for a terminal
    return tqdm(steps, f"epoch {epoch}", total, leave=False, disable=silent)


def say(text: str) -> None:
    """Print in process 0; the others are silent."""
    if jax.process_index() == 0:
        print(text, flush=True)


def fit(options, mesh, manager, settings) -> int:
    """Train from the start or from the last checkpoint; return the exit status."""
    whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    train, held_out = (make_data(options.examples, options.seed, i) for i in (0, 1))
    in_batches = partial(batches, batch_size=options.batch_size, sharding=rows)
    total = -(-options.examples // options.batch_size)
    zeros = jax.jit(
        lambda: {"loss": jnp.zeros(()), "count": jnp.zeros(())}, out_shardings=whole
    )
    optimizer = optax.adam(options.rate)
    step = make_step(optimizer, mesh, options.accumulate)
    state, done = make_state(optimizer, options.seed, whole), 0
    if manager:
        state, done = resume(manager, state)
    if done >= options.epochs:
        say(f"trained for {done} epochs already: nothing to do")
    elif done:
        say(f"resumed after epoch {done}")

    for epoch in range(done + 1, options.epochs + 1):
        order = shuffled(options.seed, epoch, options.examples)
        seen, unseen = zeros(), zeros()
        for batch in progress(in_batches(train, order), epoch, total):
            state, seen = step(state, seen, batch)
        for batch in in_batches(held_out, np.arange(options.examples)):
            unseen = measure(state["params"], unseen, batch)
        loss = mean(seen)
        if not np.isfinite(loss):
            print(f"the loss of epoch {epoch} is {loss}: lower --rate", file=sys.stderr)
            return 1
        if manager:
            save(manager, epoch, state, settings)
        say(f"epoch {epoch:3}  loss {loss:.7f}  held out {mean(unseen):.7f}")
    say(f"parameters {digest(state)}")
    return 0


def main() -> int:
    """Check the options, train, and return the exit status."""
    options = arguments()
    devices = devices_of(options)
    parts = len(devices) * options.accumulate
    if options.batch_size % parts:
        return refuse(
            f"batch_size={options.batch_size} must be a multiple of {parts} = "
            f"{len(devices)} devices x --accumulate {options.accumulate}"
        )
    if options.seed >= 2**63:
        return refuse(f"seed={options.seed} must be below {2**63}")
    mesh = device_mesh({"data": len(devices)})
    say(f"{len(devices)} devices of platform {devices[0].platform}")
    if options.checkpoints is None:
        return fit(options, mesh, None, {})

    folder = options.checkpoints.resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return refuse(f"cannot save in {folder}: {error.strerror}")
    # What the result depends on. Devices, pieces and the last epoch may change.
    names = ("examples", "batch_size", "rate", "seed")
    settings = {name: getattr(options, name) for name in names}
    keep = ocp.CheckpointManagerOptions(max_to_keep=3)
    with ocp.CheckpointManager(folder, options=keep) as manager:
        saved = saved_settings(manager) or settings
        if saved != settings:
            return refuse(
                f"{folder} holds a training with {saved}, not {settings}; "
                "give the same options, or another folder"
            )
        return fit(options, mesh, manager, settings)


if __name__ == "__main__":
    sys.exit(main())
