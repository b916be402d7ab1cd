"""Tables of computed values, shown as tables on a page and in a notebook."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """What `table` returns: text in columns, and a table where it is displayed."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def _repr_markdown_(self) -> str:
        lines = [self.header, ("---",) * len(self.header), *self.rows]
        escaped = ([_escape(cell) for cell in line] for line in lines)
        return "\n".join(f"| {' | '.join(line)} |" for line in escaped)

    def __repr__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


def _escape(cell: str) -> str:
    """Keep a cell in one line, and its dollars dollars (but in code they are)."""
    text = cell.replace("|", r"\|").replace("\n", "<br>")
    return text if "`" in text else text.replace("$", r"\$")


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Make a table from computed rows.

    Args:
        header: names of the columns; Markdown is allowed, as in the cells.
        rows: one sequence of values for each row, shown by `str`.

    Raises:
        ValueError: a row has more or fewer values than there are columns.

    >>> table(["N", "bytes"], [(1, 16), (8, 2)])
    N  bytes
    1  16
    8  2
    """
    cells = tuple(tuple(str(value) for value in row) for row in rows)
    for row in cells:
        if len(row) != len(header):
            raise ValueError(f"{row=} does not fit the columns {tuple(header)}")
    return Table(tuple(header), cells)
