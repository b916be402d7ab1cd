"""Exercise 2: clip gradients, kept in shares as in FSDP, by their global norm."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3 import device_mesh, hlo, model
from chapter3.exercises.programs import (
    expect_array,
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

N = 8
_FLOAT32 = 1e-4  # relative: float32 sums of some thousand squares, in any order


def mesh() -> Mesh:
    """Make the mesh of the exercise: eight devices, one axis "data"."""
    return device_mesh({"data": N})


def check(clip: Any, seed: int = 3) -> Verdict:
    """Judge an answer.

    Args:
        clip: of the gradients (a list of dicts of float32 arrays, every leaf cut along
            dimension 0 over "data") and of max_norm (a float32 scalar, replicated).
            Returns the clipped gradients, cut likewise, and their norm before.
        seed: of the random gradients.
    """
    return judge(2, clip, lambda: _check(clip, seed))


def _check(clip: Any, seed: int) -> str:
    answer = one_program(clip)
    random = np.random.default_rng(seed)
    shapes = jax.eval_shape(
        lambda key: model.init_mlp(key, [16, 64, 64, 8]), jax.random.key(0)
    )
    full = jax.tree.map(lambda s: _gradient(random, s.shape), shapes)
    share = NamedSharding(mesh(), P("data"))
    norms = _norms(full)
    norm = norms["right"]

    def arguments(gradients: Any, max_norm: float) -> tuple[Any, jax.Array]:
        """Place new copies: the answer may donate what it gets."""
        whole = NamedSharding(share.mesh, P())
        most = jax.device_put(np.float32(max_norm), whole)
        return jax.device_put(gradients, share), most

    for factor in (0.3, 2.0):
        found = run(answer, *arguments(full, factor * norm))
        clipped, its_norm = expect_pair(found, "(clipped, norm)")
        if not isinstance(its_norm, jax.Array):
            raise WrongAnswerError(
                "The second of the two things must be the norm, but it is of type "
                f"{type(its_norm).__name__}.",
                "the order: (clipped, norm).",
            )
        _check_norm(its_norm, norms)
        expect_tree(clipped, shapes, "clipped")
        _check_clipped(clipped, full, factor, norms)
        for leaf in jax.tree.leaves(clipped):
            if not is_cut(leaf, share):
                raise WrongAnswerError(
                    "The values are right, but the clipped gradients are cut as "
                    f"{layout(leaf)} instead of P('data'): each device holds more "
                    "than its share.",
                    "out_specs, and whether the gradients were gathered.",
                )
    zeros = jax.tree.map(np.zeros_like, full)
    zero = run(answer, *arguments(zeros, norm))
    if not all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(zero)):
        raise WrongAnswerError(
            "For gradients that are all zero the answer returns NaN.",
            "how you divide by the norm: 0/0 is NaN, but minimum(1, max_norm/0) is 1.",
        )
    measured = _check_program(answer, *arguments(full, norm))
    return f"{measured}. Norm {norm:.4f}, as in float64."


def _gradient(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Make a leaf that grows from row to row and has a size of its own.

    So the devices' norms differ much, and no two mistakes give the same number.
    """
    values = random.standard_normal(shape) * random.uniform(0.5, 2)
    rows = np.linspace(0.2, 2, shape[0])
    return (values.T * rows).T.astype(np.float32)


def _norms(full: Any) -> dict[str, float]:
    """Compute the norm, and what typical mistakes return in its place (float64)."""
    leaves = [f64(leaf) for leaf in jax.tree.leaves(full)]
    squares = np.array([[np.sum(s**2) for s in np.split(v, N)] for v in leaves])
    local = np.sqrt(squares.sum(axis=0))  # of each device's shares
    by_leaf = np.sqrt(squares.sum(axis=1))
    right = float(np.sqrt(squares.sum()))
    return {
        "right": right,
        "the sum of the squares, without the square root": right**2,
        "the mean of the eight local norms (pmean of norms)": local.mean(),
        "the sum of the eight local norms (psum of norms)": local.sum(),
        "the largest of the eight local norms (pmax)": local.max(),
        "the root of the *mean* of the devices' sums of squares": right / np.sqrt(N),
        "√8 times too large: the sum over the devices was taken twice": right
        * np.sqrt(N),
        "the sum of the norms of the leaves": by_leaf.sum(),
        "the norm of the first leaf": by_leaf[0],
        "the norm of the last leaf": by_leaf[-1],
        "the norm of the weights alone, without the biases": np.sqrt(
            sum(np.sum(v**2) for v in leaves if v.ndim > 1)
        ),
        **{
            f"the norm of device {d}'s own shares alone": float(v)
            for d, v in enumerate(local)
        },
    }


def _check_norm(found: jax.Array, norms: dict[str, float]) -> None:
    if found.shape != ():
        values = np.ravel(found)
        if len(values) == N and np.ptp(values) > 0:
            raise WrongAnswerError(
                f"The norm has the shape {found.shape}: each device returned the norm "
                "of its own shares, and they differ.",
                "the sum over the devices: psum of the sums of squares.",
            )
    expect_array(found, (), "norm")
    value, right = float(found), norms["right"]
    if abs(value - right) < _FLOAT32 * right:
        return
    for what, wrong in norms.items():
        if abs(value - wrong) < _FLOAT32 * wrong:
            raise WrongAnswerError(
                f"Your norm {value:.6g} is {what}. The norm of the whole gradient is "
                f"{right:.6g}.",
                "the formula: squares, summed over elements, leaves and devices, and "
                "one square root at the end.",
            )
    raise WrongAnswerError(
        f"Your norm is {value:.6g}, but that of the whole gradient is {right:.6g}.",
        "whether every leaf and every device is in the sum, once.",
    )


def _check_clipped(
    clipped: Any, full: Any, factor: float, norms: dict[str, float]
) -> None:
    """Compare with g·min(1, max_norm/norm), device by device."""
    wanted = min(1.0, factor)
    most = factor * norms["right"]
    pairs = zip(jax.tree.leaves(clipped), jax.tree.leaves(full), strict=True)
    # (leaves, devices): by which number each share was multiplied, by least squares.
    scales, fits = [], True
    for found, g in pairs:
        row = []
        for a, b in zip(np.split(f64(found), N), np.split(f64(g), N), strict=True):
            scale = float(np.sum(a * b) / np.sum(b * b))
            fits &= np.allclose(a, scale * b, atol=1e-5, rtol=_FLOAT32)
            row.append(scale)
        scales.append(row)
    found = np.array(scales)
    if fits and np.allclose(found, wanted, rtol=_FLOAT32):
        return
    case = f"With max_norm = {factor} times the norm"
    scale = found.mean()
    if not fits:
        raise WrongAnswerError(
            f"{case}, the clipped gradients are not a multiple of g."
        )
    local = [v for k, v in norms.items() if k.startswith("the norm of device")]
    if np.allclose(found, np.minimum(1, most / np.array(local)), rtol=_FLOAT32):
        raise WrongAnswerError(
            f"{case}, each device clipped its own shares by its own norm. The clipped "
            "gradient no longer points where g points.",
            "which norm the scale is computed from: it must be the global one.",
        )
    if np.ptp(found, axis=0).max() < _FLOAT32 < np.ptp(found):
        raise WrongAnswerError(f"{case}, the devices scale by different numbers.")
    if np.ptp(found) > _FLOAT32:
        raise WrongAnswerError(f"{case}, the leaves are scaled by different numbers.")
    if factor > 1 and np.isclose(scale, factor, rtol=_FLOAT32):
        raise WrongAnswerError(
            f"{case}, the gradients were *enlarged* {factor:g} times: they are always "
            "rescaled to max_norm, also when they are shorter.",
            "the scale: minimum(1, max_norm / norm).",
        )
    if np.isclose(scale, 1, rtol=_FLOAT32):
        raise WrongAnswerError(
            f"{case}, nothing was clipped: the gradients came back as they were."
        )
    raise WrongAnswerError(
        f"{case}, the gradients were multiplied by {scale:.6g} instead of "
        f"{wanted:.6g} = minimum(1, max_norm / norm).",
        "the scale.",
    )


def _check_program(answer: Any, g: Any, most: jax.Array) -> str:
    program = answer.lower(g, most).compile()
    nbytes = sum(leaf.nbytes for leaf in jax.tree.leaves(g))
    if hlo.wire_bytes(program) > nbytes / N:
        raise WrongAnswerError(
            "The result is right, but whole gradients travel: "
            f"{sent(program)}. A norm is one number; the gradients are {nbytes} bytes.",
            "an all_gather of gradients, or of their squares; add up locally first.",
        )
    if not in_shard_map(answer, g, most):
        raise WrongAnswerError(
            "The result is right, but there is no shard_map in it: the compiler put "
            f"the sum over the devices in ({sent(program)}). Here you are to write it.",
            "jax.shard_map and jax.lax.psum.",
        )
    return f"Clipped where needed and only there; still in shares; {sent(program)}"
