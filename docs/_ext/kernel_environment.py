"""What surrounds a page while it is executed: the same on every machine."""

import os
import re
from pathlib import Path

_PROFILE = """\
c = get_config()
c.IPKernelApp.log_level = "ERROR"
c.HistoryManager.enabled = False
"""

# What could change a page's output from outside: JAX's and XLA's switches, start-up
# files, module search paths, matplotlib's settings.
_NOT_INHERITED = re.compile(
    r"JAX_.*|XLA_.*|TF_CPP_.*|LIBTPU_.*|IPYTHON.*|JUPYTER_.*|PYTHON.*|MPL.*|MATPLOTLIB.*"
    r"|COLUMNS|LINES"
)


def kernel_environment(build: Path) -> dict[str, str]:
    """Make the environment for the kernels from that of the build.

    Args:
        build: folder for IPython's and matplotlib's files, instead of the reader's own.

    Returns:
        The variables; the platform is CPU. How many devices there are is left to the
        pages, each of which asks for its own in the first cell, as a reader does.
    """
    profile = build / "ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.py").write_text(_PROFILE)
    kept = {k: v for k, v in os.environ.items() if not _NOT_INHERITED.fullmatch(k)}
    return kept | {
        "IPYTHONDIR": str(build / "ipython"),
        "JAX_PLATFORMS": "cpu",
        "JAX_PPRINT_USE_COLOR": "0",  # colours made for a terminal, not for a page
        "MPLCONFIGDIR": str(build / "matplotlib"),
        "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1",
    }
