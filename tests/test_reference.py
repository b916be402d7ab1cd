import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerances import FLOAT32_SUM, FLOAT64_SUM

from chapter3.reference import descend, f64, grad_mse, in_float64, linear_data, mse


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    x, y, w = (rng.standard_normal(shape) for shape in ((64, 5), 64, 5))
    return w, x, y


def test_gradient_equals_that_of_jax(problem):
    w, x, y = (jnp.asarray(a, jnp.float32) for a in problem)
    by_jax = jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
    np.testing.assert_allclose(by_jax, grad_mse(*problem), **FLOAT32_SUM)


def test_gradient_equals_finite_differences(problem):
    w, x, y = problem
    step = 1e-6
    slopes = [
        (mse(w + step * e, x, y) - mse(w - step * e, x, y)) / (2 * step)
        for e in np.eye(5)
    ]
    # Central differences of a quadratic are exact up to rounding, 1e-16/1e-6.
    np.testing.assert_allclose(grad_mse(w, x, y), slopes, rtol=1e-8)


def test_mean_of_local_gradients_is_the_global_gradient(problem):
    w, x, y = problem
    local = [
        grad_mse(w, a, b) for a, b in zip(np.split(x, 8), np.split(y, 8), strict=True)
    ]
    whole = grad_mse(w, x, y)
    np.testing.assert_allclose(np.mean(local, axis=0), whole, **FLOAT64_SUM)
    np.testing.assert_allclose(np.sum(local, axis=0), 8 * whole, **FLOAT64_SUM)


def test_expected_values(problem):
    expected = [-0.76038339, -1.58446061, -1.97493352, -1.41599488, -2.97499234]
    # Eight digits are printed.
    np.testing.assert_allclose(grad_mse(*problem), expected, atol=5e-9)


def test_f64():
    assert f64(jnp.ones(3, jnp.bfloat16)).dtype == np.float64


def test_in_float64_gives_the_exact_gradient_and_leaves_float32_on(problem):
    w, x, y = problem

    def mean_squares(w, data):
        return jnp.mean((data["x"] @ w - data["y"]) ** 2)

    short = jax.tree.map(jnp.float32, (w, {"x": x, "y": y}))
    found = in_float64(jax.grad(mean_squares), *short)
    assert found.dtype == np.float64
    exact = grad_mse(f64(short[0]), f64(short[1]["x"]), f64(short[1]["y"]))
    np.testing.assert_allclose(found, exact, **FLOAT64_SUM)
    assert jnp.ones(1).dtype == jnp.float32


@pytest.mark.parametrize("outputs", [(), (1,), (3,)], ids=str)
def test_descent_is_that_of_the_formula(outputs):
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((7, 5)), rng.standard_normal((7, *outputs))
    zero = {"w": np.zeros((5, *outputs)), "b": np.zeros(outputs)}
    once, (first_loss,) = descend(zero, x, y, rate=0.1, steps=1)
    np.testing.assert_allclose(once["w"], 0.2 / y.size * x.T @ y)
    np.testing.assert_allclose(once["b"], 0.2 / y.size * y.sum(axis=0))
    np.testing.assert_allclose(first_loss, np.mean(y**2))


def test_descent_finds_what_made_the_data():
    zero = {"w": np.zeros((5, 1)), "b": np.zeros(1)}
    found, losses = descend(zero, *linear_data(7), rate=0.1, steps=5000)
    np.testing.assert_allclose(found["w"][:, 0], [1, 2, 3, 4, 5], rtol=1e-5)
    np.testing.assert_allclose(found["b"], 0.5, rtol=1e-5)
    assert len(losses) == 5000 and losses[-1] < 1e-10
