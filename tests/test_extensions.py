"""The small modules that conf.py uses, each by itself."""

import shutil
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.utils import new_document
from small_site import ROOT
from sphinx.util.inventory import InventoryFile

import editions
import exercise_boxes
import mathml
import page_assets
from input_digest import input_digest
from inventories import inventory
from kernel_environment import kernel_environment


def test_folders_of_editions():
    assert [editions.folder(n) for n in ("en", "zh_CN")] == ["en", "zh-cn"]


@pytest.mark.parametrize("block", [False, True])
def test_formula_as_mathml(block):
    latex = r"\frac{1}{N} \sum_{i=1}^{N} \nabla L_{B_i}"
    written = mathml._mathml(nodes.math(), latex, block=block)
    tree = BeautifulSoup(written, "html.parser")
    assert tree.math and tree.mfrac and tree.find("msub")
    assert (tree.math.get("display") == "block") == block


@pytest.fixture
def inputs(tmp_path):
    for folder in ("src/chapter3", "examples", "docs/_ext"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("src/chapter3/a.py", "examples/b.py", "uv.lock"):
        (tmp_path / name).write_text("1")
    shutil.copy(ROOT / "docs/_ext/kernel_environment.py", tmp_path / "docs/_ext")
    return tmp_path


@pytest.mark.parametrize(
    "changed",
    [
        "src/chapter3/a.py",
        "src/chapter3/new.py",
        "examples/b.py",
        "examples/data.csv",
        "src/chapter3/data.json",
        "uv.lock",
        "docs/_ext/kernel_environment.py",
    ],
)
def test_digest_changes_with_every_input(inputs, changed):
    before = input_digest(inputs)
    assert input_digest(inputs) == before
    (inputs / changed).write_text("2")
    assert input_digest(inputs) != before


def test_digest_changes_when_a_file_is_renamed(inputs):
    before = input_digest(inputs)
    (inputs / "src/chapter3/a.py").rename(inputs / "src/chapter3/c.py")
    assert input_digest(inputs) != before


def test_digest_changes_with_jax_and_python(inputs, monkeypatch):
    digests = {input_digest(inputs)}
    monkeypatch.setattr("input_digest.metadata.version", lambda name: "9.9")
    digests.add(input_digest(inputs))
    monkeypatch.setattr("input_digest.sys.version", "3.99")
    digests.add(input_digest(inputs))
    assert len(digests) == 3


@pytest.mark.parametrize("folder", ["src/chapter3/__pycache__", "examples/.ruff_cache"])
def test_digest_leaves_out_what_tools_write(inputs, folder):
    before = input_digest(inputs)
    (inputs / folder).mkdir()
    (inputs / folder / "a.py").write_text("compiled")
    assert input_digest(inputs) == before


def test_digest_works_in_a_hidden_folder(inputs):
    shutil.copytree(inputs, inputs / ".hidden/project")
    before = input_digest(inputs / ".hidden/project")
    (inputs / ".hidden/project/src/chapter3/a.py").write_text("2")
    assert input_digest(inputs / ".hidden/project") != before


def test_kernels_inherit_nothing_that_changes_outputs(tmp_path, monkeypatch):
    for name in ("JAX_ENABLE_X64", "XLA_FLAGS", "PYTHONSTARTUP", "MATPLOTLIBRC"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("LANG", "C.UTF-8")
    environment = kernel_environment(tmp_path)
    assert environment["LANG"] == "C.UTF-8"
    assert environment["JAX_PLATFORMS"] == "cpu"
    for name in ("JAX_ENABLE_X64", "XLA_FLAGS", "PYTHONSTARTUP", "MATPLOTLIBRC"):
        assert name not in environment


@pytest.mark.parametrize("path", sorted((ROOT / "docs/_inventories").glob("*.txt")))
def test_inventory_is_what_intersphinx_reads(path, tmp_path):
    packed = inventory(path, tmp_path)
    with Path(packed).open("rb") as file:
        loaded = InventoryFile.load(
            file, "https://example.org", lambda a, b: f"{a}/{b}"
        )
    names = [line.split()[0] for line in path.read_text().splitlines()[4:] if line]
    assert names == sorted(names), "keep the lines in order"
    assert sum(len(objects) for objects in loaded.values()) == len(names)


def test_rules_for_unused_classes_are_dropped():
    css = (
        ".used{a:1}.not-used{b:2}.used,.not-used p{c:3}p{d:4}"
        "@media (min-width:1px){.not-used{e:5}.used.on{f:6}}"
        ".used:not(.gone){g:7}@font-face{h:8}@keyframes k{0%{i:9}}"
    )
    kept = page_assets.without_unused(css, {"used", "on"})
    assert kept == (
        ".used{a:1}.used{c:3}p{d:4}@media (min-width:1px){.used.on{f:6}}"
        ".used:not(.gone){g:7}@font-face{h:8}@keyframes k{0%{i:9}}"
    )


def test_boxes_of_exercises_hold_no_sections():
    document = new_document("a page")
    boxes = []
    for _ in range(2):
        box = nodes.admonition("", nodes.title("", "Exercise"))
        text = nodes.paragraph("", "Do it.")
        box += nodes.section("", text, ids=["exercise-content"], names=["content"])
        boxes.append(box)
    real = nodes.section("", nodes.title("", "A section"), *boxes, ids=["a-section"])
    document += real
    exercise_boxes.NoSectionsInBoxes(document).apply()
    assert list(document.findall(nodes.section)) == [real]
    for box in boxes:
        assert [child.astext() for child in box] == ["Exercise", "Do it."]
        assert [(child["ids"], child["names"]) for child in box] == [([], [])] * 2
