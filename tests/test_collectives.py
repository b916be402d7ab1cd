import pytest

from chapter3.collectives import OPERATIONS, measure

GRIDS = [
    ({"i": 8}, "i"),
    ({"a": 4, "b": 2}, "a"),
    ({"a": 4, "b": 2}, "b"),
    ({"a": 2, "b": 4}, "b"),
    ({"a": 2, "b": 2, "c": 2}, "b"),
    ({"i": 3}, "i"),
]


@pytest.mark.parametrize(("axes", "over"), GRIDS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_result_is_right_and_formula_is_what_is_compiled(name, axes, over):
    for width in (24, 120):
        found = measure(name, axes, over, width)
        assert found.correct
        assert found.held == 4 * width
        assert found.predicted == found.compiled > 0


# What a device sends on eight devices that hold 4096 bytes each, worked out by hand.
BY_HAND = {
    "psum": 7168,
    "all_gather": 28672,
    "psum_scatter": 3584,
    "all_to_all": 3584,
    "ppermute": 4096,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_bytes_worked_out_by_hand(name):
    found = measure(name, {"i": 8}, "i", 1024)
    assert found.predicted == found.compiled == BY_HAND[name]
