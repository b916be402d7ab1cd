"""What code needs to run by itself: modules of the package, examples, distributions.

The package `chapter3` is on no index, so a notebook carries the part of it that it
needs. That is found by following imports, also those in programs that the code holds as
strings and runs in other processes, and names of files.
"""

import ast
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata, util
from pathlib import Path

PACKAGE = "chapter3"
_HOST = {"IPython", "ipykernel", "google"}  # any notebook program has them
_ALONG = {  # needed without an import of its own
    r"\bimport jax\b|\bfrom jax\b": "jaxlib",
    r"visualize_array_sharding": "rich",
}


@dataclass
class Needs:
    """What some code needs.

    Attributes:
        files: source text by path, as in the repository: `src/chapter3/hlo.py`.
        distributions: what to install: name and version.
    """

    files: dict[str, str] = field(default_factory=dict)
    distributions: dict[str, str] = field(default_factory=dict)

    @property
    def names_files(self) -> bool:
        """Whether the code reads files of the repository by their path."""
        return any(not path.startswith("src/") for path in self.files)


def needs(sources: Iterable[str], root: Path, folder: str = "docs") -> Needs:
    """Find what code needs, and what that needs in turn.

    Args:
        sources: Python source of cells, which may hold magics of IPython.
        root: top folder of the repository.
        folder: where in it the code runs, from which it names files.
    """
    found = Needs()
    todo = [(source, Path(folder)) for source in sources]
    while todo:
        source, place = todo.pop()
        for name in _imported(source):
            if name.split(".")[0] == PACKAGE:
                paths = _module_files(name)
            else:
                paths = {}
                _add_distribution(found, name.split(".")[0])
            for path, file in paths.items():
                if path not in found.files:
                    found.files[path] = file.read_text(encoding="utf-8")
                    todo.append((found.files[path], Path(path).parent))
        for pattern, name in _ALONG.items():
            if re.search(pattern, source):
                found.distributions[name] = metadata.version(name)
        for path in _named_files(source, root, place):
            if path not in found.files:
                found.files[path] = (root / path).read_text(encoding="utf-8")
                if path.endswith(".py"):
                    todo.append((found.files[path], Path(path).parent))
    found.files = dict(sorted(found.files.items()))
    found.distributions = dict(sorted(found.distributions.items()))
    return found


def _imported(source: str) -> Iterator[str]:
    """Yield the full names of all that may be a module in an import of `source`."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # with magics, or a piece of a program
        lines = re.findall(r"^\s*(?:from|import) +([\w.]+)", source, re.MULTILINE)
        yield from lines
        return
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.Constant(value=str(text)) if re.search(r"\bimport\b", text):
                if "\n" in text.strip() or re.match(r"\s*(from|import) ", text):
                    yield from _imported(textwrap.dedent(text))
            case ast.Constant(value=str(text)) if text.startswith(f"{PACKAGE}."):
                yield text  # as in [sys.executable, "-m", "chapter3.name"]


def _module_files(name: str) -> dict[str, Path]:
    """Return the files of a module and of the packages that it is in, if it is one."""
    spec = util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{PACKAGE} is not installed")
    top = Path(spec.submodule_search_locations[0])
    files, path = {}, top
    for part in [None, *name.split(".")[1:]]:
        path = path / part if part else path
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if not file.is_file():
            break  # the name of something in the module
        files[f"src/{PACKAGE}/{file.relative_to(top).as_posix()}"] = file
    return files


@cache
def _distributions() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


@cache
def _declared() -> set[str]:
    """Names of the distributions that the package itself declares."""
    listed = metadata.requires(PACKAGE) or []
    return {re.split(r"[^\w.-]", line)[0] for line in listed}


def _add_distribution(found: Needs, module: str) -> None:
    if module in sys.stdlib_module_names or module in _HOST:
        return
    names = _distributions().get(module, [])
    for name in sorted(_declared() & set(names)) or sorted(names)[:1]:
        found.distributions[name] = metadata.version(name)


_PATH = re.compile(r"[\w./-]*[\w-]/?")


def _named_files(source: str, root: Path, place: Path) -> Iterator[str]:
    """Yield the repository's files, or those in the folders, that strings name."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        text = node.value
        if not _PATH.fullmatch(text) or not re.search(r"\.py$|\bexamples\b", text):
            continue
        for start in (root / place, root):
            path = (start / text).resolve()
            if not path.is_relative_to(root):
                continue
            inside = path.relative_to(root)
            if inside.parts[:1] != ("examples",):
                continue
            if path.is_file():
                yield inside.as_posix()
            elif path.is_dir() and len(inside.parts) > 1:
                for file in sorted(path.glob("*.py")):
                    yield file.relative_to(root).as_posix()


# -- the two cells that prepare a notebook ---------------------------------------------


def install(found: Needs, about: str) -> str:
    """Return the cell that installs; `about` is a comment of one or more lines."""
    pinned = [f"{name}=={version}" for name, version in found.distributions.items()]
    comment = textwrap.indent(about, "# ")
    return f"{comment}\n%pip install --quiet {' '.join(pinned)}"


_UNPACK = """\
#@title The part of the package `chapter3` that is used below: run it, and read on.
import os
import sys
import tempfile
from pathlib import Path

_files = {{}}
{files}

_home = tempfile.TemporaryDirectory(prefix="chapter3-")  # gone when Python ends
for _name, _text in _files.items():
    _path = Path(_home.name, _name)
    _path.parent.mkdir(parents=True, exist_ok=True)
    _path.write_text(_text, encoding="utf-8")
_source = str(Path(_home.name, "src"))
sys.path.insert(0, _source)
# Programs that are started below find it too.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [_source, os.environ.get("PYTHONPATH")])
)
"""
_MOVE = """\
# The code below names files as seen from the folder of the pages.
Path(_home.name, "docs").mkdir()
os.chdir(Path(_home.name, "docs"))
"""


def unpack(found: Needs) -> str:
    """Return the cell that brings along the files."""
    files = "\n".join(
        f"_files[{path!r}] = {_quoted(text)}" for path, text in found.files.items()
    )
    return _UNPACK.format(files=files) + (_MOVE if found.names_files else "")


def _quoted(text: str) -> str:
    """Quote source so that it stays readable, if that is possible."""
    for quotes in ("'''", '"""'):
        if (
            quotes not in text
            and text[-1:] not in ("\\", quotes[0])
            and "\r" not in text
        ):
            return f"r{quotes}{text}{quotes}" if text else "''"
    return repr(text)
