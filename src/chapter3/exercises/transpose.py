"""Exercise 1: transpose a matrix that is cut by rows, with one all-to-all."""

from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3 import device_mesh, hlo
from chapter3.exercises.programs import (
    expect_array,
    in_shard_map,
    is_cut,
    layout,
    one_program,
    sent,
)
from chapter3.exercises.verdict import CrashError, Verdict, WrongAnswerError, judge, run

N = 8
_NOT_TRANSPOSED = (
    "Each device got its columns, but did not transpose its block: the local "
    "transpose is missing."
)
_BLOCK = (
    "what a device has after all_to_all, a block of shape (rows, columns/N), and what "
    "it is to return: (columns/N, rows)."
)


def mesh() -> Mesh:
    """Make the mesh of the exercise: eight devices, one axis "i"."""
    return device_mesh({"i": N})


def check(transposed: Any, seed: int = 1) -> Verdict:
    """Judge an answer.

    Args:
        transposed: of x, shape (rows, columns), both multiples of 8, cut by rows:
            P("i", None). Returns its transpose, shape (columns, rows), cut by rows
            likewise.
        seed: of the random matrices.
    """
    return judge(1, transposed, lambda: _check(transposed, seed))


def _check(transposed: Any, seed: int) -> str:
    random = np.random.default_rng(seed)
    by_rows = NamedSharding(mesh(), P("i", None))
    answer, programs = one_program(transposed), []
    for rows, columns in ((2 * N, 2 * N), (2 * N, 3 * N)):
        a = random.standard_normal((rows, columns)).astype(np.float32)
        try:
            # New copies: the answer may donate what it gets.
            x = jax.device_put(a, by_rows)
            _check_result(run(answer, x), a, by_rows)
        except (WrongAnswerError, CrashError) as wrong:
            if not programs:
                raise
            reason = wrong.__cause__ if isinstance(wrong, CrashError) else wrong
            raise WrongAnswerError(
                f"Right for a matrix of 16 x 16, but not for one of {rows} x "
                f"{columns}: {reason}",
                "numbers in your answer that should be computed from x.shape.",
            ) from None
        programs.append(_check_program(answer, jax.device_put(a, by_rows)))
    return (
        "Equal to the transpose, exactly, for two shapes; cut by rows. For 16 x 16: "
        f"{sent(programs[0])}."
    )


def _check_result(found: Any, a: np.ndarray, by_rows: NamedSharding) -> None:
    stacked = np.concatenate(np.split(a, N, axis=1))  # (N rows, columns/N)
    if isinstance(found, jax.Array) and np.array_equal(found, stacked):
        raise WrongAnswerError(
            f"{_NOT_TRANSPOSED} The global shape is {found.shape}.", _BLOCK
        )
    expect_array(found, a.T.shape, "The result")
    values = np.asarray(found)
    if np.array_equal(values, a):
        if is_cut(found, by_rows):
            raise WrongAnswerError("The result is x, as it came.")
        raise WrongAnswerError(_NOT_TRANSPOSED, _BLOCK)
    if not np.array_equal(values, a.T):
        wrong = np.argwhere(values != a.T)
        i, j = (int(k) for k in wrong[0])
        raise WrongAnswerError(
            f"{len(wrong)} of {a.size} elements differ from the transpose; the first "
            f"is [{i}, {j}]: {values[i, j]:.4f} instead of {a.T[i, j]:.4f}.",
            "split_axis (what is cut up and sent) and concat_axis (along which the "
            "pieces that arrive are put together), and the order of the pieces.",
        )
    if found.sharding.is_fully_replicated:
        raise WrongAnswerError(
            "The values are right, but every device holds the whole matrix.",
            "out_specs: the result must be cut by rows, P('i', None).",
        )
    if not is_cut(found, by_rows):
        raise WrongAnswerError(
            f"The values are right, but the result is cut as {layout(found)} instead "
            "of P('i', None). Transposing locally moves nothing: each device still "
            "has what was its rows, now as columns.",
            "what has to travel: device i needs columns of x that are on all others.",
        )


def _check_program(answer: Any, x: jax.Array) -> Any:
    program = answer.lower(x).compile()
    kinds = hlo.executed(program)
    local = x.nbytes // N
    formula = (N - 1) * local // N
    for kind, what in (
        ("all-gather", "The matrix was gathered"),
        ("all-reduce", "The pieces were put together by a sum"),
    ):
        if kind in kinds:
            raise WrongAnswerError(
                f"The result is right, but {what[0].lower()}{what[1:]} ({sent(program)}"
                f"). With one all-to-all a device sends {formula} bytes.",
                f"where the {kind} comes from; all_to_all sends each device only what "
                "it needs.",
            )
    used = in_shard_map(answer, x)
    if not used:
        raise WrongAnswerError(
            "The result is right, but there is no shard_map in it: the compiler chose "
            f"the collective ({sent(program)}). Here you are to write it.",
            "jax.shard_map and jax.lax.all_to_all.",
        )
    if kinds != {"all-to-all": 1} or hlo.wire_bytes(program) != formula:
        raise WrongAnswerError(
            "The result is right, but it is not brought about by one all-to-all, in "
            f"which a device sends {formula} bytes: {sent(program)}.",
            "can a single call of all_to_all move everything?",
        )
    if "all_to_all" not in used:
        raise WrongAnswerError(
            "The result is right, but the all-to-all is not yours: it happens outside "
            "of your shard_map.",
            "jax.lax.all_to_all inside the function that shard_map runs.",
        )
    return program
