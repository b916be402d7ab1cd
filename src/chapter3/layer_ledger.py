"""Lines of the ledger for single layers whose work is cut inside, forward only.

Each is predicted by a formula and measured from its compiled program, as the strategies
of `chapter3.ledger` are.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from chapter3 import attention, collective_matmul, hlo, zero
from chapter3.devices import device_mesh
from chapter3.ledger import FLOAT, Entry, difference
from chapter3.reference import in_float64
from chapter3.traffic import ring_bytes


def layer_entries(devices: int, rows: int = 64, width: int = 8) -> list[Entry]:
    """Run the layers and write their lines.

    Args:
        devices: number N; there are as many attention heads.
        rows: positions of the sequence, rows of the product; a multiple of N.
        width: of a head, and of the product's inner dimension.
    """
    n = devices
    *qkv, x, w = (
        jax.random.normal(key, shape)
        for key, shape in zip(
            jax.random.split(jax.random.key(13), 5),
            [(rows, n, width)] * 3 + [(rows, width), (width, n * width)],
            strict=True,
        )
    )
    block = FLOAT * rows * width  # of queries, keys or values, on each device
    rows_sent = ring_bytes("all-gather", FLOAT * rows * width, n)
    whole, cut = attention.attention, (P(attention.AXIS),) * 3
    product, columns = jnp.matmul, P(None, collective_matmul.AXIS)
    operands = (P(collective_matmul.AXIS), columns)
    forms = [
        (attention.ring_attention, whole, qkv, cut, cut[0], 2 * (n - 1) * block),
        (
            attention.ulysses,
            whole,
            qkv,
            cut,
            cut[0],
            4 * ring_bytes("all-to-all", block, n),
        ),
        *(
            (form, product, (x, w), operands, columns, rows_sent)
            for form in (
                collective_matmul.gather_then_multiply,
                collective_matmul.multiply_and_pass_on,
            )
        ),
    ]
    lines = []
    for form, single, arguments, specs, out, sent in forms:
        axis = attention.AXIS if single is whole else collective_matmul.AXIS
        mesh = device_mesh({axis: n})
        placed = [
            zero.place(a, mesh, spec) for a, spec in zip(arguments, specs, strict=True)
        ]
        run: Any = jax.jit(
            jax.shard_map(form, mesh=mesh, in_specs=specs, out_specs=out)
        )
        program, found = run.lower(*placed).compile(), run(*placed)
        lines.append(
            Entry(
                form.__name__.replace("_", " "),
                {axis: n},
                {},
                hlo.executed(program),
                (sent, hlo.wire_bytes(program)),
                difference(found, single(*arguments)),
                difference(found, in_float64(single, *arguments)),
            )
        )
    return lines
