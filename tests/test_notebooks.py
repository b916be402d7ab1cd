"""The notebooks to take away: complete, plain, and running by themselves."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig

import nbformat
import pytest
from docutils import nodes
from small_site import SmallSite, cell
from sphinx_design.dropdown import dropdown_main, dropdown_title
from test_site import ARTICLES, BUILT, ROOT, SOURCES, name

import embedding
import notebooks
import plain_markdown

NOTEBOOKS = sorted(BUILT.glob("*/_sources/*.ipynb"))
EXERCISES = sorted(BUILT.glob("*/exercises/*.ipynb"))
CELL = re.compile(
    r"```\{code-cell\}[^\n]*\n((?::\w+:[^\n]*\n)*)(.*?)\n?^```$", re.S | re.M
)


def read(path):
    return nbformat.read(path, as_version=4)


def code(notebook):
    return [c.source for c in notebook.cells if c.cell_type == "code"]


def text(notebook):
    return "\n\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")


def without_code_and_formulas(markdown):
    for pattern in (r"^( *>? *)(```+).*?^\1\2$", r"\$\$.*?\$\$"):
        markdown = re.sub(pattern, "", markdown, flags=re.S | re.M)
    return re.sub(r"(?<!\\)(`+).*?\1|(?<!\\)\$.*?\$", "", markdown, flags=re.S)


def test_every_page_with_code_has_a_notebook_and_offers_it():
    assert NOTEBOOKS, "there is no site: run `make html` first"
    with_code = {s.stem for s in SOURCES if "```{code-cell}" in s.read_text()}
    for page in ARTICLES:
        offered = f"_sources/{page.stem}.ipynb" in page.read_text()
        made = (page.parent / f"_sources/{page.stem}.ipynb") in NOTEBOOKS
        assert offered == made == (page.stem in with_code)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name)
def test_code_cells_are_those_of_the_page_in_their_order(path):
    notebook = read(path)
    nbformat.validate(notebook)
    source = (ROOT / f"docs/{path.stem}.md").read_text()
    written = [body.strip() for _, body in CELL.findall(source)]
    install, unpack, *cells = code(notebook)
    assert "%pip install" in install and "_files = {}" in unpack
    assert [c.strip() for c in cells] == written
    assert [c.id for c in notebook.cells] == [
        f"cell-{i}" for i in range(len(notebook.cells))
    ]


@pytest.mark.parametrize("path", [*NOTEBOOKS, *EXERCISES], ids=name)
def test_text_is_plain_markdown(path):
    notebook = read(path)
    plain = without_code_and_formulas(text(notebook))
    for left_over in (":::", "]{", "```"):
        assert left_over not in plain
    assert not re.search(r"\{[a-z][\w:-]*\}|^\([\w-]+\)=$", plain, re.M)
    for found in re.findall(r"\]\(([^)]*)\)", plain):
        assert found.startswith("https://"), found
    assert str(ROOT) not in path.read_text() and "site-packages" not in plain


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name)
def test_text_is_complete(path):
    """What the page says, the notebook says: titles, captions, code shown."""
    notebook = text(read(path))
    source = (ROOT / f"docs/{path.stem}.md").read_text()
    outside = CELL.sub("", source)
    prose = re.sub(r"```.*?```", "", outside, flags=re.S)
    for title in re.findall(r"^#+ ([^`'\"{}\n]*)$", prose, re.M):
        assert re.search(rf"^#+ {re.escape(title)}$", notebook, re.M), title
    for obj in re.findall(r":pyobject: (\w+)", outside):
        assert re.search(rf"^(?:> )*(?:def|class) {obj}\b", notebook, re.M), obj
    cells = "\n".join(body for _, body in CELL.findall(source))
    shown = len(re.findall(r'name="fig-', cells))
    assert len(re.findall(r"^\*\*Fig\. \d+\.\*\* ", notebook, re.M)) == shown
    for label in re.findall(r"^\$\$ \(.*\)$", outside, re.M):
        assert "\\tag{" in notebook, label


IMPORTS = """\
import json, os, site, sys
for unpack, imports in json.load(sys.stdin):
    path, folder = list(sys.path), os.getcwd()
    scope = {}
    exec(unpack, scope)
    home = scope["_home"].name
    for line in imports:
        exec(line, {})
    for name in [n for n in sys.modules if n.split(".")[0] == "chapter3"]:
        assert sys.modules.pop(name).__file__.startswith(home), name
    sys.path[:] = path
    os.chdir(folder)
"""


def test_imports_resolve_inside_of_each_notebook_alone():
    todo = []
    for path in [*NOTEBOOKS, *EXERCISES]:
        _, unpack, *cells = code(read(path))
        imports = [
            ast.unparse(node)
            for source in cells
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Import | ast.ImportFrom)
            and "chapter3" in ast.unparse(node)
        ]
        assert imports
        todo.append((unpack, imports))
    # -S leaves out the .pth file by which the package is installed here.
    packages = f"import sys; sys.path.append({sysconfig.get_path('purelib')!r})\n"
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", packages + IMPORTS],
        input=json.dumps(todo),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


# -- in an environment of its own ------------------------------------------------------


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """Return a folder with a virtual environment in which there is only ipykernel."""
    folder = tmp_path_factory.mktemp("elsewhere")
    uv = shutil.which("uv") or shutil.which(ROOT / ".uv/bin/uv")
    make = [uv, "venv", "--quiet", "--seed"] if uv else [sys.executable, "-m", "venv"]
    python = ["--python", sys.executable] if uv else []
    subprocess.run([*make, *python, folder / "env"], check=True, timeout=120)
    _install(folder, ["ipykernel"])
    spec = folder / "kernels/python3/kernel.json"
    spec.parent.mkdir(parents=True)
    start = [f"{folder}/env/bin/python", "-m", "ipykernel_launcher"]
    argv = [*start, "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "elsewhere"}))
    return folder


def _install(folder, packages):
    uv = shutil.which("uv") or shutil.which(ROOT / ".uv/bin/uv")
    python = f"{folder}/env/bin/python"
    pip = [uv, "pip", "install", "--python", python] if uv else None
    pip = pip or [python, "-m", "pip", "install"]
    subprocess.run([*pip, "--quiet", *packages], check=True, timeout=300)


RUN = """\
import os, sys
import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

here, source, target = os.getcwd(), *sys.argv[1:]
manager = AsyncKernelManager(
    kernel_name="python3",
    kernel_spec_manager=KernelSpecManager(kernel_dirs=[f"{here}/kernels"]),
    transport="ipc",
    ip=f"{here}/{os.path.basename(target)}",
)
notebook = nbformat.read(source, as_version=4)
NotebookClient(notebook, km=manager, timeout=120).execute()
nbformat.write(notebook, target)
"""


def printed(path):
    """Return what each code cell but the first two prints."""
    cells = [c for c in read(path).cells if c.cell_type == "code"][2:]
    return [
        "".join(o["text"] for o in c.outputs if o.get("name") == "stdout")
        for c in cells
    ]


# The first has examples that it starts in other processes, and draws nothing.
@pytest.mark.parametrize("page", ["quiz", "3-7-meshes"])
def test_a_notebook_runs_in_a_fresh_environment(elsewhere, page):
    path = BUILT / f"en/_sources/{page}.ipynb"
    (line,) = re.findall(r"^%pip install --quiet (.*)", code(read(path))[0], re.M)
    _install(elsewhere, line.split())
    chosen = r"PYTHON|VIRTUAL_ENV|XLA_FLAGS|JAX_"
    environment = {k: v for k, v in os.environ.items() if not re.match(chosen, k)}
    environment |= {"IPYTHONDIR": str(elsewhere / "ipython")}
    environment |= {"PYTHONHASHSEED": "0"}  # some messages of JAX show a set
    done = subprocess.run(
        [sys.executable, "-c", RUN, path, f"{page}.ipynb"],
        cwd=elsewhere,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert printed(elsewhere / f"{page}.ipynb") == printed(path)


# -- how they are made -----------------------------------------------------------------


def test_a_module_brings_along_what_it_imports():
    found = embedding.needs(["from chapter3.tables import table"], ROOT)
    assert set(found.files) == {
        f"src/chapter3/{module}.py"
        for module in ("__init__", "devices", "errors", "tables")
    }
    assert set(found.distributions) == {"jax", "jaxlib"}
    assert not found.names_files


@pytest.mark.parametrize(
    "source",
    [
        "from chapter3 import ring",
        "import chapter3.ring as r",
        "%matplotlib inline\nimport chapter3.ring",
        'run("""\n    import os\n    from chapter3 import ring\n""")',
        'run("from chapter3.ring import ring_all_reduce")',
        '[sys.executable, "-m", "chapter3.ring"]',
    ],
)
def test_imports_are_found_wherever_they_stand(source):
    assert "src/chapter3/ring.py" in embedding.needs([source], ROOT).files


def test_files_that_are_named_come_along(tmp_path):
    folder = tmp_path / "examples/processes"
    folder.mkdir(parents=True)
    (folder / "one.py").write_text("from chapter3 import ring\nother = 'two.py'\n")
    (folder / "two.py").write_text("import optax\n")
    (folder / "three.py").write_text("")
    found = embedding.needs(['launch("../examples/processes/one.py")'], tmp_path)
    named = {path for path in found.files if path.startswith("examples/")}
    assert named == {"examples/processes/one.py", "examples/processes/two.py"}
    assert "src/chapter3/ring.py" in found.files and "optax" in found.distributions
    by_folder = 'run(f"../examples/processes/{which}.py")'
    found = embedding.needs([by_folder], tmp_path)
    assert "examples/processes/three.py" in found.files and found.names_files


def test_a_module_brings_along_the_files_that_it_names():
    found = embedding.needs(["from chapter3.launcher import launch"], ROOT)
    named = re.findall(r'with_name\("(.*?)"\)', "\n".join(found.files.values()))
    assert named
    assert all(f"src/chapter3/{file}" in found.files for file in named)


def test_source_survives_the_embedding(tmp_path):
    texts = {
        "src/a.py": "x = '''three'''\n",
        "src/b.py": 'x = """three"""\ny = "\\n"\n',
        "src/c.py": "x = '''1''' + \"\"\"2\"\"\"\n",
        "src/d.py": "",
        "src/e.py": "no line break at the end: ‘’ \\",
    }
    scope = {}
    path = list(sys.path)
    exec(embedding.unpack(embedding.Needs(texts)), scope)
    try:
        for file, content in texts.items():
            written = scope["Path"](scope["_home"].name, file).read_text()
            assert written == content
    finally:
        sys.path[:] = path
        os.environ.pop("PYTHONPATH")
        scope["_home"].cleanup()


PAGE = (
    "Text with `code`, *emphasis*, $a_1 * b_2$ and 3 * 4 < 5, snake_case, a price of"
    " \\$5.\n",
    "[Must read]{.passage .must-read} See {doc}`other`, {ref}`the label <here>`,"
    " {eq}`eq-one` and {func}`jax.jit`.\n",
    "(here)=\n\n## 1. A section\n",
    "$$\nx = 1\n$$ (eq-one)\n",
    "1. one\n2. two\n\n   more\n\n- a\n  - b\n",
    "| a | b |\n| --- | --- |\n| `x\\|y` | $\\|x\\|$ |\n",
    ":::{warning}\nMind *this*.\n\n```python\nx = 1\n```\n:::\n",
    ":::{admonition} Own title\nBody.\n:::\n",
    "> quoted\n",
    cell("from chapter3 import simulate_devices\ndevices = simulate_devices(8)"),
    "Between.\n",
    cell("assert len(devices) == 8", "remove-cell"),
    "After.\n",
    cell("print('shown')", "hide-input"),
    ":::{admonition} Own\n{sub}`low`\n:::\n",
)
MARKDOWN = r"""# page

Text with `code`, *emphasis*, $a_1 * b_2$ and 3 \* 4 &lt; 5, snake_case, a price of \$5.

**Must read** See *other*, the label, (1) and [`jax.jit()`](https://docs.jax.dev/en/latest/_autosummary/jax.jit.html#jax.jit).

## 1. A section

$$
x = 1
\tag{1}
$$

1. one
2. two

   more

- a
  - b

| a | b |
| --- | --- |
| `x\|y` | $\vert x\vert $ |

> **Warning**
>
> Mind *this*.
>
> ```python
> x = 1
> ```

> **Own title**
>
> Body.

> quoted"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    site = SmallSite(tmp_path_factory.mktemp("notebooks") / "project")
    site.write("page", *PAGE)
    site.write("other", "See {exercise-notebook}`one`.", text=True)
    folder = site.root / "examples/exercises"
    folder.mkdir(parents=True)
    (folder / "one.py").write_text(EXERCISE)
    site.build().assert_succeeded()
    return site


EXERCISE = '''\
"""A docstring, left out."""
# %% [markdown]
# # Exercise one
#
# What is $x$?

# %%
from chapter3 import ring

# %%
x = ...  # your answer

# %% [markdown]
# The end.
'''


def notebook_of(site, page="_sources/page"):
    return site.root / f"_build/html/en/{page}.ipynb"


def test_markup_becomes_plain_markdown(small):
    notebook = read(notebook_of(small))
    kinds = [c.cell_type for c in notebook.cells]
    assert kinds == ["code"] * 2 + ["markdown"] * 2 + ["code", "markdown"] + [
        "code",
        "markdown",
        "code",
        "markdown",
    ]
    assert "\n\n".join(c.source for c in notebook.cells[2:4]) == MARKDOWN
    between, after = notebook.cells[5].source, notebook.cells[7].source
    assert (between, after) == ("Between.", "After.")  # the hidden cell is there
    assert notebook.cells[-2].metadata == {"jupyter": {"source_hidden": True}}
    assert notebook.cells[-2].outputs[0]["text"] == "shown\n"
    assert notebook.cells[-1].source == "> **Own**\n>\n> <sub>low</sub>"


def test_folds_and_numbers_are_kept():
    title = dropdown_title("", "", nodes.Text("Hint "), nodes.raw("", "<svg>"))
    fold = dropdown_main("", title, nodes.paragraph("", "Look & see."))
    box = nodes.admonition("", nodes.title("", "Clip"), fold, ids=["ex-clip"])
    writer = plain_markdown.Writer(numbers={"ex-clip": "Exercise 2"})
    (markdown,) = writer.block(box)
    assert markdown.splitlines() == [
        "> **Exercise 2 Clip**",
        ">",
        "> <details>",
        "> <summary>Hint </summary>",
        ">",
        "> Look & see.",
        ">",
        "> </details>",
    ]


def test_links_within_the_site_need_its_address(small, tmp_path):
    site = SmallSite(tmp_path / "project")
    site.write("page", *PAGE)
    site.write("other", "Text.", text=True)
    site.build("-D", "html_baseurl=https://example.org/en").assert_succeeded()
    notebook = text(read(notebook_of(site)))
    assert "[other](https://example.org/en/other.html)" in notebook
    assert "[the label](https://example.org/en/page.html#here)" in notebook


def test_a_second_build_makes_the_same_notebook(small, tmp_path):
    site = SmallSite(tmp_path / "project")
    site.write("page", *PAGE)
    site.write("other", "Text.", text=True)
    site.build().assert_succeeded()
    assert notebook_of(site).read_text() == notebook_of(small).read_text()


def test_an_exercise_becomes_a_notebook(small):
    notebook = read(notebook_of(small, "exercises/one"))
    install, unpack, *cells = notebook.cells
    assert "“Exercise one” of “" in install.source
    assert "src/chapter3/ring.py" in unpack.source
    assert [c.source for c in cells] == [
        "# Exercise one\n\nWhat is $x$?",
        "from chapter3 import ring",
        "x = ...  # your answer",
        "The end.",
    ]
    assert 'href="exercises/one.ipynb"' in small.article("other")


def test_what_is_not_known_fails_the_build(tmp_path):
    site = SmallSite(tmp_path / "project")
    site.write("page", cell("x = 1"), "A note.[^1]\n\n[^1]: There.\n")
    site.write("other", "See {exercise-notebook}`two`.", text=True)
    site.build().assert_failed(
        "plain_markdown.py does not know what becomes of footnote in a notebook",
        "other.md:3: WARNING: there is no exercises/two.ipynb",
    )


def test_percent_cells_keep_their_lines():
    cells = notebooks.read_percent("# %%\na = 1\n\n\nb = 2\n# %% [md]\n#  indented\n")
    assert [c.source for c in cells] == ["a = 1\n\n\nb = 2", " indented"]
