"""What the checks want to know about an answer's program and its results."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding

from chapter3 import hlo
from chapter3.exercises.verdict import WrongAnswerError, expect_function


def one_program(answer: Any) -> Any:
    """Make one program of what the reader wrote, if it is not one already.

    Raises:
        WrongAnswerError: it is not a function.
    """
    expect_function(answer)
    return answer if hasattr(answer, "lower") else jax.jit(answer)


def equations(answer: Callable, *arguments: Any) -> Iterator[tuple[str, bool]]:
    """List the operations of an answer as JAX traced it, before the compiler.

    Yields:
        For each the name of its primitive, and whether it stands in a `shard_map`.
    """
    yield from _walk(jax.make_jaxpr(answer)(*arguments).jaxpr, inside=False)


def _walk(jaxpr: Any, inside: bool) -> Iterator[tuple[str, bool]]:
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        yield name, inside
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from _walk(inner, inside or name == "shard_map")


def in_shard_map(answer: Callable, *arguments: Any) -> set[str]:
    """Name the primitives that an answer uses inside `shard_map`; empty without one."""
    return {name for name, inside in equations(answer, *arguments) if inside}


def expect_pair(value: Any, names: str) -> tuple[Any, Any]:
    """Return a result, which must be a tuple of two.

    Raises:
        WrongAnswerError: it is something else; the message has `names`.
    """
    if not isinstance(value, tuple) or len(value) != 2:
        raise WrongAnswerError(
            f"The answer must return two things, {names}, but it returned "
            f"{type(value).__name__}."
        )
    return value


def expect_array(value: Any, shape: tuple[int, ...], name: str) -> None:
    """Check that a result is a float32 JAX array of a shape.

    Raises:
        WrongAnswerError: it is something else.
    """
    if not isinstance(value, jax.Array):
        raise WrongAnswerError(
            f"{name} must be a JAX array of shape {shape}, but it is of type "
            f"{type(value).__name__}."
        )
    if value.shape != shape:
        raise WrongAnswerError(
            f"{name} has the global shape {value.shape} instead of {shape}.",
            "the shape of one device's result, and how out_specs puts these together.",
        )
    if value.dtype != np.float32:
        raise WrongAnswerError(f"{name} is {value.dtype} instead of float32.")


def expect_tree(value: Any, like: Any, name: str) -> None:
    """Check that a result is a tree of float32 arrays with the shapes of another.

    Raises:
        WrongAnswerError: it is something else.
    """
    found, wanted = jax.tree.structure(value), jax.tree.structure(like)
    if found != wanted:
        shown = [str(tree).removeprefix("PyTreeDef(")[:-1] for tree in (found, wanted)]
        raise WrongAnswerError(
            f"{name} is built as {shown[0]} (* is an array), but it must be {shown[1]}."
        )
    for (path, leaf), reference in zip(
        jax.tree.leaves_with_path(value), jax.tree.leaves(like), strict=True
    ):
        expect_array(leaf, reference.shape, f"{name}{jax.tree_util.keystr(path)}")


def is_cut(array: jax.Array, sharding: NamedSharding) -> bool:
    """Tell whether an array is cut as `sharding` says."""
    return array.sharding.is_equivalent_to(sharding, array.ndim)


def layout(array: jax.Array) -> str:
    """Describe how an array is cut: its spec, or the kind of its sharding."""
    sharding = array.sharding
    if isinstance(sharding, NamedSharding):
        return str(sharding.spec)
    return type(sharding).__name__


def sent(program: Any) -> str:
    """Describe the collectives of a compiled program and the bytes a device sends."""
    kinds = [f"{times} {kind}" for kind, times in hlo.executed(program).items()]
    what = ", ".join(kinds) if kinds else "no collective"
    return f"{what}; {hlo.wire_bytes(program):.0f} bytes sent by each device"
