"""The notes notice when JAX is different, are all on the page, and link rightly.

That they are as noted is checked when the page is built, which plays them all.
"""

import json
import re
import signal
import subprocess
import sys
import types
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from small_site import ROOT

from chapter3.fresh import Finished
from chapter3.launcher import ProcessFailedError, Report
from chapter3.version_notes import NOTES, Note, check, note, text
from chapter3.version_notes.__main__ import main

PAGE = (ROOT / "docs/version-notes.md").read_text()


def different(number):
    """Sources of the lines of a note that are not as noted."""
    (checked,) = check([NOTES[number]])
    return [seen.line.source for seen in checked.differences]


def first_key_twice(key):
    return [key, key]


def forgiving_pmap(f, *args, jit=None, **options):
    return real_pmap(f, *args, **options)


def pmap_that_replicates(f, in_axes=None, **options):
    return real_pmap(f, in_axes=(None, 0) if in_axes is None else in_axes, **options)


def jit_on_first_device(f, **options):
    compiled = real_jit(f, **options)
    return lambda *args: jax.device_put(compiled(*args), jax.devices()[0])


real_pmap, real_jit, real_ones = jax.pmap, jax.jit, jnp.ones


@pytest.mark.parametrize(
    ("number", "owner", "name", "value", "line"),
    [
        (3, jax, "pmap", pmap_that_replicates, "jax.pmap(predict)(params, x)"),
        (4, jax.random, "split", first_key_twice, "(noise(first), noise(second))"),
        (5, jnp, "DeviceArray", jax.Array, "jnp.DeviceArray"),
        (6, lax, "pmean", lax.psum, "name in jaxpr"),
        (10, jax, "tree_map", jax.tree.map, "jax.tree_map(double"),
        (12, jnp, "ones", lambda shape: real_ones(int(shape)), "jnp.ones(16.)"),
        (16, jax.sharding, "use_mesh", jax.set_mesh, "jax.sharding.use_mesh"),
        (21, jax, "pmap", forgiving_pmap, "jit=True"),
        (25, jax, "jit", jit_on_first_device, "jax.devices()[1]"),
        (26, lax, "psum", lax.pmax, "jax.vmap(total"),
    ],
)
def test_a_note_notices_another_jax(monkeypatch, number, owner, name, value, line):
    assert different(number) == []
    monkeypatch.setattr(owner, name, value, raising=False)
    assert any(line in source for source in different(number))


def test_a_note_notices_a_module_that_is_there(monkeypatch):
    module = types.ModuleType("jax.experimental.maps")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(jax.experimental, "maps", module, raising=False)
    assert len(different(11)) == 2


def test_a_lack_of_what_a_session_needs_is_shown_not_raised(monkeypatch):
    monkeypatch.delattr(jax, "make_mesh")  # as in a much older JAX
    (checked,) = check([NOTES[11]])
    (seen,) = checked.differences
    assert seen.shown.startswith("AttributeError")
    assert "different here: noted is OrderedDict" in text.sessions(checked)


def test_a_fresh_process_that_dies_is_a_difference(monkeypatch):
    died = Finished(-6, "", "F0000 Unknown flag\n")
    monkeypatch.setattr(note, "run_python_each", lambda programs: {"0": died})
    (checked,) = check([NOTES[20]])
    assert len(checked.differences) == len(checked.seen)
    assert (
        checked.seen[0].shown == "the process ended with status -6: F0000 Unknown flag"
    )


def test_two_processes_that_fail_are_a_difference(monkeypatch):
    def fail(script, *arguments):
        raise ProcessFailedError("process 1 failed", 1, -9)

    monkeypatch.setattr(note, "launch", fail)
    (checked,) = check([NOTES[19]])
    assert len(checked.differences) == len(checked.seen)
    assert checked.seen[0].shown == "ProcessFailedError: process 1 failed"


def test_two_processes_that_see_different_things_are_told_apart(monkeypatch):
    (lines,) = NOTES[19].sessions().values()
    right = [line.noted.replace("…", "") for line in lines]
    wrong = [*right[:-1], "[26.0, 26.0, 26.0, 26.0]"]
    reports = [Report(i, [shown], "", 1.0) for i, shown in enumerate((right, wrong))]
    monkeypatch.setattr(note, "launch", lambda *arguments: reports)
    (checked,) = check([NOTES[19]])
    (seen,) = checked.differences
    assert "process 0: [36.0" in seen.shown and "process 1: [26.0" in seen.shown


def test_there_are_26_and_each_has_something_to_see():
    assert sorted(NOTES) == list(range(1, 27))
    for n in NOTES.values():
        noted = [line.noted for ls in n.sessions().values() for line in ls]
        assert [text for text in noted if len(text.replace("…", "")) > 3]


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "chapter3.version_notes", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_program_as_a_reader_runs_it():
    done = run("5", "20", "--json")
    assert done.returncode == 0 and done.stderr == ""
    found = json.loads(done.stdout)
    assert found["jax"] == jax.__version__
    assert [n["note"] for n in found["notes"]] == [5, 20]
    assert all(n["as noted"] for n in found["notes"])
    assert "no attribute 'DeviceArray'" in found["notes"][0]["lines"][0]["shown"]


def test_help_and_what_it_refuses():
    done = run("--help")
    assert done.returncode == 0 and "exit status" in done.stdout
    done = run("27")
    assert done.returncode == 2 and "no note 27; they are 1 to 26" in done.stderr
    assert run("first").returncode == 2


def test_the_program_ends_with_1_and_shows_what_is_different(monkeypatch, capsys):
    mistaken = NOTES[10].here.replace("tree_map(", "tree.map(")
    monkeypatch.setitem(NOTES, 10, replace(NOTES[10], here=mistaken))
    assert main(["10"]) == 1
    shown = capsys.readouterr().out
    assert "different here: 1 of 3 lines" in shown
    assert "{'w': 2}\n# different here: noted is AttributeError" in shown


def test_a_jax_that_aborts_ends_one_note_and_not_the_program(monkeypatch, capsys):
    aborting = "\n>>> os.abort()\n" + NOTES[12].here.strip()
    monkeypatch.setitem(NOTES, 12, Note(12, "3.7", "", "aborts", here=aborting))
    assert main(["5", "12", "--json"]) == 1
    fifth, twelfth = json.loads(capsys.readouterr().out)["notes"]
    assert fifth["as noted"] and not twelfth["as noted"]
    for line in twelfth["lines"]:
        assert f"the process ended with status {-signal.SIGABRT}" in line["shown"]


# A word by which one sees that the passage is about the note.
ABOUT = {
    **{1: "x.device()", 2: "committed", 3: "in_axes", 4: "PRNGKey", 5: "DeviceArray"},
    **{6: "no such primitive", 7: "psum_scatter", 8: "axis_name", 9: "scalars"},
    **{10: "tree_map", 11: "jax.experimental.maps", 12: "jnp.ones(16", 13: ".devices"},
    **{14: "one `shard_map`", 15: "twelve", 16: "device=", 17: "make_mesh"},
    **{18: "jax.distributed.initialize", 19: "pmap", 20: "jax_num_cpu_devices"},
    **{21: "jit=True", 22: "in_axes", 23: "broadcast_to", 24: "float64"},
    **{25: "jit", 26: "axis_name"},
}


def passages(page):
    """Source of a page by heading (as in a link), each to the next heading."""
    parts, current, in_code = {}, "", False
    for line in (ROOT / f"docs/{page}.md").read_text().splitlines():
        in_code ^= line.startswith("```")
        if line.startswith("#") and not in_code:
            heading = re.sub(r"^#+ |[^\w\- ]", "", line.lower())
            current = heading.strip().replace(" ", "-")
        parts[current] = parts.get(current, "") + line + "\n"
    return parts


@pytest.mark.parametrize("number", NOTES)
def test_the_place_that_teaches_it_is_there_and_speaks_of_it(number):
    page, _, anchor = NOTES[number].taught.partition("#")
    assert ABOUT[number] in passages(page)[anchor]


@pytest.mark.parametrize("number", NOTES)
def test_the_page_has_the_note_with_its_session_and_its_link(number):
    parts = re.findall(r"\(note-(\d+)\)=\n### (.*?)(?=\n\(note-|\n## |\Z)", PAGE, re.S)
    (part,) = [text for n, text in parts if int(n) == number]
    assert part.startswith(f"{number}. ")
    assert f"\nsession({number})\n" in part
    page, _, anchor = NOTES[number].taught.partition("#")
    assert f"See []({page}.md#{anchor})" in part
