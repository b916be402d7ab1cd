import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3 import device_mesh
from chapter3.memory import SHARDED, bytes_per_parameter, itemsize, per_device

PHI = 7_500_000_000


@pytest.mark.parametrize(
    ("optimizer", "dtype", "total"),
    [
        ("adam", "float16", 2 + 2 + 4 + 4 + 4),
        ("adam", "bfloat16", 16),
        ("adam", "float32", 4 + 4 + 4 + 4),
        ("momentum", "float16", 2 + 2 + 4 + 4),
        ("sgd", "float32", 4 + 4),
        ("sgd", "bfloat16", 2 + 2 + 4),
        ("adam", "float64", 8 + 8 + 12),
    ],
)
def test_bytes_per_parameter(optimizer, dtype, total):
    assert bytes_per_parameter(optimizer, dtype).total == total


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float16", "float32"])
def test_itemsize_is_that_of_jax(dtype):
    assert itemsize(dtype) == jnp.dtype(dtype).itemsize


@pytest.mark.parametrize("n", [1, 2, 3, 8, 64, 1024])
def test_formulas(n):
    assert per_device("DP", PHI, n).total == 16 * PHI
    assert per_device("ZeRO-1", PHI, n).total == 4 * PHI + 12 * PHI / n
    assert per_device("ZeRO-2", PHI, n).total == pytest.approx(2 * PHI + 14 * PHI / n)
    assert per_device("ZeRO-3", PHI, n).total == pytest.approx(16 * PHI / n)


def test_numbers_of_the_zero_paper():
    # “ZeRO: Memory Optimizations …”, figure 1: 7.5 billion parameters, 64 devices.
    gigabytes = [round(per_device(s, PHI, 64).total / 1e9, 1) for s in SHARDED]
    assert gigabytes == [120.0, 31.4, 16.6, 1.9]


def test_one_device_keeps_the_same_under_every_strategy():
    assert len({per_device(s, PHI, 1).total for s in SHARDED}) == 1


def test_formula_equals_the_bytes_of_real_arrays():
    mesh, n = device_mesh({"data": 8}), 8
    shardings = {True: P("data"), False: P()}
    for strategy, kinds in SHARDED.items():
        state = {
            kind: [
                jax.device_put(
                    jnp.zeros(64, dtype), NamedSharding(mesh, shardings[kind in kinds])
                )
                for dtype in dtypes
            ]
            for kind, dtypes in {
                "parameters": ["float16"],
                "gradients": ["float16"],
                "optimizer": ["float32"] * 3,
            }.items()
        }
        on_device_0 = sum(
            a.addressable_shards[0].data.nbytes for a in jax.tree.leaves(state)
        )
        assert on_device_0 == per_device(strategy, 64, n).total


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bytes_per_parameter("adamw2"), "optimizer='adamw2'"),
        (lambda: per_device("ZeRO-4", 1, 1), "strategy='ZeRO-4'"),
        (lambda: per_device("DP", 1, 0), "devices=0"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
