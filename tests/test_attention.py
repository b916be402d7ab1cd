import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from tolerances import FLOAT32_STEPS, FLOAT32_SUM

from chapter3 import attention, collective_matmul, device_mesh, hlo


def by_hand(q, k, v):
    q, k, v = (np.float64(a) for a in (q, k, v))
    s = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(q.shape[-1])
    weights = np.exp(s - s.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("hqk,khd->qhd", weights, v)


@pytest.mark.parametrize("n", [1, 2, 4, 8])
@pytest.mark.parametrize("form", [attention.ring_attention, attention.ulysses])
def test_value_gradient_sharding_and_traffic(form, n):
    shape = (32, 8, 4)
    qkv = [jax.random.normal(k, shape) for k in jax.random.split(jax.random.key(1), 3)]
    mesh = device_mesh({"seq": n})
    cut = NamedSharding(mesh, P("seq"))
    placed = [jax.device_put(a, cut) for a in qkv]
    spread = jax.shard_map(form, mesh=mesh, in_specs=P("seq"), out_specs=P("seq"))
    run = jax.jit(spread)
    np.testing.assert_allclose(run(*placed), by_hand(*qkv), **FLOAT32_STEPS)
    assert run(*placed).sharding.is_equivalent_to(cut, 3)

    def scalar(f):
        return lambda *a: jnp.sum(jnp.sin(f(*a)))

    found = jax.jit(jax.grad(scalar(spread), argnums=(0, 1, 2)))(*placed)
    wanted = jax.grad(scalar(attention.attention), argnums=(0, 1, 2))(*qkv)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, **FLOAT32_STEPS)

    # Large scores, where a softmax without a running maximum would overflow.
    large = [jax.device_put(30 * a, cut) for a in qkv[:2]] + placed[2:]
    assert np.max(np.abs(attention.scores(30 * qkv[0], 30 * qkv[1]))) > 1000
    wanted_large = by_hand(30 * qkv[0], 30 * qkv[1], qkv[2])
    np.testing.assert_allclose(run(*large), wanted_large, rtol=1e-3, atol=1e-3)

    block = qkv[0].nbytes / n
    blocks = 2 * (n - 1) if form is attention.ring_attention else 4 * (n - 1) / n
    assert hlo.wire_bytes(run.lower(*placed).compile()) == blocks * block


@pytest.mark.parametrize("n", [1, 2, 3, 8])
@pytest.mark.parametrize(
    "form",
    [collective_matmul.gather_then_multiply, collective_matmul.multiply_and_pass_on],
)
def test_collective_matmul(form, n):
    k_x, k_w = jax.random.split(jax.random.key(0))
    x = jax.random.normal(k_x, (4 * n, 6))
    w = jax.random.normal(k_w, (6, 5 * n))
    mesh, specs = device_mesh({"model": n}), (P("model"), P(None, "model"))
    placed = [
        jax.device_put(a, NamedSharding(mesh, s))
        for a, s in zip((x, w), specs, strict=True)
    ]
    run = jax.jit(
        jax.shard_map(form, mesh=mesh, in_specs=specs, out_specs=P(None, "model"))
    )
    np.testing.assert_allclose(
        run(*placed), np.float64(x) @ np.float64(w), **FLOAT32_SUM
    )
    program = run.lower(*placed).compile()
    assert hlo.wire_bytes(program) == (n - 1) / n * x.nbytes
    if n > 1 and form is collective_matmul.multiply_and_pass_on:
        assert hlo.executed(program) == {"collective-permute": n - 1}
