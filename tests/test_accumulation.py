from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from tolerances import FLOAT32_SUM

from chapter3 import accumulation as acc
from chapter3 import device_mesh, hlo
from chapter3.model import init_mlp, mlp

ROWS, PARAMETERS = 64, 6 * 8 + 8 + 8 * 3 + 3


def loss_sum(params, x, y, weights):
    return jnp.sum(weights * jnp.mean((mlp(params, x) - y) ** 2, axis=1))


@pytest.fixture
def given():
    rng = np.random.default_rng(1)
    params = jax.tree.map(np.asarray, init_mlp(jax.random.key(1), [6, 8, 3]))
    x = rng.standard_normal((ROWS, 6)).astype(np.float32)
    y = rng.standard_normal((ROWS, 3)).astype(np.float32)
    weights = (np.arange(ROWS) < ROWS - 11).astype(np.float32)  # eleven fill it up
    return params, (x, y, weights)


def reference(params, batch):
    """Value and gradient of the mean over the examples that count, in float64."""
    x, y = (np.float64(a)[: ROWS - 11] for a in batch[:2])
    (w1, b1), (w2, b2) = (
        (np.float64(layer["w"]), np.float64(layer["b"])) for layer in params
    )
    h = np.tanh(x @ w1 + b1)
    error = h @ w2 + b2 - y
    d = 2 * error / error.size
    dh = (d @ w2.T) * (1 - h**2)
    gradient = [
        {"w": x.T @ dh, "b": dh.sum(axis=0)},
        {"w": h.T @ d, "b": d.sum(axis=0)},
    ]
    return np.mean(error**2), gradient


def place(given, mesh):
    params, batch = given
    whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    return jax.device_put(params, whole), jax.device_put(batch, rows)


def assert_close(found, expected):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, **FLOAT32_SUM)


@pytest.mark.parametrize("pieces", [1, 2, 4])
@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_reduced_once(n, pieces, given):
    mesh = device_mesh({"data": n})
    step = jax.jit(partial(acc.reduced_once, loss_sum, pieces, mesh))
    params, batch = place(given, mesh)
    program = step.lower(params, batch).compile()
    value, gradient, count = program(params, batch)
    assert count == ROWS - 11
    assert_close((value / count, gradient), reference(*given))
    for leaf in jax.tree.leaves((value, gradient)):
        whole = NamedSharding(mesh, P())
        assert leaf.sharding.is_equivalent_to(whole, leaf.ndim)
    if n > 1:
        assert set(hlo.executed(program)) == {"all-reduce"}
        assert not any(op.times > 1 for op in hlo.collectives(program))
    sent = 2 * (n - 1) / n * 4 * (PARAMETERS + 2)  # gradient, loss, count
    assert hlo.wire_bytes(program) == pytest.approx(sent)


@pytest.mark.parametrize("axis_type", [AxisType.Auto, AxisType.Explicit])
def test_strided_moves_no_rows(axis_type, given):
    mesh = device_mesh({"data": 8}, axis_type)
    step = jax.jit(partial(acc.reduced_each_time, loss_sum, 4, acc.strided))
    params, batch = place(given, mesh)
    program = step.lower(params, batch).compile()
    assert_close(program(params, batch), reference(*given))
    assert set(hlo.executed(program)) == {"all-reduce"}
    reduced = sum(op.nbytes * op.times for op in hlo.collectives(program))
    assert reduced == 4 * 4 * (PARAMETERS + 1) + 4  # each time; the count once


def test_in_blocks_moves_rows_and_leaves_a_piece_to_two_devices(given):
    mesh = device_mesh({"data": 8}, AxisType.Auto)
    step = jax.jit(partial(acc.reduced_each_time, loss_sum, 4, acc.in_blocks))
    params, batch = place(given, mesh)
    program = step.lower(params, batch).compile()
    assert_close(program(params, batch), reference(*given))  # right, but:
    operations = hlo.collectives(program)
    assert "all-gather" in {op.kind for op in operations}
    (gradient,) = (op for op in operations if op.times == 4)
    assert gradient.groups == ((0, 1), (2, 3), (4, 5), (6, 7))


def test_in_blocks_is_refused_on_explicit_axes(given):
    _, (x, *_) = place(given, device_mesh({"data": 8}))
    with pytest.raises(Exception, match="This reshape is not supported"):
        acc.in_blocks(x, 4)


def test_without_the_cast_every_piece_is_reduced_and_the_sum_is_n_times_too_large(
    given, monkeypatch
):
    """What `reduced_once` guards against comes without an error."""
    monkeypatch.setattr(acc.lax, "pcast", lambda p, axis, to: p)
    mesh = device_mesh({"data": 8})
    step = jax.jit(partial(acc.reduced_once, loss_sum, 4, mesh))
    program = step.lower(*place(given, mesh)).compile()
    _, gradient, _ = program(*place(given, mesh))
    _, expected = reference(*given)
    assert_close(gradient, jax.tree.map(lambda g: 8 * g, expected))
    assert 4 in {op.times for op in hlo.collectives(program)}


def test_the_cuts_hold_the_same_rows():
    rows = jnp.arange(12.0)[:, None]
    blocks, strides = acc.in_blocks(rows, 3), acc.strided(rows, 3)
    assert blocks[:, :, 0].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert strides[:, :, 0].tolist() == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]
