import pytest

from chapter3.migration import CHANGES, observe


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: c.old.splitlines()[0])
def test_the_new_form_works_without_a_complaint(change):
    assert observe(change.new).kind == "silent"


# What older material writes and JAX 0.12 still takes without a word.
STILL_SILENT = {
    "jax.pmap(f)(y)",
    "jax.random.PRNGKey(0)",
    "jax.tree_util.tree_map(f, x)",
    "from jax.experimental import mesh_utils; mesh_utils.create_device_mesh((8,))",
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: c.old.splitlines()[0])
def test_the_old_form_is_refused_or_warned_of(change):
    outcome = observe(change.old)
    assert (outcome.kind == "silent") == (change.old in STILL_SILENT)
    assert bool(outcome.message) == (outcome.kind != "silent")
    assert "site-packages" not in outcome.message and "(/" not in outcome.message


@pytest.mark.parametrize(
    ("old", "kind", "message"),
    [
        (
            "jax.device_put_replicated(x, jax.devices())",
            "error",
            "AttributeError: jax.d",
        ),
        ("smap(f, check_rep=True)", "error", "Did you mean 'check_vma'?"),
        ("with mesh: f(x)", "warning", "DeprecationWarning: `with mesh:`"),
        ("jax.host_id()", "warning", "UserWarning"),
        ("y.device()", "error", "'jaxlib._jax.Device' object is not callable"),
    ],
)
def test_messages(old, kind, message):
    outcome = observe(old)
    assert outcome.kind == kind and message in outcome.message


def test_there_are_at_least_twenty():
    assert len({change.old for change in CHANGES}) == len(CHANGES) >= 20
