"""Notes 11 to 15: what became of nested pmap and its neighbours."""

from chapter3.version_notes.note import Note

NOTES = (
    Note(
        11,
        "3.7",
        "3-7-meshes#nested-pmap",
        "imports `jax.experimental.maps`",
        here="""
            >>> import jax.experimental.maps
            ModuleNotFoundError: No module named 'jax.experimental.maps'
            >>> from jax.experimental import maps
            ImportError: cannot import name 'maps' from 'jax.experimental'
            >>> jax.make_mesh((4, 2), ("data", "model")).shape
            OrderedDict({'data': 4, 'model': 2})
            """,
    ),
    Note(
        12,
        "3.7",
        "3-7-meshes#nested-pmap",
        "gives a shape as a float, `jnp.ones(16.)`",
        here="""
            >>> jnp.ones(16.)
            TypeError: Shapes must be 1D sequences…integer type…
            >>> jnp.ones(16).shape
            (16,)
            """,
    ),
    Note(
        13,
        "3.7",
        "3-7-meshes#nested-pmap",
        "takes `x.devices` for a mesh, and has exactly four devices",
        here="""
            >>> x = jax.device_put(jnp.ones(4), jax.devices()[0])
            >>> type(x.devices).__name__
            'method'
            >>> jnp.arange(jax.device_count()).reshape(2, 2)
            TypeError: cannot reshape array of shape (8,)…
            >>> four = jax.local_devices()[:1] * 4
            >>> len(four), len(set(four))
            (4, 1)
            >>> mesh = Mesh(np.array(four).reshape(2, 2), ("data", "model"))
            >>> grid = NamedSharding(mesh, P("data", "model"))
            >>> jax.device_put(jnp.ones((2, 2)), grid)
            AssertionError
            >>> devices = jax.devices()[:4]
            >>> mesh = jax.make_mesh((2, 2), ("data", "model"), devices=devices)
            >>> grid = NamedSharding(mesh, P("data", "model"))
            >>> len(jax.device_put(jnp.ones((2, 2)), grid).devices())
            4
            """,
    ),
    Note(
        14,
        "3.7",
        "3-7-meshes#the-mesh-that-replaces-it",
        "nests one `pmap` in another",
        here="""
            >>> x = jnp.arange(4.0).reshape(2, 2)
            >>> def inner(v): return lax.psum(v, "model")
            >>> def with_inner(mapped, v):
            ...     return lax.psum(mapped(inner, axis_name="model")(v), "data")
            >>> jax.pmap(partial(with_inner, jax.pmap), axis_name="data")(x)
            ValueError: …should match the mesh passed to shard_map…
            >>> by_vmap = jax.pmap(partial(with_inner, jax.vmap), axis_name="data")(x)
            >>> by_vmap.tolist()
            [[6.0, 6.0], [6.0, 6.0]]
            >>> devices = jax.devices()[:4]
            >>> mesh = jax.make_mesh((2, 2), ("data", "model"), devices=devices)
            >>> grid = P("data", "model")
            >>> def total(v): return lax.psum(v, ("data", "model"))
            >>> f = jax.shard_map(total, mesh=mesh, in_specs=grid, out_specs=P())
            >>> jax.jit(f)(jax.device_put(x, NamedSharding(mesh, grid))).tolist()
            [[6.0]]
            """,
    ),
    Note(
        15,
        "3.7",
        "3-7-meshes#six-or-twelve",
        "adds up to 12 what is 6",
        here="""
            >>> devices = jax.devices()[:4]
            >>> mesh = jax.make_mesh((2, 2), ("data", "model"), devices=devices)
            >>> grid = P("data", "model")
            >>> x = jnp.arange(4.0).reshape(2, 2)
            >>> x = jax.device_put(x, NamedSharding(mesh, grid))
            >>> def rows(v): return lax.psum(0.5 * v, "model") * 2
            >>> def run(f, out_specs):
            ...     specs = dict(in_specs=grid, out_specs=out_specs)
            ...     return jax.jit(jax.shard_map(f, mesh=mesh, **specs))(x).tolist()
            >>> run(lambda v: lax.psum(rows(v), "data"), P())
            [[6.0]]
            >>> run(rows, P("data"))
            [[1.0], [5.0]]
            >>> run(lambda v: lax.psum(rows(v), ("data", "model")), P())
            ValueError: …one of varying, unreduced, reduced or invarying…
            >>> run(lambda v: lax.psum(lax.psum(rows(v), "data"), "model"), P())
            [[12.0]]
            """,
    ),
)
