import re

import pytest
from small_site import ROOT

from chapter3 import cheat_sheet

PAGE = (ROOT / "docs/cheat-sheet.md").read_text()
SHOWN = re.findall(r"\{py:\w+\}`(.*?) <(.*?)>`", PAGE)
CALLS = [*cheat_sheet.EXAMPLES, *cheat_sheet.ALONE]


def test_the_page_shows_the_calls_that_are_checked_and_no_others():
    assert sorted(call for call, _ in SHOWN) == sorted(CALLS)
    for call, target in SHOWN:
        named = cheat_sheet.full_name(call)
        # What JAX's reference does not list by itself is linked to its class.
        assert target in (named, named.rpartition(".")[0])


def test_there_is_a_computed_value_in_every_row():
    rows = [line for line in PAGE.splitlines() if line.startswith("| {py:")]
    assert len(rows) >= 26
    for row in rows:
        call, _, value = row.strip("| ").split(" | ")
        keys = re.findall(r"\{glue:md\}`(.*?)`", value)
        assert keys
        for key in keys:  # of one of the calls in that row
            assert f"`{key}(" in call or f"`{key} <" in call


@pytest.mark.parametrize("call", CALLS)
def test_every_call_exists_and_takes_what_is_shown(call):
    assert cheat_sheet.wrong_arguments(call) == ""


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("lax.psum(x)", "missing a required argument: 'axis_name'"),
        ("jax.shard_map(f, mesh=…, out_specs=…, check_rep=…)", "'check_rep'"),
        ("jax.pmap(f, jit=True)", "'jit'"),
        ("jax.devices(1, 2)", "too many positional arguments"),
        ("x.devices(1)", "too many positional arguments"),
    ],
)
def test_a_call_that_jax_does_not_take_is_noticed(call, reason):
    assert reason in cheat_sheet.wrong_arguments(call)


@pytest.mark.parametrize("call", ["jax.tree_map(f, x)", "lax.pvary(x)", "x.device_buf"])
def test_a_name_that_jax_does_not_have_is_noticed(call):
    with pytest.raises(AttributeError):
        cheat_sheet.wrong_arguments(call)


def test_every_example_gives_something():
    given = cheat_sheet.gives()
    assert list(given) == CALLS
    assert all(given.values())
    assert not [value for value in given.values() if "Error" in value]
    # A few by hand, so that a row cannot slip into that of its neighbour.
    assert given["lax.psum(x, axis)"] == "[6, 6, 6, 6]"
    assert given["lax.ppermute(x, axis, perm)"] == "[0, 1, 2, 0]"
    assert given["jax.reshard(x, s)"] == "float32[8,4@model]"
    assert given["jax.config.update('jax_num_cpu_devices', n)"] == "3"
