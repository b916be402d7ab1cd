"""Notes 18 and 19: several processes."""

from chapter3.version_notes.note import Note

NOTES = (
    Note(
        18,
        "3.8",
        "3-8-multi-host#first-of-all-join",
        "leaves out `jax.distributed.initialize`, or calls it late",
        fresh="""
            >>> jax.distributed.initialize()
            ValueError: coordinator_address should be defined.
            >>> jnp.ones(3).sum()
            Array(3., dtype=float32)
            >>> jax.distributed.initialize("localhost:1234", 2, 0)
            RuntimeError: jax.distributed.initialize() must be called before any JAX…
            """,
        both="""
            >>> jax.process_index(), jax.process_count()
            process 0: (0, 2); process 1: (1, 2)
            >>> len(jax.devices()), len(jax.local_devices())
            (8, 4)
            >>> jax.distributed.initialize("localhost:1234", 2, 0)
            RuntimeError: jax.distributed.initialize() must be called before any JAX…
            >>> sharding = NamedSharding(jax.make_mesh((8,), ("data",)), P("data"))
            >>> own = np.arange(4.0, dtype=np.float32) + 4 * jax.process_index() + 1
            >>> own.tolist()
            process 0: [1.0, 2.0, 3.0, 4.0]; process 1: [5.0, 6.0, 7.0, 8.0]
            >>> whole = jax.make_array_from_process_local_data(sharding, own)
            >>> whole.shape, whole.is_fully_addressable
            ((8,), False)
            >>> float(jax.jit(jnp.sum)(whole))
            36.0
            """,
    ),
    Note(
        19,
        "3.8",
        "3-8-multi-host#one-sum-three-ways",
        "counts all devices in the leading axis of a `pmap`",
        both="""
            >>> add_up = jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
            >>> add_up(jnp.arange(8.0))
            ValueError: cannot select an axis to squeeze out…
            >>> own = jnp.arange(4.0) + 4 * jax.process_index() + 1
            >>> total = add_up(own)
            >>> total.shape
            (4,)
            >>> total.tolist()
            [36.0, 36.0, 36.0, 36.0]
            """,
    ),
)
