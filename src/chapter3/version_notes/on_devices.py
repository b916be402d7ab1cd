"""Notes 1, 2 and 25: devices and where arrays live."""

from chapter3.version_notes.note import Note

NOTES = (
    Note(
        1,
        "3.2",
        "3-2-device-management#where-does-an-array-live",
        "asks an array for its device with `x.device()`",
        here="""
            >>> x = jnp.ones((3, 3))
            >>> x.device()
            TypeError: …object is not callable
            >>> x.device
            CpuDevice(id=0)
            >>> x.devices()
            {CpuDevice(id=0)}
            >>> x.sharding
            SingleDeviceSharding(…)
            >>> spread = NamedSharding(jax.make_mesh((8,), ("i",)), P("i"))
            >>> y = jax.device_put(jnp.arange(8.0), spread)
            >>> type(y.device).__name__, len(y.devices())
            ('NamedSharding', 8)
            """,
    ),
    Note(
        2,
        "3.2",
        "3-2-device-management#committed-or-not",
        "does not say what happens to arrays on different devices",
        here="""
            >>> u = jnp.ones(3)
            >>> one = jax.device_put(u, jax.devices()[1])
            >>> two = jax.device_put(u, jax.devices()[2])
            >>> one + two
            ValueError: Received incompatible devices…
            >>> u.committed, one.committed
            (False, True)
            >>> (u + one).device
            CpuDevice(id=1)
            >>> (one + jax.device_put(two, one.device)).device
            CpuDevice(id=1)
            """,
    ),
    Note(
        25,
        "3.2",
        "3-2-device-management#computation-follows-data",
        "lets `jit` decide where a function runs",
        here="""
            >>> f = jax.jit(lambda x: x + 1)
            >>> f(jax.device_put(1.0, jax.devices()[1])).device
            CpuDevice(id=1)
            >>> f(jax.device_put(1.0, jax.devices()[5])).device
            CpuDevice(id=5)
            """,
    ),
)
