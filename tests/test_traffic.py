import pytest

from chapter3.traffic import (
    STEP_COLLECTIVES,
    ring_bytes,
    ring_steps,
    seconds,
    step_bytes,
)

SIZES = [(4096, 8), (23072, 8), (1000, 4), (7, 2), (12, 1)]


@pytest.mark.parametrize(("s", "n"), SIZES)
def test_ring_formulas(s, n):
    assert ring_bytes("all-reduce", s, n) == 2 * (n - 1) / n * s
    for kind in ("reduce-scatter", "all-gather", "all-to-all"):
        assert ring_bytes(kind, s, n) == (n - 1) / n * s
    assert ring_bytes("collective-permute", s, n) == s


@pytest.mark.parametrize(("s", "n"), SIZES)
def test_all_reduce_is_reduce_scatter_and_all_gather(s, n):
    parts = ring_bytes("reduce-scatter", s, n) + ring_bytes("all-gather", s, n)
    assert ring_bytes("all-reduce", s, n) == parts


@pytest.mark.parametrize("n", [2, 3, 8])
def test_formula_equals_a_ring_played_step_by_step(n):
    """Play a ring with sets: pieces travel until everyone has everything."""
    held = [{d} for d in range(n)]  # all-gather: each device starts with one piece
    carried, sent = list(range(n)), 0
    while any(len(h) < n for h in held):
        carried = [carried[(d - 1) % n] for d in range(n)]
        for d, piece in enumerate(carried):
            held[d].add(piece)
        sent += 1  # one piece from each device
    assert ring_bytes("all-gather", n, n) == sent
    assert ring_steps("all-gather", n) == sent


@pytest.mark.parametrize("n", [2, 3, 8])
def test_steps(n):
    assert ring_steps("all-reduce", n) == 2 * (n - 1)
    assert ring_steps("all-gather", n) == ring_steps("all-to-all", n) == n - 1
    assert ring_steps("collective-permute", n) == 1


def test_zero_costs_no_more_than_data_parallelism_until_zero_3():
    cost = {name: step_bytes(name, 4096, 8) for name in STEP_COLLECTIVES}
    assert cost["DP"] == cost["ZeRO-1"] == cost["ZeRO-2"]
    assert cost["ZeRO-3, gathered once"] == cost["DP"]
    assert cost["ZeRO-3"] == 3 * 7 / 8 * 4096 == 1.5 * cost["DP"]


def test_time_is_latency_for_small_and_bandwidth_for_large_messages():
    link = {"latency": 1e-6, "bandwidth": 1e9}
    assert seconds("all-reduce", 0, 8, **link) == pytest.approx(14e-6)
    assert seconds("all-reduce", 8e9, 8, **link) == pytest.approx(14, rel=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ring_bytes("broadcast", 1, 2), "kind='broadcast' is not one of"),
        (lambda: ring_bytes("all-reduce", 1, 0), "devices=0"),
        (lambda: step_bytes("TP", 1, 2), "strategy='TP'"),
        (
            lambda: seconds("all-reduce", 1, 2, latency=0.0, bandwidth=0.0),
            "bandwidth=0.0 must be positive",
        ),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
