import pytest

from chapter3.tables import table


def test_markdown_and_text():
    made = table(["a", "b|c"], [(1, "x|y"), (22, "z")])
    assert made._repr_markdown_().splitlines() == [
        r"| a | b\|c |",
        "| --- | --- |",
        r"| 1 | x\|y |",
        "| 22 | z |",
    ]
    assert repr(made).splitlines() == ["a   b|c", "1   x|y", "22  z"]


def test_a_cell_stays_a_cell():
    made = table(["a"], [("two\nlines",), ("$5 and $6",), ("`$HOME`",)])
    assert made._repr_markdown_().splitlines()[2:] == [
        "| two<br>lines |",
        r"| \$5 and \$6 |",
        "| `$HOME` |",
    ]


def test_ragged_rows_are_refused():
    with pytest.raises(ValueError, match="does not fit the columns"):
        table(["a", "b"], [(1,)])
