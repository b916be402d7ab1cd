"""The code of the chapter “Distributed computing in JAX”.

One idea per module; the pages include their source by name and run it.
"""

from chapter3.devices import device_mesh, simulate_devices
from chapter3.errors import expect_error

__all__ = ["device_mesh", "expect_error", "simulate_devices"]
