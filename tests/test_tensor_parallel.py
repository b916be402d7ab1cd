import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from tolerances import FLOAT32_SUM

from chapter3 import device_mesh, hlo, model, tensor_parallel, zero
from chapter3.ledger import tensor_bytes

LAYERS, WIDTH, HIDDEN, BATCH = 3, 16, 32, 16


@pytest.mark.parametrize("fsdp", [False, True])
@pytest.mark.parametrize(("data", "tensor"), [(1, 8), (2, 4), (4, 2), (8, 1), (1, 2)])
def test_gradient_sharding_and_traffic_by_axis(data, tensor, fsdp):
    axes = {"data": data, "model": tensor}
    mesh = device_mesh(axes)
    layers = model.init_blocks(jax.random.key(0), LAYERS, WIDTH, HIDDEN)
    x = jax.random.normal(jax.random.key(1), (BATCH, WIDTH))
    y = jnp.sin(x)
    cut = tensor_parallel.WEIGHTS_FSDP if fsdp else tensor_parallel.WEIGHTS
    weights = [
        {name: zero.place(w, mesh, cut[name]) for name, w in layer.items()}
        for layer in layers
    ]
    batch = zero.place((x, y), mesh, P("data", None))
    step = tensor_parallel.gradients(mesh, LAYERS, fsdp=fsdp)
    value, gradients = step(weights, *batch)
    expected_value, expected = jax.value_and_grad(model.blocks_loss)(layers, x, y)
    np.testing.assert_allclose(value, expected_value, **FLOAT32_SUM)
    for found, wanted in zip(gradients, expected, strict=True):
        for name, leaf in found.items():
            np.testing.assert_allclose(leaf, wanted[name], **FLOAT32_SUM)
            sharding = NamedSharding(mesh, cut[name])
            assert leaf.sharding.is_equivalent_to(sharding, 2)

    s = 4 * LAYERS * 2 * WIDTH * HIDDEN
    sent = hlo.wire_bytes_by_axis(step.lower(weights, *batch).compile(), mesh)
    predicted = tensor_bytes(axes, s, 4 * BATCH * WIDTH, LAYERS)
    assert sent.get(("model",), 0) == predicted["model"]
    assert sent.get(("data",), 0) == predicted["data"] + 2 * (data - 1) / data * 4
    assert set(sent) <= {("model",), ("data",), ()}
