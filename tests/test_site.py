"""Checks of the built site: run `make html` first (`make test` does)."""

import re
import sys
from collections import Counter

import pytest
from bs4 import BeautifulSoup
from fontTools.ttLib import TTFont
from small_site import ROOT

sys.path.insert(0, str(ROOT / "docs/_ext"))

BUILT = ROOT / "_build/html"
SOURCES = sorted((ROOT / "docs").glob("*.md"))
PAGES = sorted(BUILT.glob("*/*.html"))
ARTICLES = [page for page in PAGES if page.stem in {s.stem for s in SOURCES}]
STATIC = ROOT / "docs/_static"


def soup(page):
    return BeautifulSoup(page.read_text(), "html.parser")


def name(page):
    return f"{page.parent.name}/{page.stem}"


def test_every_page_is_built_in_every_edition():
    assert ARTICLES, "there is no site: run `make html` first"
    editions = {page.parent for page in PAGES}
    for edition in editions:
        built = {page.stem for page in ARTICLES if page.parent == edition}
        assert built == {source.stem for source in SOURCES}


def test_the_top_page_leads_to_every_edition():
    html = (BUILT / "index.html").read_text()
    offered = set(
        re.findall(r'"([\w-]+)"', re.search(r"editions = \[(.*?)\]", html)[1])
    )
    assert offered == {page.parent.name for page in PAGES}
    assert 'url=en/index.html"' in html and 'href="en/index.html"' in html


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_nothing_is_loaded_from_elsewhere(page):
    for tag in soup(page).find_all(["script", "link", "img", "iframe", "source"]):
        url = tag.get("src") or tag.get("href") or ""
        assert not re.match(r"(https?:)?//", url), url
        assert not url.startswith("/"), f"does not work from a folder: {url}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_two_places_of_a_page_have_the_same_id(page):
    ids = Counter(tag["id"] for tag in soup(page).find_all(id=True))
    assert not {name: n for name, n in ids.items() if n > 1}


@pytest.mark.parametrize("path", sorted(BUILT.glob("*/_static/page.css")), ids=name)
def test_style_sheets_load_only_what_is_there(path):
    for url in re.findall(r"url\([\"']?([^)\"']+)", path.read_text()):
        if not url.startswith("data:"):
            assert (path.parent / url).exists(), url
    assert "@import" not in path.read_text()


@pytest.mark.parametrize("page", ARTICLES, ids=name)
def test_code_was_executed(page):
    cells = soup(page).select("div.cell")
    source = (ROOT / "docs" / f"{page.stem}.md").read_text()
    written = source.count("```{code-cell}")
    hidden = len(re.findall(r":tags:.*remove-cell", source))
    assert len(cells) == written - hidden
    if cells:
        assert soup(page).select("div.cell_output")


@pytest.mark.parametrize("page", ARTICLES, ids=name)
def test_images_have_words_and_figures_have_captions(page):
    article = soup(page).article
    for image in article.find_all("img"):
        assert len(image["alt"]) > 20, image
        assert image.find_parent("figure").figcaption.get_text(strip=True)
    for figure in article.find_all("figure"):
        assert figure["id"].startswith("fig-")


@pytest.mark.parametrize("page", ARTICLES, ids=name)
def test_text_has_no_markup_left_and_no_path_of_this_machine(page):
    article = soup(page).article
    assert str(ROOT) not in str(article) and "/tmp/" not in str(article)
    assert "site-packages" not in str(article)
    for code in article.find_all(["pre", "code", "script", "math", "dt", "strong"]):
        code.decompose()
    text = article.get_text()
    for left_over in ("**", "{doc}", "{ref}", "$", "`", ":::"):
        assert left_over not in text


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.stem)
def test_code_fits_the_page(source):
    for code in re.findall(
        r"```\{code-cell\}[^\n]*\n(.*?)```", source.read_text(), re.S
    ):
        for line in code.splitlines():
            assert len(line) <= 88, line


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.stem)
def test_long_code_lives_in_the_package(source):
    pattern = r"```\{code-cell\}[^\n]*\n((?::tags:[^\n]*\n)?)(.*?)```"
    for tags, code in re.findall(pattern, source.read_text(), re.S):
        if "hide-input" not in tags:
            assert len(code.splitlines()) <= 35, code


@pytest.mark.parametrize("page", ARTICLES, ids=name)
def test_formulas_have_all_their_characters(page):
    font = TTFont(STATIC / "fonts/chapter-math.woff2").getBestCmap()
    for formula in soup(page).find_all("math"):
        for leaf in formula.find_all(["mi", "mo", "mn", "mtext"]):
            shown = leaf.get_text()
            if leaf.name == "mi" and len(shown) == 1 and not leaf.get("mathvariant"):
                shown = shown.translate(ITALIC)  # as browsers do
            missing = {c for c in shown if ord(c) not in font and c.isprintable()}
            assert not missing, (
                f"{missing} in {formula.get_text()}; see fonts/README.md"
            )


ITALIC = {
    **{ord("A") + i: 0x1D434 + i for i in range(26)},
    **{ord("a") + i: 0x1D44E + i for i in range(26)},
    **{0x3B1 + i: 0x1D6FC + i for i in range(25)},
    ord("h"): 0x210E,
}


def test_buttons_have_their_icons():
    path = STATIC / "vendor/fontawesome/webfonts/fa-solid-900.woff2"
    glyphs = TTFont(path).getBestCmap()
    css = (BUILT / "en/_static/page.css").read_text()
    codes = re.findall(r'--fa:"\\([0-9a-f]+)', css)
    drawn = [int(code, 16) for code in codes]
    drawn += [ord(c) for c in css if 0xE000 <= ord(c) <= 0xF8FF]
    brands = {0xF09B, 0xF296}  # logos of another font, which no page shows
    missing = {hex(code) for code in set(drawn) - brands - set(glyphs)}
    assert drawn and not missing, "add them to the font; see fonts/README.md"


def test_every_module_is_in_the_reference():
    listed = set(
        re.findall(r"automodule:: chapter3\.(\w+)", (ROOT / "docs/api.md").read_text())
    )
    modules = {p.stem for p in (ROOT / "src/chapter3").glob("[a-z]*")}
    assert listed == modules - {"py"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.stem)
def test_the_first_cell_asks_for_the_devices(source):
    cells = re.findall(r"```\{code-cell\}[^\n]*\n(.*?)```", source.read_text(), re.S)
    assert not cells or "simulate_devices(8)" in cells[0]


def test_the_site_holds_no_notebooks_of_the_build():
    assert not list(BUILT.glob("**/jupyter_execute"))
