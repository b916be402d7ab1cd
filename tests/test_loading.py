import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from small_site import ROOT

from chapter3 import device_mesh
from chapter3.figures import Loaded, draw_loading
from chapter3.launcher import launch
from chapter3.loading import load_batch, rows_of_process


@pytest.mark.parametrize("spec", [P(), P("data"), P("model"), P(("data", "model"))])
@pytest.mark.parametrize("axes", [{"data": 4, "model": 2}, {"data": 1, "model": 8}])
def test_one_process_reads_each_row_once_and_has_them_all(axes, spec):
    sharding, asked = NamedSharding(device_mesh(axes), spec), []
    whole = np.random.default_rng(0).standard_normal((16, 3)).astype(np.float32)

    def read(rows):
        asked.append(rows.tolist())
        return whole[rows]

    batch = load_batch(sharding, (16, 3), read)
    assert asked == [[*range(16)]]
    assert np.array_equal(batch, whole)
    assert batch.sharding.is_equivalent_to(sharding, 2)


def test_rows_that_do_not_divide_and_too_few_rows_are_refused():
    sharding = NamedSharding(device_mesh({"data": 8}), P("data"))
    with pytest.raises(ValueError, match="8 times, but the dimension size is 12"):
        rows_of_process(sharding, (12, 2))
    with pytest.raises(ValueError, match="global_shape"):
        load_batch(sharding, (16,), lambda rows: np.zeros(len(rows) - 8, np.float32))


@pytest.mark.parametrize(
    ("processes", "devices", "along_data"),
    [
        (2, 4, [(0, 4), (4, 8)]),
        # data 2 x model 4, so that two processes share a half of the batch.
        (4, 2, [(0, 4), (0, 4), (4, 8), (4, 8)]),
    ],
)
def test_processes_read_what_their_devices_hold(processes, devices, along_data):
    reports = launch(
        ROOT / "examples/processes/loading.py", processes=processes, devices=devices
    )
    total = sum(10 * r + 10 * r + 1 for r in range(8))
    for one, (first, end) in zip(reports, along_data, strict=True):
        found = one.value
        assert found["data"]["rows read"] == [*range(first, end)]
        assert found["model"]["rows read"] == [*range(8)]
        for along in ("data", "model"):
            held = {r for _, a, b in found[along]["held"] for r in range(a, b)}
            assert sorted(held) == found[along]["rows read"]
            assert len(found[along]["held"]) == devices
            assert found[along]["type"] == "float32[8@data,2]"
            assert found[along]["sum"] == total and found[along]["replicas agree"]
        assert found["make_mesh's is the first"]
        assert found["callback"]["equal"] and len(found["callback"]["calls"]) == devices
        assert found["read once"] == {"type": "float32[8@data,2]", "equal": True}
        # The trap: half of a batch each, and every process has another sum.
        assert not found["cut by process"]["replicas agree"]
        refused = found["cut by process"]["refused with the global shape"]
        assert f"data has {8 // processes} elements. Process addresses 8" in refused
    sums = [one.value["cut by process"]["sum"] for one in reports]
    assert len(set(sums)) == processes and sum(sums) == total


def test_random_numbers_of_several_processes():
    reports = launch(ROOT / "examples/processes/keys.py", processes=2, devices=2)
    first, second = (one.value for one in reports)
    assert first["same seed"] == second["same seed"]
    assert first["same seed"]["replicas agree"]
    assert not first["seed = process"]["replicas agree"]
    assert first["seed = process"]["end"] != second["seed = process"]["end"]
    assert first["same key"][:2] == first["same key"][2:]
    assert len(set(first["folded"])) == 4
    alone = jax.random.normal(jax.random.key(1), (4,))
    assert first["global"] == second["global"] == alone.tolist()


def test_the_figure_shows_what_was_read_and_what_is_held():
    shown = [
        Loaded(0, [0, 1, 4], {0: (0, 2), 1: (4, 5)}),
        Loaded(1, [2, 3], {2048: (2, 4)}),
    ]
    (panel,) = draw_loading({"a case": shown}).axes
    texts = [text.get_text() for text in panel.texts]
    assert texts == ["process 0 reads rows 0–1, 4", "0", "1", "0", "4", "1",
                     "process 1 reads rows 2–3", "2", "3", "2048"]  # fmt: skip
    read, outlines, held = 3 + 2, 3, 3 + 2
    assert len(panel.patches) == read + outlines + held
