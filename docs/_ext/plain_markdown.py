"""A page's text as plain Markdown, which every notebook program shows.

It is written from the finished document tree and not from the page's source: roles,
directives, references, numbers and translations are resolved there already. What is not
known here is reported, so that no notebook loses text silently.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

from docutils import nodes
from sphinx import addnodes
from sphinx.locale import admonitionlabels
from sphinx.util import logging
from sphinx_design.dropdown import dropdown_main

import quiz

logger = logging.getLogger(__name__)

WORDS = quiz.WORDS | {"answer": "The answer", "in words": "The figure in words"}
"""The few words that do not come from the page."""

_SILENT = (
    nodes.comment,
    nodes.colspec,
    nodes.substitution_definition,
    nodes.target,
    addnodes.index,
    addnodes.highlightlang,
    addnodes.toctree,
    quiz.Score,
)
_TIGHT = [
    [nodes.paragraph, kind] for kind in (nodes.bullet_list, nodes.enumerated_list)
]
_TRANSPARENT = (nodes.container, nodes.compound, nodes.section, quiz.Proof)


@dataclass(frozen=True)
class Text:
    """Some Markdown.

    Attributes:
        markdown: its text.
        line: where it stands in the page's source, if that is known.
        heading: whether it is a heading.
    """

    markdown: str
    line: int | None = None
    heading: bool = False


@dataclass(frozen=True)
class Cell:
    """A code cell, by its index in the page."""

    index: int


@dataclass
class Writer:
    """Writes one page.

    Attributes:
        base: address at which the page is published; empty if it is not known. Links
            within the site are made only with it.
        numbers: numbers of the page's figures, listings and so on by their ids:
            "Fig. 3".
        words: those of `WORDS` in the language of the page.
    """

    base: str = ""
    numbers: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=lambda: WORDS)

    def parts(self, node: nodes.Element, level: int = 1) -> Iterator[Text | Cell]:
        """Yield text and code cells in the order of the page."""
        for child in node.children:
            if not isinstance(child, nodes.Element) or _is_contents(child):
                continue
            if child.get("nb_element") == "cell_code":
                yield Cell(child["cell_index"])
                for figure in child.findall(nodes.figure):
                    yield Text(self._caption(figure))
            elif isinstance(child, nodes.title):
                title = re.sub(r"^(\d+)\\", r"\1", self.inline(child))  # "3. Keys"
                yield Text(f"{'#' * (level - 1)} {title}", child.line, heading=True)
            elif isinstance(child, _TRANSPARENT) and not _is_listing(child):
                yield from self.parts(child, level + isinstance(child, nodes.section))
            else:
                for block in self.block(child):
                    yield Text(block, child.line)

    # -- blocks ------------------------------------------------------------------------

    def blocks(self, node: nodes.Node) -> list[str]:
        """Return the blocks of Markdown that a node's children make."""
        return self._all(node.children)

    def block(self, node: nodes.Node) -> list[str]:
        """Return the blocks of Markdown that a node makes."""
        if isinstance(node, _SILENT) or _is_contents(node):
            return []
        for kind, write in _BLOCKS.items():
            if isinstance(node, kind):
                return write(self, node)
        if isinstance(node, nodes.TextElement | nodes.Text):
            return [self.inline(node)] if node.astext().strip() else []
        logger.warning(
            "plain_markdown.py does not know what becomes of %s in a notebook",
            type(node).__name__,
            location=node,
        )
        return self.blocks(node) if isinstance(node, nodes.Element) else []

    def _paragraph(self, node: nodes.Element) -> list[str]:
        return [self.inline(node)]

    def _rubric(self, node: nodes.Element) -> list[str]:
        return [f"**{self.inline(node)}**"]

    def _code(self, node: nodes.Element) -> list[str]:
        language = node.get("language", "")
        language = {"ipython3": "python", "default": "python"}.get(language, language)
        if isinstance(node, nodes.doctest_block):
            language = "pycon"
        return [_fenced(node.astext(), language)]

    def _listing(self, node: nodes.Element) -> list[str]:
        caption, *code = node.children
        title = f"{self._number(node)} {self.inline(caption)}".strip()
        return [f"*{title}:*", *self._all(code)]

    def _container(self, node: nodes.Element) -> list[str]:
        return self._listing(node) if _is_listing(node) else self.blocks(node)

    def _formula(self, node: nodes.Element) -> list[str]:
        number = f"\n\\tag{{{node['number']}}}" if node.get("number") else ""
        return [f"$$\n{node.astext().strip()}{number}\n$$"]

    def _list(self, node: nodes.Element) -> list[str]:
        ordered = isinstance(node, nodes.enumerated_list)
        first = node.get("start", 1)
        items = []
        for number, item in enumerate(node.children, first):
            mark = f"{number}. " if ordered else "- "
            text = "\n\n".join(self.blocks(item))
            if [type(c) for c in item.children] in _TIGHT:
                text = text.replace("\n\n", "\n", 1)
            items.append(mark + text.replace("\n", "\n" + " " * len(mark)))
        tight = all("\n\n" not in item for item in items)
        return [re.sub(r"\n +(?=\n)", "\n", ("\n" if tight else "\n\n").join(items))]

    def _definitions(self, node: nodes.Element) -> list[str]:
        blocks = []
        for item in node.children:
            terms = [c for c in item.children if isinstance(c, nodes.term)]
            rest = [c for c in item.children if not isinstance(c, nodes.term)]
            blocks += [f"**{self.inline(term)}**" for term in terms]
            blocks += [_quoted(self.blocks(part)) for part in rest]
        return blocks

    def _quote(self, node: nodes.Element) -> list[str]:
        return [_quoted(self.blocks(node))]

    def _admonition(self, node: nodes.Element) -> list[str]:
        title, rest = node.children[0], node.children[1:]
        if isinstance(title, nodes.title):
            name = f"{self._number(node)} {self.inline(title)}".strip()
        else:
            name, rest = admonitionlabels[node.tagname], node.children
        return [_quoted([f"**{name}**"] * bool(name) + self._all(rest))]

    def _dropdown(self, node: nodes.Element) -> list[str]:
        title, *rest = node.children
        summary = html.escape(" ".join(t.astext() for t in title.findall(_is_text)))
        return [*self._folded(summary, self._all(rest))]

    def _folded(self, summary: str, blocks: list[str]) -> list[str]:
        opening = f"<details>\n<summary>{summary}</summary>"
        return [opening, *blocks, "</details>"]

    def _all(self, children: Iterable[nodes.Node]) -> list[str]:
        return [block for child in children for block in self.block(child)]

    def _number(self, node: nodes.Element) -> str:
        return next((self.numbers[i] for i in node["ids"] if i in self.numbers), "")

    def _table(self, node: nodes.Element) -> list[str]:
        title = [f"**{self.inline(t)}**" for t in node.children if _is_title(t)]
        rows = [
            [self._entry(entry) for entry in row.children]
            for row in node.findall(nodes.row)
        ]
        head = len(rows[0])
        lines = [f"| {' | '.join(row)} |" for row in rows]
        lines.insert(1, "|" + " --- |" * head)
        return [*title, "\n".join(lines)]

    def _entry(self, entry: nodes.Node) -> str:
        if not isinstance(entry, nodes.Element):
            return ""
        text = "<br>".join(self.blocks(entry)).replace("\n", " ")
        in_math = re.sub(r"\$[^$]*\$", lambda m: m[0].replace("|", r"\vert "), text)
        return in_math.replace("|", r"\|")

    def _raw(self, node: nodes.Element) -> list[str]:
        return [node.astext()] if "html" in node.get("format", "") else []

    def _rule(self, node: nodes.Element) -> list[str]:
        return ["---"]

    def _question(self, node: nodes.Element) -> list[str]:
        legend, asked = node.children[:2]
        number = self.words["question"].format(number=node["number"])
        answers = []
        choices = []
        for option in node.findall(quiz.Option):
            choice, *why = option.children
            choices.append(f"- **{option['letter']}** {self.inline(choice)}")
            verdict = self.words["right" if option["right"] else "wrong"]
            answers.append(f"**{option['letter']}** – **{verdict}**")
            answers += self._all(why)
        return [
            f"**{number}: {self.inline(legend)}**",
            *self.blocks(asked),
            "\n".join(choices),
            *self._folded(self.words["answer"], answers),
        ]

    def _caption(self, figure: nodes.Element) -> str:
        (caption,) = figure.findall(nodes.caption)
        (image,) = figure.findall(nodes.image)
        words = self._folded(self.words["in words"], [_escaped(image["alt"])])
        number = f"**{self._number(figure)}.** "
        return "\n\n".join([number + self.inline(caption), *words])

    # -- within a line -----------------------------------------------------------------

    def inline(self, node: nodes.Node) -> str:
        """Return a node's content as Markdown within a paragraph."""
        if isinstance(node, nodes.Text):
            return _escaped(node.astext())
        return "".join(self._inline(child) for child in node.children)

    def _inline(self, node: nodes.Node) -> str:
        match node:
            case nodes.Text():
                return _escaped(node.astext())
            case nodes.literal():
                return _code_span(node.astext())
            case nodes.math():
                return f"${' '.join(node.astext().split())}$"
            case nodes.emphasis() | nodes.title_reference():
                return f"*{self.inline(node)}*"
            case nodes.strong():
                return f"**{self.inline(node)}**"
            case nodes.reference():
                return self._link(node)
            case nodes.subscript() | nodes.superscript():
                tag = node.tagname[:3]
                return f"<{tag}>{self.inline(node)}</{tag}>"
            case nodes.raw():
                return "".join(self._raw(node))
            case nodes.target() | addnodes.index():
                return self.inline(node)
            case nodes.inline() if "passage" in node["classes"]:
                return f"**{self.inline(node)}**"
            case nodes.inline() | nodes.abbreviation() | nodes.TextElement():
                return self.inline(node)
        logger.warning(
            "plain_markdown.py does not know what becomes of %s in a notebook",
            type(node).__name__,
            location=node,
        )
        return node.astext()

    def _link(self, node: nodes.Element) -> str:
        text = self.inline(node)
        target = node.get("refuri") or f"#{node.get('refid', '')}"
        if re.match(r"[a-z]+:", target):
            return f"[{text}]({target})"
        if self.base:
            return f"[{text}]({urljoin(self.base, target)})"
        inner = node.children[0] if node.children else node
        names_a_page = isinstance(inner, nodes.inline) and "doc" in inner["classes"]
        return f"*{text}*" if names_a_page else text


_BLOCKS: dict[type[Any], Callable[[Writer, Any], list[str]]] = {
    nodes.paragraph: Writer._paragraph,
    nodes.rubric: Writer._rubric,
    nodes.literal_block: Writer._code,
    nodes.doctest_block: Writer._code,
    nodes.math_block: Writer._formula,
    nodes.bullet_list: Writer._list,
    nodes.enumerated_list: Writer._list,
    nodes.definition_list: Writer._definitions,
    nodes.block_quote: Writer._quote,
    nodes.definition: Writer._container,
    nodes.Admonition: Writer._admonition,
    dropdown_main: Writer._dropdown,
    nodes.topic: Writer._admonition,
    nodes.sidebar: Writer._admonition,
    nodes.table: Writer._table,
    nodes.raw: Writer._raw,
    nodes.transition: Writer._rule,
    nodes.container: Writer._container,
    nodes.compound: Writer._container,
    quiz.Question: Writer._question,
}


def _is_contents(node: nodes.Node) -> bool:
    return isinstance(node, nodes.compound) and "toctree-wrapper" in node["classes"]


def _is_listing(node: nodes.Element) -> bool:
    return "literal-block-wrapper" in node.get("classes", ())


def _is_text(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Text) and not isinstance(node.parent, nodes.raw)


def _is_title(node: nodes.Node) -> bool:
    return isinstance(node, nodes.title)


def _fenced(code: str, language: str = "") -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
    return f"{fence}{language}\n{code.rstrip()}\n{fence}"


def _code_span(code: str) -> str:
    fence = "`" * (1 + max(map(len, re.findall("`+", code)), default=0))
    pad = " " if "`" in code else ""
    return f"{fence}{pad}{code.replace('\n', ' ')}{pad}{fence}"


def _quoted(blocks: list[str]) -> str:
    lines = "\n\n".join(blocks).splitlines()
    return "\n".join(f"> {line}".rstrip() for line in lines)


_SPECIAL = re.compile(
    r"[*`$]|\\(?=[!-/:-@\[-`{-~])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"
    r"|^(?:[-+#>]|\d+[.)])(?= )",
    re.MULTILINE,
)


def _escaped(text: str) -> str:
    """Keep text text: what Markdown would take for markup gets a backslash."""
    marked = _SPECIAL.sub(lambda m: f"{m[0][:-1]}\\{m[0][-1]}", text)
    return re.sub(r"&(?=#?\w+;)", "&amp;", marked).replace("<", "&lt;")
