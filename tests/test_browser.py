"""The built pages in a real browser, with no network."""

import pytest
from test_site import ARTICLES, BUILT, name

MOST_BYTES = 800_000
MOST_REQUESTS = 15
WIDTHS = {"desktop": 1280, "phone": 390}


@pytest.mark.parametrize("path", ARTICLES, ids=name)
def test_first_visit_is_light_local_and_without_errors(visit, path):
    _, requests, complaints = visit(path)
    assert complaints == []
    assert all(url.startswith(BUILT.as_uri()) for url in requests), requests
    assert len(requests) <= MOST_REQUESTS
    sizes = {
        url: (BUILT / url.split("?")[0].removeprefix(f"{BUILT.as_uri()}/"))
        .stat()
        .st_size
        for url in requests
    }
    assert sum(sizes.values()) <= MOST_BYTES, sizes


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", ARTICLES, ids=name)
def test_page_fits_and_can_be_read(visit, path, width, scheme):
    page, _, _ = visit(path, WIDTHS[width], scheme)
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    # Nothing sticks out sideways, so that the page as a whole does not scroll.
    width_of = "document.documentElement.scrollWidth"
    assert page.evaluate(width_of) <= WIDTHS[width]
    # Text, code and formulas stand out from what is behind them: WCAG level AA.
    assert page.evaluate(POOR_CONTRAST) == []


POOR_CONTRAST = """() => {
  const parts = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
  const luminance = ([r, g, b]) => {
    const f = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = parts(getComputedStyle(e).backgroundColor);
      if (c.length && (c.length < 4 || c[3] > 0.5)) return c;
    }
    return [255, 255, 255];
  };
  const poor = new Set();
  const walker = document.createTreeWalker(
    document.querySelector("article"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !e.checkVisibility()) continue;
    if (e.closest("a.headerlink, .visually-hidden")) continue;
    const [a, b] = [parts(getComputedStyle(e).color), behind(e)].map(luminance);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.add(`${ratio.toFixed(2)}: ${walker.currentNode.data.trim()}`);
  }
  return [...poor].slice(0, 10);
}"""


@pytest.mark.parametrize("path", ARTICLES, ids=name)
def test_figures_load_when_they_come_into_view(visit, path):
    page, _, _ = visit(path)
    for image in page.locator("article img").all():
        image.scroll_into_view_if_needed()
        image.evaluate("i => i.complete || new Promise(done => i.onload = done)")
        assert image.evaluate("i => i.naturalWidth") > 0


def test_formulas_are_drawn_in_the_fonts_own_letters(visit):
    page, _, _ = visit(BUILT / "en/3-1-parallelism-concepts.html")
    assert page.locator("math").count() > 10
    loaded = "document.fonts.ready.then(f => [...f].filter(x => x.status === 'loaded')"
    families = page.evaluate(f"{loaded}.map(x => x.family))")
    assert any("Chapter Math" in family for family in families)
    # A fraction is taller than a line: MathML is laid out, not shown as text.
    heights = page.locator("div.math math").evaluate_all(
        "all => all.map(m => m.getBoundingClientRect().height)"
    )
    assert min(heights) > 30


def test_the_top_page_leads_to_the_english_edition(visit):
    page, _, complaints = visit(BUILT / "index.html")
    page.wait_for_url("**/en/index.html")
    assert complaints == []


def test_search_finds_a_page(visit):
    page, _, _ = visit(BUILT / "en/search.html")
    page.goto((BUILT / "en/search.html").as_uri() + "?q=committed")
    page.wait_for_selector("#search-results li a")
    found = page.locator("#search-results li a").all_inner_texts()
    # From a folder the browser refuses the excerpts of the found pages, not the list.
    assert any("3.2 Device management" in text for text in found)


def test_the_theme_button_changes_the_theme(visit):
    page, _, _ = visit(BUILT / "en/index.html")
    for mode in ("dark", "light"):
        page.locator("button.theme-switch-button").click()
        page.locator(f"button.theme-change-button[data-mode={mode}]").click()
        assert page.evaluate("document.documentElement.dataset.theme") == mode


def test_code_that_is_folded_away_opens(visit):
    page, _, _ = visit(BUILT / "en/3-1-parallelism-concepts.html")
    fold = page.locator("details.hide").first
    assert not fold.locator("pre").is_visible()
    fold.locator("summary").click()
    assert fold.locator("pre").is_visible()


def test_a_hint_is_folded_and_opens(visit):
    page, _, _ = visit(BUILT / "en/exercises.html")
    hint = page.locator(".exercise details.sd-dropdown").first
    assert not hint.locator("p").last.is_visible()
    hint.locator("summary").click()
    assert hint.locator("p").last.is_visible()
