"""The self-check of exercise 3 is fed right and wrong answers."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3 import hlo
from chapter3.exercises import NotAnsweredError, solutions, two_axes

SPECS = two_axes.SPECS


def shardings():
    mesh = two_axes.mesh()
    return {name: NamedSharding(mesh, spec) for name, spec in SPECS.items()}


def fixed(f, **options):
    return jax.jit(f, out_shardings=shardings(), **options)


def loss(p, x, y, activation=jax.nn.relu, reduce=jnp.mean):
    h = activation(x @ p["w1"] + p["b1"][None])
    return reduce((h @ p["w2"] - y) ** 2)


def step(p, x, y, rate=0.1, **options):
    gradients = jax.grad(partial(loss, **options))(p, x, y)
    return jax.tree.map(lambda w, g: w - rate * g, p, gradients)


def constrained(p, x, y):
    return lax.with_sharding_constraint(step(p, x, y), shardings())


def by_hand(p, x, y):
    """Write the collectives oneself, in shard_map."""

    def local(p, x, y):
        own = lax.axis_index("model") * 16
        b1 = lax.dynamic_slice_in_dim(p["b1"], own, 16)
        h = jax.nn.relu(x @ p["w1"] + b1[None])
        out = lax.psum(h @ p["w2"], "model")
        return lax.pmean(jnp.mean((out - y) ** 2), "data")

    def update(p, x, y):
        return jax.tree.map(lambda w, g: w - 0.1 * g, p, jax.grad(local)(p, x, y))

    specs = dict(in_specs=(SPECS, P("data"), P("data")), out_specs=SPECS)
    return jax.shard_map(update, mesh=two_axes.mesh(), **specs)(p, x, y)


RIGHT = {
    "reference": solutions.make_step,
    "donating": lambda: fixed(step, donate_argnums=0),
    "constraints": lambda: jax.jit(constrained),
    "shard_map": lambda: jax.jit(by_hand),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_answers_pass(name):
    answer = RIGHT[name]()
    for seed in range(3):
        verdict = two_axes.check(answer, seed)
        assert verdict.status == "passed", verdict


def bias_only(p, x, y):
    new = step(p, x, y)
    new["b1"] = lax.with_sharding_constraint(new["b1"], shardings()["b1"])
    return new


def one_after_another(p, x, y):
    for name in p:
        p = p | {name: step(p, x, y)[name]}
    return p


def gathering(p, x, y):
    whole = NamedSharding(two_axes.mesh(), P())
    return step(lax.with_sharding_constraint(p, whole), x, y)


def crashing(p, x, y):
    return {name: p[name] for name in ("w1", "b2")}


WRONG = {
    "jit alone": (
        lambda: jax.jit(step),
        "b1 went in as P() and comes out as P('model',)",
    ),
    "no jit": (lambda: step, "the step is not what jax.jit returns"),
    "placed afterwards, no jit": (
        lambda: lambda p, x, y: jax.device_put(step(p, x, y), shardings()),
        "the step is not what jax.jit returns",
    ),
    "jit inside": (
        lambda: lambda p, x, y: fixed(step)(p, x, y),
        "the step is not what jax.jit returns",
    ),
    "only the bias fixed": (
        lambda: jax.jit(bias_only),
        "nothing in the step says how w1, w2 must be cut",
    ),
    "specs without a mesh": (
        lambda: jax.jit(step, out_shardings=two_axes.SPECS),
        "jit requires a non-empty mesh",
    ),
    "replicated": (
        lambda: jax.jit(step, out_shardings=NamedSharding(two_axes.mesh(), P())),
        "w1 went in as P(None, 'model') and comes out as P()",
    ),
    "gathering": (lambda: fixed(gathering), "a whole weight matrix is gathered"),
    "rate": (
        lambda: fixed(partial(step, rate=0.01)),
        "as if the learning rate were 0.01 instead of 0.1",
    ),
    "sum": (
        lambda: fixed(partial(step, reduce=jnp.sum)),
        "128 times too large: your loss is the *sum*",
    ),
    "sum over features": (
        lambda: fixed(partial(step, reduce=lambda e: e.sum(axis=1).mean())),
        "8 times too large: your loss sums over the features",
    ),
    "sum over data": (
        lambda: fixed(partial(step, reduce=lambda e: 4 * e.mean())),
        "4 times too large, as if gradients were summed over devices",
    ),
    "half": (
        lambda: fixed(partial(step, reduce=lambda e: e.mean() / 2)),
        "The step is 0.5 times the right one",
    ),
    "uphill": (lambda: fixed(partial(step, rate=-0.1)), "The step goes uphill"),
    "another model": (
        lambda: fixed(partial(step, activation=jnp.tanh)),
        "does not follow the gradient",
    ),
    "one after another": (
        lambda: fixed(one_after_another),
        "does not follow the gradient",
    ),
    "unchanged": (lambda: fixed(lambda p, x, y: p), "came back as they were"),
    "one parameter": (
        lambda: fixed(lambda p, x, y: p | {"w1": step(p, x, y)["w1"]}),
        "b1 and w2 did not move",
    ),
    "a list": (
        lambda: jax.jit(lambda p, x, y: list(step(p, x, y).values())),
        "new is built as [*, *, *]",
    ),
    "a pair": (
        lambda: jax.jit(lambda p, x, y: (step(p, x, y), 0.0)),
        "but it must be {'b1': *, 'w1': *, 'w2': *}",
    ),
    "a crash": (lambda: jax.jit(crashing), "KeyError: 'b2'"),
    "no function": (lambda: None, "must be a function"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers_fail_and_the_mistake_is_named(name):
    make, diagnosis = WRONG[name]
    answer = make()
    for seed in range(2):
        verdict = two_axes.check(answer, seed)
        assert verdict.status == "failed"
        assert diagnosis in verdict.text, verdict


def test_a_crash_shows_the_line():
    verdict = two_axes.check(jax.jit(crashing))
    assert 'return {name: p[name] for name in ("w1", "b2")}' in verdict.text


def test_unanswered():
    @jax.jit
    def answer(p, x, y):
        raise NotAnsweredError

    assert two_axes.check(answer).status == "not answered yet"


def test_what_drifts_is_compiled_twice():
    """As the solution says of `jit` without out_shardings."""
    mesh = two_axes.mesh()
    p = {"w1": jnp.ones((8, 32)), "b1": jnp.ones(32), "w2": jnp.ones((32, 8))}
    x = jax.device_put(jnp.ones((16, 8)), NamedSharding(mesh, P("data")))
    for compiled, times in ((jax.jit(step), 2), (fixed(step), 1)):
        new = jax.device_put(p, shardings())
        for _ in range(3):
            new = compiled(new, x, x)
        assert compiled._cache_size() == times


def test_collectives_of_the_solution_run_where_it_says():
    mesh = two_axes.mesh()
    p = {"w1": jnp.ones((8, 32)), "b1": jnp.ones(32), "w2": jnp.ones((32, 8))}
    p = jax.device_put(p, shardings())
    x = jax.device_put(jnp.ones((16, 8)), NamedSharding(mesh, P("data")))
    program = solutions.make_step().lower(p, x, x).compile()
    found = [(o.kind, hlo.mesh_axes(o, mesh)) for o in hlo.collectives(program)]
    assert sorted(found) == [
        ("all-gather", ("model",)),
        ("all-reduce", ("data",)),
        ("all-reduce", ("model",)),
    ]


def test_specs_without_a_mesh_are_explained():
    verdict = two_axes.check(jax.jit(step, out_shardings=two_axes.SPECS))
    assert "NamedSharding(mesh, spec) of each" in verdict.look
