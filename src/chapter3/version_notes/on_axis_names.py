"""Notes 8, 9 and 10: a name for the axis, scalars as parameters, and trees."""

from chapter3.version_notes.note import Note

NOTES = (
    Note(
        8,
        "3.6",
        "3-6-axis-names#names-are-needed",
        "calls `psum` without the name of an axis",
        here="""
            >>> jax.pmap(lambda x: lax.psum(x * 2.0))(jnp.arange(8.0))
            TypeError: psum() missing 1 required positional argument: 'axis_name'
            >>> named = jax.pmap(lambda x: lax.psum(x * 2.0, "i"), axis_name="i")
            >>> named(jnp.arange(8.0)).tolist()
            [56.0, 56.0, 56.0, 56.0, 56.0, 56.0, 56.0, 56.0]
            """,
    ),
    Note(
        9,
        "3.6",
        "3-6-axis-names#a-gradient-step-with-names",
        "maps over parameters that are scalars",
        here="""
            >>> def line(params, x): return params["w"] * x + params["b"]
            >>> params = {"w": jnp.float32(2.0), "b": jnp.float32(1.0)}
            >>> jax.pmap(line)(params, jnp.ones((8, 4)))
            IndexError: tuple index out of range
            >>> jax.pmap(line, in_axes=(None, 0))(params, jnp.ones((8, 4)))[0].tolist()
            [3.0, 3.0, 3.0, 3.0]
            """,
    ),
    Note(
        10,
        "3.6",
        "3-6-axis-names#a-gradient-step-with-names",
        "updates parameters with `jax.tree_map`",
        here="""
            >>> def double(x): return 2 * x
            >>> jax.tree_map(double, {"w": 1})
            AttributeError: module 'jax' has no attribute 'tree_map'
            >>> jax.tree.map(double, {"w": 1})
            {'w': 2}
            """,
    ),
)
