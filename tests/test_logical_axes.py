import jax
import pytest
from jax.sharding import PartitionSpec as P

from chapter3 import device_mesh
from chapter3.logical_axes import Rules

RULES = Rules({"batch": "data", "embed": None, "hidden": "model", "heads": "model"})


def test_spec_and_sharding():
    assert RULES.spec(("batch", "embed")) == P("data", None)
    assert RULES.spec(("embed", "hidden")) == P(None, "model")
    assert RULES.spec((None, "batch")) == P(None, "data")
    mesh = device_mesh({"data": 4, "model": 2})
    array = jax.device_put(
        jax.numpy.ones((8, 4)), RULES.sharding(mesh, ("batch", "hidden"))
    )
    assert array.addressable_shards[0].data.shape == (2, 2)


def test_a_collision_names_both_and_the_axis():
    with pytest.raises(ValueError, match=r"\['hidden', 'heads'\] .* mesh axis 'model'"):
        RULES.spec(("hidden", "heads"))


def test_an_unknown_name():
    with pytest.raises(KeyError, match="sequence"):
        RULES.spec(("sequence",))
