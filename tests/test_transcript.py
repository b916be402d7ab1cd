import pytest

from chapter3.transcript import Line, fits, play, read


def test_a_session_is_read_as_from_a_docstring():
    session = """
        >>> x = 1
        >>> def double(v):
        ...     return 2 * v
        >>> double(x)
        2
        """
    assert read(session) == (
        Line("x = 1"),
        Line("def double(v):\n    return 2 * v"),
        Line("double(x)", "2"),
    )


def test_values_errors_and_warnings_are_shown():
    sources = [
        "x = 1 + 1",
        "x",
        "None",
        "'text'",
        "1 // 0",
        "import warnings; warnings.warn('old'); x",
        "print('not this')",
        "x",
    ]
    assert play(sources) == [
        *("", "2", "", "'text'"),
        "ZeroDivisionError: integer division or modulo by zero",
        "UserWarning: old\n2",
        *("", "2"),
    ]


def test_every_session_has_its_own_names():
    assert play(["x = 1"]) == [""]
    assert play(["x"]) == ["NameError: name 'x' is not defined"]


def test_places_on_this_machine_are_left_out():
    error = "raise ImportError('cannot import x (/home/me/x.py)')"
    assert play([error]) == ["ImportError: cannot import x"]
    source = "raise ValueError('no. This error occurs at source:  /home/me/x.py:1')"
    assert play([source]) == ["ValueError: no."]


def test_what_is_no_python_is_refused():
    with pytest.raises(SyntaxError):
        play(["1 +"])


@pytest.mark.parametrize(
    ("noted", "shown", "expected"),
    [
        ("2", "2", True),
        ("2", "12", False),
        ("", "", True),
        ("", "2", False),
        ("…Error: …size 5…", "ValueError: the\nsize 5.", True),
        ("TypeError: …", "ValueError: x", False),
        ("[1]", "1", False),
    ],
)
def test_fits(noted, shown, expected):
    assert fits(noted, shown) == expected
