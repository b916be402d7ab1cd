"""What code needs to run by itself: modules of the package, examples, distributions.

The package `chapter3` is on no index, so a notebook carries the part of it that it
needs. That is found by following imports, also those in programs that the code holds as
strings and runs in other processes, and names of files.
"""

import ast
import posixpath
import re
import sys
import textwrap
from collections.abc import Iterable
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
    todo = [(source, folder) for source in sources]
    while todo:
        source, place = todo.pop()
        imported, strings = _read(source)
        paths = [p for text in strings for p in _named_files(text, root, place)]
        for name in imported:
            module = name.split(".")[0]
            if module == PACKAGE:
                paths += _module_files(name)
            elif module not in sys.stdlib_module_names and module not in _HOST:
                found.distributions |= _distributions(module)
        for pattern, name in _ALONG.items():
            if re.search(pattern, source):
                found.distributions[name] = metadata.version(name)
        for path in paths:
            if path not in found.files:
                text = _real(path, root).read_text(encoding="utf-8")
                found.files[path] = text
                if path.endswith(".py"):
                    todo.append((text, posixpath.dirname(path)))
    found.files = dict(sorted(found.files.items()))
    found.distributions = dict(sorted(found.distributions.items()))
    return found


@cache  # most pages need the same modules
def _read(source: str) -> tuple[list[str], list[str]]:
    """Return the names of all that may be a module in an import, and all strings."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:  # with magics, or a piece of a program
        return re.findall(r"^\s*(?:from|import) +([\w.]+)", source, re.MULTILINE), []
    imported, strings = [], []
    for node in nodes:
        match node:
            case ast.Import(names=names):
                imported += [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), level=0, names=names):
                imported += [module, *(f"{module}.{alias.name}" for alias in names)]
            case ast.Constant(value=str(text)) if text.startswith(f"{PACKAGE}."):
                imported.append(text)  # as in [sys.executable, "-m", "chapter3.name"]
            case ast.Constant(value=str(text)) if _IMPORT.search(text):
                imported += _read(textwrap.dedent(text))[0]
            case ast.Constant(value=str(text)):
                strings.append(text)
    return imported, strings


_IMPORT = re.compile(r"^\s*(import|from [\w.]+ import) ", re.MULTILINE)


@cache
def _package() -> Path:
    spec = util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{PACKAGE} is not installed")
    return Path(spec.submodule_search_locations[0])


def _real(path: str, root: Path) -> Path:
    """Return where a file is whose path in the repository is given."""
    inside = path.removeprefix(f"src/{PACKAGE}/")
    return _package() / inside if inside != path else root / path


def _module_files(name: str) -> list[str]:
    """Return the files of a module and of the packages that it is in, if it is one."""
    files, path = [], _package()
    for part in [None, *name.split(".")[1:]]:
        path = path / part if part else path
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if not file.is_file():
            break  # the name of something in the module
        files.append(f"src/{PACKAGE}/{file.relative_to(_package()).as_posix()}")
    return files


@cache
def _distributions(module: str) -> dict[str, str]:
    """Return name and version of what one installs to import a module."""
    names = set(_packages().get(module, []))
    declared = {re.split(r"[^\w.-]", r)[0] for r in metadata.requires(PACKAGE) or []}
    return {name: metadata.version(name) for name in names & declared or names}


@cache
def _packages() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


def _named_files(text: str, root: Path, place: str) -> list[str]:
    """Return the files, or those in the folder, that a string names.

    It names them as seen from `place`, where the code is or runs, or from the top.
    """
    if not re.fullmatch(r"[\w./-]*\w/?", text) or not re.search(r"[./]", text):
        return []
    for start in (place, ""):
        path = posixpath.normpath(posixpath.join(start, text))
        if not path.startswith(("examples/", f"src/{PACKAGE}/")):
            continue
        if _real(path, root).is_file():
            return [path]
        if path.startswith("examples/"):
            return [f"{path}/{f.name}" for f in sorted((root / path).glob("*.py"))]
    return []


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
from importlib.util import find_spec
from pathlib import Path

if not find_spec("jax"):
    raise ModuleNotFoundError(
        "The cell above has installed nothing. If this Python has no pip (as in what "
        "`uv venv` makes without --seed), install what it names in another way."
    )
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
