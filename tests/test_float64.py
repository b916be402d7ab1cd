"""Gradients of all that cuts a model, against one device in float64.

Computed in float32 they agree to float32's rounding. Computed in float64 they agree to
float64's, so that nothing but rounding lies between them.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from tolerances import FLOAT32_STEPS, FLOAT64_STEPS

from chapter3 import (
    attention,
    collective_matmul,
    device_mesh,
    model,
    pipeline,
    tensor_parallel,
)
from chapter3.reference import f64, in_float64


def normal(seed, *shapes):
    keys = jax.random.split(jax.random.key(seed), len(shapes))
    return [jax.random.normal(k, shape) for k, shape in zip(keys, shapes, strict=True)]


def scalar(f):
    return lambda *arguments: jnp.sum(jnp.sin(f(*arguments)))


def of_layer(form, single, arguments, axis, specs, out):
    """Make gradients of a layer that is cut, and of the same on one device."""
    mesh, every = device_mesh({axis: 8}), tuple(range(len(arguments)))
    spread = jax.shard_map(form, mesh=mesh, in_specs=specs, out_specs=out)
    return (
        jax.jit(jax.grad(scalar(spread), argnums=every)),
        jax.grad(scalar(single), argnums=every),
        arguments,
        [NamedSharding(mesh, spec) for spec in specs],
    )


def of_attention(form):
    qkv, cut = normal(1, *[(32, 8, 4)] * 3), P(attention.AXIS)
    return of_layer(form, attention.attention, qkv, attention.AXIS, (cut,) * 3, cut)


def of_product(form):
    rows, columns = P(collective_matmul.AXIS), P(None, collective_matmul.AXIS)
    operands = normal(2, (32, 6), (6, 40))
    specs = (rows, columns)
    axis = collective_matmul.AXIS
    return of_layer(form, jnp.matmul, operands, axis, specs, columns)


def of_pipeline(microbatches):
    layers = model.init_blocks(jax.random.key(0), 8, 6, 10)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)
    mesh = device_mesh({pipeline.AXIS: 8})
    chain = pipeline.pipeline(model.block, mesh, microbatches)

    def sequential(stacked, x):
        return jax.lax.scan(lambda x, w: (model.block(w, x), None), x, stacked)[0]

    arguments = [stacked, *normal(3, (24, 6))]
    return (
        jax.jit(jax.grad(scalar(lambda w, x: chain(w, x)[0]), argnums=(0, 1))),
        jax.grad(scalar(sequential), argnums=(0, 1)),
        arguments,
        [NamedSharding(mesh, P(pipeline.AXIS)), NamedSharding(mesh, P())],
    )


def of_tensor_parallel(fsdp):
    layers = model.init_blocks(jax.random.key(0), 3, 16, 32)
    mesh = device_mesh({"data": 2, "model": 4})
    step = tensor_parallel.gradients(mesh, 3, fsdp=fsdp)
    cut = tensor_parallel.WEIGHTS_FSDP if fsdp else tensor_parallel.WEIGHTS
    rows = NamedSharding(mesh, P("data", None))
    return (
        lambda *arguments: step(*arguments)[1],
        jax.grad(model.blocks_loss),
        [layers, *normal(4, (16, 16), (16, 16))],
        [[{k: NamedSharding(mesh, s) for k, s in cut.items()}] * 3, rows, rows],
    )


CASES = {
    "ring attention": partial(of_attention, attention.ring_attention),
    "ulysses": partial(of_attention, attention.ulysses),
    "gather_then_multiply": partial(of_product, collective_matmul.gather_then_multiply),
    "multiply_and_pass_on": partial(of_product, collective_matmul.multiply_and_pass_on),
    "pipeline": partial(of_pipeline, 4),
    "tensor": partial(of_tensor_parallel, False),
    "tensor and FSDP": partial(of_tensor_parallel, True),
}


@pytest.mark.parametrize("name", CASES)
def test_gradient(name):
    spread, single, arguments, shardings = CASES[name]()
    exact = in_float64(single, *arguments)
    found = spread(*jax.device_put(arguments, shardings))
    check(found, exact, np.float32, FLOAT32_STEPS)
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda leaf: jnp.asarray(f64(leaf)), arguments)
        found = spread(*jax.device_put(wide, shardings))
        check(found, exact, np.float64, FLOAT64_STEPS)


def check(found, exact, dtype, tolerance):
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(exact), strict=True)
    for leaf, wanted in pairs:
        assert leaf.dtype == dtype and wanted.dtype == np.float64
        np.testing.assert_allclose(leaf, wanted, **tolerance)


def test_the_product_by_hand():
    """The gradient of sum(sin(x w)) written out in NumPy, without JAX's autodiff."""
    spread, _, (x, w), shardings = CASES["multiply_and_pass_on"]()
    slope = np.cos(f64(x) @ f64(w))
    by_x, by_w = spread(*jax.device_put([x, w], shardings))
    np.testing.assert_allclose(by_x, slope @ f64(w).T, **FLOAT32_STEPS)
    np.testing.assert_allclose(by_w, f64(x).T @ slope, **FLOAT32_STEPS)


def test_attention_by_differences():
    """The slope along a direction, from two values in NumPy float64."""
    spread, _, qkv, shardings = CASES["ring attention"]()
    found = spread(*jax.device_put(qkv, shardings))

    def value(step):
        q, k, v = (f64(a) + step * np.cos(f64(a)) for a in qkv)
        s = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(q.shape[-1])
        weights = np.exp(s) / np.exp(s).sum(axis=-1, keepdims=True)
        return np.sin(np.einsum("hqk,khd->qhd", weights, v)).sum()

    step = 1e-5  # the error is of the order of its square
    slope = (value(step) - value(-step)) / (2 * step)
    along = sum(
        np.sum(f64(g) * np.cos(f64(a))) for g, a in zip(found, qkv, strict=True)
    )
    np.testing.assert_allclose(along, slope, rtol=FLOAT32_STEPS["rtol"])
