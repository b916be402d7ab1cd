"""Checked notes as text: whole sessions, a table of all, and JSON."""

import textwrap
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from chapter3.tables import Table, table
from chapter3.version_notes.note import PLACES, Checked, Seen

WIDTH = 84


def sessions(checked: Checked, only: str | None = None) -> str:
    """Write the sessions of a note as a terminal shows them, with what came out here.

    Where that is something else than is noted, the next line says what is noted.

    Args:
        checked: the note.
        only: a key of `PLACES`, to leave out the sessions of other places.
    """
    parts = []
    for place, lines in groupby(checked.seen, key=lambda seen: seen.place):
        if only in (None, place):
            parts.append(f"# {PLACES[place]}")
            parts.extend(_line(seen) for seen in lines)
    return "\n".join(parts)


def overview(found: Iterable[Checked]) -> Table:
    """Make a table with one row for each note."""
    return table(
        ["note", "section", "older material …", "here"],
        [
            (c.note.number, c.note.section, c.note.older, _verdict(c))
            for c in sorted(found, key=lambda c: c.note.number)
        ],
    )


def as_json(checked: Checked) -> dict[str, Any]:
    """Return a checked note as what JSON can hold."""
    note = checked.note
    return {
        "note": note.number,
        "section": note.section,
        "taught": note.taught,
        "older": note.older,
        "as noted": not checked.differences,
        "lines": [
            {
                "where": PLACES[seen.place],
                "source": seen.line.source,
                "noted": seen.line.noted,
                "shown": seen.shown,
                "as noted": seen.as_noted,
            }
            for seen in checked.seen
        ],
    }


def _verdict(checked: Checked) -> str:
    different = len(checked.differences)
    if not different:
        return "as noted"
    return f"different here: {different} of {len(checked.seen)} lines"


def _line(seen: Seen) -> str:
    source = "\n... ".join(seen.line.source.splitlines())
    parts = [f">>> {source}", *_wrapped(seen.shown)]
    if not seen.as_noted:
        noted = seen.line.noted or "nothing"
        parts += _wrapped(f"# different here: noted is {noted}")
    return "\n".join(parts)


def _wrapped(text: str) -> list[str]:
    options: dict[str, Any] = {"width": WIDTH, "break_long_words": False}
    return [
        textwrap.fill(line, **options, break_on_hyphens=False)
        for line in text.splitlines()
    ]
