import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from tolerances import FLOAT32_STEPS, FLOAT32_SUM

from chapter3 import device_mesh, fsdp, hlo, model, zero
from chapter3.ledger import held

pytestmark = pytest.mark.usefixtures("optax_promotes")

OPTIMIZERS = {"adam": optax.adam(1e-2), "momentum": optax.sgd(0.05, momentum=0.9)}


def problem(n, layers=3):
    blocks = model.init_blocks(jax.random.key(4), layers, 2 * n, 4 * n)
    x = jax.random.normal(jax.random.key(5), (4 * n, 2 * n))
    return blocks, x, jnp.sin(x)


def single(blocks, x, y, optimizer, steps, microbatches=1):
    state = optimizer.init(blocks)
    for _ in range(steps):
        gradients = jax.grad(model.blocks_loss)(blocks, x, y)
        gradients = jax.tree.map(lambda g: microbatches * g, gradients)
        updates, state = optimizer.update(gradients, state, blocks)
        blocks = optax.apply_updates(blocks, updates)
    return blocks


def assert_equal(found, expected, tolerance):
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, **tolerance)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("n", [2, 4, 8])
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_every_stage_trains_like_one_device(stage, n, optimizer):
    blocks, x, y = problem(n)
    mesh, rule = device_mesh({"data": n}), OPTIMIZERS[optimizer]
    run = zero.training(stage, model.blocks_loss, rule, mesh)
    state, batch = run.init(blocks), zero.place((x, y), mesh, P("data"))
    for _ in range(3):
        state, value = run.accumulate(state, batch)
        state = run.apply(state)
    assert_equal(state["parameters"], single(blocks, x, y, rule, 3), FLOAT32_STEPS)
    assert value.sharding.is_fully_replicated
    cut = NamedSharding(mesh, P("data") if stage == 3 else P())
    for leaf in jax.tree.leaves(state["parameters"]):
        assert leaf.sharding.is_equivalent_to(cut, leaf.ndim)
    assert not any(np.any(np.asarray(g)) for g in jax.tree.leaves(state["gradients"]))


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_two_microbatches_add_up(stage):
    blocks, x, y = problem(4)
    mesh, rule = device_mesh({"data": 4}), optax.sgd(0.05)
    run = zero.training(stage, model.blocks_loss, rule, mesh)
    state, batch = run.init(blocks), zero.place((x, y), mesh, P("data"))
    state, _ = run.accumulate(state, batch)
    state, _ = run.accumulate(state, batch)
    state = run.apply(state)
    expected = single(blocks, x, y, rule, 1, microbatches=2)
    assert_equal(state["parameters"], expected, FLOAT32_STEPS)


def test_the_callers_parameters_survive_donation():
    blocks, x, y = problem(4)
    mesh = device_mesh({"data": 4})
    run = zero.training(0, model.blocks_loss, OPTIMIZERS["adam"], mesh)
    state = run.init(blocks)
    state, _ = run.accumulate(state, zero.place((x, y), mesh, P("data")))
    run.apply(state)
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(blocks))


def test_stage_is_checked():
    with pytest.raises(ValueError, match="stage=4"):
        zero.training(
            4, model.blocks_loss, OPTIMIZERS["adam"], device_mesh({"data": 8})
        )


def on_mesh(f, mesh, spec):
    specs = (spec, P("data"), P("data"))
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=specs, out_specs=(P(), spec)))


@pytest.mark.parametrize("n", [2, 8])
@pytest.mark.parametrize("form", [fsdp.by_hand, fsdp.by_transposition])
def test_fsdp_gradient_memory_and_traffic(form, n):
    layers = model.init_mlp(jax.random.key(0), [16, 64, 64, 8])
    x = jax.random.normal(jax.random.key(1), (256, 16))
    y = jnp.sin(x @ jnp.ones((16, 8)) / 4)
    mesh = device_mesh({"data": n})
    step = on_mesh(lambda *a: form(model.mlp_loss, *a), mesh, P("data"))
    shares = zero.place(layers, mesh, P("data"))
    batch = zero.place((x, y), mesh, P("data"))
    value, gradient = step(shares, *batch)
    expected_value, expected = jax.value_and_grad(model.mlp_loss)(layers, x, y)
    np.testing.assert_allclose(value, expected_value, **FLOAT32_SUM)
    assert_equal(gradient, expected, FLOAT32_SUM)
    for leaf in jax.tree.leaves(gradient):
        assert leaf.sharding.is_equivalent_to(NamedSharding(mesh, P("data")), leaf.ndim)
    program = step.lower(shares, *batch).compile()
    s = held(layers)
    assert s == 23072
    assert hlo.executed(program) == {
        "all-gather": 6,
        "reduce-scatter": 6,
        "all-reduce": 1,
    }
    assert hlo.wire_bytes(program) == 2 * (n - 1) / n * (s + 4)
    data = (x.nbytes + y.nbytes) / n
    assert program.memory_analysis().argument_size_in_bytes == s / n + data


@pytest.mark.parametrize("layers", [1, 2, 6])
def test_regathering_sends_three_rounds(layers):
    n = 4
    blocks, x, y = problem(n, layers)
    mesh = device_mesh({"data": n})
    loss = fsdp.regathering(model.block, lambda out, y: jnp.mean((out - y) ** 2))

    def local(shares, x, y):
        value, gradient = jax.value_and_grad(loss)(shares, x, y)
        return jax.lax.pmean(value, "data"), jax.tree.map(lambda g: g / n, gradient)

    step = on_mesh(local, mesh, P("data"))
    arguments = (
        zero.place(blocks, mesh, P("data")),
        *zero.place((x, y), mesh, P("data")),
    )
    expected = jax.grad(model.blocks_loss)(blocks, x, y)
    assert_equal(step(*arguments)[1], expected, FLOAT32_SUM)
    program = step.lower(*arguments).compile()
    s = held(blocks)
    assert hlo.wire_bytes(program) == 3 * (n - 1) / n * s + 2 * (n - 1) / n * 4


def test_forgetting_to_divide_is_seen():
    """The caution of the page: psum_scatter sums, and N must be divided out."""
    blocks, x, y = problem(4)
    mesh = device_mesh({"data": 4})

    def careless(shares, x, y):
        value, gradient = jax.value_and_grad(
            lambda s: model.blocks_loss(zero.gather(s), x, y)
        )(shares)
        return jax.lax.pmean(value, "data"), gradient

    step = on_mesh(careless, mesh, P("data"))
    batch = zero.place((x, y), mesh, P("data"))
    found = step(zero.place(blocks, mesh, P("data")), *batch)[1]
    right = jax.grad(model.blocks_loss)(blocks, x, y)
    assert_equal(found, jax.tree.map(lambda g: 4 * g, right), FLOAT32_SUM)
