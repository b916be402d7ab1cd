"""Questions with options that explain themselves, and with a proof.

A question is written like this, and the code cells that follow it prove the answer:

    ::::{question} A name for the question
    What is asked, with code if need be.

    :::{right}
    The text of an option, one paragraph.

    Why it is right.
    :::
    :::{wrong}
    Another option.

    Why it is wrong.
    :::
    ::::

Which option is right is said here and nowhere else. Without JavaScript each option has
a fold with its explanation; with it, `_static/quiz.js` makes a quiz of the same text.
All that a reader reads goes through Sphinx's catalogues for translators, but for the
few words of `quiz_words`.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)

WORDS = {
    "question": "Question {number}",
    "is it": "Is it {letter}?",
    "right": "Right.",
    "wrong": "No.",
    "check": "Check",
    "proof": "The proof",
    "score": "Right at the first try: {right} of {answered} answered; "
    "{questions} questions in all.",
    "again": "Start again",
}
"""The words of the quiz itself; `quiz_words` in conf.py may give others."""

FEWEST, MOST = 3, 4  # options of one question


class Question(nodes.General, nodes.Element):
    """Holds a `Legend`, an `Asked` and the `Option`s."""


class Legend(nodes.TextElement):
    """The name of a question."""


class Asked(nodes.General, nodes.Element):
    """What is asked."""


class Option(nodes.General, nodes.Element):
    """Holds a `Choice`, and after it the explanation."""


class Choice(nodes.TextElement):
    """The text of an option."""


class Proof(nodes.General, nodes.Element):
    """Holds the code cell that proves the answer."""


class Score(nodes.General, nodes.Element):
    """Where the score is shown and the quiz can be started again."""


class OptionDirective(SphinxDirective):
    """An option: its text in the first paragraph, then why it is right or wrong."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the option."""
        first, *why = self.parse_content_to_nodes() or [nodes.paragraph()]
        if not (isinstance(first, nodes.paragraph) and why):
            first = nodes.paragraph()
            logger.warning(
                "an option of a question needs a paragraph of text, and after it an "
                "explanation why it is %s",
                self.name,
                location=self.get_location(),
            )
        choice = Choice(first.rawsource, "", *first.children)
        choice.source, choice.line = first.source, first.line
        option = Option("", choice, *why, right=self.name == "right")
        self.set_source_info(option)
        return [option]


class QuestionDirective(SphinxDirective):
    """A question with its options."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the question, numbered within its page."""
        content = self.parse_content_to_nodes()
        options = [node for node in content if isinstance(node, Option)]
        asked = [node for node in content if not isinstance(node, Option)]
        if content != asked + options or not asked:
            self._refuse("a question is asked first; then come the options, only they")
        if not FEWEST <= len(options) <= MOST:
            self._refuse(f"{len(options)} options; a question has {FEWEST} to {MOST}")
        right = sum(option["right"] for option in options)
        if right != 1:
            self._refuse(f"{right} of the options are right; it must be one")

        number = 1 + (self.env.temp_data.get("questions") or 0)
        self.env.temp_data["questions"] = number
        text, _ = self.parse_inline(self.arguments[0])
        legend = Legend(self.arguments[0], "", *text)
        question = Question("", legend, Asked("", *asked), *options, number=number)
        for node in (legend, question):
            self.set_source_info(node)
        question["ids"] = [nodes.make_id(f"question {self.arguments[0]}")]
        for letter, option in zip("ABCD", options, strict=False):
            option["letter"] = letter
            option["group"] = question["ids"][0]
        return [question]

    def _refuse(self, reason: str) -> None:
        logger.warning("question: %s", reason, location=self.get_location())


class ScoreDirective(SphinxDirective):
    """The score, for instance at the end of the page."""

    def run(self) -> list[nodes.Node]:
        """Return its place."""
        return [Score()]


def fold_proofs(app: Sphinx, doctree: nodes.document) -> None:
    """Handle `doctree-read`: fold the proof that must follow each question."""
    questions = list(doctree.findall(Question))
    if questions and not next(doctree.findall(Score), None):
        logger.warning(
            "question: the page has no {score}, where the score is shown",
            location=questions[0],
        )
    for question in questions:
        cells = _cells_after(question)
        code = "\n".join(_code(cell) for cell in cells)
        if "assert " not in code and "expect_error(" not in code:
            logger.warning(
                "question: no proof; a code cell with an assert must follow it",
                location=question,
            )
            continue
        proof = Proof()
        question.parent.insert(question.parent.index(question) + 1, proof)
        for cell in cells:
            cell.parent.remove(cell)
            proof += cell


def _cells_after(question: Question) -> list[nodes.container]:
    cells = []
    for node in question.parent.children[question.parent.index(question) + 1 :]:
        if not isinstance(node, nodes.container) or "nb_element" not in node:
            break
        cells.append(node)
    return cells


def _code(cell: nodes.Element) -> str:
    """Return the code of a cell without its outputs."""
    parts = cell.findall(nodes.container)
    inputs = [n for n in parts if n.get("nb_element") == "cell_code_source"]
    return "\n".join(node.astext() for node in inputs)


def add_script(app: Sphinx, pagename, templatename, context, doctree) -> None:
    """Handle `html-page-context`: the page with the questions loads the script."""
    if doctree is not None and next(doctree.findall(Question), None):
        context.setdefault("page_scripts", []).append("quiz.js")


# -- HTML ------------------------------------------------------------------------------


def _word(self: HTML5Translator, name: str, **values: object) -> str:
    words = WORDS | self.builder.config.quiz_words
    return self.encode(words[name].format(**values) if values else words[name])


def visit_question(self: HTML5Translator, node: Question) -> None:
    """Open the question."""
    (name,) = node["ids"]
    self.body.append(
        f'<form class="quiz" id="{name}" autocomplete="off">'
        f'<fieldset aria-describedby="{name}-asked">'
    )


def depart_question(self: HTML5Translator, node: Question) -> None:
    """Close the question with what is hidden until the script runs."""
    self.body.append(
        f'<button type="submit" hidden>{_word(self, "check")}</button>'
        '<div class="quiz-said" role="status"></div></fieldset></form>'
    )


def visit_legend(self: HTML5Translator, node: Legend) -> None:
    """Open the name of the question."""
    number = _word(self, "question", number=node.parent["number"])
    self.body.append(f'<legend><span class="quiz-number">{number}</span> ')


def visit_asked(self: HTML5Translator, node: Asked) -> None:
    """Open what is asked."""
    self.body.append(f'<div id="{node.parent["ids"][0]}-asked">')


def visit_option(self: HTML5Translator, node: Option) -> None:
    """Open an option."""
    kind = "right" if node["right"] else "wrong"
    self.body.append(f'<div class="quiz-option" data-answer="{kind}">')


def depart_option(self: HTML5Translator, node: Option) -> None:
    """Close an option and its fold."""
    self.body.append("</details></div>")


def visit_choice(self: HTML5Translator, node: Choice) -> None:
    """Open the text of an option; the button to choose it is hidden until it works."""
    letter, group = node.parent["letter"], node.parent["group"]
    self.body.append(
        f'<label><input type="radio" name="{group}" value="{letter}" required hidden> '
        f'<span class="quiz-letter">{letter}</span> <span>'
    )


def depart_choice(self: HTML5Translator, node: Choice) -> None:
    """Close the text of an option and open the fold with its explanation."""
    verdict = _word(self, "right" if node.parent["right"] else "wrong")
    asked = _word(self, "is it", letter=node.parent["letter"])
    self.body.append(
        f'</span></label><details class="quiz-why"><summary>{asked}</summary>'
        f'<p class="quiz-verdict">{verdict}</p>'
    )


def visit_proof(self: HTML5Translator, node: Proof) -> None:
    """Open the fold of the proof."""
    summary = _word(self, "proof")
    self.body.append(f'<details class="quiz-proof"><summary>{summary}</summary>')


def visit_score(self: HTML5Translator, node: Score) -> None:
    """Write the place of the score, hidden until the script runs."""
    self.body.append(
        f'<div class="quiz-score" data-text="{_word(self, "score")}" hidden>'
        '<p role="status"></p>'
        f'<button type="button">{_word(self, "again")}</button></div>'
    )


def _closing(tag: str):
    return lambda self, node: self.body.append(tag)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register directives, nodes, the setting `quiz_words` and the handlers."""
    app.add_config_value("quiz_words", {}, "html", types=[dict])
    app.add_directive("question", QuestionDirective)
    app.add_directive("right", OptionDirective)
    app.add_directive("wrong", OptionDirective)
    app.add_directive("score", ScoreDirective)
    app.add_node(Question, html=(visit_question, depart_question))
    app.add_node(Legend, html=(visit_legend, _closing("</legend>")))
    app.add_node(Asked, html=(visit_asked, _closing("</div>")))
    app.add_node(Option, html=(visit_option, depart_option))
    app.add_node(Choice, html=(visit_choice, depart_choice))
    app.add_node(Proof, html=(visit_proof, _closing("</details>")))
    app.add_node(Score, html=(visit_score, _closing("")))
    app.connect("doctree-read", fold_proofs)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
