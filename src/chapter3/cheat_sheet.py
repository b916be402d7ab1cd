"""The calls of the cheat sheet: that they exist as shown, and what each gives."""

import ast
import inspect
import pkgutil

import jax
import jax.numpy as jnp

from chapter3.fresh import run_python_each
from chapter3.launcher import free_port
from chapter3.transcript import play

SETUP = (
    "from chapter3 import device_mesh",
    "from jax.experimental import multihost_utils",
    "mesh = device_mesh({'data': 4, 'model': 2})",
    "def put(a, *spec, on=mesh): return jax.device_put(a, NamedSharding(on, P(*spec)))",
    "x = put(jnp.ones((8, 4)), 'data', 'model')",
    "w = put(jnp.ones((4, 6)), 'model', None)",
    "rows = NamedSharding(mesh, P('data'))",
    "columns = NamedSharding(mesh, P(None, 'model'))",
    "auto = device_mesh({'data': 4, 'model': 2}, AxisType.Auto)",
    "by_columns = NamedSharding(auto, P(None, 'model'))",
    "ring = device_mesh({'i': 4})",
    "four = put(jnp.arange(4.0), 'i', on=ring)",
    "square = put(jnp.arange(16.0).reshape(4, 4), 'i', on=ring)",
    # What each of four devices holds after a collective on `four` or `square`.
    "def on(a, f, out=P('i')):\n"
    "    mapped = jax.shard_map(f, mesh=ring, in_specs=P('i'), out_specs=out)\n"
    "    shards = jax.jit(mapped)(a).addressable_shards\n"
    "    return [s.data.astype(int).ravel().tolist() for s in shards]",
    "def each(a, f): return sum(on(a, f), [])",
    "compiled = jax.jit(jnp.sum).lower(x).compile()",
)
"""The names of the examples, for arrays on a mesh of 4 by 2 and on one of 4 devices."""

EXAMPLES = {
    "jax.devices()": "len(jax.devices())",
    "jax.local_devices()": "len(jax.local_devices())",
    "jax.device_count()": "jax.device_count()",
    "jax.local_device_count()": "jax.local_device_count()",
    "jax.process_index()": "jax.process_index()",
    "jax.process_count()": "jax.process_count()",
    "x.device": "jnp.ones(3).device",
    "x.devices()": "len(x.devices())",
    "x.sharding": "x.sharding.spec",
    "jax.device_put(x, place)": "jax.device_put(1.0, jax.devices()[1]).committed",
    "jax.typeof(x)": "str(jax.typeof(x))",
    "jax.make_mesh(sizes, names, axis_types=…, devices=…)": (
        "jax.make_mesh((4, 2), ('data', 'model')).axis_types[0].name"
    ),
    "NamedSharding(mesh, P(…))": "NamedSharding(mesh, P('data')).shard_shape((8, 4))",
    "jax.set_mesh(mesh)": (
        "with jax.set_mesh(mesh): y = jax.device_put(x, P('data'))\nstr(jax.typeof(y))"
    ),
    "lax.with_sharding_constraint(x, s)": (
        "f = jax.jit(lambda v: lax.with_sharding_constraint(v, by_columns))\n"
        "f(put(jnp.ones((8, 4)), on=auto)).sharding.spec"
    ),
    "jax.reshard(x, s)": "str(jax.typeof(jax.reshard(x, columns)))",
    "jnp.matmul(a, b, out_sharding=…)": (
        "str(jax.typeof(jnp.matmul(x, w, out_sharding=rows)))"
    ),
    "jax.shard_map(f, mesh=…, in_specs=…, out_specs=…)": "each(four, lambda v: 10 * v)",
    "jax.pmap(f, axis_name=…, in_axes=…, static_broadcasted_argnums=…)": (
        "f = jax.pmap(lambda w, v: w * v, in_axes=(None, 0))\n"
        "f(10, np.arange(4)).tolist()"
    ),
    "lax.psum(x, axis)": "each(four, lambda v: lax.psum(v, 'i'))",
    "lax.pmean(x, axis)": "each(2 * four, lambda v: lax.pmean(v, 'i'))",
    "lax.pmax(x, axis)": "each(four, lambda v: lax.pmax(v, 'i'))",
    "lax.pmin(x, axis)": "each(four, lambda v: lax.pmin(v, 'i'))",
    "lax.all_gather(x, axis, tiled=True)": (
        "on(four, lambda v: lax.all_gather(v, 'i', tiled=True))[2]"
    ),
    "lax.psum_scatter(x, axis, scatter_dimension=…, tiled=True)": (
        "each(square, partial(lax.psum_scatter, axis_name='i', scatter_dimension=1,"
        " tiled=True))"
    ),
    "lax.all_to_all(x, axis, split_axis, concat_axis, tiled=True)": (
        "on(square, lambda v: lax.all_to_all(v, 'i', 1, 0, tiled=True),"
        " P(None, 'i'))[2]"
    ),
    "lax.ppermute(x, axis, perm)": (
        "each(four + 1, lambda v: lax.ppermute(v, 'i', [(0, 1), (1, 2)]))"
    ),
    "lax.axis_index(axis)": (
        "each(four, lambda v: 0 * v.astype(int) + lax.axis_index('i'))"
    ),
    "jax.make_array_from_process_local_data(sharding, local)": (
        "local = np.arange(8, dtype=np.float32)\n"
        "str(jax.typeof(jax.make_array_from_process_local_data(four.sharding, local)))"
    ),
    "multihost_utils.process_allgather(x, tiled=True)": (
        "multihost_utils.process_allgather(four.astype(int), tiled=True).tolist()"
    ),
    "compiled.memory_analysis()": "compiled.memory_analysis().argument_size_in_bytes",
    "compiled.as_text()": "'all-reduce' in compiled.as_text()",
}
"""By the call as the sheet shows it (`…` is a value): an example with a value."""

ALONE = {
    "jax.config.update('jax_num_cpu_devices', n)": (
        "jax.config.update('jax_num_cpu_devices', 3)\nprint(jax.device_count())"
    ),
    "jax.debug.visualize_array_sharding(x)": (
        "import contextlib, io\n"
        "jax.config.update('jax_num_cpu_devices', 8)\n"
        "split = jax.NamedSharding(jax.make_mesh((8,), ('i',)), jax.P('i'))\n"
        "x = jax.device_put(jax.numpy.ones(8), split)\n"
        "with contextlib.redirect_stdout(io.StringIO()) as drawing:\n"
        "    jax.debug.visualize_array_sharding(x, use_color=False)\n"
        "print(drawing.getvalue().count('CPU'), 'blocks')"
    ),
    "jax.distributed.initialize(coordinator_address, num_processes, process_id)": (
        "jax.distributed.initialize('localhost:PORT', 1, 0)\n"
        "print(jax.process_index(), 'of', jax.process_count())"
    ),
}
"""The same for calls that want a process of their own; these examples print."""

_OWNERS = {
    "jax": "jax",
    "lax": "jax.lax",
    "jnp": "jax.numpy",
    "x": "jax.Array",
    "compiled": "jax.stages.Compiled",
    "multihost_utils": "jax.experimental.multihost_utils",
    "NamedSharding": "jax.sharding.NamedSharding",
}


def full_name(call: str) -> str:
    """Name what is called in full.

    >>> full_name("lax.psum(x, axis)")
    'jax.lax.psum'
    """
    first, *rest = call.split("(")[0].split(".")
    return ".".join([_OWNERS[first], *rest])


def wrong_arguments(call: str) -> str:
    """Say why the function does not take the arguments that are shown; else nothing.

    Raises:
        AttributeError: JAX has no such name.

    >>> wrong_arguments("lax.psum(x)")
    "missing a required argument: 'axis_name'"
    """
    owner, _, last = full_name(call).rpartition(".")
    place = pkgutil.resolve_name(owner)
    # What an array can do is defined on the class of arrays, below `jax.Array`.
    target = getattr(type(jnp.zeros(())) if place is jax.Array else place, last)
    shown = ast.parse(call.replace("…", "..."), mode="eval").body
    if isinstance(shown, ast.Call):
        itself = [None] if inspect.isclass(place) else []
        keywords = {keyword.arg: None for keyword in shown.keywords if keyword.arg}
        try:
            inspect.signature(target).bind(*itself, *shown.args, **keywords)
        except TypeError as error:
            return str(error)
    return ""


def gives() -> dict[str, str]:
    """Run all examples; return what each gives, by its call."""
    shown = play([*SETUP, *EXAMPLES.values()])[len(SETUP) :]
    found = dict(zip(EXAMPLES, (text.strip("'") for text in shown), strict=True))
    with free_port() as port:
        programs = {
            call: (f"import jax\n{example.replace('PORT', str(port))}", {})
            for call, example in ALONE.items()
        }
        runs = run_python_each(programs)
    return found | {call: run.stdout or run.stderr for call, run in runs.items()}
