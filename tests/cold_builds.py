"""Build a site again and again, each time from nothing.

What is not safe when several things happen at a time shows itself in one build of many.
From the top folder:

    .venv/bin/python tests/cold_builds.py 30
    .venv/bin/python tests/cold_builds.py 10 3-8-multi-host 3-8b-when-a-process-fails

builds 30 times 12 small pages, six kernels at a time; or 10 times these pages of the
chapter. It ends with status 1 if a build failed.
"""

import sys
import tempfile
from pathlib import Path

from small_site import ROOT, SmallSite, cell

PAGES, KERNELS = 12, 6


def small_pages(site):
    """Write many small pages; return how many."""
    conf = site.root / "conf.py"
    more = f"import page_execution\npage_execution._workers = lambda: {KERNELS}\n"
    conf.write_text(conf.read_text() + more)
    for page in range(PAGES):
        site.write(f"page{page}", cell(f"print({page})"), cell("print('end')"))
    return PAGES


def pages_of_the_chapter(site, names):
    """Put these pages there, and what they include; return how many."""
    for folder in ("src", "examples", "tests"):
        (site.root / folder).symlink_to(ROOT / folder)
    for name in names:
        page = (ROOT / "docs" / f"{name}.md").read_text()
        (site.root / "docs" / f"{name}.md").write_text(page)
    titles = "\n".join(names)
    index = f"# Some pages\n\n```{{toctree}}\n{titles}\n```\n"
    (site.root / "docs/index.md").write_text(index)
    return len(names)


def main(times, names):
    """Build `times` times; return the number of failed builds."""
    failed = 0
    for number in range(1, times + 1):
        with tempfile.TemporaryDirectory() as folder:
            site = SmallSite(Path(folder, "project"))
            if names:
                pages = pages_of_the_chapter(site, names)
                # The pages to which they refer are missing.
                missing = "suppress_warnings=ref.doc,ref.ref,ref.mod"
                build = site.build("-D", missing, seconds=1800)
            else:
                pages = small_pages(site)
                build = site.build()
        ok = build.returncode == 0 and f"executing {pages} of {pages}" in build.output
        failed += not ok
        print(f"{number}/{times}: {'ok' if ok else build.output}", flush=True)
    print(f"{failed} of {times} cold builds failed")
    return failed


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]), sys.argv[2:])))
