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
