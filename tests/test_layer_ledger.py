import pytest

from chapter3.layer_ledger import layer_entries


@pytest.mark.parametrize("n", [2, 4, 8])
@pytest.mark.parametrize("rows, width", [(64, 8), (32, 12)])
def test_single_layers(n, rows, width):
    lines = layer_entries(n, rows, width)
    assert [line.strategy for line in lines] == [
        "ring attention",
        "ulysses",
        "gather then multiply",
        "multiply and pass on",
    ]
    for line in lines:
        assert line.sent[0] == line.sent[1] > 0, line.strategy
        # Sums of some ten float32 products and weights of size 1.
        assert max(line.difference, line.difference_float64) < 1e-5, line.strategy
    ring, ulysses, gather, pass_on = (line.executed for line in lines)
    assert ring == {"collective-permute": 2 * (n - 1)}
    assert ulysses == {"all-to-all": 4}
    assert gather == {"all-gather": 1}
    assert pass_on == {"collective-permute": n - 1}
