import pytest

from chapter3 import expect_error


def test_the_expected_error_is_shown(capsys):
    with expect_error(ValueError, "bad"):
        raise ValueError("a bad value")
    assert capsys.readouterr().out == "ValueError: a bad value\n"


def test_a_subclass_is_accepted():
    class SpecialError(ValueError):
        pass

    with expect_error(ValueError, ""):
        raise SpecialError


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (None, "expected ValueError containing 'bad', but nothing was raised"),
        (TypeError("bad"), "but got TypeError: bad"),
        (ValueError("good"), "but got ValueError: good"),
    ],
)
def test_anything_else_fails(raised, message):
    def block():
        with expect_error(ValueError, "bad"):
            if raised:
                raise raised

    with pytest.raises(AssertionError, match=message):
        block()


def test_an_interrupt_is_not_swallowed():
    def block():
        with expect_error(ValueError, ""):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        block()
