"""Notes 20 to 24: the training program of older courses."""

from chapter3.version_notes.note import Note

NOTES = (
    Note(
        20,
        "3.9",
        "3-2-device-management#simulating-devices-by-hand",
        "sets `jax_cpu_device_count`, after the devices have been counted",
        fresh="""
            >>> jax.config.update("jax_cpu_device_count", 4)
            AttributeError: Unrecognized config option: jax_cpu_device_count
            >>> jax.config.update("jax_num_cpu_devices", 3)
            >>> jax.local_device_count()
            3
            >>> jax.config.update("jax_num_cpu_devices", 5)
            RuntimeError: jax_num_cpu_devices config should be updated before…
            >>> flag = "--xla_force_host_platform_device_count=8"
            >>> os.environ["XLA_FLAGS"] = flag
            >>> jax.local_device_count()
            3
            """,
    ),
    Note(
        21,
        "3.9",
        "3-9-practice#the-older-form-pmap",
        "passes `jit=True` to `pmap`",
        here="""
            >>> def f(x): return 2 * x
            >>> jax.pmap(f, jit=True)
            TypeError: pmap() got an unexpected keyword argument 'jit'
            >>> type(jax.pmap(f).lower(jnp.arange(8.0)).compile()).__name__
            'Compiled'
            """,
    ),
    Note(
        22,
        "3.9",
        "3-9-practice#the-older-form-pmap",
        "calls `in_axes=(0, 0, 0, None)` replicated parameters",
        here="""
            >>> def step(w, b, x, rate): return w - rate * x.mean(0), b
            >>> axes = dict(in_axes=(0, 0, 0, None), static_broadcasted_argnums=(3,))
            >>> w, b, x = jnp.ones(5), jnp.zeros(()), jnp.ones((8, 100, 5))
            >>> jax.pmap(step, **axes)(w, b, x, 0.5)
            ValueError: …incompatible with its sharding annotation…
            >>> def spread(p): return jnp.broadcast_to(p, (8, *p.shape))
            >>> new_w, new_b = jax.pmap(step, **axes)(spread(w), spread(b), x, 0.5)
            >>> new_w.shape, new_b.shape
            ((8, 5), (8,))
            >>> new_w[0].tolist()
            [0.5, 0.5, 0.5, 0.5, 0.5]
            """,
    ),
    Note(
        23,
        "3.9",
        "3-9-practice#the-older-form-pmap",
        "replicates with `pmap(lambda x: x, in_axes=None)`",
        here="""
            >>> def same(x): return x
            >>> params = {"w": jnp.ones(5), "b": jnp.zeros(())}
            >>> jax.pmap(same, in_axes=None, out_axes=0)(params)
            ValueError: pmap requires at least one argument with a mapped axis.
            >>> jax.pmap(same, in_axes=None, out_axes=0, axis_size=8)(params)
            ValueError: pmap requires at least one argument with a mapped axis.
            >>> def spread(p): return jnp.broadcast_to(p, (8, *p.shape))
            >>> jax.tree.map(lambda p: spread(p).shape, params)
            {'b': (8,), 'w': (8, 5)}
            >>> whole = NamedSharding(jax.make_mesh((8,), ("data",)), P())
            >>> placed = jax.device_put(params, whole)
            >>> placed["w"].is_fully_replicated, len(placed["w"].devices())
            (True, 8)
            """,
    ),
    Note(
        24,
        "3.9",
        "3-9-practice#proof",
        "trains, and compares the result with nothing",
        here="""
            >>> from chapter3 import hlo, model, data_parallel as dp
            >>> mesh = jax.make_mesh((8,), ("data",))
            >>> split, whole = (NamedSharding(mesh, P(*s)) for s in (["data"], []))
            >>> import optax
            >>> adam = optax.adam(1e-2)
            >>> def adam_step(layers, state, x, y):
            ...     loss, gradients = jax.value_and_grad(model.mlp_loss)(layers, x, y)
            ...     updates, state = adam.update(gradients, state, layers)
            ...     return optax.apply_updates(layers, updates), state, loss
            >>> layers = model.init_mlp(jax.random.key(7), [16, 64, 64, 8])
            >>> state = jax.device_put((layers, adam.init(layers)), whole)
            >>> batch = jax.device_put((jnp.ones((512, 16)), jnp.ones((512, 8))), split)
            >>> with jax.numpy_dtype_promotion("standard"):
            ...     compiled = jax.jit(adam_step).lower(*state, *batch).compile()
            >>> operations = hlo.collectives(compiled)
            >>> hlo.executed(compiled), sum(op.nbytes for op in operations)
            ({'all-reduce': 1}, 23076)
            >>> sum(leaf.nbytes for leaf in jax.tree.leaves(layers)) + 4
            23076
            >>> k_x, k_w = jax.random.split(jax.random.key(1))
            >>> x = jax.random.normal(k_x, (800, 5))
            >>> y = x @ jax.random.normal(k_w, (5, 1)) + 0.5
            >>> start = {"w": jnp.zeros((5, 1)), "b": jnp.zeros(1)}
            >>> def train(step, params, *batch):
            ...     for _ in range(50):
            ...         params, loss = step(params, *batch, 0.05)
            ...     return params
            >>> by_one = train(jax.jit(dp.step), start, x, y)
            >>> placed = jax.device_put((x, y), split)
            >>> start_s = jax.device_put(start, whole)
            >>> by_eight = train(jax.jit(dp.step), start_s, *placed)
            >>> def reference(w, b, x, y):
            ...     for _ in range(50):
            ...         error = x @ w + b - y
            ...         w = w - 0.05 * 2 / len(x) * x.T @ error
            ...         b = b - 0.05 * 2 * error.mean()
            ...     return w
            >>> arrays = start["w"], start["b"], x, y
            >>> true = reference(*(np.asarray(a, np.float64) for a in arrays))
            >>> float(np.abs(by_eight["w"] - np.asarray(by_one["w"])).max()) < 1e-5
            True
            >>> float(np.abs(by_eight["w"] - true).max()) < 1e-4
            True
            """,
    ),
)
