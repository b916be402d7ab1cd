"""What the programs of examples/ have in common on the command line."""

import argparse
import math
import sys


class _Formatter(argparse.ArgumentDefaultsHelpFormatter):
    """Shows the default of an option, if it has one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        none = action.default is None
        return action.help if none else super()._get_help_string(action)


def parser(description: str | None) -> argparse.ArgumentParser:
    """Make a parser with the option `--simulate`.

    Args:
        description: what the program does; its docstring.
    """
    made = argparse.ArgumentParser(description=description, formatter_class=_Formatter)
    made.add_argument(
        "--simulate",
        type=positive,
        metavar="N",
        help="use N simulated CPU devices; without it, accelerators if there are any",
    )
    return made


def positive(text: str) -> int:
    """Read a whole number of at least 1.

    Raises:
        argparse.ArgumentTypeError: it is something else.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def natural(text: str) -> int:
    """Read a whole number of at least 0, as `positive` does."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def positive_number(text: str) -> float:
    """Read a finite number above 0.

    Raises:
        argparse.ArgumentTypeError: it is something else.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def refuse(reason: str) -> int:
    """Say on standard error why the arguments do not fit; return exit status 2."""
    print(reason, file=sys.stderr)
    return 2
