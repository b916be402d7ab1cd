"""Notes 3 and 4: arguments of pmap, and random keys."""

from chapter3.version_notes.note import Note

NOTES = (
    Note(
        3,
        "3.4",
        "3-4-data-parallelism#replicate-and-shard-with-pmap",
        "expects `pmap` to replicate the parameters by itself",
        here="""
            >>> def predict(params, x): return x @ params["w"] + params["b"][None]
            >>> params = {"w": jnp.ones((10, 5)), "b": jnp.zeros(5)}
            >>> x = jnp.ones((8, 32, 10))
            >>> jax.pmap(predict)(params, x)
            …Error: …partitioned 5 times…
            >>> jax.pmap(predict, in_axes=(None, 0))(params, x).shape
            (8, 32, 5)
            """,
    ),
    Note(
        4,
        "3.4",
        "3-4-data-parallelism#replicate-and-shard-with-pmap",
        "makes keys with `jax.random.PRNGKey`, and uses one for everything",
        here="""
            >>> jax.random.PRNGKey(0).dtype, jax.random.key(0).dtype
            (dtype('uint32'), key<fry>)
            >>> old = jax.random.normal(jax.random.PRNGKey(0), (3,))
            >>> key = jax.random.key(0)
            >>> bool(jnp.all(jax.random.normal(key, (3,)) == old))
            True
            >>> jax.random.PRNGKey(0) + 1
            Array([1, 1], dtype=uint32)
            >>> key + 1
            TypeError: …does not accept dtypes key<fry>…
            >>> def noise(key): return np.asarray(jax.random.normal(key, (3,)))
            >>> np.array_equal(noise(key), noise(key))
            True
            >>> first, second = jax.random.split(key)
            >>> np.array_equal(noise(first), noise(second))
            False
            """,
    ),
)
