"""What a version note is, and how it is checked against the JAX that is installed."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from chapter3.fresh import Finished, run_python, run_python_each
from chapter3.launcher import LaunchError, launch
from chapter3.transcript import Line, fits, play, read

PLACES = {
    "here": "in this process, on eight devices",
    "fresh": "in a fresh process",
    "both": "in each of two processes with four devices",
}
"""Where a session runs, by the field of `Note` that holds it."""


@dataclass(frozen=True)
class Note:
    """One thing that older material has and that is different now.

    The sessions are written as in a docstring, with what each line shows; `…` stands
    for any text. A note is right as long as every line shows that.

    Attributes:
        number: from 1.
        section: of the chapter, for instance "3.2".
        taught: where the chapter teaches it, a page and perhaps `#` and a heading.
        older: what older material says or does, in a few words of Markdown.
        here: session for this process.
        fresh: session for a process that has not used JAX.
        both: session for each of two processes of one program.
    """

    number: int
    section: str
    taught: str
    older: str
    here: str = ""
    fresh: str = ""
    both: str = ""

    def sessions(self) -> dict[str, tuple[Line, ...]]:
        """The sessions that there are, by their key in `PLACES`."""
        written = {place: read(getattr(self, place)) for place in PLACES}
        return {place: lines for place, lines in written.items() if lines}


@dataclass(frozen=True)
class Seen:
    """What a line of a note showed.

    Attributes:
        place: a key of `PLACES`.
        line: the line with what is noted of it.
        shown: what it showed.
    """

    place: str
    line: Line
    shown: str

    @property
    def as_noted(self) -> bool:
        """Whether it showed what is noted."""
        return fits(self.line.noted, self.shown)


@dataclass(frozen=True)
class Checked:
    """A note with what was seen of it."""

    note: Note
    seen: tuple[Seen, ...]

    @property
    def differences(self) -> list[Seen]:
        """The lines that showed something else than is noted."""
        return [seen for seen in self.seen if not seen.as_noted]

    @property
    def headline(self) -> Seen:
        """The first line of which something is noted, which says most."""
        return next(seen for seen in self.seen if seen.line.noted)


def check(notes: Iterable[Note], *, apart: bool = False) -> list[Checked]:
    """Run the sessions of notes, and compare what they show with what is noted.

    No error that JAX raises in a session ends this function: it is shown instead.

    Args:
        notes: any of the notes.
        apart: run the sessions for this process in a process of their own, so that
            even a JAX that aborts ends one session only.
    """
    notes = list(notes)
    here = _here_apart if apart else _here
    players = {"here": here, "fresh": _fresh, "both": _both}
    shown: dict[tuple[int, str], list[str]] = {}
    for place, player in players.items():
        sessions = {
            note.number: [line.source for line in note.sessions()[place]]
            for note in notes
            if place in note.sessions()
        }
        if sessions:
            found = player(sessions.values())
            keys = ((number, place) for number in sessions)
            shown |= zip(keys, found, strict=True)
    return [
        Checked(
            note,
            tuple(
                Seen(place, line, text)
                for place, lines in note.sessions().items()
                for line, text in zip(lines, shown[note.number, place], strict=True)
            ),
        )
        for note in notes
    ]


Sessions = Collection[Sequence[str]]


def _here(sessions: Sessions) -> list[list[str]]:
    return [play(sources) for sources in sessions]


def _here_apart(sessions: Sessions) -> list[list[str]]:
    """Play them in one process; if that dies, each in one of its own."""
    devices = "from chapter3 import simulate_devices; simulate_devices(8)"
    program = (
        f"import json; from chapter3.transcript import play; {devices}; "
        f"print(json.dumps([play(s) for s in {[list(s) for s in sessions]!r}]))"
    )
    run = run_python(program, JAX_PLATFORMS="cpu")
    if run.returncode == 0:
        return json.loads(run.stdout.splitlines()[-1])
    return _fresh(sessions, first=devices)


def _fresh(sessions: Sessions, first: str = "pass") -> list[list[str]]:
    programs = {
        str(i): (
            f"import json; from chapter3.transcript import play; {first}; "
            f"print(json.dumps(play({list(sources)!r})))",
            {"JAX_PLATFORMS": "cpu"},
        )
        for i, sources in enumerate(sessions)
    }
    runs = run_python_each(programs).values()
    return [_read(run, len(s)) for run, s in zip(runs, sessions, strict=True)]


def _read(run: Finished, lines: int) -> list[str]:
    if run.returncode == 0:
        return json.loads(run.stdout.splitlines()[-1])
    last = run.stderr.splitlines()[-1:] or ["it wrote nothing"]
    return [f"the process ended with status {run.returncode}: {last[0]}"] * lines


def _both(sessions: Sessions) -> list[list[str]]:
    script = Path(__file__).with_name("_two_processes.py")
    try:
        reports = launch(script, json.dumps(list(sessions)))
    except LaunchError as error:
        return [[f"{type(error).__name__}: {error}"] * len(s) for s in sessions]
    first, second = (report.value for report in reports)
    return [
        [_join(*texts) for texts in zip(*pair, strict=True)]
        for pair in zip(first, second, strict=True)
    ]


def _join(first: str, second: str) -> str:
    if first == second:
        return first
    return f"process 0: {first}; process 1: {second}"
