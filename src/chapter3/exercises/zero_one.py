"""Exercise 5: one step of Adam with ZeRO-1, which shares out the optimizer's state."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3 import device_mesh, hlo, traffic
from chapter3.exercises import by_hand
from chapter3.exercises.by_hand import BETA1, BETA2, EPSILON, RATE, SHAPES
from chapter3.exercises.programs import (
    expect_pair,
    expect_tree,
    in_shard_map,
    is_cut,
    layout,
    one_program,
    sent,
)
from chapter3.exercises.verdict import Verdict, WrongAnswerError, judge, run
from chapter3.reference import f64

__all__ = ["BETA1", "BETA2", "EPSILON", "RATE", "check", "loss", "mesh"]
N = 8


def mesh() -> Mesh:
    """Make the mesh of the exercise: eight devices, one axis "data"."""
    return device_mesh({"data": N})


def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
    """Mean squared error of tanh(x w1) w2 over the rows that are given."""
    return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"] - y) ** 2)


def check(step: Any, seed: int = 5) -> Verdict:
    """Judge an answer.

    Args:
        step: of params (float32: w1 (16, 32), w2 (32, 8), replicated), of state: a dict
            of "m" and "v", like params but cut along dimension 0 over "data", and
            "count", an int32 scalar, replicated; and of x (64, 16) and y (64, 8), cut
            by rows. Returns the new params, replicated, and the new state, cut as
            before.
        seed: of the random parameters, states and inputs.
    """
    return judge(5, step, lambda: _check(step, seed))


def _check(step: Any, seed: int) -> str:
    answer = one_program(step)
    random = np.random.default_rng(seed)
    shares, whole = NamedSharding(mesh(), P("data")), NamedSharding(mesh(), P())

    def draw(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    def like_params(scale: float) -> dict[str, np.ndarray]:
        return {k: np.float32(scale) * draw(*shape) for k, shape in SHAPES.items()}

    params, x, y = like_params(0.3), draw(64, 16), draw(64, 8)

    def arguments(state: Any) -> tuple[Any, ...]:
        """Place new copies: the step may donate what it gets."""
        moments = {k: _put(state[k], shares) for k in ("m", "v")}
        count = _put(np.int32(state["count"]), whole)
        placed = moments | {"count": count}
        return _put(params, whole), placed, _put(x, shares), _put(y, shares)

    zeros = {k: np.zeros(s, np.float32) for k, s in SHAPES.items()}
    squares = {k: v**2 for k, v in like_params(0.01).items()}
    in_the_middle = {"m": like_params(0.01), "v": squares, "count": 4}
    at_the_start = {"m": zeros, "v": zeros, "count": 0}
    states = (in_the_middle, at_the_start)
    for state in states:
        result = expect_pair(run(answer, *arguments(state)), "(params, state)")
        _check_shapes(*result)
        try:
            _check_values(*result, params, state, x, y)
        except _ScaleError as scaled:
            program = answer.lower(*arguments(state)).compile()
            raise WrongAnswerError(*_why(scaled.ratio, program)) from None
        _check_layout(*result, shares, whole)
    return _check_program(answer, arguments(states[0]))


class _ScaleError(Exception):
    """The gradient in the first moment is `ratio` times the right one."""

    def __init__(self, ratio: float) -> None:
        super().__init__(ratio)
        self.ratio = ratio


def _why(ratio: float, program: Any) -> tuple[str, str]:
    """Say why gradients are `ratio` times the right ones."""
    text = f"The gradient that goes into m is {ratio:.4g} times the right one"
    if np.isclose(ratio, -1, rtol=1e-2):
        return f"{text}: it has the wrong sign.", "where you subtract."
    if _all_reduced(program):
        return (
            f"{text}, and a sum of whole gradients is in the program. If you did not "
            "write it: in shard_map, JAX itself sums the gradient with respect to a "
            "value that is equal on all devices.",
            "lax.pcast(params, 'data', to='varying') before you differentiate; psum, "
            "and who divides by N.",
        )
    if np.isclose(ratio, N, rtol=1e-2):
        return (
            f"{text}: it is the *sum* over the {N} devices, not the mean.",
            "psum_scatter adds up; who divides by N?",
        )
    if np.isclose(ratio, 1 / N, rtol=1e-2):
        return (
            f"{text}: it was divided by {N} once too often.",
            "the loss of each device is a mean over its own rows already.",
        )
    return f"{text}.", "m = 0.9 m + 0.1 g, and how g comes about."


def _all_reduced(program: Any) -> bool:
    """Tell whether more than a few numbers are all-reduced."""
    return any(
        o.kind == "all-reduce" and o.nbytes > 64 for o in hlo.collectives(program)
    )


def _put(tree: Any, sharding: NamedSharding) -> Any:
    return jax.tree.map(lambda a: jax.device_put(jnp.array(a), sharding), tree)


def _check_shapes(params: Any, state: Any) -> None:
    if not isinstance(state, dict) or set(state) != {"m", "v", "count"}:
        raise WrongAnswerError(
            'The new state must be a dict with the keys "m", "v" and "count".'
        )
    like = {k: jax.ShapeDtypeStruct(s, np.float32) for k, s in SHAPES.items()}
    if isinstance(params, dict) and set(params) == set(SHAPES):
        for name, (rows, columns) in SHAPES.items():
            if jnp.shape(params[name]) == (rows // N, columns):
                raise WrongAnswerError(
                    f"The new {name} has the shape {(rows // N, columns)}: each device "
                    "updated its share, and the shares were not gathered.",
                    "all_gather (with to='invarying', since the result goes out as "
                    "P()) at the end of the step.",
                )
    for name, tree in (("params", params), ("m", state["m"]), ("v", state["v"])):
        expect_tree(tree, like, name)
    if jnp.shape(state["count"]) != ():
        raise WrongAnswerError(
            f"count has the shape {jnp.shape(state['count'])}: it is one number, the "
            "same on all devices.",
            "its out_specs: P().",
        )


def _check_values(
    params: Any, state: Any, old: Any, before: Any, x: np.ndarray, y: np.ndarray
) -> None:
    """Compare with a step by hand in float64: moments, count, parameters."""
    g = by_hand.gradient(old, x, y)
    for name in SHAPES:
        _check_first_moment(name, state["m"], before["m"], g, (old, x, y))
    squares = by_hand.mix(BETA2, before["v"], {k: v**2 for k, v in g.items()})
    if not by_hand.close(state["v"], squares, atol=1e-11):
        each = [by_hand.gradient(old, *rows) for rows in by_hand.rows(x, y)]
        means = {k: np.mean([e[k] ** 2 for e in each], axis=0) for k in SHAPES}
        wrong = by_hand.mix(BETA2, before["v"], means)
        if by_hand.close(state["v"], wrong, atol=1e-11):
            raise WrongAnswerError(
                "v is made of the mean of the devices' *squared* gradients.",
                "the order: first the mean over the devices, then the square.",
            )
        raise WrongAnswerError(
            "m is right, but v is not 0.999 v + 0.001 g².", "g*g, and BETA2."
        )
    count = int(state["count"])
    if count != before["count"] + 1:
        raise WrongAnswerError(
            f"m and v are right, but count went from {before['count']} to {count}.",
            "count is the number of steps done: each step adds 1.",
        )
    if by_hand.close(params, by_hand.adam(old, state, count), atol=1e-5):
        return
    if not all(np.isfinite(f64(p)).all() for p in params.values()):
        raise WrongAnswerError(
            "m and v are right, but in the first step the new parameters are not "
            "finite: 1 - 0.9**0 is zero.",
            "which t corrects the bias: the number of this step, counted from 1.",
        )
    for what, wrong in {
        "the bias is not corrected": by_hand.adam(old, state, np.inf),
        "the bias is corrected with the count before the step": by_hand.adam(
            old, state, max(count - 1, 1e-9)
        ),
        "the step goes uphill": by_hand.adam(old, state, count, rate=-RATE),
        "epsilon stands under the root": by_hand.adam(
            old, state, count, under_root=True
        ),
        "they are as before": old,
    }.items():
        if by_hand.close(params, wrong, atol=1e-5):
            raise WrongAnswerError(
                f"m, v and count are right, but the parameters are not: {what}.",
                "the formula: t = count + 1, m / (1 - 0.9**t), v / (1 - 0.999**t).",
            )
    raise WrongAnswerError(
        "m, v and count are right, but the parameters are not.",
        "the formula, and that each device updates the rows that belong to its share.",
    )


def _check_first_moment(
    name: str, m: Any, before: Any, g: Any, inputs: tuple[Any, np.ndarray, np.ndarray]
) -> None:
    """Find a and c in m = a·before + c·g, which should be 0.9 and 0.1."""
    found, start, slope = f64(m[name]), f64(before[name]), g[name]
    terms = [start, slope] if start.any() else [slope]
    basis = np.stack([term.ravel() for term in terms], axis=1)
    numbers = np.linalg.lstsq(basis, found.ravel())[0]
    *kept, taken = (float(n) for n in numbers)
    if not np.allclose(basis @ numbers, found.ravel(), rtol=1e-4, atol=1e-6):
        params, x, y = inputs
        each = [by_hand.gradient(params, *rows)[name] for rows in by_hand.rows(x, y)]
        own = [np.split(local, N)[d] for d, local in enumerate(each)]
        if np.allclose(
            found, BETA1 * start + (1 - BETA1) * np.concatenate(own), atol=1e-6
        ):
            raise WrongAnswerError(
                "Each device put the gradient of its own rows alone into its m.",
                "the sum over the devices: psum_scatter.",
            )
        raise WrongAnswerError(
            f"m[{name!r}] is not 0.9 m + 0.1 g with the mean gradient g.",
            "which rows of g a device gets, and the order of the operations.",
        )
    if kept and abs(kept[0] - BETA1) > 1e-3:
        raise WrongAnswerError(
            f"m is {kept[0]:.3g} m + {taken:.3g} g instead of 0.9 m + 0.1 g.",
            "BETA1 is for m, BETA2 for v.",
        )
    if abs(taken / (1 - BETA1) - 1) > 1e-2:
        raise _ScaleError(taken / (1 - BETA1))


def _check_layout(
    params: Any, state: Any, shares: NamedSharding, whole: NamedSharding
) -> None:
    for name in ("m", "v"):
        for leaf in state[name].values():
            if leaf.sharding.is_fully_replicated:
                raise WrongAnswerError(
                    f"The values are right, but every device keeps the whole of {name}:"
                    f" {N} times the memory that ZeRO-1 needs.",
                    "out_specs of the state, and that a device updates its share only.",
                )
            if not is_cut(leaf, shares):
                raise WrongAnswerError(
                    f"{name} is cut as {layout(leaf)} instead of P('data').",
                    "out_specs.",
                )
    for name, leaf in params.items():
        if not is_cut(leaf, whole):
            raise WrongAnswerError(
                f"The values are right, but {name} comes back as {layout(leaf)}: each "
                "device has its share only. That is a part of ZeRO-3; in ZeRO-1 the "
                "parameters are whole everywhere.",
                "all_gather (with to='invarying') at the end, and out_specs P().",
            )


def _check_program(answer: Any, arguments: tuple[Any, ...]) -> str:
    program = answer.lower(*arguments).compile()
    s = sum(4 * rows * columns for rows, columns in SHAPES.values())
    formula = traffic.step_bytes("ZeRO-1", s, N)
    promised = f"a reduce-scatter and an all-gather send {formula:.0f}"
    if _all_reduced(program):
        raise WrongAnswerError(
            "The result is right, but the gradient is all-reduced: each device gets "
            f"all of it and uses an eighth ({sent(program)}; {promised}).",
            "psum_scatter instead of psum or pmean. If you wrote none of these: "
            "differentiated in shard_map with respect to params that are equal on all "
            "devices, gradients are summed by JAX; lax.pcast(params, 'data', "
            "to='varying') before.",
        )
    if hlo.wire_bytes(program) > formula + 64:
        raise WrongAnswerError(
            f"The result is right, but more is sent than needed: {sent(program)}; "
            f"{promised}.",
            "what is gathered besides the new parameters.",
        )
    if not in_shard_map(answer, *arguments):
        raise WrongAnswerError(
            "The result is right, but there is no shard_map in it.", "jax.shard_map."
        )
    return (
        "Two steps, one in the middle of a training and the first one, equal those by "
        f"hand in float64; m and v stay in shares; {sent(program)}, which is the "
        "formula 2 (N-1)/N S."
    )
