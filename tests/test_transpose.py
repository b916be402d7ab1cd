"""The self-check of exercise 1 is fed right and wrong answers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3.exercises import NotAnsweredError, solutions, transpose

ROWS = P("i", None)


def mapped(f, out_specs=ROWS):
    return jax.shard_map(f, mesh=transpose.mesh(), in_specs=ROWS, out_specs=out_specs)


def exchanged(x, split=1, concat=0):
    return lax.all_to_all(x, "i", split_axis=split, concat_axis=concat, tiled=True)


def transposed_first(x):
    return mapped(lambda x: exchanged(x.T, 0, 1))(x)


def not_tiled(x):
    def local(x):
        pieces = lax.all_to_all(x.reshape(2, 8, -1), "i", 1, 0)  # (8, 2, columns/8)
        return pieces.transpose(2, 0, 1).reshape(-1, 16)

    return mapped(local)(x)


@pytest.mark.parametrize("answer", [solutions.transposed, transposed_first, not_tiled])
def test_right_answers_pass(answer):
    for seed in range(3):
        verdict = transpose.check(answer, seed)
        assert verdict.status == "passed", verdict
    assert "1 all-to-all; 112 bytes" in verdict.text
    assert transpose.check(jax.jit(answer)).status == "passed"


def gathered(x):
    def local(x):
        full = lax.all_gather(x, "i", tiled=True).T
        rows = len(full) // 8
        return lax.dynamic_slice_in_dim(full, lax.axis_index("i") * rows, rows)

    return mapped(local)(x)


def summed(x):
    def local(x):
        i = lax.axis_index("i")
        full = jnp.zeros((16, x.shape[1]), x.dtype)
        full = lax.pcast(full, "i", to="varying")
        full = lax.psum(lax.dynamic_update_slice_in_dim(full, x, 2 * i, 0), "i").T
        rows = len(full) // 8
        return lax.dynamic_slice_in_dim(full, i * rows, rows)

    return mapped(local)(x)


def permuted(x):
    """Do the right thing in seven messages."""

    def local(x):
        i, n = lax.axis_index("i"), x.shape[1] // 8
        out = lax.pcast(jnp.zeros((8, n, 2), x.dtype), "i", to="varying")
        for k in range(8):
            piece = lax.dynamic_slice_in_dim(x, (i + k) % 8 * n, n, 1)
            if k:
                piece = lax.ppermute(piece, "i", [(s, (s + k) % 8) for s in range(8)])
            out = lax.dynamic_update_index_in_dim(out, piece.T, (i - k) % 8, 0)
        return jnp.concatenate(list(out), axis=1)

    return mapped(local)(x)


def exchanged_outside(x):
    columns = mapped(lambda x: x.T, P(None, "i"))(x)
    return jax.reshard(columns, NamedSharding(transpose.mesh(), ROWS))


def by_compiler(x):
    return jax.reshard(x.T, NamedSharding(transpose.mesh(), ROWS))


def whole(x):
    return jax.reshard(x.T, NamedSharding(transpose.mesh(), P()))


def reversed_pieces(x):
    return mapped(lambda x: exchanged(x)[::-1].T)(x)


def only_16(x):
    return mapped(lambda x: exchanged(x).reshape(16, 2).T)(x)


def crashing(x):
    return mapped(lambda x: exchanged(x, 0, 1))(x)


WRONG = {
    "plain transpose": (lambda x: x.T, "cut as P(None, 'i') instead of P('i', None)"),
    "local transpose alone": (
        lambda x: mapped(lambda x: x.T, P(None, "i"))(x),
        "Transposing locally moves nothing",
    ),
    "all_gather": (gathered, "the matrix was gathered (1 all-gather; 896 bytes"),
    "psum": (summed, "the pieces were put together by a sum (1 all-reduce"),
    "no local transpose": (
        lambda x: mapped(exchanged)(x),
        "did not transpose its block: the local transpose is missing. The global "
        "shape is (128, 2)",
    ),
    "no local transpose, by columns": (
        lambda x: mapped(exchanged, P(None, "i"))(x),
        "the local transpose is missing",
    ),
    "out_shardings": (
        jax.jit(
            lambda x: x.T,
            out_shardings=NamedSharding(jax.make_mesh((8,), ("i",)), ROWS),
        ),
        "there is no shard_map in it",
    ),
    "reshard": (by_compiler, "there is no shard_map in it"),
    "exchange outside": (exchanged_outside, "the all-to-all is not yours"),
    "seven permutes": (permuted, "not brought about by one all-to-all"),
    "replicated": (whole, "every device holds the whole matrix"),
    "wrong order": (reversed_pieces, "of 256 elements differ from the transpose"),
    "identity": (lambda x: x, "The result is x, as it came"),
    "a number": (lambda x: 2.0, "has the global shape () instead of (16, 16)"),
    "a list": (lambda x: [x.T], "it is of type list"),
    "another dtype": (
        lambda x: transposed_first(x).astype("bfloat16").astype("float32"),
        "differ from the transpose",
    ),
    "one size": (only_16, "Right for a matrix of 16 x 16, but not for one of 16 x 24"),
    "nothing returned": (lambda x: None, "returned None"),
    "no function": (np.ones((16, 16)), "must be a function"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers_fail_and_the_mistake_is_named(name):
    answer, diagnosis = WRONG[name]
    for seed in range(2):
        verdict = transpose.check(answer, seed)
        assert verdict.status == "failed"
        assert diagnosis in verdict.text, verdict


def test_a_crash_shows_the_line_and_the_error():
    verdict = transpose.check(crashing)
    assert verdict.status == "failed"
    text = str(verdict)
    assert text.startswith("Exercise 1: failed") and "Traceback" not in text
    assert "mapped(lambda x: exchanged" in text or "lax.all_to_all" in text
    assert "ValueError: The size of all_to_all split_axis (2)" in verdict.text
    assert "which of its dimensions" in verdict.look


def test_unanswered():
    def answer(x):
        raise NotAnsweredError

    assert transpose.check(answer).status == "not answered yet"
