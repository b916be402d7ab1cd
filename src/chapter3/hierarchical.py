"""An all-reduce in three steps, for hosts that are joined by something slow.

Inside a host, devices exchange quickly; between hosts they do not. So first add up
inside each host, and let only the sum leave it.

Source: the two-level algorithm of “Horovod: fast and easy distributed deep learning in
TensorFlow” (Sergeev and Del Balso, 2018) and of NCCL; the byte counts are our own.
"""

import jax
from jax import lax
from jaxtyping import Array, Float


def flat_all_reduce(
    x: Float[Array, "n ..."], inner: str, outer: str
) -> Float[Array, "n ..."]:
    """Sum over both axes by one collective: one ring through all devices."""
    with jax.named_scope("flat"):
        return lax.psum(x, (outer, inner))


def hierarchical_all_reduce(
    x: Float[Array, "n ..."], inner: str, outer: str
) -> Float[Array, "n ..."]:
    """Sum over both axes so that each part crosses the outer axis once.

    With S bytes per device and H hosts, a host sends 2(H-1)/H·S bytes to the next, all
    its devices together, whatever their number.

    Args:
        x: what one device holds, in `shard_map`; n must be a multiple of the size of
            `inner`.
        inner: the fast mesh axis, the devices of one host.
        outer: the slow mesh axis, the hosts.

    Returns:
        The sum, the same on all devices, of the shape of `x`.

    Raises:
        ValueError: n is not such a multiple.
    """
    devices = lax.axis_size(inner)
    if x.shape[0] % devices:
        raise ValueError(
            f"{x.shape[0]=} must be a multiple of the {devices} devices on axis "
            f"{inner!r}; pad the array"
        )
    with jax.named_scope("inside"):
        part = lax.psum_scatter(x, inner, tiled=True)  # (n / devices, ...)
    with jax.named_scope("across"):
        part = lax.psum(part, outer)
    with jax.named_scope("inside"):
        return lax.all_gather(part, inner, tiled=True, to="invarying")
