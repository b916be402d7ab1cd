"""Exercise 3: one training step on a mesh of two axes, data and model."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, Sharding
from jax.sharding import PartitionSpec as P

from chapter3 import device_mesh, hlo
from chapter3.exercises.programs import (
    expect_tree,
    is_cut,
    layout,
    sent,
)
from chapter3.exercises.verdict import (
    CrashError,
    NotAnsweredError,
    Verdict,
    WrongAnswerError,
    judge,
    run,
)
from chapter3.reference import f64

RATE = 0.1
SPECS = {"w1": P(None, "model"), "b1": P(), "w2": P("model", None)}
"""How the parameters are cut, before and after the step."""


def mesh() -> Mesh:
    """Make the mesh of the exercise: data 4 x model 2, automatic axes."""
    return device_mesh({"data": 4, "model": 2}, AxisType.Auto)


def check(step: Any, seed: int = 11) -> Verdict:
    """Judge an answer.

    Args:
        step: what `jax.jit` returns, of the parameters p (float32: w1 (8, 32), b1
            (32,), w2 (32, 8), cut as `SPECS`) and of x and y, shape (16, 8), cut by
            rows over "data". Returns the new parameters, cut as before.
        seed: of the random parameters and inputs.
    """
    return judge(3, step, lambda: _check(step, seed))


def _check(step: Any, seed: int) -> str:
    random = np.random.default_rng(seed)

    def draw(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (scale * random.standard_normal(shape)).astype(np.float32)

    params = {"w1": draw(8, 32, scale=0.5), "b1": draw(32), "w2": draw(32, 8)}
    x = draw(16, 8)
    shardings = {name: NamedSharding(mesh(), spec) for name, spec in SPECS.items()}

    def arguments() -> tuple[Any, jax.Array, jax.Array]:
        """Place new copies: the step may donate what it gets."""
        rows = NamedSharding(mesh(), P("data"))
        placed = {
            k: jax.device_put(jnp.array(v), shardings[k]) for k, v in params.items()
        }
        y = np.sin(x)
        return placed, jax.device_put(x, rows), jax.device_put(y, rows)

    new = run(step, *arguments())
    expect_tree(new, params, "new")
    _check_values(new, params, x)
    if not hasattr(step, "lower"):
        raise WrongAnswerError(
            "The values are right, but the step is not what jax.jit returns (it has no "
            "`lower`): called so, its operations run one by one, and nothing says how "
            "its results must be cut.",
            "jax.jit around the whole step, outside of it.",
        )
    for name, leaf in new.items():
        if not is_cut(leaf, shardings[name]):
            raise WrongAnswerError(
                f"The values are right, but {name} went in as {SPECS[name]} and comes "
                f"out as {layout(leaf)}. In the next step it would have to be moved "
                "back, or the program compiled anew.",
                "out_shardings of jax.jit: without it, the compiler chooses.",
            )
    _check_fixed(step, arguments())
    program = step.lower(*arguments()).compile()
    for operation in hlo.collectives(program):
        if operation.kind == "all-gather" and operation.nbytes >= params["w1"].nbytes:
            raise WrongAnswerError(
                "The result is right, but a whole weight matrix is gathered on each "
                f"device: {sent(program)}.",
                "the shardings that you set inside of the step.",
            )
    return (
        "Equal to one device's step in float64; every parameter is cut as it was, "
        f"because you say so; {sent(program)}."
    )


def _step(params: Any, x: np.ndarray) -> dict[str, np.ndarray]:
    """Take the gradient of the mean squared error by hand, in float64."""
    w1, b1, w2 = (f64(params[name]) for name in ("w1", "b1", "w2"))
    x64, y = f64(x), f64(np.sin(x))
    z = x64 @ w1 + b1[None]
    h = np.maximum(z, 0)
    d_out = 2 * (h @ w2 - y) / y.size
    d_z = (d_out @ w2.T) * (z > 0)
    return {"w1": x64.T @ d_z, "b1": d_z.sum(axis=0), "w2": h.T @ d_out}


def _check_values(new: dict[str, jax.Array], params: Any, x: np.ndarray) -> None:
    gradients = _step(params, x)
    # By how many learning rates each parameter moved, by least squares.
    steps, follows = {}, True
    for name, g in gradients.items():
        moved = f64(params[name]) - f64(new[name])
        steps[name] = float(np.sum(moved * g) / np.sum(g * g)) / RATE
        scaled = RATE * steps[name] * g
        follows &= np.allclose(moved, scaled, atol=1e-5, rtol=1e-4)
    ratios = np.array(list(steps.values()))
    if follows and np.allclose(ratios, 1, atol=1e-2):
        return
    still = [name for name, ratio in steps.items() if abs(ratio) < 1e-2]
    if len(still) == len(steps):
        raise WrongAnswerError("The parameters came back as they were.")
    if still:
        raise WrongAnswerError(
            f"{' and '.join(still)} did not move.",
            "whether every parameter is updated.",
        )
    if not follows or np.ptp(ratios) > 0.02 * abs(ratios).max():
        off = [name for name, ratio in steps.items() if abs(ratio - 1) > 1e-2]
        raise WrongAnswerError(
            "The step does not follow the gradient of the mean squared error in "
            f"{', '.join(off) if off else 'direction'}.",
            "the model, relu(x w1 + b1) w2, the loss, and that all gradients are taken "
            "at the old parameters.",
        )
    ratio = float(ratios.mean())
    raise WrongAnswerError(*_explain(ratio, x.size, len(x)))


def _explain(ratio: float, elements: int, rows: int) -> tuple[str, str]:
    """Say why a step is `ratio` times the right one."""

    def near(value: float) -> bool:
        return abs(ratio - value) < 0.01 * abs(value)

    if near(elements):
        return (
            f"The step is {elements} times too large: your loss is the *sum* over the "
            f"{elements} elements, not their mean.",
            "jnp.mean in the loss.",
        )
    if near(elements / rows):
        return (
            f"The step is {elements // rows} times too large: your loss sums over the "
            "features and averages over the rows only.",
            "jnp.mean over all elements.",
        )
    if near(4) or near(8) or near(2):
        return (
            f"The step is {ratio:.0f} times too large, as if gradients were summed "
            "over devices instead of averaged.",
            "by what a psum is divided; under plain jit you need none.",
        )
    if ratio < 0:
        return (
            f"The step goes uphill: {ratio:.3g} times the right one.",
            "the sign: the gradient is subtracted.",
        )
    return (
        f"The step is {ratio:.3g} times the right one, as if the learning rate were "
        f"{ratio * RATE:.3g} instead of {RATE}.",
        "the learning rate, and factors such as the 1/2 in front of a loss.",
    )


def _check_fixed(step: Any, arguments: Any) -> None:
    """Check that the step states how its results are cut.

    That they *are* cut rightly in one run is no proof: the compiler may have chosen so.
    """
    try:
        jaxpr = jax.make_jaxpr(step)(*arguments).jaxpr
    except NotAnsweredError:
        raise
    except Exception as error:
        raise CrashError from error
    fixed = _fixed(jaxpr)
    names = sorted(SPECS)  # the order of a dict's leaves
    free = [name for name, is_fixed in zip(names, fixed, strict=True) if not is_fixed]
    if free:
        raise WrongAnswerError(
            f"The result is right, but nothing in the step says how {', '.join(free)} "
            "must be cut: this time the compiler chose as you wish.",
            "out_shardings of jax.jit, for every parameter.",
        )


def _fixed(jaxpr: Any) -> list[bool]:
    """Tell for each result of a traced program whether the program fixes its sharding.

    It does if the result comes from `jit` with out_shardings, from a sharding
    constraint, or from `shard_map`.
    """
    made_by = {
        id(variable): (equation, place)
        for equation in jaxpr.eqns
        for place, variable in enumerate(equation.outvars)
    }
    answers = []
    for variable in jaxpr.outvars:
        equation, place = made_by.get(id(variable), (None, 0))
        if equation is None:
            answers.append(False)
        elif equation.primitive.name in ("sharding_constraint", "shard_map"):
            answers.append(True)
        elif "out_shardings" in equation.params:
            stated = isinstance(equation.params["out_shardings"][place], Sharding)
            answers.append(stated or _fixed(equation.params["jaxpr"].jaxpr)[place])
        else:
            answers.append(False)
    return answers
