"""Names of other projects: they exist, and those that the pages use have a link."""

import ast
import pkgutil
import re

import pytest
from small_site import ROOT

FILES = sorted((ROOT / "docs/_inventories").glob("*.txt"))
LINES = [
    line for file in FILES for line in file.read_text().splitlines()[4:] if line.strip()
]
NAMES = {line.split()[0] for line in LINES}
CELL = re.compile(r"^```\{code-cell\}.*?\n(?::.*?\n)*(.*?)^```$", re.DOTALL | re.M)
PROJECTS = ("jax", "numpy", "optax")

NO_PAGE_OF_THEIR_OWN = re.compile(
    r"jax\.(__version__|tree_map|pmap\.__doc__.*|errors.*|enable_x64"
    r"|experimental\.(maps|mesh_utils)(\..*)?|threefry_partitionable"
    r"|config(\.jax_\w+)?|sharding\.AxisType\.\w+)"
)
"""Gone, an attribute, a setting, or not in JAX's reference."""

ON_THE_PAGE_OF = {"numpy.abs": "numpy.absolute"}
"""Another name of the same thing, which has no page."""


@pytest.mark.parametrize("name", sorted(NAMES))
def test_what_an_inventory_names_exists(name):
    assert pkgutil.resolve_name(name) is not None


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.split()[0])
def test_a_page_of_one_name_is_that_names_page(line):
    name, _, _, target, _ = line.split()
    if found := re.search(r"(?:_autosummary|generated)/(.*)\.html", target):
        assert found[1] == ON_THE_PAGE_OF.get(name, name)


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs").glob("*.md")), ids=lambda p: p.stem
)
def test_names_in_cells_have_a_link(page):
    used = names_used("\n".join(CELL.findall(page.read_text())))
    used = {name for name in used if name.split(".")[0] in PROJECTS}
    unlinked = {n for n in used - NAMES if not NO_PAGE_OF_THEIR_OWN.fullmatch(n)}
    assert not unlinked, "add them to docs/_inventories, with the page that JAX has"


def test_names_are_found_in_code():
    code = "import jax.numpy as jnp\nfrom jax import lax\njnp.sum(lax.psum(x, 'i').T)"
    assert names_used(code) == {"jax.numpy.sum", "jax.lax.psum"}


def names_used(code):
    """Full dotted names of what a program uses of the modules it imports."""
    nodes = list(ast.walk(ast.parse(code)))
    imported = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                imported[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    found = set()
    for node in nodes:
        if isinstance(node, ast.Attribute | ast.Name) and id(node) not in inner:
            first, *rest = ast.unparse(node).split(".")
            if first in imported and all(part.isidentifier() for part in rest):
                found.add(".".join([imported[first], *rest]))
    return found
