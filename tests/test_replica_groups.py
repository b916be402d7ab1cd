import pytest

from chapter3.replica_groups import replica_groups


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{{0,1},{2,3}}, use_global", ((0, 1), (2, 3))),
        ("{}", ((0, 1, 2, 3),)),
        ("[2,2]<=[4], x", ((0, 1), (2, 3))),
        ("[2,2]<=[2,2]T(1,0), x", ((0, 2), (1, 3))),
        ("[1,4]<=[4]", ((0, 1, 2, 3),)),
        ("mesh['a'=2,'b'=2] {'a'}, x", ((0, 2), (1, 3))),
        ("mesh['a'=2,'b'=2] {'b'}", ((0, 1), (2, 3))),
        ("mesh['a'=2,'b'=2] {'a','b'}", ((0, 1, 2, 3),)),
        ("mesh['a'=2,'b'=2] {'b','a'}", ((0, 2, 1, 3),)),
        ("mesh['a'=4] {'a':(2)2}", ((0, 1), (2, 3))),
        ("mesh['a'=4] {'a':(1)2}", ((0, 2), (1, 3))),
        ("mesh['a'=4] {'a':(2)2,'a':(1)2}", ((0, 2, 1, 3),)),
    ],
)
def test_notations(text, groups):
    assert replica_groups(text, devices=4) == groups


def test_three_axes():
    # Groups differ in b only: positions a*4 + b*2 + c.
    groups = replica_groups("mesh['a'=2,'b'=2,'c'=2] {'b'}", 8)
    assert groups == ((0, 2), (1, 3), (4, 6), (5, 7))


def test_parts_of_axes():
    # The middle one of three digits, and another axis: positions a*2 + b.
    assert replica_groups("mesh['a'=8] {'a':(2)2}", 8) == (
        ((0, 2), (1, 3), (4, 6), (5, 7))
    )
    groups = replica_groups("mesh['a'=4,'b'=2] {'a':(2)2,'b'}", 8)
    assert groups == ((0, 1, 2, 3), (4, 5, 6, 7))


@pytest.mark.parametrize(
    "text", ["<something new>", "mesh['a'=24] {'a':(4)2,'a':(1)6}", "[2,2]=>[4]"]
)
def test_another_notation_is_refused(text):
    with pytest.raises(ValueError, match="replica groups"):
        replica_groups(text, devices=8)
