"""Read what a process wrote before it ended: its error, and where it stood.

Around the one line that matters, the runtime writes much else: greetings of Gloo, log
lines of absl, the stack of C++ functions in which it aborts.
"""

import linecache
import re
import signal
from pathlib import Path

_CHATTER = re.compile(
    r".*\[Gloo\] Rank|.*\d peer ranks|WARNING: All log messages before absl|"
    r"[IW]\d{4} \d\d:\d\d:\d\d|\*\*\* Check failure stack|\s+@\s+(0x|\(nil\))|"
    r"=== Source Location Trace|external/\S+:\d+|\s*$"
)
_LOG_PREFIX = re.compile(r"^[EF]\d{4} [\d:.]+\s+\d+ \S+\] ")
_RECORD = re.compile(r"^(?=[IWEF]\d{4} [\d:.]+ |Traceback \(most)", re.MULTILINE)
_TYPE_URL = re.compile(r" ?\[type\.googleapis\.com/[^]]*\]")
_STACKS = re.compile(r"^Fatal Python error: ", re.MULTILINE)
_THREAD = re.compile(
    r"^(?:Current thread|Thread) 0x\w+.* \(most recent call first\):\n"
    r"((?:  File .*\n)*)",
    re.MULTILINE,
)
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (\S+)')
_NOT_OURS = re.compile(r"site-packages|/lib/python3|^<")


def how_it_ended(returncode: int) -> str:
    """Say an exit status in words.

    >>> how_it_ended(0), how_it_ended(1), how_it_ended(-9)
    ('ended normally', 'exit status 1', 'killed by SIGKILL')
    """
    if returncode < 0:
        known = -returncode in signal.Signals
        name = signal.Signals(-returncode).name if known else f"signal {-returncode}"
        return f"killed by {name}"
    return f"exit status {returncode}" if returncode else "ended normally"


def last_words(written: str, folder: Path, lines: int = 25) -> str:
    """Take the end of what a process wrote, without chatter and stacks.

    Args:
        written: its standard error.
        folder: where its script is; paths are shown from there on.
        lines: at most so many.
    """
    records = _RECORD.split(_STACKS.split(written)[0])
    if any(record.startswith("F") for record in records):  # all others lead up to it
        records = [record for record in records if record.startswith(("F", "Trace"))]
    kept = [
        _TYPE_URL.sub("", _LOG_PREFIX.sub("", line))[:500]
        for line in "".join(records).splitlines()
        if not _CHATTER.match(line)
    ]
    return _shorten("\n".join(kept[-lines:]), folder)


def where_it_stood(written: str, folder: Path) -> str:
    """Find the calls in which the main thread was when SIGABRT ended the process.

    Args:
        written: its standard error, with what Python's fault handler wrote there.
        folder: where its script is; paths are shown from there on.

    Returns:
        For each call of the program's own code, the innermost last, or for the
        innermost call if none is: a line with the place, and one with the code there.
        Empty if the fault handler wrote nothing.
    """
    dumps = _STACKS.split(written)[1:]
    threads = _THREAD.findall(dumps[-1]) if dumps else []
    frames = _FRAME.findall(threads[-1]) if threads else []  # the main one comes last
    ours = [frame for frame in frames if not _NOT_OURS.search(frame[0])][:5]
    calls = "\n".join(
        f"{path}, line {line}, in {function}\n"
        f"    {linecache.getline(path, int(line)).strip()}"
        for path, line, function in reversed(ours or frames[:1])
    )
    return _shorten(calls, folder)


def _shorten(text: str, folder: Path) -> str:
    """Show paths from the script's folder, or a library's, or the package's on."""
    package = Path(__file__).parent.parent
    text = text.replace(f"{folder}/", "").replace(f"{package}/", "")
    return re.sub(r"/\S*/site-packages/", "", text)
