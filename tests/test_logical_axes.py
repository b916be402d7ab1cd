import jax
import pytest
from jax.sharding import PartitionSpec as P

from chapter3 import device_mesh
from chapter3.logical_axes import Rules

RULES = Rules(
    {
        "batch": "data",
        "embed": None,
        "hidden": "model",
        "heads": "model",
        "vocabulary": ("data", "model"),
    }
)


def test_spec_and_sharding():
    assert RULES.spec(("batch", "embed")) == P("data", None)
    assert RULES.spec(("embed", "hidden")) == P(None, "model")
    assert RULES.spec((None, "batch")) == P(None, "data")
    mesh = device_mesh({"data": 4, "model": 2})
    array = jax.device_put(
        jax.numpy.ones((8, 4)), RULES.sharding(mesh, ("batch", "hidden"))
    )
    assert array.addressable_shards[0].data.shape == (2, 2)


def test_several_mesh_axes_for_one_logical_axis():
    assert RULES.spec(("vocabulary", "embed")) == P(("data", "model"), None)
    mesh = device_mesh({"data": 4, "model": 2})
    array = jax.device_put(
        jax.numpy.ones((16, 4)), RULES.sharding(mesh, ("vocabulary", "embed"))
    )
    assert array.addressable_shards[0].data.shape == (2, 4)
    assert str(jax.typeof(array)) == "float32[16@(data,model),4]"


@pytest.mark.parametrize(
    ("logical", "both", "axis"),
    [
        (("hidden", "heads"), r"\['hidden', 'heads'\]", "model"),
        (("batch", "vocabulary"), r"\['batch', 'vocabulary'\]", "data"),
        (("vocabulary", "embed", "heads"), r"\['vocabulary', 'heads'\]", "model"),
        (("vocabulary", "vocabulary"), r"\['vocabulary', 'vocabulary'\]", "data"),
    ],
)
def test_a_collision_names_both_and_the_axis(logical, both, axis):
    with pytest.raises(ValueError, match=f"{both} would both go to mesh axis '{axis}'"):
        RULES.spec(logical)


def test_one_mesh_axis_twice_in_one_rule():
    with pytest.raises(ValueError, match=r"\['batch', 'batch'\] .* axis 'data'"):
        Rules({"batch": ("data", "data")}).spec(("batch",))


def test_an_unknown_name():
    with pytest.raises(KeyError, match="sequence"):
        RULES.spec(("sequence",))
