"""Pages on paper, as a browser prints them."""

import re

import pytest
from test_site import BUILT

PAPER = {"A4": (210, 297), "Letter": (216, 279)}  # mm
ORDINARY = "3-7-meshes"


@pytest.fixture
def on_paper(browser):
    """Open a page as it looks on paper of a width; `close` all of them afterwards."""
    contexts = []

    def open_page(name, millimetres, scheme="light"):
        context = browser.new_context(
            viewport={"width": round(millimetres * 96 / 25.4), "height": 1000},
            color_scheme=scheme,
            offline=True,
        )
        contexts.append(context)
        page = context.new_page()
        page.goto((BUILT / f"en/{name}.html").as_uri(), wait_until="networkidle")
        page.emulate_media(media="print")
        return page

    yield open_page
    for context in contexts:
        context.close()


def pages(pdf):
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))


@pytest.mark.parametrize("paper", PAPER)
def test_the_cheat_sheet_is_one_page(on_paper, paper):
    page = on_paper("cheat-sheet", PAPER[paper][0])
    assert pages(page.pdf(format=paper)) == 1
    # It is the page that fits, not the counting: larger letters would need two.
    page.add_style_tag(content="#cheat-sheet { font-size: 11pt !important }")
    assert pages(page.pdf(format=paper)) > 1


@pytest.mark.parametrize("paper", PAPER)
def test_nothing_of_the_cheat_sheet_is_cut_off(on_paper, paper):
    page = on_paper("cheat-sheet", PAPER[paper][0] - 20)  # less its margins
    assert page.evaluate(CUT_OFF, "#cheat-sheet") == []
    visible = page.locator("#cheat-sheet tbody td").evaluate_all(
        "cells => cells.filter(c => c.getBoundingClientRect().height > 5).length"
    )
    assert visible == page.locator("#cheat-sheet tbody td").count() >= 3 * 26


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_ordinary_page_prints_its_text_and_nothing_of_the_frame(on_paper, scheme):
    page = on_paper(ORDINARY, PAPER["A4"][0] - 30, scheme)
    for part in (".bd-sidebar-primary", ".bd-sidebar-secondary", ".bd-header-article"):
        assert not page.locator(part).first.is_visible(), part
    assert page.evaluate(CUT_OFF, "article") == []
    assert page.locator("article p").first.is_visible()
    # Paper is white, whatever the theme.
    colour = page.locator("article p").first.evaluate("e => getComputedStyle(e).color")
    assert max(map(int, re.findall(r"\d+", colour)[:3])) < 100


def test_what_is_cut_off_is_noticed(on_paper):
    page = on_paper(ORDINARY, PAPER["A4"][0] - 30)
    narrow = "white-space: pre !important; overflow: hidden !important; width: 50mm"
    page.add_style_tag(content=f"article pre {{ {narrow} }}")
    assert page.evaluate(CUT_OFF, "article") != []


CUT_OFF = """within => {
  const found = [];
  for (const e of document.querySelectorAll(`${within} *`)) {
    if (!e.checkVisibility() || e.closest("svg, math, .visually-hidden, .headerlink"))
      continue;
    const box = e.getBoundingClientRect();
    const clips = getComputedStyle(e).overflowX !== "visible";
    if (box.right > innerWidth + 1 || (clips && e.scrollWidth > e.clientWidth + 1))
      found.push(`${e.tagName}.${e.className}: ${e.textContent.slice(0, 60)}`);
  }
  return found.slice(0, 5);
}"""
