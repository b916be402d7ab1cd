"""What the programs of examples/ have in common on the command line."""

import argparse
import sys


def parser(description: str | None) -> argparse.ArgumentParser:
    """Make a parser with the option `--simulate`.

    Args:
        description: what the program does; its docstring.
    """
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    made.add_argument(
        "--simulate", type=positive, metavar="N", help="use N simulated CPU devices"
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


def refuse(reason: str) -> int:
    """Say on standard error why the arguments do not fit; return exit status 2."""
    print(reason, file=sys.stderr)
    return 2
