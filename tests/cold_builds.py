"""Build a site of many small pages again and again, each time from nothing.

Parallel execution that is not safe shows itself in one build of many. From the top
folder:

    .venv/bin/python tests/cold_builds.py 30

builds 30 times 12 pages, six kernels at a time, and ends with status 1 if one failed.
"""

import sys
import tempfile
from pathlib import Path

from small_site import SmallSite, cell

PAGES, KERNELS = 12, 6


def main(times):
    """Build `times` times; return the number of failed builds."""
    failed = 0
    for number in range(1, times + 1):
        with tempfile.TemporaryDirectory() as folder:
            site = SmallSite(Path(folder, "project"))
            conf = site.root / "conf.py"
            more = (
                f"import page_execution\npage_execution._workers = lambda: {KERNELS}\n"
            )
            conf.write_text(conf.read_text() + more)
            for page in range(PAGES):
                site.write(f"page{page}", cell(f"print({page})"), cell("print('end')"))
            build = site.build()
        ok = build.returncode == 0 and f"executing {PAGES} of {PAGES}" in build.output
        failed += not ok
        print(f"{number}/{times}: {'ok' if ok else build.output}", flush=True)
    print(f"{failed} of {times} cold builds failed")
    return failed


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]))))
