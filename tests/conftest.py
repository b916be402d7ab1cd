"""Eight devices, and JAX as strict as it can be: what learners get wrong is an error.

Arrays in the signatures of the package are checked against their annotations here, and
only here: readers need no run-time type checker.
"""

import os
import shutil
import time

import jax
import pytest
from jaxtyping import install_import_hook
from needs import need


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


@pytest.fixture(scope="module")
def browser():
    """Start Chromium; skip if there is none."""
    from playwright.sync_api import sync_playwright  # few tests need it

    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        need("chromium", "chromium")
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=options)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Open a page as a first visit; return it, what it asked for, what it reports."""
    contexts = []

    def open_page(path, width=1280, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        requests, complaints = [], []
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda m: complaints.append(m.text) if m.type == "error" else None,
        )
        page.goto(path.as_uri(), wait_until="networkidle")
        return page, requests, complaints

    yield open_page
    for context in contexts:
        context.close()
