"""Read from a compiled program which collectives it executes, and what they move.

`jax.jit(f).lower(...).compile()` returns the program that runs; its text (HLO) is for
one device. A collective inside a loop stands there once and runs many times, so that
counting lines of text counts wrongly. This reader follows the calls from the entry.

The text is of the program for this backend. The CPU backend, for one, sends bfloat16
arrays as float32.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jax.sharding import Mesh

from chapter3.replica_groups import replica_groups
from chapter3.traffic import ring_bytes

KINDS = (
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "all-to-all",
    "collective-permute",
)
_UNREAD = re.compile(
    r" (ragged-all-to-all|collective-broadcast|send|recv)(?:-start)?\("
)
_COMPUTATION = re.compile(r"^(ENTRY )?%?(\S+) \(.*\) -> .* \{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?\S+ = (\(.*?\)|\S+) ([\w-]+)\((.*)$")
_CALLED = re.compile(
    r"\b(calls|called_computations|to_apply|body|condition|branch_computations|"
    r"true_computation|false_computation)=(\{[^}]*\}|%?[\w.-]+)"
)
_SHAPE = re.compile(r"\b([a-z]\w*)\[([\d,]*)\]")


@dataclass(frozen=True)
class Collective:
    """One collective operation of a compiled program.

    Attributes:
        kind: one of `KINDS`.
        nbytes: bytes S of the whole tensor on one device: the output of an all-gather,
            the input of a reduce-scatter, either for the other kinds.
        groups: the devices (by position in the mesh) that communicate with one another;
            for a permute, the (source, target) pairs.
        times: how often it runs in one execution of the program.
        op_name: where in the Python program it comes from, as JAX recorded it.
    """

    kind: str
    nbytes: int
    groups: tuple[tuple[int, ...], ...]
    times: int
    op_name: str

    @property
    def group_size(self) -> int:
        """Number of devices N that communicate with one another."""
        return len(self.groups[0]) if self.groups else 1

    @property
    def wire_bytes(self) -> float:
        """Bytes that a device sends in one execution of the program (ring algorithm).

        Of a permute, the bytes of a device that sends to another; a device that is the
        source of no pair, or its own target, sends nothing.
        """
        if self.kind == "collective-permute" and all(a == b for a, b in self.groups):
            return 0.0
        return self.times * ring_bytes(self.kind, self.nbytes, self.group_size)


def collectives(compiled) -> list[Collective]:
    """List the collectives that a compiled program executes.

    Args:
        compiled: what `jax.jit(f).lower(*args).compile()` returns, or its text.

    Returns:
        One entry for each collective in the text that is reached from the entry, in
        the order of the text, `times` counting the trips of the loops around it.

    Raises:
        ValueError: a collective runs a number of times that the text does not tell (in
            a loop without a fixed trip count, or in one branch of a conditional), or
            the text holds communication that this reader does not know.

    Source: XLA, “Operation semantics”; notation of replica groups as printed by
    jaxlib 0.12.
    """
    text = compiled if isinstance(compiled, str) else compiled.as_text()
    if unread := _UNREAD.search(text):
        raise ValueError(f"this reader does not know the operation {unread[1]!r}")
    partitions = re.search(r"num_partitions=(\d+)", text)
    replicas = re.search(r"replica_count=(\d+)", text)
    devices = int(partitions[1] if partitions else replicas[1] if replicas else 1)
    bodies, entry = _computations(text)
    return list(_walk(bodies, entry, devices))


def executed(compiled) -> dict[str, int]:
    """Count the executed collectives by kind, as in `{"all-reduce": 3}`.

    Argument and errors are those of `collectives`.
    """
    counts: Counter[str] = Counter()
    for op in collectives(compiled):
        counts[op.kind] += op.times
    return dict(counts)


def wire_bytes(compiled) -> float:
    """Add up the bytes that each device sends in one execution (ring algorithm).

    Argument and errors are those of `collectives`.
    """
    return sum(op.wire_bytes for op in collectives(compiled))


def mesh_axes(operation: Collective, mesh: Mesh) -> tuple[str, ...]:
    """Name the mesh axes along which the devices of one collective differ.

    Args:
        operation: a collective of a program that was compiled for `mesh`.
        mesh: the mesh; positions count its devices, last axis fastest.
    """
    shape = tuple(mesh.shape.values())
    used = set()
    for group in operation.groups:
        places = np.array(np.unravel_index(group, shape))  # (axes, members)
        used |= {a for a in range(len(shape)) if len(set(places[a].tolist())) > 1}
    return tuple(name for a, name in enumerate(mesh.shape) if a in used)


def wire_bytes_by_axis(compiled, mesh: Mesh) -> dict[tuple[str, ...], float]:
    """Add up the bytes that each device sends, by the mesh axes that carry them.

    Arguments and errors are those of `collectives` and `mesh_axes`.
    """
    sums: dict[tuple[str, ...], float] = {}
    for operation in collectives(compiled):
        axes = mesh_axes(operation, mesh)
        sums[axes] = sums.get(axes, 0.0) + operation.wire_bytes
    return sums


def shape_bytes(shape: str) -> int:
    """Count the bytes of a shape as HLO writes it, tuples included.

    >>> shape_bytes("(f32[4,8]{1,0}, bf16[3]{0})")
    134
    """
    return sum(
        math.prod(int(n) for n in dims.split(",") if n) * _bits(dtype) // 8
        for dtype, dims in _SHAPE.findall(shape)
    )


def _bits(dtype: str) -> int:
    """Width of an HLO element type: the number in its name, as in bf16 or f8e4m3fn."""
    if dtype in ("token", "opaque"):
        return 0
    if dtype == "pred":
        return 8
    return int("".join(re.findall(r"\d+", dtype)[:1]))


def _computations(text: str) -> tuple[dict[str, list[str]], str]:
    """Cut the text into computations: instructions by name, and the entry's name."""
    bodies: dict[str, list[str]] = {}
    entry, current = "", None
    for line in text.splitlines():
        if head := _COMPUTATION.match(line):
            current = bodies.setdefault(head[2], [])
            entry = head[2] if head[1] else entry
        elif line.startswith("}"):
            current = None
        elif current is not None:
            current.append(line)
    if not entry:
        raise ValueError("this is not the text of a compiled program: no ENTRY in it")
    return bodies, entry


def _walk(
    bodies: dict[str, list[str]], name: str, devices: int
) -> Iterator[Collective]:
    """Yield the collectives of one computation and of those that it calls."""
    for line in bodies[name]:
        instruction = _INSTRUCTION.match(line)
        if not instruction:
            continue
        shape, opcode, rest = instruction.groups()
        kind = opcode.removesuffix("-start")
        if kind in KINDS:
            yield _read(kind, opcode, shape, rest, devices)
        for how, names in _CALLED.findall(rest):
            called = [n for n in re.findall(r"[\w.-]+", names) if n in bodies]
            inner = [op for n in called for op in _walk(bodies, n, devices)]
            if not inner:
                continue
            if opcode == "conditional":
                raise ValueError(
                    f"{inner[0].kind} in a branch of a conditional in {name!r}: the "
                    "text does not tell how often it runs"
                )
            # A loop's condition is tested once more than its body runs.
            runs = _trips(name, rest) + (how == "condition") if opcode == "while" else 1
            yield from (replace(op, times=op.times * runs) for op in inner)


def _trips(where: str, rest: str) -> int:
    known = re.search(r'"known_trip_count":\{"n":"(\d+)"\}', rest)
    if not known:
        raise ValueError(
            f"a collective runs in a loop of {where!r} whose trip count the compiler "
            "does not know; use a loop of fixed length (scan, fori_loop with constants)"
        )
    return int(known[1])


def _read(kind: str, opcode: str, shape: str, rest: str, devices: int) -> Collective:
    if pairs := re.search(r"source_target_pairs=(\{.*?\}\}|\{\})", rest):
        groups = replica_groups(pairs[1], devices)
    else:
        listed = re.search(r"replica_groups=(.*)", rest)
        groups = replica_groups(listed[1] if listed else "{}", devices)
    if opcode.endswith("-start") and kind != "all-reduce" and shape.startswith("("):
        # The asynchronous form returns (operand, result, ...); only of an all-reduce it
        # returns the results alone.
        shape = _split(shape[1:-1])[1]
    nbytes = shape_bytes(shape) * (len(groups[0]) if kind == "reduce-scatter" else 1)
    name = re.search(r'op_name="([^"]*)"', rest)
    return Collective(kind, nbytes, groups, 1, name[1] if name else "")


def _split(inner: str) -> list[str]:
    """Split a tuple's members at the commas that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(inner):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(inner[start:i])
            start = i + 1
    return [*parts, inner[start:]]
