"""The self-check of exercise 5 is fed right and wrong answers."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3.exercises import NotAnsweredError, solutions, zero_one
from chapter3.zero import gather, own_share, scatter_mean

SHARE, WHOLE = P("data"), P()
STATE = {"m": SHARE, "v": SHARE, "count": WHOLE}
ALL_WHOLE = {"m": WHOLE, "v": WHOLE, "count": WHOLE}


def local_gradient(params, x, y):
    varying = lax.pcast(params, "data", to="varying")
    return jax.grad(zero_one.loss)(varying, x, y)


def summed_gradient(params, x, y):
    return jax.grad(zero_one.loss)(params, x, y)


def times(factor, tree):
    return jax.tree.map(lambda g: factor * g, tree)


def send_back(params):
    return gather(params, to="invarying")


def adam(
    gradient=local_gradient,
    combine=scatter_mean,
    finish=send_back,
    mine=own_share,
    betas=(0.9, 0.999),
    counted=1,
    t=lambda count: count + 1,
    rate=0.01,
    corrected=True,
    under_root=0.0,
    square=None,
):
    """Make a step on one device from its parts."""
    beta1, beta2 = betas

    def local(params, state, x, y):
        before = gradient(params, x, y)
        g = combine(before)
        g2 = times(1, square(before)) if square else jax.tree.map(jnp.square, g)
        m = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, state["m"], g)
        v = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g, state["v"], g2)
        n = t(state["count"]).astype(jnp.float32)
        c1, c2 = 1 - 0.9**n, 1 - 0.999**n
        if not corrected:
            c1 = c2 = 1.0

        def update(p, m, v):
            below = jnp.sqrt(v / c2 + under_root) + (0 if under_root else 1e-8)
            return p - rate * (m / c1) / below

        new = jax.tree.map(update, mine(params), m, v)
        return finish(new), {"m": m, "v": v, "count": state["count"] + counted}

    return local


def mapped(local, params_out=WHOLE, state_out=STATE, **options):
    return jax.shard_map(
        local,
        mesh=zero_one.mesh(),
        in_specs=(WHOLE, STATE, SHARE, SHARE),
        out_specs=(params_out, state_out),
        **options,
    )


def by_all_to_all(g):
    """Reduce-scatter in two parts: send each device its rows of all, add them up."""

    def one(g):
        pieces = lax.all_to_all(g, "data", split_axis=0, concat_axis=0, tiled=True)
        return pieces.reshape(8, -1, g.shape[1]).mean(axis=0)

    return jax.tree.map(one, g)


RIGHT = {
    "reference": solutions.zero1_step,
    "own": mapped(adam()),
    "all-to-all": mapped(adam(combine=by_all_to_all)),
    "donating": jax.jit(mapped(adam()), donate_argnums=(0, 1)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_answers_pass(name):
    for seed in range(3):
        verdict = zero_one.check(RIGHT[name], seed)
        assert verdict.status == "passed", verdict
    assert "5376 bytes" in verdict.text


def state_gathered(params, state, x, y):
    new, state = adam()(params, state, x, y)
    return new, state | {name: send_back(state[name]) for name in ("m", "v")}


def by_compiler(params, state, x, y):
    """Leave it to the compiler: whole gradients, cut results."""
    mesh = zero_one.mesh()
    g = jax.grad(zero_one.loss)(params, x, y)
    g = jax.reshard(g, NamedSharding(mesh, P("data", None)))
    mine = jax.reshard(params, NamedSharding(mesh, P("data", None)))
    step = adam(
        lambda *_: g, lambda g: g, finish=lambda new: new, mine=lambda params: mine
    )
    new, state = step(params, state, x, y)
    return jax.reshard(new, NamedSharding(mesh, P())), state


def each_gathered(g):
    full = jax.tree.map(lambda g: lax.all_gather(g, "data").mean(axis=0), g)
    return own_share(full)


def first_share(params):
    return jax.tree.map(lambda p: p[: len(p) // 8], params)


def crashing(params, state, x, y):
    return params, state["t"]


WRONG = {
    "sum": (
        mapped(adam(combine=lambda g: times(8, scatter_mean(g)))),
        "8 times the right one: it is the *sum* over the 8 devices",
    ),
    "divided twice": (
        mapped(adam(combine=lambda g: times(1 / 8, scatter_mean(g)))),
        "it was divided by 8 once too often",
    ),
    "wrong sign": (
        mapped(adam(combine=lambda g: times(-1, scatter_mean(g)))),
        "it has the wrong sign",
    ),
    "not reduced": (
        mapped(adam(combine=own_share)),
        "Each device put the gradient of its own rows alone into its m",
    ),
    "summed by autodiff, and again": (
        mapped(adam(gradient=summed_gradient)),
        "8 times the right one, and a sum of whole gradients is in the program",
    ),
    "summed by autodiff": (
        mapped(
            adam(gradient=summed_gradient, combine=lambda g: own_share(times(1 / 8, g)))
        ),
        "the gradient is all-reduced",
    ),
    "all-reduce": (
        mapped(adam(combine=lambda g: own_share(lax.pmean(g, "data")))),
        "1 all-reduce, 2 all-gather; 8064 bytes",
    ),
    "left to the compiler": (by_compiler, "the gradient is all-reduced"),
    "gradients gathered": (mapped(adam(combine=each_gathered)), "more is sent than"),
    "whole state": (
        mapped(state_gathered, state_out=ALL_WHOLE),
        "every device keeps the whole of m: 8 times the memory",
    ),
    "not gathered": (
        mapped(adam(finish=lambda new: new), params_out=SHARE),
        "each device has its share only",
    ),
    "not gathered, unchecked": (
        mapped(adam(finish=lambda new: new), check_vma=False),
        "the shares were not gathered",
    ),
    "another's rows": (mapped(adam(mine=first_share)), "that each device updates the"),
    "count stands still": (mapped(adam(counted=0)), "count went from 4 to 4"),
    "count before the step": (
        mapped(adam(t=lambda count: count)),
        "the bias is corrected with the count before the step",
    ),
    "no correction": (mapped(adam(corrected=False)), "the bias is not corrected"),
    "betas the other way round": (
        mapped(adam(betas=(0.999, 0.9))),
        "m is 0.999 m + 0.001 g instead of 0.9 m + 0.1 g",
    ),
    "v of m's beta": (mapped(adam(betas=(0.9, 0.9))), "v is not 0.999 v + 0.001 g²"),
    "mean of squares": (
        mapped(adam(square=lambda g: scatter_mean(jax.tree.map(jnp.square, g)))),
        "the mean of the devices' *squared* gradients",
    ),
    "epsilon under the root": (
        mapped(adam(under_root=1e-8)),
        "epsilon stands under the root",
    ),
    "uphill": (mapped(adam(rate=-0.01)), "the step goes uphill"),
    "no update": (mapped(adam(rate=0.0)), "they are as before"),
    "one thing": (
        lambda params, state, x, y: params,
        "must return two things, (params, state)",
    ),
    "state of other keys": (
        lambda params, state, x, y: (params, {"m": state["m"]}),
        'must be a dict with the keys "m", "v" and "count"',
    ),
    "params in a list": (
        lambda params, state, x, y: (list(params.values()), state),
        "params is built as [*, *]",
    ),
    "a crash": (crashing, "KeyError: 't'"),
    "no function": (1.0, "must be a function"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers_fail_and_the_mistake_is_named(name):
    answer, diagnosis = WRONG[name]
    for seed in range(2):
        verdict = zero_one.check(answer, seed)
        assert verdict.status == "failed"
        assert diagnosis in verdict.text + verdict.look, verdict


def test_a_crash_shows_the_line():
    assert 'return params, state["t"]' in zero_one.check(crashing).text


def test_unanswered():
    def answer(params, state, x, y):
        raise NotAnsweredError

    assert zero_one.check(answer).status == "not answered yet"


def test_parameters_hide_a_gradient_that_was_too_large_from_the_start():
    """As the solution says: m differs eight times, the parameters do not."""
    mesh = zero_one.mesh()
    key = jax.random.key(0)
    params = {"w1": jnp.ones((16, 32)) / 4, "w2": jnp.ones((32, 8)) / 6}
    zeros = jax.tree.map(jnp.zeros_like, params)
    state = {"m": zeros, "v": zeros, "count": jnp.int32(0)}
    x = jax.random.normal(key, (64, 16))
    specs = (WHOLE, STATE, SHARE, SHARE)
    placed = [
        jax.device_put(a, jax.tree.map(lambda s: NamedSharding(mesh, s), spec))
        for a, spec in zip((params, state, x, x[:, :8]), specs, strict=True)
    ]
    too_large = mapped(adam(combine=lambda g: times(8, scatter_mean(g))))
    right, wrong = (jax.jit(f)(*placed) for f in (solutions.zero1_step, too_large))
    for name in params:
        assert jnp.allclose(right[0][name], wrong[0][name], atol=1e-6)
        assert jnp.allclose(8 * right[1]["m"][name], wrong[1]["m"][name])
