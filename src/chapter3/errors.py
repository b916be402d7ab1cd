"""Deliberate errors: run what must fail, and show its message."""

import io
import re
import textwrap
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout


@contextmanager
def expect_error(kind: type[Exception], match: str) -> Generator[None]:
    """Run a block that must raise, and print the error as the reader would see it.

    A page that shows a failing form uses it, so that the build fails on the day when
    the error no longer comes, or comes with another type or message. What the block
    itself prints is not shown: JAX prints a place in the source before some errors.

    Args:
        kind: the exception's type; a subclass is accepted too.
        match: text that the message must contain.

    Raises:
        AssertionError: the block did not raise, or raised something else (which is
            then the cause).

    >>> with expect_error(ZeroDivisionError, "division"):
    ...     1 // 0
    ZeroDivisionError: integer division or modulo by zero
    """
    try:
        with redirect_stdout(io.StringIO()):
            yield
    except Exception as error:
        shown = f"{type(error).__name__}: {error}"
        if not isinstance(error, kind) or match not in str(error):
            raise AssertionError(
                f"expected {kind.__name__} containing {match!r}, but got {shown}"
            ) from error
        shown = re.sub(r"\s*\(/\S+\)", "", shown)  # places on this machine
        shown = re.sub(r"This error occurs at source:.*", "", shown, flags=re.DOTALL)
        print(textwrap.fill(shown.strip(), 80, break_long_words=False))
    else:
        raise AssertionError(
            f"expected {kind.__name__} containing {match!r}, but nothing was raised"
        )
