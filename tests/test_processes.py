"""The worker scripts that have more to promise than a fault."""

import json
import signal

import pytest
from small_site import ROOT

from chapter3.launcher import ProcessFailedError, launch

RESUMES = ROOT / "examples/processes/resumes.py"
STEPS = "4"  # one checkpoint, after step 3


@pytest.mark.parametrize(
    ("fate", "complete"),
    [(("kill", "0", "4"), [3]), (("kill-while-saving", "0", "3"), [])],
    ids=["computing", "saving"],
)
def test_killed_training_ends_with_the_same_bits(tmp_path, undisturbed, fate, complete):
    folder = tmp_path / "killed"
    with pytest.raises(ProcessFailedError) as caught:
        launch(RESUMES, str(folder), STEPS, *fate)
    assert (caught.value.process, caught.value.returncode) == (0, -signal.SIGKILL)
    names = {path.name for path in folder.iterdir()}
    assert {int(name) for name in names if name.isdecimal()} == set(complete)
    assert any("tmp" in name for name in names) == (not complete)

    before = len(events(folder))
    resumed = [report.value for report in launch(RESUMES, str(folder), STEPS)]
    assert resumed == undisturbed
    computed = [step for did, step in events(folder)[before:] if did == "computed"]
    assert computed == ([4] if complete else [1, 2, 3, 4])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    reports = launch(RESUMES, str(folder), STEPS)
    assert reports[0].value == reports[1].value
    return [report.value for report in reports]


def events(folder):
    lines = folder.with_suffix(".log").read_text().splitlines()
    return [json.loads(line) for line in lines]
