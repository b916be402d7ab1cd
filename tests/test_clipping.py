"""The self-check of exercise 2 is fed right and wrong answers."""

import jax
import jax.numpy as jnp
import optax
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3.exercises import NotAnsweredError, clipping, solutions

SHARE = P("data")


BOTH = (SHARE, P())


def mapped(f, out_specs=BOTH, **options):
    specs = dict(in_specs=BOTH, out_specs=out_specs)
    return jax.shard_map(f, mesh=clipping.mesh(), **specs, **options)


def squares(g):
    return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(g))


def total(value):
    return lax.psum(value, "data")


def true_norm(g):
    return jnp.sqrt(total(squares(g)))


def local_norm(g):
    return jnp.sqrt(squares(g))


def limit(norm, max_norm):
    return jnp.minimum(1, max_norm / norm)


def clipped(norm=true_norm, scale=limit, **options):
    """Make an answer from a norm and a scale."""

    def local(g, max_norm):
        n = norm(g)
        s = scale(n, max_norm)
        return jax.tree.map(lambda leaf: leaf * s, g), n

    return mapped(local, **options)


def by_leaf(g):
    return jnp.sqrt(sum(total(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(g)))


def from_gathered_squares(g):
    return jnp.sqrt(lax.all_gather(squares(g), "data", to="invarying").sum())


RIGHT = {
    "reference": solutions.clip,
    "a sum for each leaf": clipped(by_leaf),
    "eight numbers gathered": clipped(from_gathered_squares),
    "divided by the larger": clipped(scale=lambda n, c: c / jnp.maximum(n, c)),
    "where": clipped(scale=lambda n, c: jnp.where(n > c, c / n, 1.0)),
    "with an epsilon": clipped(scale=lambda n, c: limit(n + 1e-6, c)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_answers_pass(name):
    for seed in range(2):
        verdict = clipping.check(RIGHT[name], seed)
        assert verdict.status == "passed", verdict


def test_the_norm_is_that_of_optax():
    g = [{"w": jnp.arange(16.0).reshape(8, 2) / 7, "b": jnp.ones(8)}]
    share, most = NamedSharding(clipping.mesh(), SHARE), jnp.float32(2)
    found, norm = jax.jit(solutions.clip)(jax.device_put(g, share), most)
    wanted, _ = optax.clip_by_global_norm(most).update(g, optax.EmptyState())
    assert jnp.allclose(norm, optax.tree.norm(g), rtol=1e-6)
    assert jnp.allclose(found[0]["w"], wanted[0]["w"], rtol=1e-6)


def each_by_itself(g, max_norm):
    scale = limit(local_norm(g), max_norm)
    return jax.tree.map(lambda leaf: leaf * scale, g), true_norm(g)


def each_leaf(g, max_norm):
    def one(leaf):
        return leaf * limit(jnp.sqrt(total(jnp.sum(leaf**2))), max_norm)

    return jax.tree.map(one, g), true_norm(g)


def gathered(g, max_norm):
    def gather(leaf):
        return lax.all_gather(leaf, "data", tiled=True, to="invarying")

    full = jax.tree.map(gather, g)
    norm = local_norm(full)
    return jax.tree.map(lambda leaf: leaf * limit(norm, max_norm), full), norm


def gathered_then_dropped(g, max_norm):
    _, norm = gathered(g, max_norm)
    return jax.tree.map(lambda leaf: leaf * limit(norm, max_norm), g), norm


def by_compiler(g, max_norm):
    norm = optax.tree.norm(g)
    return jax.tree.map(lambda leaf: leaf * limit(norm, max_norm), g), norm


def weights_only(g):
    return jnp.sqrt(total(sum(jnp.sum(layer["w"] ** 2) for layer in g)))


def mean(value):
    return lax.pmean(value, "data")


WRONG = {
    "local norm": (clipped(local_norm), "out_specs which require replication"),
    "local norm, unchecked": (
        clipped(local_norm, check_vma=False),
        "is the norm of device 0's own shares alone",
    ),
    "eight norms": (
        mapped(
            lambda g, c: (each_by_itself(g, c)[0], local_norm(g)[None]),
            out_specs=(SHARE, SHARE),
        ),
        "each device returned the norm of its own shares",
    ),
    "pmean of norms": (
        clipped(lambda g: mean(local_norm(g))),
        "is the mean of the eight local norms (pmean of norms)",
    ),
    "psum of norms": (
        clipped(lambda g: total(local_norm(g))),
        "is the sum of the eight local norms (psum of norms)",
    ),
    "pmax of norms": (
        clipped(lambda g: lax.pmax(local_norm(g), "data")),
        "the largest of the eight local norms",
    ),
    "pmean of squares": (
        clipped(lambda g: jnp.sqrt(mean(squares(g)))),
        "the root of the *mean* of the devices' sums",
    ),
    "summed twice": (
        clipped(lambda g: jnp.sqrt(total(total(squares(g))))),
        "the sum over the devices was taken twice",
    ),
    "no root": (clipped(lambda g: total(squares(g))), "without the square root"),
    "no biases": (clipped(weights_only), "without the biases"),
    "each shard by itself": (
        mapped(each_by_itself),
        "each device clipped its own shares by its own norm",
    ),
    "each leaf by itself": (mapped(each_leaf), "the leaves are scaled by different"),
    "always rescaled": (
        clipped(scale=lambda n, c: c / n),
        "*enlarged* 2 times: they are always rescaled",
    ),
    "never": (clipped(scale=lambda n, c: 1.0), "nothing was clipped"),
    "normalised": (clipped(scale=lambda n, c: 1 / n), "instead of 0.3 = minimum"),
    "zero over zero": (
        clipped(scale=lambda n, c: limit(n, c) * (n / n)),
        "all zero the answer returns NaN",
    ),
    "gathered": (mapped(gathered, (P(), P())), "instead of P('data')"),
    "gathered for the norm": (
        mapped(gathered_then_dropped),
        "whole gradients travel: 6 all-gather",
    ),
    "left to the compiler": (by_compiler, "there is no shard_map in it"),
    "one thing": (mapped(lambda g, c: g, SHARE), "must return two things"),
    "order": (
        mapped(lambda g, c: each_leaf(g, c)[::-1], (P(), SHARE)),
        "The second of the two things must be the norm",
    ),
    "another tree": (
        mapped(lambda g, c: (g[0], true_norm(g))),
        "clipped is built as {'b': *, 'w': *} (* is an array), but it must be [{",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers_fail_and_the_mistake_is_named(name):
    answer, diagnosis = WRONG[name]
    for seed in range(2):
        verdict = clipping.check(answer, seed)
        assert verdict.status == "failed"
        assert diagnosis in verdict.text, verdict


def test_a_local_norm_is_explained():
    verdict = clipping.check(clipped(local_norm))
    assert "Is the sum over the devices (psum) missing?" in verdict.look


def test_a_crash_shows_the_line_and_the_error():
    def answer(g, max_norm):
        return g["w"], max_norm

    verdict = clipping.check(mapped(answer))
    assert verdict.status == "failed" and "TypeError: list indices" in verdict.text
    assert 'return g["w"], max_norm' in verdict.text


def test_unanswered():
    def answer(g, max_norm):
        raise NotAnsweredError

    assert clipping.check(answer).status == "not answered yet"
