"""The questions: what a question must have, what translators get, and that it works."""

import re
import subprocess
from collections import Counter

import pytest
from bs4 import BeautifulSoup
from small_site import ROOT, SmallSite, cell
from test_browser import POOR_CONTRAST

RIGHT = ":::{right}\nIt is **this**.\n\nBecause it is.\n:::\n"
WRONG = ":::{{wrong}}\nIt is option {0}.\n\nNot, because of {0}.\n:::\n"
OPTIONS = RIGHT + WRONG.format("two") + WRONG.format("three")
PROOF = cell("print('proving')\nassert 1 + 1 == 2")
SCORE = "```{score}\n```\n"


def question(options=OPTIONS, asked="What is $x$ *here*?\n", name="Which one"):
    return f"::::{{question}} {name}\n{asked}\n{options}::::\n"


FAULTS = {
    "none-right": (
        [question(WRONG.format("a") + WRONG.format("b") + WRONG.format("c")), PROOF],
        "0 of the options are right; it must be one",
    ),
    "two-right": (
        [question(OPTIONS + RIGHT), PROOF],
        "2 of the options are right; it must be one",
    ),
    "two-options": (
        [question(RIGHT + WRONG.format("a")), PROOF],
        "2 options; a question has 3 to 4",
    ),
    "five-options": (
        [question(OPTIONS + WRONG.format("d") + WRONG.format("e")), PROOF],
        "5 options; a question has 3 to 4",
    ),
    "not-asked": (
        [question(asked=""), PROOF],
        "a question is asked first; then come the options, only they",
    ),
    "text-between": (
        [question(RIGHT + "Stray.\n\n" + WRONG.format("a") + WRONG.format("b")), PROOF],
        "a question is asked first; then come the options, only they",
    ),
    "no-explanation": (
        [question(OPTIONS + ":::{wrong}\nThis.\n:::\n"), PROOF],
        "an explanation why it is wrong",
    ),
    "no-proof": ([question(), "Text in between.\n", PROOF], "no proof; a code cell"),
    "no-proof-at-the-end": ([cell("x = 1"), question()], "no proof; a code cell"),
    "empty-proof": ([question(), cell("print(1)")], "with an assert must follow it"),
}


def test_each_fault_of_a_question_is_named_with_page_and_line(tmp_path):
    site = SmallSite(tmp_path / "project")
    for name, (body, _) in FAULTS.items():
        site.write(name, *body, SCORE)
    site.write("no-score", question(), PROOF)
    build = site.build()
    build.assert_failed()
    for name, (_, said) in FAULTS.items():
        found = re.findall(rf"{name}\.md:(\d+): WARNING: (.*)", build.output)
        assert [text for _, text in found if said in text], (name, build.output)
        source = (site.root / f"docs/{name}.md").read_text().splitlines()
        line = next(int(n) for n, text in found if said in text)
        expected = ":::{wrong}" if name == "no-explanation" else "::::{question}"
        assert source[line - 1].startswith(expected), (name, line)
    assert "no-score.md:10: WARNING: question: the page has no {score}" in build.output


def test_a_proof_that_fails_fails_the_build(tmp_path):
    site = SmallSite(tmp_path / "project")
    site.write("page", question(), cell("assert 1 + 1 == 3"), SCORE)
    site.build().assert_failed("page.md, code cell 1", "assert 1 + 1 == 3")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return a site of three questions, the second with the right option last."""
    site = SmallSite(tmp_path_factory.mktemp("quiz") / "project")
    last = WRONG.format("1") + WRONG.format("2") + WRONG.format("3") + RIGHT
    site.write(
        "page",
        *(question(), PROOF, question(last, name="Another `one`"), PROOF),
        *(question(name="The last"), cell("print('prepared')"), PROOF, SCORE),
    )
    site.write("other", "No questions.", text=True)
    site.build().assert_succeeded()
    return site


def page_of(site):
    return site.root / "_build/html/en/page.html"


def test_the_page_has_named_groups_of_options(small):
    article = BeautifulSoup(small.article("page"), "html.parser")
    groups = article.find_all("fieldset")
    names = [group.legend.get_text(" ", strip=True) for group in groups]
    expected = ["1 Which one", "2 Another one", "3 The last"]
    assert names == [f"Question {name}" for name in expected]
    for group in groups:
        assert article.find(id=group["aria-describedby"]).get_text(strip=True)
        radios = group.find_all("input", type="radio")
        assert [radio["value"] for radio in radios] == list("ABCD")[: len(radios)]
        assert len({radio["name"] for radio in radios}) == 1
        for radio in radios:  # it has a name, and an explanation
            option = radio.find_parent("div", class_="quiz-option")
            assert radio.find_parent("label").get_text(strip=True)
            assert len(option.details.get_text(" ", strip=True).split()) > 4
        fold = group.find_parent("form").find_next_sibling("details")
        assert fold.summary.get_text() == "The proof"
        assert "proving" in fold.select(".cell_output")[-1].get_text()
    assert "prepared" in fold.select_one(".cell_output").get_text()  # two cells


def test_only_a_page_with_questions_loads_the_script(small):
    assert "_static/quiz.js" in page_of(small).read_text()
    assert "quiz.js" not in page_of(small).with_name("other.html").read_text()


def test_translators_get_question_options_and_explanations(small):
    other = {
        "html": "gettext",
        "_build/doctrees/en": "_build/doctrees/gettext",
        "_build/html/en": "_build/gettext",
    }
    command = [other.get(word, word) for word in small.command()]
    subprocess.run(command, cwd=small.root, check=True, timeout=120)
    catalogue = (small.root / "_build/gettext/page.pot").read_text()
    messages = re.findall(r'^msgid "(.+)"$', catalogue, re.M)
    assert {
        "Which one",
        "Another `one`",
        "What is $x$ *here*?",
        "It is **this**.",
        "Because it is.",
        "It is option two.",
        "Not, because of two.",
    } <= set(messages)


def test_a_translation_is_shown(small, tmp_path):
    site = SmallSite(tmp_path / "project", language="de")
    page = question(), PROOF, SCORE
    site.write("page", *page)
    conf = site.root / "conf.py"
    conf.write_text(
        conf.read_text() + '\nlocale_dirs = ["locales"]\ngettext_compact = False\n'
        'quiz_words = {"question": "Frage {number}", "right": "Richtig."}\n'
    )
    folder = site.root / "docs/locales/de/LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "page.po").write_text(
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
        'msgid "Which one"\nmsgstr "Welche"\n\n'
        'msgid "It is **this**."\nmsgstr "Es ist **diese**."\n\n'
        'msgid "Because it is."\nmsgstr "Weil es so ist."\n'
    )
    site.build().assert_succeeded()
    article = BeautifulSoup(site.article("page"), "html.parser")
    assert article.legend.get_text(" ", strip=True) == "Frage 1 Welche"
    option = article.select_one("[data-answer=right]")
    assert "Es ist <strong>diese</strong>" in str(option.label)
    assert "Richtig." in option.details.get_text()
    assert "Weil es so ist." in option.details.get_text()


def test_the_right_options_of_the_chapter_are_no_pattern():
    page = (ROOT / "docs/quiz.md").read_text()
    questions = re.split(r"^::::\{question\}", page, flags=re.M)[1:]
    options = [re.findall(r"^:::\{(right|wrong)\}", q, re.M) for q in questions]
    places = Counter("ABCD"[kinds.index("right")] for kinds in options)
    assert sorted(places) == list("ABCD") and min(places.values()) >= 3
    index = (ROOT / "docs/index.md").read_text()
    assert f"{{doc}}`quiz` | {len(questions)} questions" in index


# -- in the browser --------------------------------------------------------------------


def focused(page, what):
    return page.evaluate(f"document.activeElement.{what}")


def tab_to(page, kind):
    for _ in range(60):
        page.keyboard.press("Tab")
        if focused(page, "type") == kind:
            return
    raise AssertionError(f"no {kind} is reached by the Tab key")


def test_it_can_be_answered_by_keyboard_alone(small, visit):
    page, _, complaints = visit(page_of(small))
    tab_to(page, "radio")
    page.keyboard.press("ArrowDown")  # looking at an option is not yet an answer
    assert focused(page, "value") == "B"
    assert page.locator(".quiz-said").first.inner_text() == ""
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    page.keyboard.press("Enter")
    said = page.get_by_role("group", name="Question 1 Which one").get_by_role("status")
    assert said.inner_text().split("\n\n") == ["No.", "Not, because of two."]
    page.keyboard.press("ArrowUp")
    tab_to(page, "submit")
    assert page.evaluate(outline) == "solid"
    page.keyboard.press("Space")
    assert said.inner_text().split("\n\n") == ["Right.", "Because it is."]
    assert complaints == []


def answer(page, number, letter):
    form = page.locator("form.quiz").nth(number)
    form.get_by_role("radio").and_(form.locator(f"[value={letter}]")).check()
    form.get_by_role("button", name="Check").click()


def score(page):
    text = page.locator(".quiz-score").get_by_role("status").inner_text()
    return [int(number) for number in re.findall(r"\d+", text)]


def test_the_score_counts_the_first_try_and_can_start_again(small, visit):
    page, _, _ = visit(page_of(small))
    assert score(page) == [0, 0, 3]  # right, answered, questions
    answer(page, 0, "A")
    answer(page, 1, "A")
    assert score(page) == [1, 2, 3]
    answer(page, 1, "D")  # too late
    answer(page, 0, "B")
    assert score(page) == [1, 2, 3]
    answer(page, 2, "A")
    assert score(page) == [2, 3, 3]

    page.get_by_role("button", name="Start again").click()
    assert score(page) == [0, 0, 3]
    assert page.locator(".quiz-said").all_inner_texts() == [""] * 3
    assert page.locator("input:checked, [data-tried]").count() == 0
    assert focused(page, "value") == "A"
    answer(page, 1, "D")
    assert score(page) == [1, 1, 3]


def test_a_verdict_does_not_stand_beside_another_option(small, visit):
    page, _, _ = visit(page_of(small))
    answer(page, 0, "B")
    said = page.locator(".quiz-said").first
    assert "No." in said.inner_text()
    page.get_by_role("radio", name="A It is this.").first.check()
    assert said.inner_text() == "" and said.get_attribute("data-answer") is None
    assert score(page) == [0, 1, 3]  # the first try still counts


def test_nothing_chosen_is_not_an_answer(small, visit):
    page, _, _ = visit(page_of(small))
    page.get_by_role("button", name="Check").first.click()
    assert score(page) == [0, 0, 3]


def test_a_screen_reader_finds_names_and_roles(small, visit):
    page, _, _ = visit(page_of(small))
    group = page.get_by_role("group", name="Question 2 Another one")
    names = ["A It is option 1.", "B It is option 2.", "C It is option 3."]
    for name in [*names, "D It is this."]:
        assert group.get_by_role("radio", name=name, exact=True).count() == 1
    assert group.get_by_role("status").count() == 1
    assert group.get_by_text("Because it is.").count() == 1
    assert not group.get_by_text("Because it is.").is_visible()  # before the answer


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_verdicts_can_be_read(small, visit, width, scheme):
    page, _, _ = visit(page_of(small), width, scheme)
    answer(page, 0, "A")
    answer(page, 1, "B")
    assert page.evaluate(POOR_CONTRAST) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_javascript_each_option_has_a_fold(small, browser):
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(page_of(small).as_uri())
    assert page.get_by_role("radio").count() == 0  # nothing that would do nothing
    assert page.get_by_role("button", name="Check").count() == 0
    assert page.get_by_text("It is this.").first.is_visible()
    explanation = page.get_by_text("Because it is.").first
    assert not explanation.is_visible()
    page.get_by_text("Is it A?").first.click()
    assert explanation.is_visible() and page.get_by_text("Right.").first.is_visible()
    page.get_by_text("The proof").first.click()
    assert page.locator(".cell_output").first.is_visible()
    context.close()
