from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from tolerances import FLOAT32_SUM

from chapter3 import device_mesh, experts, hlo

WIDTH, HIDDEN = 6, 10


def problem(n, tokens_per_device):
    k = jax.random.split(jax.random.key(2), 4)
    return (
        jax.random.normal(k[0], (n * tokens_per_device, WIDTH)),
        jax.random.normal(k[1], (WIDTH, n)),
        jax.random.normal(k[2], (n, WIDTH, HIDDEN)),
        jax.random.normal(k[3], (n, HIDDEN, WIDTH)),
    )


def run(n, arguments, capacity):
    mesh = device_mesh({"i": n})
    specs = (P("i"), P(), P("i"), P("i"))
    body = partial(experts.routed, capacity=capacity, axis_name="i")
    f = jax.jit(
        jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("i"), P("i"), P()))
    )
    placed = [
        jax.device_put(a, NamedSharding(mesh, s))
        for a, s in zip(arguments, specs, strict=True)
    ]
    out, kept, dropped = f(*placed)
    assert out.sharding.is_equivalent_to(placed[0].sharding, 2)
    return np.asarray(out), np.asarray(kept), int(dropped), f.lower(*placed).compile()


def dense_by_hand(tokens, router, w_in, w_out):
    """The same in float64, token by token."""
    tokens, router, w_in, w_out = (np.float64(a) for a in (tokens, router, w_in, w_out))
    results = []
    for token in tokens:
        scores = np.exp(token @ router - np.max(token @ router))
        e = int(np.argmax(scores))
        hidden = np.maximum(token @ w_in[e], 0)
        results.append(scores[e] / scores.sum() * (hidden @ w_out[e]))
    return np.array(results)


@pytest.mark.parametrize(("n", "capacity"), [(8, 5), (8, 2), (8, 1), (4, 5), (4, 1)])
def test_equal_to_dense_routing_but_for_what_is_dropped(n, capacity):
    arguments = problem(n, tokens_per_device=5)
    out, kept, dropped, program = run(n, arguments, capacity)
    expected = dense_by_hand(*arguments)
    np.testing.assert_allclose(experts.dense(*arguments), expected, **FLOAT32_SUM)
    np.testing.assert_allclose(out[kept], expected[kept], **FLOAT32_SUM)
    assert not out[~kept].any()
    assert dropped == np.sum(~kept)
    if capacity == 5:  # the five tokens of a device always fit
        assert dropped == 0
    if capacity == 1:
        assert dropped > 0
    sizes = [o.nbytes for o in hlo.collectives(program) if o.kind == "all-to-all"]
    assert sizes == [4 * n * capacity * WIDTH] * 2


def test_first_come_first_served():
    slot = experts.slots(jnp.array([1, 0, 1, 1]), experts=2, capacity=2)
    assert slot.shape == (4, 2, 2)
    assert np.argwhere(np.asarray(slot)).tolist() == [[0, 1, 0], [1, 0, 0], [2, 1, 1]]
