"""Execute the pages ahead of Sphinx, several at a time, into MyST-NB's cache.

Sphinx and MyST-NB can execute pages in parallel themselves, but most cold builds fail
then: the readers race to create the cache's tables, the cache drops entries that
another reader has just added, and the kernels race for free TCP ports. Here one process
executes all pages that are not in the cache, each in a kernel of its own that is
reached over Unix sockets in a folder of its own, and it alone writes the cache. MyST-NB
then finds every page there.

If pages fail, the build ends: page, cell and Python error are the last lines.
"""

import asyncio
import os
import re
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.cache.main import JupyterCacheBase
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient.client import NotebookClient
from nbclient.exceptions import (
    CellExecutionError,
    CellTimeoutError,
    DeadKernelError,
)
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

from kernel_environment import kernel_environment
from pages import Page, read_page, settings


@dataclass(frozen=True)
class Failure:
    """A page whose execution failed: where, why, and the details for the author."""

    page: Page
    cell: int
    error: str
    details: str

    @property
    def place(self) -> str:
        """Page, code cell (counted from 1) and line, for the author to look up."""
        code = [i for i, c in enumerate(self.page.notebook.cells) if _is_code(c)]
        number = code.index(self.cell) + 1 if self.cell in code else 1
        line = self.page.line(self.cell)
        return f"{self.page.path.name}, code cell {number} (line {line})"


def keep_notebooks_out_of_the_site(app: Sphinx) -> None:
    """Handle `builder-inited`: MyST-NB would write its files beside the pages."""
    private = str(Path(app.doctreedir, "notebooks"))
    vars(app.env)["mystnb_config"] = settings(app.env).copy(output_folder=private)


def execute_pages(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Handle `env-before-read-docs`: execute those of `docnames` that need it."""
    pages = [page for name in sorted(docnames) if (page := read_page(env, name))]
    pages = [page for page in pages if page.config.execution_mode == "cache"]
    if not pages:
        return
    cache = open_cache(Path(settings(env).execution_cache_path))
    todo = [page for page in pages if not _is_cached(cache, page)]
    if not todo:
        return
    _say(f"executing {len(todo)} of {len(pages)} pages, {_workers()} at a time")
    build = Path(app.confdir, "_build")
    failures = asyncio.run(_execute_all(todo, cache, kernel_environment(build)))
    if failures:
        # Not an exception for Sphinx: it would close with the advice to report a bug.
        sys.exit(_report(failures))
    for page in todo:
        again = read_page(env, page.docname)
        if again is None or not _is_cached(cache, again):
            raise ExtensionError(f"{page.docname} was executed but is not in the cache")


def open_cache(path: Path) -> JupyterCacheBase:
    """Open the cache of executed pages; start a new one if it is damaged."""
    if path.parent.exists():  # of former inputs keep the last two
        former = [p for p in path.parent.iterdir() if p != path]
        for old in sorted(former, key=lambda p: p.stat().st_mtime)[:-2]:
            shutil.rmtree(old, ignore_errors=True)
    try:
        cache = get_cache(path)
        for record in cache.list_cache_records():
            cache.get_cache_bundle(record.pk)
    except Exception as error:  # whatever a damaged file may raise
        _say(f"the cache of executed pages is damaged ({error}); starting a new one")
        shutil.rmtree(path, ignore_errors=True)
        cache = get_cache(path)
        cache.list_cache_records()
    return cache


def _is_code(cell) -> bool:
    return cell.cell_type == "code"


def _is_cached(cache: JupyterCacheBase, page: Page) -> bool:
    try:
        cache.match_cache_notebook(page.notebook)
    except KeyError:
        return False
    return True


def _workers() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2


def _say(text: str) -> None:
    print(text, flush=True)


async def _execute_all(
    pages: list[Page], cache: JupyterCacheBase, environment: dict[str, str]
) -> list[Failure]:
    free = asyncio.Semaphore(_workers())
    finished = 0

    async def execute(page: Page) -> Failure | None:
        nonlocal finished
        async with free:
            start = time.perf_counter()
            failure = await _execute(page, environment)
            took = time.perf_counter() - start
        finished += 1
        what = f"FAILED in {failure.place}" if failure else "executed"
        _say(f"[{finished}/{len(pages)}] {page.docname}: {what}, {took:.1f} s")
        if failure is None:
            bundle = CacheBundleIn(
                page.notebook, str(page.path), data={"execution_seconds": took}
            )
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
        return failure

    results = await asyncio.gather(*(execute(page) for page in pages))
    return [failure for failure in results if failure]


async def _execute(page: Page, environment: dict[str, str]) -> Failure | None:
    """Execute a page in a kernel of its own, which is gone afterwards in any case."""
    with tempfile.TemporaryDirectory(prefix="kernel-", dir=_sockets()) as folder:
        manager = AsyncKernelManager(
            kernel_name="python3",
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),  # none but our own
            transport="ipc",
            ip=f"{folder}/ipc",
            connection_file=f"{folder}/kernel.json",
        )
        client = NotebookClient(
            page.notebook,
            km=manager,
            timeout=page.config.execution_timeout,
            resources={"metadata": {"path": str(page.path.parent)}},
            shutdown_kernel="immediate",
            record_timing=False,  # else it changes the cells' metadata, part of the key
        )
        cell = 0
        try:
            await client.async_start_new_kernel(env=environment)
            await client.async_start_new_kernel_client()
            for cell, source in enumerate(page.notebook.cells):
                await client.async_execute_cell(source, cell)
            language = {"name": "python", "pygments_lexer": "ipython3"}
            page.notebook.metadata["language_info"] = language
        except CellExecutionError as error:
            trace = re.sub(r"\x1b\[[\d;]*m", "", error.traceback)
            what = f"{error.ename}: {error.evalue}"
            if not error.evalue and (at := re.search(r"^-+> \d+ (.*)", trace, re.M)):
                what += f"in «{at[1].strip()}»"  # an assert without a message
            return Failure(page, cell, what, trace)
        except CellTimeoutError:
            what = f"CellTimeoutError: no end after {page.config.execution_timeout} s"
            return Failure(page, cell, what, _source(page, cell))
        except (DeadKernelError, RuntimeError) as error:
            what = f"DeadKernelError: the Python process has ended ({error})"
            return Failure(page, cell, what, _source(page, cell))
        finally:
            await client._async_cleanup_kernel()
    return None


def _sockets() -> str | None:
    """Choose a folder whose path is short enough for Unix sockets (107 characters)."""
    return None if len(tempfile.gettempdir()) < 60 else "/tmp"


def _source(page: Page, cell: int) -> str:
    return page.notebook.cells[cell].source


def _report(failures: list[Failure]) -> str:
    parts = [f"{'-' * 8} {f.place} {'-' * 8}\n{f.details.strip()}\n" for f in failures]
    summary = [f"{f.place}: {_first_line(f.error)}" for f in failures]
    count = f"The examples of {len(failures)} page{'s' * (len(failures) > 1)} failed:"
    return "\n".join(["", *parts, count, *summary])


def _first_line(error: str) -> str:
    first, *more = error.strip().splitlines()
    return first[:400] + (" …" if more or len(first) > 400 else "")


def report_times(app: Sphinx, exception: Exception | None) -> None:
    """Handle `build-finished`: say how long each page took to execute."""
    if exception is not None or app._warncount or app.builder.name != "html":
        return
    data = getattr(app.env, "nb_metadata", {})
    runs = {name: d["exec_data"] for name, d in data.items() if d.get("exec_data")}
    _say("seconds that each page took when it was last executed:")
    for name, run in sorted(runs.items()):
        _say(f"  {run['runtime']:6.1f} s  {name}")
    total = sum(run["runtime"] for run in runs.values())
    _say(f"  {total:6.1f} s  all {len(runs)} pages together")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the handlers."""
    # After MyST-NB's own handler, which makes the settings.
    app.connect("builder-inited", keep_notebooks_out_of_the_site, priority=600)
    app.connect("env-before-read-docs", execute_pages)
    app.connect("build-finished", report_times)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
