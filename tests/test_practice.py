import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from tolerances import FLOAT32_STEPS

from chapter3 import data_parallel as dp
from chapter3 import device_mesh, figures, hlo
from chapter3.practice import problem
from chapter3.reference import descend

RATE, EPOCHS = 0.05, 50

# Published with the older version of this exercise, or measured with it.
LOSSES = {  # by number of devices, before the epochs 10, 20, 30, 40, 50
    1: (1.8029, 0.3030, 0.0689, 0.0238, 0.0135),
    2: (1.8174, 0.2562, 0.0443, 0.0149, 0.0107),
    4: (1.7352, 0.2214, 0.0359, 0.0127, 0.0098),
    8: (1.7164, 0.2124, 0.0342, 0.0129, 0.0103),
}


def train(form, n, given):
    """Train in one form; return parameters (of each device under pmap) and losses."""
    mesh = device_mesh({"data": n})
    params, batch = given.start, (given.x, given.y)
    if form == "pmap":
        # The mapped step of section 3.4, with parameters that carry a device axis.
        def local(params, x, y):
            value, gradients = jax.value_and_grad(dp.loss)(params, x, y)
            value, gradients = jax.lax.pmean((value, gradients), "batch")
            return dp.update(params, gradients, RATE), value

        step = jax.pmap(local, axis_name="batch", devices=jax.devices()[:n])
        params = jax.tree.map(lambda p: np.broadcast_to(p, (n, *p.shape)), params)
        batch = [np.asarray(a).reshape(n, -1, *a.shape[1:]) for a in batch]
    elif form == "one device":
        step = jax.jit(lambda p, x, y: dp.step(p, x, y, RATE))
    else:
        params = jax.device_put(params, NamedSharding(mesh, P()))
        batch = jax.device_put(batch, NamedSharding(mesh, P("data")))
        step = jax.jit(lambda p, x, y: dp.step(p, x, y, RATE))
        if form == "shard_map":
            step = dp.shard_map_step(mesh, RATE)
        step = program = step.lower(params, *batch).compile()
        expected = 2 * (n - 1) / n * 4 * (5 + 1 + 1)  # w, b, the loss
        assert hlo.wire_bytes(program) == pytest.approx(expected)
    losses = []
    for _ in range(EPOCHS):
        params, value = step(params, *batch)
        losses.append(float(np.ravel(value)[0]))
    return jax.tree.map(np.asarray, params), losses


@pytest.mark.parametrize("n", LOSSES)
def test_every_form_is_one_device_is_float64_is_what_was_published(n):
    given = problem(n)
    exact, exact_losses = descend(given.start, given.x, given.y, RATE, EPOCHS)
    assert [round(exact_losses[e - 1], 4) for e in (10, 20, 30, 40, 50)] == list(
        LOSSES[n]
    )
    for form in ("one device", "jit", "shard_map", "pmap"):
        params, losses = train(form, n, given)
        np.testing.assert_allclose(losses, exact_losses, **FLOAT32_STEPS)
        for name in ("w", "b"):
            if form == "pmap":
                copies = {copy.tobytes() for copy in params[name]}
                assert len(copies) == 1  # equal to the bit
                params[name] = params[name][0]
            np.testing.assert_allclose(params[name], exact[name], **FLOAT32_STEPS)


def test_the_optimum_of_these_data_is_reached_and_the_truth_is_not():
    given = problem(8)
    far, _ = descend(given.start, given.x, given.y, RATE, 500)
    matrix = np.column_stack([np.float64(given.x), np.ones(800)])
    best = np.linalg.lstsq(matrix, np.float64(given.y))[0]
    np.testing.assert_allclose(np.append(far["w"], far["b"]), best, atol=1e-9)
    truth = np.append(given.true["w"], given.true["b"])
    assert 0.003 < np.abs(best - truth).max() < 0.02


def test_the_figure_draws_every_run_and_its_gap():
    losses = {"a": [4.0, 2.0, 1.5], "b": [4.0, 2.02, 1.5]}
    figure = figures.draw_training(losses, [4.0, 2.0, 1.0], floor=0.9)
    above, below = figure.axes
    gaps = [list(line.get_ydata()) for line in below.lines]
    np.testing.assert_allclose(gaps, [[0, 0, 0.5], [0, 0.01, 0.5]], rtol=1e-9)
    names = [text.get_text() for text in above.get_legend().get_texts()]
    assert names == ["a", "b", "float64"]
    words = {"name": "fig-x", "alt": "Two lines.", "caption": "They meet."}
    assert figures.show(figure, **words).svg.startswith("<svg")
