"""Notes 5, 6, 7 and 26: what collectives return, cost and need."""

from chapter3.version_notes.note import Note

NOTES = (
    Note(
        5,
        "3.5",
        "3-5-collectives#reductions-psum-pmean-pmax-pmin",
        "shows arrays as `DeviceArray(...)`",
        here="""
            >>> jnp.DeviceArray
            AttributeError: …no attribute 'DeviceArray'
            >>> x = jnp.arange(3.0)
            >>> x
            Array([0., 1., 2.], dtype=float32)
            >>> type(x).__name__, isinstance(x, jax.Array)
            ('ArrayImpl', True)
            """,
    ),
    Note(
        6,
        "3.5",
        "3-5-collectives#reductions-psum-pmean-pmax-pmin",
        "takes `pmean` for something else than a `psum` and a division",
        here="""
            >>> from chapter3 import hlo
            >>> mesh = jax.make_mesh((8,), ("i",))
            >>> x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("i")))
            >>> def mapped(f):
            ...     specs = dict(in_specs=P("i"), out_specs=P())
            ...     return jax.jit(jax.shard_map(f, mesh=mesh, **specs))
            >>> mean = mapped(lambda v: lax.pmean(v, "i"))
            >>> by_sum = mapped(lambda v: lax.psum(v, "i") / 8)
            >>> jaxpr = str(jax.make_jaxpr(mean)(x))
            >>> [name for name in ("psum", "div", "pmean") if name in jaxpr]
            ['psum', 'div']
            >>> [hlo.executed(f.lower(x).compile()) for f in (mean, by_sum)]
            [{'all-reduce': 1}, {'all-reduce': 1}]
            >>> float(mean(x)[0]), float(by_sum(x)[0])
            (3.5, 3.5)
            """,
    ),
    Note(
        7,
        "3.5",
        "3-5-collectives#collectives-counted",
        "stops at `psum`, `all_gather` and `ppermute`",
        here="""
            >>> from chapter3.collectives import measure
            >>> names = ["psum_scatter", "all_gather", "psum"]
            >>> found = {name: measure(name, {"i": 8}, "i", 1024) for name in names}
            >>> [(name, m.compiled / m.held) for name, m in found.items()]
            [('psum_scatter', 0.875), ('all_gather', 7.0), ('psum', 1.75)]
            >>> measure("all_to_all", {"i": 8}, "i", 1024).compiled / 4096
            0.875
            >>> all(m.correct and m.compiled == m.predicted for m in found.values())
            True
            >>> def halves(v):
            ...     part = lax.psum_scatter(v, "i", scatter_dimension=1, tiled=True)
            ...     return lax.all_gather(part, "i", axis=1, tiled=True)
            >>> rows = P("i", None)
            >>> mesh = jax.make_mesh((8,), ("i",))
            >>> x = jax.device_put(jnp.ones((8, 8)), NamedSharding(mesh, rows))
            >>> by_halves = jax.shard_map(
            ...     halves, mesh=mesh, in_specs=rows, out_specs=rows)
            >>> np.unique(np.asarray(jax.jit(by_halves)(x))).tolist()
            [8.0]
            """,
    ),
    Note(
        26,
        "3.5",
        "3-6-axis-names#vmap-as-a-test-bench",
        "calls collectives in `pmap` only",
        here="""
            >>> def total(x): return lax.psum(x, "i")
            >>> x = jnp.arange(4.0)
            >>> jax.vmap(total, axis_name="i")(x).tolist()
            [6.0, 6.0, 6.0, 6.0]
            >>> jax.pmap(total, axis_name="i")(x).tolist()
            [6.0, 6.0, 6.0, 6.0]
            >>> mesh = jax.make_mesh((4,), ("i",), devices=jax.devices()[:4])
            >>> f = jax.shard_map(total, mesh=mesh, in_specs=P("i"), out_specs=P())
            >>> jax.jit(f)(jax.device_put(x, NamedSharding(mesh, P("i")))).tolist()
            [6.0]
            >>> jax.jit(total)(x)
            NameError: …unbound axis name…
            """,
    ),
)
