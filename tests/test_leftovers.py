"""What looks for processes that are left behind sees any of them."""

import os
import subprocess

from leftovers import ON_LINUX, living

pytestmark = ON_LINUX


def test_any_process_is_seen_until_it_ends(tmp_path):
    mark = f"THIS_TEST={tmp_path}"
    shell = subprocess.Popen(
        ["sh", "-c", "sleep 1000 & wait"],
        env=os.environ | {"THIS_TEST": str(tmp_path)},
        start_new_session=True,
        stdout=subprocess.PIPE,
    )
    assert any(line.startswith(f"{shell.pid} ") for line in living(f"{mark}\0"))
    os.killpg(shell.pid, 9)
    shell.communicate()  # the child, too, has closed the pipe
    assert living(f"{mark}\0") == []
