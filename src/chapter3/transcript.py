"""Run lines of Python as an interactive session would, and keep what each line shows.

An error or a warning is something to look at here, not the end: it is shown by its type
and text, and the next line runs.
"""

import ast
import doctest
import io
import re
import warnings
from collections.abc import Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

PRELUDE = (
    "import os",
    "from functools import partial",
    "import jax",
    "import jax.numpy as jnp",
    "import numpy as np",
    "from jax import lax",
    "from jax.sharding import AxisType",
    "from jax.sharding import Mesh, NamedSharding",
    "from jax.sharding import PartitionSpec as P",
)
"""What every session may use."""


@dataclass(frozen=True)
class Line:
    """One line of a session, as it was written down.

    Attributes:
        source: Python source, an expression or statements.
        noted: what it shows according to whoever wrote it; `…` stands for any text.
    """

    source: str
    noted: str = ""


def read(session: str) -> tuple[Line, ...]:
    """Read a session that is written down as in a docstring.

    >>> read(">>> 1 + 1" + chr(10) + "2")
    (Line(source='1 + 1', noted='2'),)
    """
    examples = doctest.DocTestParser().get_examples(session)
    return tuple(Line(e.source.rstrip(), e.want.rstrip()) for e in examples)


def play(sources: Iterable[str]) -> list[str]:
    """Run a session, after `PRELUDE`, in names of its own.

    Args:
        sources: Python source of each line.

    Returns:
        For each line the value of its last expression, or the type and text of the
        error; before it those of the first warning. Nothing for what is silent. What a
        line prints is left out, and so are places on this machine.
    """
    names: dict[str, Any] = {}
    for source in PRELUDE:
        _play(source, names)
    return [_play(source, names) for source in sources]


def fits(noted: str, shown: str) -> bool:
    """Say whether a line shows what was noted.

    >>> fits("TypeError: …not callable", "TypeError: 'Device' object is not callable")
    True
    """
    pattern = ".*".join(re.escape(part) for part in noted.split("…"))
    return re.fullmatch(pattern, shown, re.DOTALL) is not None


def _play(source: str, names: dict[str, Any]) -> str:
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    shown = []
    with warnings.catch_warnings(record=True) as caught, redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        try:
            exec(compile(tree, "<session>", "exec"), names)
            if isinstance(last, ast.Expr):
                code = compile(ast.Expression(last.value), "<session>", "eval")
                value = eval(code, names)
                shown = [] if value is None else [repr(value)]
        except Exception as error:
            shown = [_tidy(error)]
    return "\n".join([*(_tidy(w.message) for w in caught[:1]), *shown])


def _tidy(problem: Warning | Exception | str) -> str:
    text = re.sub(r"\s*This error occurs at source:.*", "", str(problem), flags=re.S)
    text = re.sub(r"\s*\(/[^)]*\)", "", text)
    return f"{type(problem).__name__}: {text}".removesuffix(": ")
