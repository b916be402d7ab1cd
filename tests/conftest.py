"""Eight devices, and JAX as strict as it can be: what learners get wrong is an error.

Arrays in the signatures of the package are checked against their annotations here, and
only here: readers need no run-time type checker.
"""

import os
import time

import jax
import pytest
from jaxtyping import install_import_hook


def pytest_configure():
    """Prepare JAX; the package is imported here, after the hook that checks it."""
    install_import_hook("chapter3", "typecheck.checked")
    from chapter3 import simulate_devices

    # Eight is the smallest number with two factorisations into a mesh of two axes, 4x2
    # and 2x4, that a mistake in the order of axes cannot confuse.
    simulate_devices(8)
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(scope="session", autouse=True)
def no_process_is_left():
    """Check at the end that no process survives that a test started, or its child."""
    from leftovers import living

    # All that is started from here inherits it; under pytest-xdist it is this worker's.
    os.environ["CHAPTER3_TESTS"] = str(os.getpid())
    yield
    end = time.monotonic() + 10  # some may just be ending
    while left := living(f"CHAPTER3_TESTS={os.getpid()}\0"):
        assert time.monotonic() < end, left
        time.sleep(0.1)


@pytest.fixture
def optax_promotes():
    """Allow what optax does itself: it multiplies its integer counter by floats."""
    with jax.numpy_dtype_promotion("standard"):
        yield
