import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from tolerances import FLOAT32_SUM

from chapter3 import device_mesh, hlo, pipeline, pipeline_runtime, timeline, zero
from chapter3.schedules import bubble, gpipe, one_forward_one_backward


def stage(weights, x):
    return jnp.tanh(x @ weights["w"] + weights["b"][None])


def mean_squares(out, y):
    return jnp.mean((out - y) ** 2)


def problem(p, batch=24, width=6):
    k_w, k_x = jax.random.split(jax.random.key(3))
    weights = {
        "w": jax.random.normal(k_w, (p, width, width)) / 2,
        "b": jnp.full((p, width), 0.1),
    }
    x = jax.random.normal(k_x, (batch, width))
    return weights, x, jnp.sin(x)


def sequential(weights, x, p):
    for s in range(p):
        x = stage({name: leaf[s] for name, leaf in weights.items()}, x)
    return x


@pytest.mark.parametrize("p", [1, 2, 4, 8])
@pytest.mark.parametrize("m", [1, 3, 8, 24])
def test_result_gradient_ticks_and_traffic(p, m):
    weights, x, y = problem(p)
    mesh = device_mesh({"stage": p})
    chain = pipeline.pipeline(stage, mesh, m)
    placed, whole = zero.place(weights, mesh, P("stage")), zero.place((x, y), mesh, P())
    out, log = jax.jit(chain)(placed, whole[0])
    np.testing.assert_allclose(out, sequential(weights, x, p), **FLOAT32_SUM)
    assert out.sharding.is_fully_replicated

    log = np.asarray(log)
    assert log.shape == (p, m + p - 1)
    for s in range(p):  # each stage sees each microbatch once, in order
        assert log[s][log[s] >= 0].tolist() == list(range(m))
        assert list(log[s]).index(0) == s
    assert pipeline.idle_share(log) == pytest.approx(float(bubble(p, m)))

    def loss(weights, x, y):
        return mean_squares(chain(weights, x)[0], y)

    step = jax.jit(jax.grad(loss))
    gradients = step(placed, *whole)
    wanted = jax.grad(lambda w: mean_squares(sequential(w, x, p), y))(weights)
    for name, leaf in gradients.items():
        np.testing.assert_allclose(leaf, wanted[name], **FLOAT32_SUM)
        assert leaf.sharding.is_equivalent_to(placed[name].sharding, leaf.ndim)
    permutes = [
        op
        for op in hlo.collectives(step.lower(placed, *whole).compile())
        if op.kind == "collective-permute" and op.nbytes > 4  # without the numbers
    ]
    if p > 1:
        assert sum(op.times for op in permutes) == 2 * (m + p - 1)
        assert {op.nbytes for op in permutes} == {x.nbytes // m}


def test_the_record_is_what_arrived_and_not_the_formula(monkeypatch):
    """Break the passing on: the record must show it."""
    weights, x, _ = problem(4)
    real = jax.lax.ppermute

    def to_nobody(values, axis, pairs):
        return real(values, axis, [pair for pair in pairs if pair != (1, 2)])

    monkeypatch.setattr("chapter3.pipeline.lax.ppermute", to_nobody)
    mesh = device_mesh({"stage": 4})
    chain = pipeline.pipeline(stage, mesh, 3)
    placed = zero.place(weights, mesh, P("stage"))
    _, log = jax.jit(chain)(placed, zero.place(x, mesh, P()))
    log = np.asarray(log)
    assert (log[:2] >= 0).any() and (log[2:] == -1).all()


@pytest.mark.parametrize("m", [1, 4, 8])
def test_one_tick_fewer_is_wrong(monkeypatch, m):
    """There is no tick to spare: leave the last of m + p - 1 out."""
    weights, x, _ = problem(4)
    real = jax.lax.scan

    def shorter(body, start, ticks):
        last, (results, log) = real(body, start, ticks[:-1])
        missing = jnp.zeros_like(results[:1]), log[:1]
        return last, jax.tree.map(
            lambda a, b: jnp.concatenate([a, b]), (results, log), missing
        )

    monkeypatch.setattr("chapter3.pipeline.lax.scan", shorter)
    mesh = device_mesh({"stage": 4})
    placed = zero.place(weights, mesh, P("stage"))
    out, _ = jax.jit(pipeline.pipeline(stage, mesh, m))(
        placed, zero.place(x, mesh, P())
    )
    correct = np.isclose(out, sequential(weights, x, 4), **FLOAT32_SUM).all(axis=1)
    rows = len(x) // m
    assert correct[:-rows].all() and not correct[-rows:].any()


def test_idle_slots_do_not_poison_the_gradient():
    """A stage whose derivative at zero is infinite."""

    def normalise(weights, x):
        y = x @ weights["w"]
        return y / jnp.sqrt(jnp.sum(y**2, axis=-1, keepdims=True))

    weights, x, y = problem(4)
    mesh = device_mesh({"stage": 4})
    chain = pipeline.pipeline(normalise, mesh, 3)
    placed, whole = zero.place(weights, mesh, P("stage")), zero.place((x, y), mesh, P())
    gradient = jax.jit(jax.grad(lambda w, x, y: mean_squares(chain(w, x)[0], y)))(
        placed, *whole
    )
    assert np.all(np.isfinite(np.asarray(gradient["w"])))


def test_a_batch_that_does_not_divide_is_refused():
    weights, x, _ = problem(2)
    chain = pipeline.pipeline(stage, device_mesh({"stage": 2}), 5)
    with pytest.raises(ValueError, match=r"len\(x\)=24 must be a multiple of micro"):
        chain(weights, x)


@pytest.mark.parametrize("schedule", [gpipe(4, 6), one_forward_one_backward(4, 6)])
def test_at_run_time_in_the_order_of_a_schedule(schedule):
    weights, x, y = problem(4)
    meshes = pipeline_runtime.sub_meshes(device_mesh({"stage": 4, "data": 2}), "stage")
    each = [{name: leaf[s] for name, leaf in weights.items()} for s in range(4)]
    programs = pipeline_runtime.compile_stage(stage, mean_squares)
    value, gradients, log = pipeline_runtime.run(
        programs, each, (x, y), meshes, schedule
    )
    wanted_value = mean_squares(sequential(weights, x, 4), y)
    np.testing.assert_allclose(value, wanted_value, **FLOAT32_SUM)
    wanted = jax.grad(lambda w: mean_squares(sequential(w, x, 4), y))(weights)
    for s, found in enumerate(gradients):
        for name, leaf in found.items():
            np.testing.assert_allclose(leaf, wanted[name][s], **FLOAT32_SUM)
            assert leaf.devices() == set(meshes[s].devices.flat)
    for device in range(4):  # each device's calls are in the order of the schedule
        planned = [slot.work for slot in schedule.slots if slot.device == device]
        assert [work for work in log.calls if work.stage == device] == planned


def run_at_run_time(schedule, data, width=6, batch=24):
    """Return how to run a schedule, its sub-meshes, and the bytes of an activation."""
    p = schedule.devices
    weights, x, y = problem(p, batch, width)
    meshes = pipeline_runtime.sub_meshes(
        device_mesh({"stage": p, "data": data}), "stage"
    )
    each = [{name: leaf[s] for name, leaf in weights.items()} for s in range(p)]
    programs = pipeline_runtime.compile_stage(stage, mean_squares)

    def run():
        return pipeline_runtime.run(programs, each, (x, y), meshes, schedule)

    return run, meshes, x.nbytes


@pytest.mark.parametrize(("p", "data"), [(4, 2), (4, 1), (2, 4), (1, 2)])
def test_what_is_handed_over_at_run_time(p, data):
    m = 3
    run, meshes, activation = run_at_run_time(gpipe(p, m), data)
    transfers = run()[2].transfers
    ids = [frozenset(d.id for d in mesh.devices.flat) for mesh in meshes]
    between = [t for t in transfers if t.what in ("activation", "gradient")]
    assert len(between) == 2 * (p - 1) * m
    for t in between:
        phase, _, s = t.purpose
        assert (t.what, t.target) == (
            "activation" if phase == "F" else "gradient",
            ids[s],
        )
        assert t.source == ids[s - 1 if phase == "F" else s + 1]
        assert t.nbytes == activation / m
    assert sum(t.nbytes for t in between) == 2 * (p - 1) * activation
    # Each input and target goes once to the first and the last stage; they lie on
    # device 0, where the first stage's first block stays.
    of = {
        what: [t for t in transfers if t.what == what] for what in ("input", "target")
    }
    assert sum(t.nbytes for t in of["input"]) == (data - 1) / data * activation
    share = (data - 1) / data if p == 1 else 1
    assert sum(t.nbytes for t in of["target"]) == share * activation
    assert len(transfers) == len(between) + 2 * m


def test_a_transfer_that_goes_astray_is_seen(monkeypatch):
    """The record is of the arrays, not of the plan: send all to one stage."""
    run, meshes, _ = run_at_run_time(gpipe(4, 3), 1)
    real = jax.device_put

    def astray(x, sharding):
        first = sharding.mesh.devices.flat[0] in meshes[2].devices.flat
        return real(
            x, jax.sharding.NamedSharding(meshes[1], P()) if first else sharding
        )

    monkeypatch.setattr("chapter3.pipeline_runtime.jax.device_put", astray)
    transfers = run()[2].transfers
    lost = [t for t in transfers if t.what == "activation" and t.purpose.stage == 2]
    assert lost and all(t.target == {1} and t.nbytes == 0 for t in lost)


@pytest.mark.parametrize("data", [1, 2])
def test_stages_of_one_device_overlap_and_of_two_take_turns(data):
    """What the CPU client does: programs over several devices run one at a time."""
    run, _, _ = run_at_run_time(
        one_forward_one_backward(4, 8), data, width=256, batch=2048
    )

    def loss_and_gradients():
        return run()[:2]

    jax.block_until_ready(loss_and_gradients())
    _, executions = timeline.record(loss_and_gradients)
    of_stages = [e for e in executions if e.program in ("jit_stage", "jit_backward")]
    assert len(of_stages) == data * 4 * (8 + 8)
    overlapping = timeline.in_flight_together(of_stages)
    assert (len(overlapping) > 0) == (data == 1)


def test_bad_numbers_of_stages_are_refused():
    weights, x, y = problem(4)
    meshes = pipeline_runtime.sub_meshes(device_mesh({"stage": 4, "data": 2}), "stage")
    programs = pipeline_runtime.compile_stage(stage, mean_squares)
    with pytest.raises(ValueError, match=r"schedule.devices=3"):
        pipeline_runtime.run(programs, [weights] * 4, (x, y), meshes, gpipe(3, 6))
    with pytest.raises(ValueError, match="a multiple of 5 microbatches"):
        pipeline_runtime.run(programs, [weights] * 4, (x, y), meshes, gpipe(4, 5))


def test_sub_meshes_keep_the_other_axis():
    meshes = pipeline_runtime.sub_meshes(device_mesh({"stage": 4, "data": 2}), "stage")
    ids = [[d.id for d in mesh.devices.flat] for mesh in meshes]
    assert ids == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert all(mesh.axis_names == ("data",) for mesh in meshes)
    with pytest.raises(ValueError, match="needs an axis besides 'stage'"):
        pipeline_runtime.sub_meshes(device_mesh({"stage": 8}), "stage")
