import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3 import device_mesh, epochs
from chapter3.launcher import launch


def rows_on(n):
    return NamedSharding(device_mesh({"data": n}), P("data"))


def test_the_order_is_a_permutation_that_seed_and_epoch_decide():
    order = epochs.shuffled(3, 5, 100)
    assert sorted(order.tolist()) == list(range(100))
    assert np.array_equal(order, epochs.shuffled(3, 5, 100))
    for seed, epoch in ((3, 6), (4, 5), (5, 3)):
        assert not np.array_equal(order, epochs.shuffled(seed, epoch, 100))


@pytest.mark.parametrize("n", [1, 2, 4, 8])
@pytest.mark.parametrize("examples", [1, 15, 16, 37])
def test_each_example_once_in_the_order_and_all_batches_of_one_shape(n, examples):
    x = np.arange(3.0 * examples, dtype=np.float32).reshape(examples, 3) + 1
    y = np.arange(examples)
    order = epochs.shuffled(0, 1, examples)
    made = list(epochs.batches((x, y), order, 16, rows_on(n)))
    assert len(made) == -(-examples // 16)
    seen = []
    for bx, by, weights in made:
        assert (bx.shape, by.shape, weights.shape) == ((16, 3), (16,), (16,))
        assert bx.sharding.is_equivalent_to(rows_on(n), 2)
        keep = np.asarray(weights) == 1
        assert np.all(np.asarray(weights)[~keep] == 0)
        assert np.all(np.asarray(bx)[~keep] == x[0])  # real values
        assert np.array_equal(np.asarray(bx)[keep], x[np.asarray(by)[keep]])
        seen += np.asarray(by)[keep].tolist()
    assert seen == order.tolist()


def test_a_mesh_in_another_order_still_gets_its_rows():
    mesh = Mesh(jax.devices()[::-1], ("data",))
    x = np.arange(16.0, dtype=np.float32)
    sharding = NamedSharding(mesh, P("data"))
    ((made, _),) = epochs.batches((x,), np.arange(16), 16, sharding)
    assert np.array_equal(made, x)


INTERLEAVED = """
from chapter3.launcher import join, report
join()
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from chapter3 import epochs

mesh = Mesh(np.array(jax.devices()).reshape(2, 2).T.ravel(), ("data",))
rows = NamedSharding(mesh, P("data"))
((made, _),) = epochs.batches((np.arange(8.0) ** 2,), np.arange(8)[::-1], 8, rows)
shards = made.addressable_shards
report({str(s.index[0].start): s.data.tolist() for s in shards})
"""


def test_a_process_whose_rows_have_gaps_brings_just_these(tmp_path):
    (tmp_path / "script.py").write_text(INTERLEAVED)
    first, second = launch(tmp_path / "script.py", devices=2)
    assert first.value == {"0": [49, 36], "4": [9, 4]}
    assert second.value == {"2": [25, 16], "6": [1, 0]}
