"""Notes 16 and 17: names that moved, and what older material does not have at all."""

from chapter3.version_notes.note import Note

NOTES = (
    Note(
        16,
        "3.7",
        "3-7-meshes#choosing-devices-old-and-new",
        "writes `jit(device=…)` and `jax.experimental.shard_map`",
        here="""
            >>> def f(x): return 2 * x
            >>> mesh = jax.make_mesh((8,), ("i",))
            >>> specs = dict(mesh=mesh, in_specs=P("i"), out_specs=P("i"))
            >>> jax.jit(f, device=jax.devices()[1])(1.0)
            DeprecationWarning: …device argument on jit is deprecated…
            >>> jax.shard_map(f, **specs, check_rep=True)
            TypeError: …unexpected keyword argument 'check_rep'…
            >>> with mesh: pass
            DeprecationWarning: …context manager has been deprecated…
            >>> jax.sharding.use_mesh
            AttributeError: …no attribute 'use_mesh'
            >>> jax.device_put_replicated
            AttributeError: jax.device_put_replicated is deprecated…
            >>> lax.pvary
            AttributeError: …no attribute 'pvary'
            >>> jax.config.update("jax_pmap_shmap_merge", False)
            AttributeError: Unrecognized config option: jax_pmap_shmap_merge
            >>> jax.pmap.__doc__.strip().splitlines()[0]
            'Old way of doing parallel map…'
            >>> jax.pmap(f)(jnp.arange(8.0))
            Array([ 0.,  2.,  4.,  6.,  8., 10., 12., 14.], dtype=float32)
            """,
        fresh="""
            >>> from jax.experimental.shard_map import shard_map  # warns once
            DeprecationWarning: jax.experimental.shard_map is deprecated in v0.8.0…
            >>> from jax.experimental.pjit import pjit
            DeprecationWarning: jax.experimental.pjit.pjit has been deprecated…
            """,
    ),
    Note(
        17,
        "3.7",
        "3-7-meshes#explicit-auto-manual-who-decides",
        "has no types of axes, no `reshard`, and cuts no model",
        here="""
            >>> mesh = jax.make_mesh((4, 2), ("data", "model"))
            >>> [t.name for t in mesh.axis_types]
            ['Explicit', 'Explicit']
            >>> [t.name for t in Mesh(mesh.devices, ("data", "model")).axis_types]
            ['Auto', 'Auto']
            >>> def put(a, *spec):
            ...     return jax.device_put(a, NamedSharding(mesh, P(*spec)))
            >>> x = put(jnp.ones((8, 4)), "data", "model")
            >>> str(jax.typeof(x))
            'float32[8@data,4@model]'
            >>> x @ put(jnp.ones((4, 6)), "model", None)
            ShardingTypeError: …ambiguous…
            >>> columns = NamedSharding(mesh, P(None, "model"))
            >>> str(jax.typeof(jax.reshard(x, columns)))
            'float32[8,4@model]'
            >>> def constrain(x): return lax.with_sharding_constraint(x, columns)
            >>> jax.jit(constrain)(x)
            ValueError: …You probably meant to use `reshard` API?
            >>> def constrain(x): return lax.with_sharding_constraint(x, columns.spec)
            >>> with jax.set_mesh(mesh): jax.jit(constrain)(x)
            AssertionError: …did not match the sharding provided…
            >>> from chapter3 import hlo, tensor_parallel
            >>> weights = {"w1": jnp.ones((8, 32)), "w2": jnp.ones((32, 8))}
            >>> cut = tensor_parallel.WEIGHTS
            >>> weights = {name: put(w, *cut[name]) for name, w in weights.items()}
            >>> rows = P("data", None)
            >>> specs = dict(in_specs=(cut, rows), out_specs=rows)
            >>> block = jax.shard_map(tensor_parallel.block, mesh=mesh, **specs)
            >>> inputs = put(jnp.ones((16, 8)), "data", None)
            >>> hlo.executed(jax.jit(block).lower(weights, inputs).compile())
            {'all-reduce': 1}
            >>> from chapter3 import fsdp, model
            >>> along = jax.make_mesh((8,), ("data",))
            >>> layers = model.init_mlp(jax.random.key(0), [16, 64, 64, 8])
            >>> sum(leaf.nbytes for leaf in jax.tree.leaves(layers))
            23072
            >>> batch = jnp.ones((256, 16)), jnp.ones((256, 8))
            >>> cut = NamedSharding(along, P("data"))
            >>> arguments = jax.device_put((layers, *batch), cut)
            >>> local = partial(fsdp.by_transposition, model.mlp_loss)
            >>> every = P("data")
            >>> specs = dict(in_specs=(every, every, every), out_specs=(P(), every))
            >>> step = jax.jit(jax.shard_map(local, mesh=along, **specs))
            >>> compiled = step.lower(*arguments).compile()
            >>> dict(sorted(hlo.executed(compiled).items()))
            {'all-gather': 6, 'all-reduce': 1, 'reduce-scatter': 6}
            >>> compiled.memory_analysis().argument_size_in_bytes
            5956
            """,
    ),
)
