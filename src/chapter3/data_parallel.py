"""One training step of a linear model, data-parallel in the three forms of JAX.

The model is `inputs @ w + b` with a mean squared error. Parameters are a dictionary of
`w`, shape (inputs, outputs), and `b`, shape (outputs,), equal on all devices; the batch
is split over mesh axis "data" (in the pmap form: over a leading device axis).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float, PyTree

Params = PyTree[Float[Array, "..."]]


def predict(params: Params, inputs: Float[Array, "batch inputs"]) -> Array:
    """Return the predictions, shape (batch, outputs)."""
    return inputs @ params["w"] + params["b"][None]


def loss(params: Params, inputs: Array, targets: Array) -> Float[Array, ""]:
    """Mean squared error over the batch given: a device's own, or the global one."""
    return jnp.mean((predict(params, inputs) - targets) ** 2)


def update(params: Params, gradients: Params, rate: float) -> Params:
    """One step of gradient descent; the same on each device."""
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients)


def step(params: Params, inputs: Array, targets: Array, rate: float):
    """One step as you would write it for one device.

    Under `jit`, with the batch sharded over a mesh, this *is* data parallelism: the
    mean is over the global batch, and the compiler inserts the all-reduce.

    Args:
        params: replicated.
        inputs: global shape (batch, inputs).
        targets: global shape (batch, outputs).
        rate: learning rate.

    Returns:
        The new parameters and the loss before the step.
    """
    value, gradients = jax.value_and_grad(loss)(params, inputs, targets)
    return update(params, gradients, rate), value


def pmap_step(rate: float) -> Callable:
    """The step in the older form, for `jax.pmap`.

    Returns:
        A function of the parameters (not mapped) and of inputs and targets with a
        leading device axis, shape (devices, batch per device, ...). Its results have a
        leading device axis too, along which they are all equal.
    """

    def local_step(params, inputs, targets):
        value, gradients = jax.value_and_grad(loss)(params, inputs, targets)
        with jax.named_scope("combine_gradients"):
            value, gradients = jax.lax.pmean((value, gradients), "data")
        return update(params, gradients, rate), value

    return jax.pmap(local_step, axis_name="data", in_axes=(None, 0, 0))


def shard_map_step(mesh: Mesh, rate: float) -> Callable:
    """The step with the communication written by hand, for `jax.shard_map`.

    The loss is averaged over the devices and *then* differentiated: the gradient with
    respect to parameters that are equal everywhere comes out summed over the devices,
    so that an average of the gradients on top would be wrong.

    Args:
        mesh: has an axis "data".
        rate: learning rate.

    Returns:
        A compiled function of the arguments of `step`, without `rate`.
    """

    def local_step(params, inputs, targets):
        def global_loss(params):
            with jax.named_scope("combine_losses"):
                return jax.lax.pmean(loss(params, inputs, targets), "data")

        value, gradients = jax.value_and_grad(global_loss)(params)
        return update(params, gradients, rate), value

    mapped = jax.shard_map(
        local_step,
        mesh=mesh,
        in_specs=(P(), P("data"), P("data")),
        out_specs=(P(), P()),
    )
    return jax.jit(mapped)
