"""What older material writes, what the installed JAX makes of it, what to write now.

Both forms are source text that is really run: the old one to see what JAX says, the new
one to see that it works.
"""

import re
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3.devices import device_mesh


@dataclass(frozen=True)
class Change:
    """One outdated form.

    Attributes:
        old: source text as older material has it.
        new: source text to write today for the same purpose.
    """

    old: str
    new: str


@dataclass(frozen=True)
class Outcome:
    """What JAX made of a piece of source text.

    Attributes:
        kind: "error", "warning" or "silent".
        message: type and text of the error or warning; empty if there is none.
    """

    kind: str
    message: str


CHANGES = (
    Change("jax.pmap(f)(y)", "jax.jit(f)(x)"),
    Change("jax.device_put_replicated(x, jax.devices())", "jax.device_put(x, whole)"),
    Change(
        "jax.device_put_sharded(list(x), jax.devices())", "jax.device_put(x, split)"
    ),
    Change("jax.pmap(f, jit=True)", "jax.jit(f)"),
    Change("jax.pmap(f, global_arg_shapes=None)", "jax.jit(f)"),
    Change(
        '@jax.pmap(axis_name="i")\ndef g(v): return v',
        '@partial(jax.pmap, axis_name="i")\ndef g(v): return v',
    ),
    Change(
        'jax.config.update("jax_pmap_shmap_merge", True)', "# nothing: it is so now"
    ),
    Change("jax.sharding.PmapSharding", 'NamedSharding(mesh, P("i"))'),
    Change("jax.soft_pmap(f)", "jax.vmap(f)"),
    Change("jax.xmap", "smap(f)(x)"),
    Change("from jax.experimental import maps", "jax.make_mesh((8,), ('i',))"),
    Change("import jax.experimental.maps", "jax.make_mesh((8,), ('i',))"),
    Change("from jax.experimental.shard_map import shard_map", "jax.shard_map"),
    Change("smap(f, check_rep=True)", "smap(f, check_vma=True)"),
    Change("smap(f, auto=frozenset())", 'smap(f, axis_names={"i"})'),
    Change(
        'smap(lambda v: v + lax.pvary(1.0, "i"))(x)',
        'smap(lambda v: v + lax.pcast(1.0, "i", to="varying"))(x)',
    ),
    Change(
        'smap(lambda v: lax.pcast(lax.psum(v, "i"), "i", to="invarying"))(x)',
        'smap(lambda v: lax.psum(v, "i"), out_specs=P())(x)',
    ),
    Change("lax.psum_invariant", "lax.psum"),
    Change("jax.typeof(x).vma", "jax.typeof(x).manual_axis_type.varying"),
    Change("with mesh: f(x)", "with jax.set_mesh(mesh): f(x)"),
    Change("with jax.sharding.use_mesh(mesh): f(x)", "with jax.set_mesh(mesh): f(x)"),
    Change(
        "jax.sharding.PositionalSharding(jax.devices())", "NamedSharding(mesh, P())"
    ),
    Change("from jax.experimental.pjit import pjit; pjit(f)(x)", "jax.jit(f)(x)"),
    Change(
        "jax.jit(f, device=jax.devices()[1])(y)",
        "jax.jit(f)(jax.device_put(y, jax.devices()[1]))",
    ),
    Change(
        'jax.jit(f, backend="cpu")(y)',
        'jax.jit(f)(jax.device_put(y, jax.local_devices(backend="cpu")[0]))',
    ),
    Change("y.device()", "y.device"),
    Change("x.device_buffer", "x.addressable_data(0)"),
    Change("x.device_buffers", "[s.data for s in x.addressable_shards]"),
    Change("jnp.DeviceArray", "jax.Array"),
    Change("import jax.experimental.global_device_array", "jax.Array"),
    Change("from jax.lib import xla_bridge", "jax.default_backend()"),
    Change("jax.host_id()", "jax.process_index()"),
    Change("jax.host_count()", "jax.process_count()"),
    Change("jax.local_devices(host_id=0)", "jax.local_devices(process_index=0)"),
    Change("jax.clear_backends()", "import jax.extend; jax.extend.backend"),
    Change("lax.psend", "lax.ppermute"),
    Change(
        "from jax.experimental import mesh_utils; mesh_utils.create_device_mesh((8,))",
        'jax.make_mesh((8,), ("i",))',
    ),
    Change("jax.tree_map(f, x)", "jax.tree.map(f, x)"),
    Change("jax.tree_util.tree_map(f, x)", "jax.tree.map(f, x)"),
    Change("jax.random.PRNGKey(0)", "jax.random.key(0)"),
    Change("jnp.ones(16.)", "jnp.ones(16)"),
)
"""The forms that readers still copy, most common first within each subject."""


def observe(source: str) -> Outcome:
    """Run a piece of source text and report what JAX says.

    The text may use `x` (float32[8], sharded over mesh axis "i" of eight devices), `y`
    (the same, uncommitted), `f` (doubles its argument), `mesh`, the shardings `whole`
    and `split`, `smap` (`jax.shard_map` over that mesh and axis), and the usual names.

    Args:
        source: Python source.

    Returns:
        The first error or warning. Paths in it are left out.
    """
    mesh = device_mesh({"i": 8})
    split, whole = NamedSharding(mesh, P("i")), NamedSharding(mesh, P())
    names = {
        **{"jax": jax, "jnp": jnp, "np": np, "lax": lax, "P": P},
        **{"NamedSharding": NamedSharding, "partial": partial},
        "smap": partial(_shard_map, mesh),
        **{"mesh": mesh, "split": split, "whole": whole, "f": _double},
        **{"x": jax.device_put(jnp.arange(8.0), split), "y": jnp.arange(8.0)},
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(source, names)
        except Exception as error:
            return Outcome("error", _tidy(error))
    if caught:
        return Outcome("warning", _tidy(caught[0].message))
    return Outcome("silent", "")


def _shard_map(mesh, f, **options):
    specs: dict[str, Any] = {"in_specs": P("i"), "out_specs": P("i")} | options
    return jax.shard_map(f, mesh=mesh, **specs)


def _tidy(problem: Warning | Exception | str) -> str:
    text = re.sub(r" \(/[^)]*\)", "", str(problem))
    return f"{type(problem).__name__}: {text}".removesuffix(": ")


def _double(v):
    return 2 * v
