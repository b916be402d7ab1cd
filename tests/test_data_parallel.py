import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from tolerances import FLOAT32_SUM

from chapter3 import data_parallel as dp
from chapter3 import device_mesh, hlo

RATE = 0.1


@pytest.fixture
def problem():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((48, 7)).astype(np.float32)
    y = rng.standard_normal((48, 3)).astype(np.float32)
    params = {
        "w": rng.standard_normal((7, 3)).astype(np.float32),
        "b": rng.standard_normal(3).astype(np.float32),
    }
    return params, x, y


def reference(params, x, y):
    w, b, x, y = (np.float64(a) for a in (params["w"], params["b"], x, y))
    error = x @ w + b - y
    gradient_w = 2 / y.size * x.T @ error
    gradient_b = 2 / y.size * error.sum(axis=0)
    return w - RATE * gradient_w, b - RATE * gradient_b, np.mean(error**2)


def run(form, n, params, x, y):
    """Run one step of a form; return parameters, loss, and the compiled program."""
    mesh = device_mesh({"data": n})
    if form == "pmap":
        step = dp.pmap_step(RATE)
        batch = [a.reshape(n, -1, a.shape[-1]) for a in (x, y)]
        program = step.lower(params, *batch).compile()
        new, value = step(params, *batch)
        for copy in (new["w"], new["b"], value):
            assert len({np.asarray(c).tobytes() for c in copy}) == 1  # equal everywhere
        return jax.tree.map(lambda a: a[0], (new, value)), program, None
    whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    params, batch = jax.device_put(params, whole), jax.device_put((x, y), rows)
    step = dp.shard_map_step(mesh, RATE)
    if form == "jit":
        step = jax.jit(lambda p, x, y: dp.step(p, x, y, RATE))
    return step(params, *batch), step.lower(params, *batch).compile(), whole


@pytest.mark.parametrize("n", [1, 2, 3, 8])
@pytest.mark.parametrize("form", ["jit", "shard_map", "pmap"])
def test_value_sharding_collectives_and_bytes(form, n, problem):
    (new, value), program, whole = run(form, n, *problem)
    w, b, expected = reference(*problem)
    np.testing.assert_allclose(new["w"], w, **FLOAT32_SUM)
    np.testing.assert_allclose(new["b"], b, **FLOAT32_SUM)
    np.testing.assert_allclose(value, expected, **FLOAT32_SUM)
    if whole is not None:
        for leaf in (new["w"], new["b"], value):
            assert leaf.sharding.is_equivalent_to(whole, leaf.ndim)
    parameter_bytes = 4 * (7 * 3 + 3)
    if n == 1:
        assert hlo.wire_bytes(program) == 0
    else:
        assert set(hlo.executed(program)) == {"all-reduce"}
        total = sum(op.nbytes for op in hlo.collectives(program))
        assert total == parameter_bytes + 4  # and the loss
        assert hlo.wire_bytes(program) == 2 * (n - 1) * total / n


def test_averaging_the_gradients_too_is_wrong_under_shard_map(problem):
    """The guard of the page: the idiom of pmap gives a gradient N times too large."""
    params, x, y = problem
    mesh = device_mesh({"data": 8})

    def body(p, x, y):
        gradient = jax.grad(dp.loss)(p, x, y)
        return jax.lax.pmean(gradient, "data")

    specs = {"in_specs": (P(), P("data"), P("data")), "out_specs": P()}
    rows = NamedSharding(mesh, P("data"))
    batch = jax.device_put((x, y), rows)
    placed = jax.device_put(params, NamedSharding(mesh, P()))
    wrong = jax.jit(jax.shard_map(body, mesh=mesh, **specs))(placed, *batch)
    right = jax.grad(dp.loss)(*jax.tree.map(jnp.asarray, (params, x, y)))
    np.testing.assert_allclose(wrong["w"], 8 * right["w"], **FLOAT32_SUM)
