"""Each way in which a build can be wrong, and what must happen then."""

import os
import signal
from pathlib import Path

import pytest
from small_site import SmallSite, cell


@pytest.fixture
def site(tmp_path):
    return SmallSite(tmp_path / "project")


def processes_with(mark):
    """List the command lines of all processes that contain `mark`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended
        if mark in line:
            found.append(line)
    return found


def test_a_raising_cell_fails_again_and_again_until_it_is_mended(site):
    good = "That is fine.\n"
    site.write("good", good, cell("print('fine')"))
    site.write("bad", cell("x = 1"), "Text.\n", cell("y = 2\nraise ValueError('boom')"))
    first = site.build()
    first.assert_failed()
    last = first.output.rstrip().splitlines()[-1]
    assert last == "bad.md, code cell 2 (line 16): ValueError: boom"
    assert "----> 2 raise ValueError('boom')" in first.output

    second = site.build()
    second.assert_failed()
    assert second.output.rstrip().splitlines()[-1] == last
    assert "good: executed" not in second.output  # it comes from the cache

    site.write("bad", cell("x = 1"), "Text.\n", cell("y = 2"))
    site.build().assert_succeeded()
    assert "fine" in site.article("good")


def test_all_failing_pages_are_named(site):
    site.write("one", cell("assert 1 + 1 == 3"))
    site.write("two", cell("1 / 0"))
    site.build().assert_failed(
        "The examples of 2 pages failed:",
        "one.md, code cell 1 (line 10): AssertionError: in «assert 1 + 1 == 3»",
        "two.md, code cell 1 (line 10): ZeroDivisionError: division by zero",
    )


def test_a_hanging_cell_is_stopped_with_all_its_processes(site):
    mark = f"hanging-{os.getpid()}"
    site.write(
        "hang",
        cell("x = 1"),
        cell(
            "import subprocess, sys\n"
            "wait = 'import sys; sys.stdin.read()'\n"
            "child = [sys.executable, '-c', wait, '" + mark + "']\n"
            "subprocess.run(child, stdin=subprocess.Popen(child, "
            "stdin=subprocess.PIPE, stdout=subprocess.PIPE).stdout)"
        ),
        front="mystnb:\n  execution_timeout: 2\n",
    )
    build = site.build()
    build.assert_failed()
    last = build.output.rstrip().splitlines()[-1]
    assert last.startswith("hang.md, code cell 2 (line ")
    assert last.endswith("CellTimeoutError: no end after 2 s")
    assert processes_with(mark) == []
    assert processes_with(str(site.root)) == []


def test_a_dying_process_is_named(site):
    site.write("dies", cell("import os"), cell("os._exit(1)"))
    build = site.build()
    build.assert_failed()
    last = build.output.rstrip().splitlines()[-1]
    assert "dies.md, code cell 2" in last and "DeadKernelError" in last


@pytest.mark.parametrize(
    ("raised", "found"),
    [
        ("pass", "expected ValueError containing 'this', but nothing was raised"),
        ("raise TypeError('this')", "but got TypeError: this"),
        ("raise ValueError('that')", "but got ValueError: that"),
    ],
)
def test_a_deliberate_error_that_does_not_come_as_announced(site, raised, found):
    code = f"with expect_error(ValueError, 'this'):\n    {raised}"
    site.write("page", cell("from chapter3.errors import expect_error\n" + code))
    site.build().assert_failed("page.md, code cell 1", found)


def test_execution_switched_off(site):
    site.write("page", cell("print(1)"), cell("print(2)"))
    site.build("-D", "nb_execution_mode=off").assert_failed(
        "page.md", "2 code cells, and none was executed"
    )


def test_execution_switched_off_for_one_page(site):
    site.write("page", cell("print(1)"), front='mystnb:\n  execution_mode: "off"\n')
    site.build().assert_failed("page.md", "1 code cells, and none was executed")


def test_output_on_standard_error(site):
    site.write("page", cell("import sys; print('oh', file=sys.stderr)"))
    site.build().assert_failed("page.md", "stderr was found")


def test_the_readers_shell_does_not_change_the_output(site, tmp_path):
    site.write(
        "page",
        cell(
            "import jax, matplotlib, chapter3\n"
            "chapter3.simulate_devices(8)\n"
            "print(jax.devices()[0].platform, len(jax.devices()))\n"
            "print(jax.numpy.arange(3.0).dtype, matplotlib.rcParams['font.size'])\n"
            "print('started' in globals())"
        ),
    )
    site.build().assert_succeeded()
    clean = site.article("page")
    assert "cpu 8" in clean and "float32 10.0" in clean and "False" in clean

    start_up = tmp_path / "home/.ipython/profile_default/startup"
    start_up.mkdir(parents=True)
    (start_up / "00.py").write_text("started = True")
    (tmp_path / "home/.config/matplotlib").mkdir(parents=True)
    rc = tmp_path / "home/.config/matplotlib/matplotlibrc"
    rc.write_text("font.size: 30")
    (tmp_path / "home/start.py").write_text("started = True")
    site.environment = {
        "HOME": str(tmp_path / "home"),
        "IPYTHONDIR": str(tmp_path / "home/.ipython"),
        "JAX_ENABLE_X64": "1",
        "JAX_NUM_CPU_DEVICES": "3",
        "JAX_PLATFORMS": "no_such_platform",
        "MATPLOTLIBRC": str(rc),
        "PYTHONSTARTUP": str(tmp_path / "home/start.py"),
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
    }
    # Execute it again, in this environment.
    (site.root / "uv.lock").write_text("changed")
    again = site.build()
    again.assert_succeeded()
    assert "page: executed" in again.output
    assert site.article("page") == clean


def test_a_page_that_gets_too_few_devices_says_what_to_do(site):
    site.write(
        "page",
        cell("import jax; jax.devices()"),
        cell("import chapter3; chapter3.simulate_devices(8)"),
    )
    site.build().assert_failed(
        "page.md, code cell 2",
        "RuntimeError: JAX was initialised before with 1 device(s)",
        "restart the kernel",
    )


def test_a_build_killed_half_way(site):
    mark = f"killed-{os.getpid()}"
    forever = f"import sys; mark = '{mark}'; sys.stdin.read()"
    code = (
        "import os, pathlib, sys\n"
        "if pathlib.Path('wait').exists():\n"
        f"    os.execv(sys.executable, [sys.executable, '-c', {forever!r}])\n"
        "print('done')"
    )
    site.write("page", cell(code))
    (site.root / "docs/wait").touch()
    process = site.start()
    for line in process.stdout:
        if line.startswith("executing 1 of 1"):
            break
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    (site.root / "docs/wait").unlink()

    site.build().assert_succeeded()
    assert "done" in site.article("page")


def test_a_page_left_half_written_by_a_killed_build(site):
    site.write("page", cell("print('whole')"))
    site.build().assert_succeeded()
    # What a build leaves that is killed while it writes the page.
    (site.root / "_build/doctrees/en/unfinished").touch()
    html = site.root / "_build/html/en/page.html"
    html.write_text(html.read_text()[:1000])
    site.build().assert_succeeded()
    assert "whole" in site.article("page")


@pytest.mark.parametrize("damage", ["database", "notebook", "environment"])
def test_damaged_files(site, damage):
    site.write("page", cell("print('whole')"))
    site.build().assert_succeeded()
    (executed,) = (site.root / "_build/executed").iterdir()
    doctrees = site.root / "_build/doctrees/en"
    if damage == "database":
        (executed / "global.db").write_bytes(b"not a database" * 100)
    if damage == "notebook":
        (notebook,) = executed.glob("executed/*/base.ipynb")
        notebook.write_text(notebook.read_text()[:50])
    pickle = doctrees / "environment.pickle"
    pickle.write_bytes(pickle.read_bytes()[:100])
    build = site.build()
    build.assert_succeeded()
    assert ("starting a new one" in build.output) == (damage != "environment")
    assert "whole" in site.article("page")


def test_nothing_is_executed_again_without_a_change(site):
    site.write("one", cell("print(1)"))
    site.write("two", cell("print(2)"))
    assert "executing 2 of 2 pages" in site.build().output
    assert "executing" not in site.build().output


def test_a_changed_page_is_executed_alone(site):
    site.write("one", cell("print(1)"))
    site.write("two", cell("print(2)"))
    site.build().assert_succeeded()
    site.write("two", cell("print(22)"))
    build = site.build()
    build.assert_succeeded()
    assert "two: executed" in build.output and "one: executed" not in build.output
    assert "22" in site.article("two")


def test_changed_text_executes_nothing(site):
    site.write("one", "Old words.", cell("print(1)"))
    site.build().assert_succeeded()
    site.write("one", "New words.", cell("print(1)"))
    build = site.build()
    build.assert_succeeded()
    assert "executed," not in build.output and "New words." in site.article("one")


def test_output_follows_what_the_page_reads(site):
    (site.root / "examples").mkdir()
    (site.root / "examples/number.py").write_text("NUMBER = 1")
    read = "exec(open('../examples/number.py').read()); print('number', NUMBER)"
    site.write("page", cell(read))
    site.build().assert_succeeded()
    assert "number 1" in site.article("page")
    (site.root / "examples/number.py").write_text("NUMBER = 2")
    site.build().assert_succeeded()
    assert "number 2" in site.article("page")


BROKEN = {
    "link to a page": ("[gone](gone.md)", "gone.md"),
    "reference": ("See {ref}`no-such-label`.", "no-such-label"),
    "document": ("See {doc}`gone`.", "gone"),
    "name of code": ("See {func}`chapter3.gone`.", "chapter3.gone"),
    "include": ("```{literalinclude} gone.py\n```", "gone.py"),
    "part of an include": (
        "```{literalinclude} _ext/pages.py\n:pyobject: gone\n```",
        "gone",
    ),
    "image without alt text": ("![](_static/x.svg)", "image without alt text"),
    "missing image": ("![Something](gone.svg)", "gone.svg"),
    "directive": ("```{nothing}\n```", "nothing"),
    "formula": (r"$\frac{1}$", "formula does not convert"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_text(site, fault):
    body, shown = BROKEN[fault]
    (site.root / "docs/_static/x.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg"/>'
    )
    site.write("page", body, text=True)
    site.build().assert_failed("page.md", shown)


def test_a_warning_comes_again(site):
    site.write("page", "See {ref}`no-such-label`.", text=True)
    first = site.build()
    first.assert_failed("no-such-label")
    assert site.build().output == first.output


def test_unknown_cell_tag(site):
    site.write("page", cell("print(1)", tags="hide-inptu"))
    site.build().assert_failed("page.md:10", "unknown cell tag 'hide-inptu'")


def test_unknown_cell_option(site):
    site.write("page", "```{code-cell} python3\n:tag: hide-input\nprint(1)\n```")
    site.build().assert_failed("page.md:10", "unknown cell option 'tag'")


@pytest.mark.parametrize("setting", ["execution_timout: 300", "execution_timeout: x"])
def test_a_mistake_in_the_front_matter(site, setting):
    site.write("page", cell("print(1)"), front=f"mystnb:\n  {setting}\n")
    build = site.build()
    build.assert_failed("page.md, front matter, mystnb:", setting.split(":")[0])
    assert "report this error" not in build.output


def test_a_removed_page_does_not_stay(site):
    site.write("gone", "Text.", text=True)
    site.write("page", "Text.", text=True)
    site.build().assert_succeeded()
    (site.root / "docs/gone.md").unlink()
    site.write("page", "Other text.", text=True)
    site.build().assert_succeeded()
    built = {path.stem for path in (site.root / "_build/html/en").glob("*.html")}
    assert "gone" not in built and "page" in built


def test_a_kernel_of_the_reader_is_not_used(site, tmp_path):
    kernel = tmp_path / "jupyter/kernels/python3"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(
        '{"argv": ["/bin/false"], "display_name": "x", "language": "python"}'
    )
    site.environment = {
        "JUPYTER_PATH": str(tmp_path / "jupyter"),
        "TMPDIR": str(tmp_path / ("long" * 30)),
    }
    (tmp_path / ("long" * 30)).mkdir()
    site.write("page", cell("print('ours')"))
    site.build().assert_succeeded()
    assert "ours" in site.article("page")


def test_a_file_that_an_extension_adds_is_not_lost_silently(site):
    site.write("page", "Text.", text=True)
    conf = site.root / "conf.py"
    conf.write_text(conf.read_text() + 'html_css_files.append("more.css")\n')
    (site.root / "docs/_static/more.css").touch()
    site.build().assert_failed("more.css", "page_assets.py does not name it")


def test_parallel_cold_builds(site):
    # tests/cold_builds.py runs many more of these.
    for number in range(8):
        site.write(f"page{number}", cell(f"print({number})"))
    build = site.build()
    build.assert_succeeded()
    assert "executing 8 of 8 pages" in build.output
    for number in range(8):
        assert f"[{number + 1}/8]" in build.output


def test_a_second_edition_uses_the_executed_cells_of_the_first(site):
    site.write("page", cell("print(1)"))
    site.build().assert_succeeded()
    second = site.build("-D", "language=zh_CN", "-d", "_build/doctrees/zh-cn")
    second.assert_succeeded()
    assert "executing" not in second.output
