"""Read the replica groups of a collective: which devices communicate with which."""

import itertools
import math
import re

import numpy as np


def replica_groups(attribute: str, devices: int) -> tuple[tuple[int, ...], ...]:
    """Read replica groups in each of the three notations that XLA prints.

    Args:
        attribute: the text behind `replica_groups=`: a list `{{0,1},{2,3}}`, an iota
            `[2,2]<=[4]` or `[2,2]<=[2,2]T(1,0)`, or mesh axes or parts of them
            `mesh['a'=2,'b'=2] {'b'}`, `mesh['a'=8] {'a':(4)2}`.
        devices: number of devices; all of them form one group if the list is empty.

    Returns:
        The groups, each a tuple of positions.

    Raises:
        ValueError: another notation, or parts of an axis that overlap.

    >>> replica_groups("mesh['a'=2,'b'=2] {'a'}", 4)
    ((0, 2), (1, 3))
    """
    if found := re.match(r"mesh\[([^\]]*)\]\s*(?:device_ids=(\S+)\s*)?\{", attribute):
        sizes = {n: int(s) for n, s in re.findall(r"'([^']+)'=(\d+)", found[1])}
        chosen = attribute[found.end() : attribute.index("}", found.end())]
        order = _iota(found[2]) if found[2] else np.arange(math.prod(sizes.values()))
        return _mesh_groups(sizes, chosen, order)
    if attribute.startswith("["):
        array = _iota(attribute)
        return _tuples(array.reshape(array.shape[0], -1))
    if found := re.match(r"\{((?:\{[\d,]*\},?)*)\}", attribute):
        groups = re.findall(r"\{([\d,]+)\}", found[1])
        listed = tuple(tuple(int(i) for i in group.split(",")) for group in groups)
        return listed or (tuple(range(devices)),)
    raise ValueError(f"replica groups in an unknown notation: {attribute[:80]!r}")


def _iota(text: str) -> np.ndarray:
    """Read `[4,2]<=[2,4]T(1,0)`: count up, shape, transpose, shape again."""
    found = re.match(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", text)
    if not found:
        raise ValueError(f"replica groups in an unknown notation: {text[:80]!r}")
    shape, start, order = (
        [int(n) for n in (g or "").split(",") if n] for g in found.groups()
    )
    array = np.arange(math.prod(start)).reshape(start)
    return (array.transpose(order) if order else array).reshape(shape)


def _mesh_groups(
    sizes: dict[str, int], chosen: str, order: np.ndarray
) -> tuple[tuple[int, ...], ...]:
    """Group the positions of a mesh that differ in the chosen axes only.

    `'a':(4)2` chooses a part of axis a: of its index, written as a number of digits,
    the digit of size 2 behind digits that make 4.
    """
    parts = [
        (name, int(before or 1), int(size or sizes[name]))
        for name, before, size in re.findall(r"'([^']+)'(?::\((\d+)\)(\d+))?", chosen)
    ]
    # Split each axis into digits, of which the parts choose some.
    digits: dict[tuple[str, int], int] = {}
    for name, size in sizes.items():
        ends = {e for n, before, s in parts if n == name for e in (before, before * s)}
        cuts = sorted({1, size} | ends)
        for start, stop in itertools.pairwise(cuts):
            if stop % start:
                raise ValueError(f"replica groups whose parts overlap: {chosen!r}")
            digits[name, start] = stop // start
    places = list(digits)
    inner = [
        places.index(digit)
        for name, before, size in parts
        for digit in places
        if digit[0] == name and before <= digit[1] < before * size
    ]
    outer = [i for i in range(len(places)) if i not in inner]
    array = order.reshape(list(digits.values()))
    group_size = math.prod(array.shape[i] for i in inner)
    return _tuples(array.transpose(outer + inner).reshape(-1, group_size))


def _tuples(array: np.ndarray) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(i) for i in row) for row in array)
